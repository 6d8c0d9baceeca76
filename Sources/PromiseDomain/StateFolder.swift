import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem

/// The folder that a domain keeps everything in: `index.sqlite`, `content/`, `lock`, `log/`.
final class StateFolder: Sendable {
    let path: [UInt8]
    /// Held as long as the daemon lives; the kernel lets go of it when the daemon dies.
    private let lock: SharedDescriptor

    /// How long a daemon that was killed may take to let go of the lock before it is looked at
    /// whether it can.
    private static let stuckPatience = Duration.milliseconds(300)

    /// As `init`, but goes on trying for as long as `patience`. Also takes the lock from a daemon
    /// that was killed and cannot end, as it waits for a disk that hangs.
    static func lock(
        _ path: [UInt8], patience: Duration
    ) async throws(Domain.StartFailure) -> StateFolder {
        let start = ContinuousClock.now
        while true {
            let waited = ContinuousClock.now - start
            do throws(Domain.StartFailure) {
                return try StateFolder(path, takesOver: waited >= stuckPatience)
            } catch {
                guard waited < max(patience, stuckPatience) else { throw error }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    /// Makes the folder (mode 0700) and takes its lock. `takesOver`: also from who is stuck in its
    /// end.
    init(_ path: [UInt8], takesOver: Bool = false) throws(Domain.StartFailure) {
        self.path = path
        let hand: String?
        do throws(SystemError) {
            try makeFolders(path, label: "domain.state")
            let folder = try Descriptor.open(path, flags: O_RDONLY | O_DIRECTORY, label: "domain.state.open")
            hand = try FileStatus.of(descriptor: folder.number, label: "domain.state.status").strangersHand
        } catch {
            throw StateFolder.failure(error, path)
        }
        if let hand {
            throw Domain.StartFailure("the state directory '\(escapedForDisplay(path))' \(hand)", exitStatus: 5)
        }
        lock = try StateFolder.takeLock(path, takesOver: takesOver)
    }

    private static func takeLock(
        _ path: [UInt8], takesOver: Bool
    ) throws(Domain.StartFailure) -> SharedDescriptor {
        let place = path + Array("/lock".utf8)
        let turn: SharedDescriptor
        do throws(SystemError) {
            let lock = SharedDescriptor(
                try Descriptor.open(place, flags: O_RDWR | O_CREAT, label: "domain.lock.open"))
            let number = lock.number
            let inode = try FileStatus.of(descriptor: number, label: "domain.lock.status").inode
            if flock(number, LOCK_EX | LOCK_NB) == 0 {
                // Whoever took it over has another file.
                guard try FileStatus.of(place, label: "domain.lock.name").inode == inode else {
                    throw held
                }
                return lock
            }
            guard takesOver, isStuck(inode) else { throw held }
            // One at a time: of two that had found the same, each would have a lock of its own.
            let turnPlace = path + Array("/lock.turn".utf8)
            turn = SharedDescriptor(
                try Descriptor.open(turnPlace, flags: O_RDWR | O_CREAT, label: "domain.lock.turn"))
            guard flock(turn.number, LOCK_EX | LOCK_NB) == 0,
                try FileStatus.of(place, label: "domain.lock.before").inode == inode
            else { throw held }
        } catch {
            throw failure(error, path)
        }
        defer { withExtendedLifetime(turn) {} }
        return try replaceLock(place, path)
    }

    private static let held = SystemError(errno: EWOULDBLOCK, label: "domain.lock.take")

    private static func isStuck(_ inode: UInt64) -> Bool {
        let holders = ProcessTable.lockHolders(inode: inode)
        return !holders.isEmpty && holders.allSatisfy(ProcessTable.isStuckInItsEnd)
    }

    private static func replaceLock(
        _ place: [UInt8], _ path: [UInt8]
    ) throws(Domain.StartFailure) -> SharedDescriptor {
        let new = place + Array(".new".utf8)
        let lock: SharedDescriptor
        do throws(SystemError) {
            // Of a replacement that was cut off.
            _ = try? unlink(new, label: "domain.lock.clear")
            let flags = O_RDWR | O_CREAT | O_EXCL
            lock = SharedDescriptor(try Descriptor.open(new, flags: flags, label: "domain.lock.make"))
            let number = lock.number
            _ = try call("domain.lock.new") { flock(number, LOCK_EX | LOCK_NB) }
        } catch {
            throw failure(error, path)
        }
        do throws(Failure) {
            try Index.renew(path: path + Array("/index.sqlite".utf8))
        } catch {
            throw Domain.StartFailure(error)
        }
        do throws(SystemError) {
            try rename(new, to: place, label: "domain.lock.replace")
        } catch {
            throw failure(error, path)
        }
        return lock
    }

    private static func failure(_ error: SystemError, _ path: [UInt8]) -> Domain.StartFailure {
        let shown = escapedForDisplay(path)
        if error.errno == EWOULDBLOCK {
            return Domain.StartFailure(
                "the state directory '\(shown)' is in use by another daemon: unmount it first, or choose another with --state-dir"
            )
        }
        let status: Int32 = error.errno == EACCES || error.errno == EPERM ? 5 : 1
        return Domain.StartFailure(
            "the state directory '\(shown)' cannot be used: \(error.reason)", exitStatus: status)
    }

    /// As DATA.md has them.
    private static let ownNames: Set<String> = [
        "content", "thumbnails", "moves", "values", "attributes", "snapshots", "kept", "log", "opened-folders", "migration",
        "extension", "transfers", "transfers.new", "lock", "lock.turn", "lock.new",
    ]
    private static let ownBeginnings = ["index.sqlite", "audit.log", "webdav-", "s3-", "containers.json", "bookmark.key"]

    /// Whether a domain makes something of this name in its state folder.
    static func isOwn(_ name: [UInt8]) -> Bool {
        guard let text = String(validating: name, as: UTF8.self) else { return false }
        return ownNames.contains(text) || ownBeginnings.contains { text.hasPrefix($0) }
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
