import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem

/// The folder that a domain keeps everything in: `index.sqlite`, `content/`, `lock`, `log/`.
final class StateFolder: Sendable {
    let path: [UInt8]
    /// Held as long as the daemon lives; the kernel lets go of it when the daemon dies.
    private let lock: Descriptor

    /// As `init`, but goes on trying for as long as `patience`.
    static func lock(_ path: [UInt8], patience: Duration) async throws(Domain.StartFailure) -> StateFolder {
        let start = ContinuousClock.now
        while true {
            do throws(Domain.StartFailure) {
                return try StateFolder(path)
            } catch {
                guard ContinuousClock.now - start < patience else { throw error }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    /// Makes the folder (mode 0700) and takes its lock.
    init(_ path: [UInt8]) throws(Domain.StartFailure) {
        self.path = path
        let shown = escapedForDisplay(path)
        do throws(SystemError) {
            try makeFolders(path, label: "domain.state")
            lock = try Descriptor.open(path + Array("/lock".utf8), flags: O_RDWR | O_CREAT, label: "domain.lock.open")
        } catch {
            let status: Int32 = error.errno == EACCES || error.errno == EPERM ? 5 : 1
            throw Domain.StartFailure("the state directory '\(shown)' cannot be used: \(error.reason)", exitStatus: status)
        }
        do throws(SystemError) {
            let number = lock.number
            _ = try call("domain.lock.take") { flock(number, LOCK_EX | LOCK_NB) }
        } catch {
            throw Domain.StartFailure(
                "the state directory '\(shown)' is in use by another daemon: unmount it first, or choose another with --state-dir"
            )
        }
    }

    func file(_ name: String) -> [UInt8] { path + Array("/\(name)".utf8) }
}

/// The kernel's name for this run of the machine: another one means that the power may have failed in between.
func bootIdentifier() -> String {
    // Tests of power cuts let a copy of a disk be found by "another" run of the machine.
    if let told = environment("PROMISEFS_BOOT") { return told }
    guard let bytes = readSmallFile(Array("/proc/sys/kernel/random/boot_id".utf8)) else { return "unknown" }
    return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
}

func hostName() -> String {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, 255) == 0 else { return "localhost" }
    return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// A variable of the environment, empty ones not.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}
