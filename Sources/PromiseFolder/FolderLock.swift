import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// The turns of all PromiseFS daemons that share the folder, by its lock file (flock(2)).
struct FolderLock: Sendable {
    let hidden: HiddenFolder
    private var root: FolderRoot { hidden.root }

    /// Runs `body` while no other PromiseFS daemon replaces or removes something in the folder
    /// (flock(2)).
    func withTurn<Value>(_ body: () throws(ProviderError) -> Value) throws(ProviderError) -> Value {
        let turn = try lock()
        let outcome: Result<Value, ProviderError>
        do throws(ProviderError) { outcome = .success(try body()) } catch {
            outcome = .failure(error)
        }
        // Closing the file gives the turn to the next.
        _ = consume turn
        return try outcome.get()
    }

    /// Who has it may be at work on a file system inside the folder that hangs, or stopped.
    private static let patience = Duration.seconds(20)
    private static let longestPauseMicroseconds: UInt32 = 5_000

    private func lock() throws(ProviderError) -> Descriptor {
        let file = try openFile()
        let start = root.clock.uptime()
        var pause: UInt32 = 100
        while try !take(file.number) {
            guard root.clock.uptime() - start < FolderLock.patience else {
                throw ProviderError(
                    .retry,
                    "another daemon has had the lock '\(lockPath)' for \(FolderLock.patience)")
            }
            usleep(pause)
            pause = min(pause * 2, FolderLock.longestPauseMicroseconds)
        }
        return file
    }

    private var lockPath: String { "\(root.displayPath)/.promisefs/lock" }

    /// False while somebody else has it. flock(2)
    private func take(_ file: CInt) throws(ProviderError) -> Bool {
        try mapped("the lock '\(lockPath)' cannot be taken") { () throws(SystemError) in
            do throws(SystemError) {
                _ = try call("folder.lock.take") { flock(file, LOCK_EX | LOCK_NB) }
                return true
            } catch {
                // By SMB it is EACCES, of a file that is open for writing.
                if [EWOULDBLOCK, EACCES].contains(error.errno) { return false }
                // A file system without locks: looking at what was replaced has to be enough.
                guard [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL].contains(error.errno) else {
                    throw error
                }
                return true
            }
        }
    }

    private func openFile() throws(ProviderError) -> Descriptor {
        _ = try hidden.openUploads()
        let top = try root.open()
        return try mapped("the lock '\(lockPath)' cannot be taken") {
            () throws(SystemError) in
            let store = try top.open(ReservedName.folder)
            let permissions =
                try FileStatus.of(descriptor: store.number, label: "folder.lock.status").permissions
                & 0o666
            return try Descriptor.open(
                ReservedName.lock, in: store.number, flags: O_RDWR | O_CREAT | O_NOFOLLOW,
                mode: permissions,
                label: "folder.lock.open")
        }
    }
}
