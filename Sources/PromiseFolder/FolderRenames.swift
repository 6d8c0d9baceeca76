import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

private func isUnknownFlag(_ error: SystemError) -> Bool {
    [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.errno)
}

/// As `FolderRenames.moveIfFree`, for who has the store's lock.
func moveWithoutReplacing(_ from: [UInt8], in fromFolder: CInt, to: [UInt8], in toFolder: CInt)
    throws(SystemError)
{
    do throws(SystemError) {
        try rename(
            from, in: fromFolder, to: to, in: toFolder, flags: .noReplace,
            label: "folder.move.rename")
        return
    } catch {
        guard isUnknownFlag(error) else { throw error }
    }
    do throws(SystemError) {
        _ = try FileStatus.of(to, in: toFolder, label: "folder.move.status")
    } catch {
        guard error.errno == ENOENT else { throw error }
        return try rename(from, in: fromFolder, to: to, in: toFolder, label: "folder.move.rename")
    }
    throw SystemError(errno: EEXIST, label: "folder.move.rename")
}

/// Renames that take no name that is taken.
struct FolderRenames: Sendable {
    let root: FolderRoot
    let lock: FolderLock

    /// renameat2(2) with RENAME_NOREPLACE; where the file system does not know it, a check and a
    /// rename, which no other daemon of ours comes between.
    func moveIfFree(
        _ from: [UInt8], in fromFolder: CInt, to: [UInt8], in toFolder: CInt, _ what: String
    ) throws(ProviderError) {
        do throws(SystemError) {
            return try rename(
                from, in: fromFolder, to: to, in: toFolder, flags: .noReplace,
                label: "folder.move.rename")
        } catch {
            guard isUnknownFlag(error) else { throw ProviderError(error, what) }
        }
        try lock.withTurn { () throws(ProviderError) in
            do throws(SystemError) {
                try moveWithoutReplacing(from, in: fromFolder, to: to, in: toFolder)
            } catch {
                // A folder does not go into itself; that is for the planner to see, not a refusal
                // of the store.
                throw ProviderError(
                    error.errno == EINVAL ? SystemError(errno: EEXIST, label: error.label) : error,
                    what)
            }
        }
    }

    /// Makes a rename in a folder last over a power cut.
    func synchronize(_ folder: OpenFolder) throws(ProviderError) {
        guard root.isDurable else { return }
        try mapped("a change of the folder cannot be made durable") { () throws(SystemError) in
            do throws(SystemError) {
                let descriptor = try folder.openForReading()
                try PromiseSystem.synchronize(
                    descriptor.number, dataOnly: false, label: "folder.sync")
            } catch {
                // A folder that may not be read, and file systems that cannot do this for folders.
                guard [EACCES, EINVAL, EOPNOTSUPP, ENOSYS].contains(error.errno) else {
                    throw error
                }
            }
        }
    }
}
