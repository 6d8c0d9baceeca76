import FoundationEssentials
import Glibc
import PromiseCore
import PromiseKit
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
        guard let last = read(name), last.configuration == configuration else { return nil }
        return last
    }

    private static func read(_ name: String) -> LastSettings? {
        guard let path = path(name),
            case .content(let bytes) = TrustedFile.read(path, countMax: byteCountMax)
        else { return nil }
        return try? JSONDecoder().decode(LastSettings.self, from: Data(bytes))
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

    /// Those of another domain of the same name stay. Blocking.
    static func forget(_ place: StatePlaces.Place) {
        if let last = read(place.name) {
            let given = last.domain.value(of: "--state-dir").map { RawArguments.bytes(of: $0) }
            let folder = given ?? (try? BaseFolders.state(domain: place.name))
            guard folder.map({ simplified($0) }) == simplified(place.folder) else { return }
        }
        if let path = path(place.name) { _ = try? unlink(path, label: "settings.last.remove") }
    }
}
