import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// Removes items: a file by a rename to a hidden name, which shows whether it still was what it
/// was; a folder only when it is empty.
struct FolderRemover: Sendable {
    let locator: FolderLocator
    let hidden: HiddenFolder
    let lock: FolderLock
    let exchange: ContentExchange
    let thumbnails: FolderThumbnails
    /// For tests: called between the last check and its taking effect.
    let beforeTakingEffect: (@Sendable () -> Void)?
    /// For tests: called before what was removed is looked at; what it throws is met there.
    let afterTakingEffect: TakenEffect?
    private var root: FolderRoot { locator.root }
    private var entries: FolderEntries { locator.entries }

    func remove(_ located: LocatedItem, baseVersion: ContentVersion?) throws(ProviderError) {
        guard located.parent != nil else {
            throw ProviderError(.refused, "the root of the folder cannot be deleted")
        }
        // Also something of another kind has another version.
        if let baseVersion, baseVersion != located.entry.version {
            throw ProviderError.changed(located)
        }
        if located.entry.status.kind == .folder {
            try removeFolder(located)
        } else {
            try removeFile(located)
        }
        locator.places.withLock { $0.forget(located.entry.identifier) }
        thumbnails.remove(of: located.entry.identifier)
    }

    private func removeFile(_ located: LocatedItem) throws(ProviderError) {
        let place = try hidden.temporaryPlace(
            for: located.folder, device: located.entry.status.device)
        let folder = place == .store ? try hidden.openUploads() : located.folder
        let name = hidden.names.name(place)
        try lock.withTurn { () throws(ProviderError) in
            // Another daemon may have replaced it while this one waited: a kill would leave its file hidden.
            guard try exchange.isUnchanged(located) else { throw ProviderError.changed(located) }
            beforeTakingEffect?()
            do throws(SystemError) {
                try moveWithoutReplacing(
                    located.entry.name, in: located.folder.number, to: name, in: folder.number)
            } catch {
                if error.errno == ENOENT { throw ProviderError.changed(located) }
                throw ProviderError(error, "'\(display(located.path))' cannot be deleted")
            }
            let taken = try taken(name, in: folder, located)
            guard taken?.identity.own == located.entry.identity.own,
                taken?.version == located.entry.version
            else {
                try exchange.restore(name, from: folder, to: located)
                throw ProviderError.changed(located)
            }
        }
        hidden.names.remove(name, in: folder)
    }

    /// What a rename to a hidden name brought there. What cannot be looked at is put back.
    private func taken(
        _ name: [UInt8], in folder: OpenFolder, _ located: LocatedItem
    ) throws(ProviderError) -> FolderEntry? {
        do throws(ProviderError) {
            try afterTakingEffect?()
            return try mapped("what was deleted cannot be looked at") { () throws(SystemError) in
                try entries.entry(name, in: folder.number, parent: "", readsMarks: false)
            }
        } catch {
            try? exchange.restore(name, from: folder, to: located)
            throw error
        }
    }

    private func removeFolder(_ located: LocatedItem) throws(ProviderError) {
        let name = located.entry.name
        // In turn: a file that another daemon has taken out to look at it may have to go back there.
        try lock.withTurn { () throws(ProviderError) in
            try mapped("the folder '\(display(located.path))' cannot be deleted") {
                () throws(SystemError) in
                do throws(SystemError) {
                    try unlink(
                        name, in: located.folder.number, isFolder: true, label: "folder.delete.folder")
                } catch {
                    guard error.errno == ENOTEMPTY else { throw error }
                    // Only what a crash left behind may be in it, which nobody can see.
                    try hidden.removeOldUploads(beside: try located.folder.open(name))
                    try unlink(
                        name, in: located.folder.number, isFolder: true, label: "folder.delete.folder")
                }
            }
        }
        root.watcher.unwatch(located.entry.identifier)
    }
}
