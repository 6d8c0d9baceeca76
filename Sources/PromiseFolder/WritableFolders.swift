import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// Folders of ours that have no write permission, as trees of `tar`, `cp -a` and Go's module cache
/// have. What is told of them comes in any order, so they are opened for the moment of a change,
/// and look as before to whoever lists them. A daemon that dies then leaves a record of it.
final class WritableFolders: Sendable {
    private struct Place: Hashable {
        var device: UInt64
        var inode: UInt64

        init(_ status: FileStatus) { (device, inode) = (status.device, status.inode) }
    }

    private struct Opened {
        var permissions: UInt32
        /// As it was before.
        var status: FileStatus
        var users = 1
    }

    /// Under it a mode is looked at and changed, which nothing else waits for.
    private let opened = Mutex<[Place: Opened]>([:])
    private let records: OpenedFolders

    init(_ records: OpenedFolders) { self.records = records }

    /// What a daemon before this one left open.
    func putBack() { records.putBack() }

    /// Does it again with the folders open, when it was refused.
    func opening<Value>(
        _ folders: () throws(ProviderError) -> [OpenFolder],
        _ body: () throws(ProviderError) -> Value
    ) throws(ProviderError) -> Value {
        let refusal: ProviderError
        do throws(ProviderError) {
            return try body()
        } catch {
            guard error.code == .refused else { throw error }
            refusal = error
        }
        // Where they are not found any more it stays refused.
        let written = (try? folders()) ?? []
        let taken = written.filter { open($0, movedTo: written.last) }
        guard !taken.isEmpty else { throw refusal }
        let outcome: Result<Value, ProviderError>
        do throws(ProviderError) { outcome = .success(try body()) } catch {
            outcome = .failure(error)
        }
        for folder in taken { close(folder) }
        return try outcome.get()
    }

    /// As it is without us.
    func asBefore(_ status: FileStatus) -> FileStatus {
        guard status.kind == .folder, let before = opened.withLock({ $0[Place(status)] }) else {
            return status
        }
        var status = status
        if status.permissions == WritableFolders.open(before.permissions) {
            status.permissions = before.permissions
        }
        return status
    }

    /// A folder was given a mode: that is what it has when it is closed.
    func gave(_ permissions: UInt32, to folder: CInt) {
        opened.withLock { opened in
            guard !opened.isEmpty,
                let status = try? FileStatus.of(descriptor: folder, label: "folder.open.given")
            else { return }
            let place = Place(status)
            guard let entry = opened[place] else { return }
            // Left behind from now on, it has the mode that it is to have.
            records.forget(entry.status, mode: WritableFolders.open(entry.status.permissions))
            opened[place]?.permissions = permissions & 0o7777
        }
    }

    private static func open(_ permissions: UInt32) -> UInt32 { permissions | 0o300 }

    /// False when it is open, or somebody else's.
    private func open(_ folder: OpenFolder, movedTo target: OpenFolder?) -> Bool {
        opened.withLock { opened in
            guard
                let status = try? FileStatus.of(
                    descriptor: folder.number, label: "folder.open.status"),
                status.kind == .folder, status.owner == geteuid()
            else { return false }
            let place = Place(status)
            if opened[place] != nil {
                opened[place]?.users += 1
                return true
            }
            let wanted = WritableFolders.open(status.permissions)
            guard wanted != status.permissions,
                records.note(folder.number, status, mode: wanted, movedTo: target?.number)
            else { return false }
            guard set(wanted, of: folder) else {
                records.forget(status, mode: wanted)
                return false
            }
            opened[place] = Opened(permissions: status.permissions, status: status)
            return true
        }
    }

    private func close(_ folder: OpenFolder) {
        opened.withLock { opened in
            // A folder that was removed meanwhile can still be looked at by its descriptor.
            guard
                let status = try? FileStatus.of(
                    descriptor: folder.number, label: "folder.open.status")
            else { return }
            let place = Place(status)
            guard var entry = opened[place] else { return }
            entry.users -= 1
            opened[place] = entry.users == 0 ? nil : entry
            guard entry.users == 0 else { return }
            // Else somebody gave it another mode.
            if status.permissions == WritableFolders.open(entry.permissions),
                !set(entry.permissions, of: folder)
            {
                return
            }
            records.forget(entry.status, mode: WritableFolders.open(entry.status.permissions))
        }
    }

    private func set(_ permissions: UInt32, of folder: OpenFolder) -> Bool {
        do throws(SystemError) {
            try withCPath(descriptorPath(folder.number)) { path throws(SystemError) in
                _ = try call("folder.open.mode") { chmod(path, permissions) }
            }
            return true
        } catch {
            return false
        }
    }
}

extension LocatedItem {
    /// Whatever has to be written to for a change of the item; a folder that moves says where its
    /// own folder is.
    func writtenFolders(_ target: LocatedFolder? = nil) -> [OpenFolder] {
        let own = target == nil || entry.status.kind != .folder ? nil : try? folder.open(entry.name)
        return [folder] + [own, target?.folder].compactMap { $0 }
    }
}
