import FoundationEssentials
import Glibc
package import Logging
package import PromiseSystem

/// A small JSON file in the state folder in which a provider remembers something. Blocking, for a moment.
package struct RememberedFile<Value: Codable & Sendable>: Sendable {
    /// Bytes of its path; nil: nothing is remembered.
    private let path: [UInt8]?
    private let logger: Logger
    private static var byteCountMax: Int { 64 << 20 }

    package init(folder: [UInt8]?, name: String, logger: Logger) {
        path = folder.map { $0 + Array("/\(name)".utf8) }
        self.logger = logger
    }

    /// Nil when there is none, or one that cannot be read.
    package func read() -> Value? {
        guard let path, let bytes = readSmallFile(path, countMax: RememberedFile.byteCountMax) else { return nil }
        return try? JSONDecoder().decode(Value.self, from: Data(bytes))
    }

    /// The old file or the new one is there after a power cut, never half of one; without `survivesPowerCut` there may be none
    /// that can be read. A file that cannot be written is logged.
    package func write(_ value: Value, survivesPowerCut: Bool = true) {
        do throws(SystemError) {
            try keep(value, survivesPowerCut)
        } catch {
            logger.warning("what is known of the server could not be remembered", metadata: ["reason": "\(error.description)"])
        }
    }

    /// Returns when it is on the disk.
    package func keep(_ value: Value) throws(SystemError) { try keep(value, true) }

    private func keep(_ value: Value, _ survivesPowerCut: Bool) throws(SystemError) {
        guard let path, let data = try? JSONEncoder().encode(value) else { return }
        let aside = path + Array(".new".utf8)
        let file = try Descriptor.open(aside, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "provider.remember.create")
        try writeFully(file.number, Array(data), at: 0, label: "provider.remember.write")
        if survivesPowerCut { try synchronize(file.number, dataOnly: false, label: "provider.remember.synchronize") }
        try rename(aside, to: path, label: "provider.remember.rename")
        guard survivesPowerCut else { return }
        let folder = try Descriptor.open(
            Array(path[..<(path.lastIndex(of: 0x2F) ?? 0)]), flags: O_RDONLY | O_DIRECTORY, label: "provider.remember.openFolder")
        try synchronize(folder.number, dataOnly: false, label: "provider.remember.synchronizeName")
    }
}
