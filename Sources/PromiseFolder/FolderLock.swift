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

    private func lock() throws(ProviderError) -> Descriptor {
        _ = try hidden.openUploads()
        let top = try root.open()
        return try mapped("the lock '\(root.displayPath)/.promisefs/lock' cannot be taken") {
            () throws(SystemError) in
            let store = try top.open(ReservedName.folder)
            let permissions =
                try FileStatus.of(descriptor: store.number, label: "folder.lock.status").permissions
                & 0o666
            let file = try Descriptor.open(
                ReservedName.lock, in: store.number, flags: O_RDWR | O_CREAT | O_NOFOLLOW,
                mode: permissions,
                label: "folder.lock.open")
            do throws(SystemError) {
                _ = try call("folder.lock.take") { flock(file.number, LOCK_EX) }
            } catch {
                // A file system without locks: looking at what was replaced has to be enough.
                guard [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL].contains(error.errno) else {
                    throw error
                }
            }
            return file
        }
    }
}
