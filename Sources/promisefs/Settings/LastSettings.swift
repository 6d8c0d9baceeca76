import FoundationEssentials
import Glibc
import PromiseCore
import PromiseSystem
import PromiseWire

/// What a domain of the configuration file had when it was mounted last, for when the file cannot be
/// followed: a slip of the pen in it is no reason to keep anybody from what is here.
struct LastSettings: Codable, Equatable {
    /// In the file; a mount may have another one.
    var name: String
    /// The file that said it.
    var configuration: String
    var domain: ConfigurationFile.Domain

    private static let byteCountMax = 1 << 20

    private static func path(_ name: String) -> [UInt8]? {
        guard DomainName.isValid(name), let folder = try? BaseFolders.configured() else { return nil }
        return folder + Array("/\(name)".utf8)
    }

    /// Nil when there are none, from this file, that may be believed. Blocking.
    static func read(_ name: String, of configuration: String) -> LastSettings? {
        guard let path = path(name),
            case .content(let bytes) = TrustedFile.read(path, countMax: byteCountMax),
            let last = try? JSONDecoder().decode(LastSettings.self, from: Data(bytes)),
            last.configuration == configuration
        else { return nil }
        return last
    }

    /// The domains that a file named. Blocking.
    static func names(of configuration: String) -> [String] {
        guard let folder = try? BaseFolders.configured(),
            let descriptor = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY, label: "settings.last.folder"),
            let entries = try? listFolder(descriptor, label: "settings.last.list")
        else { return [] }
        let names = entries.compactMap { String(validating: $0.name, as: UTF8.self) }
        return names.filter { read($0, of: configuration) != nil }.sorted()
    }

    /// The old ones or these are there after a power cut. Where there is no room nothing is said:
    /// they are wanted for mistakes only. Blocking.
    func write() {
        guard LastSettings.read(name, of: configuration) != self, let path = LastSettings.path(name),
            let folder = try? BaseFolders.configured(), let data = try? JSONEncoder().encode(self)
        else { return }
        do throws(SystemError) {
            try makeFolders(folder, label: "settings.last.makeFolder")
            try replaceSmallFile(path, with: Array(data))
        } catch {
            return
        }
    }

    /// Blocking.
    static func forget(_ name: String) {
        if let path = path(name) { _ = try? unlink(path, label: "settings.last.remove") }
    }
}
