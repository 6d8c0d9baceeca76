import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

// The writes that must not lose what somebody else wrote: replacing content, and deleting. All daemons that share the folder
// take turns by its lock file; every other program is caught by looking at what a rename brought out.

extension FolderProvider {
    /// Runs `body` while no other PromiseFS daemon replaces or removes something in the folder (flock(2)).
    func withStoreLock<Value>(_ body: () throws(ProviderError) -> Value) throws(ProviderError) -> Value {
        let turn = try lock()
        let outcome: Result<Value, ProviderError>
        do throws(ProviderError) { outcome = .success(try body()) } catch { outcome = .failure(error) }
        // Closing the file gives the turn to the next.
        _ = consume turn
        return try outcome.get()
    }

    private func lock() throws(ProviderError) -> Descriptor {
        _ = try openUploads()
        let root = try openRoot()
        return try mapped("the lock '\(displayPath)/.promisefs/lock' cannot be taken") { () throws(SystemError) in
            let store = try root.open(ReservedName.folder)
            let permissions = try FileStatus.of(descriptor: store.number, label: "folder.lock.status").permissions & 0o666
            let file = try Descriptor.open(
                ReservedName.lock, in: store.number, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: permissions,
                label: "folder.lock.open")
            do throws(SystemError) {
                _ = try call("folder.lock.take") { flock(file.number, LOCK_EX) }
            } catch {
                // A file system without locks: looking at what was replaced has to be enough.
                guard [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL].contains(error.errno) else { throw error }
            }
            return file
        }
    }

    // MARK: Replacing

    /// Puts a temporary entry in the place of the item if that still is what `located` saw; the old one is removed.
    /// `.conflict` otherwise, with everything as others made it. The temporary entry is gone in any case.
    func exchange(
        _ temporary: TemporaryEntry, with located: LocatedItem, validating contents: (any ContentSource)?, flag: CancellationFlag
    ) throws(ProviderError) -> FolderEntry {
        do throws(ProviderError) {
            try withStoreLock { () throws(ProviderError) in
                try flag.check()
                try contents?.validate()
                guard try isUnchanged(located) else { throw changed(located) }
                beforeTakingEffect?()
                guard try exchangeNames(temporary, located) else { return }
                guard try !took(located.entry, as: temporary.name, in: temporary.folder) else { return }
                try putBack(temporary, located)
                throw changed(located)
            }
        } catch {
            // What is under the temporary name now is ours: `putBack` keeps anything else under another name.
            remove(temporary.name, in: temporary.folder)
            throw error
        }
        remove(temporary.name, in: temporary.folder)
        return temporary.entry
    }

    func isUnchanged(_ located: LocatedItem) throws(ProviderError) -> Bool {
        try mapped("'\(display(located.path))' cannot be looked at") { () throws(SystemError) in
            let now = try entry(
                located.entry.name, in: located.folder.number, parent: located.folderText,
                readsMarks: shared.withLock { $0.hasStore && $0.root?.hasAttributes == true })
            let isLasting = located.entry.identity.isLasting
            return now?.version == located.entry.version
                && (isLasting ? now?.identity.own == located.entry.identity.own : now?.identifier == located.entry.identifier)
        }
    }

    /// Whether a rename brought out the very file that was seen, unchanged and without a new second name: the item's
    /// identifier would then be on both.
    private func took(_ expected: FolderEntry, as name: [UInt8], in folder: OpenFolder) throws(ProviderError) -> Bool {
        try mapped("what was replaced cannot be looked at") { () throws(SystemError) in
            let taken = try entry(name, in: folder.number, parent: "", readsMarks: false)
            return taken?.identity.own == expected.identity.own && taken?.version == expected.version
                && (expected.identity.hasSeveralNames || taken?.identity.hasSeveralNames == false)
        }
    }

    /// True when the names were exchanged; false when the file system cannot and the item was replaced by a plain rename.
    private func exchangeNames(_ temporary: TemporaryEntry, _ located: LocatedItem) throws(ProviderError) -> Bool {
        do throws(SystemError) {
            if shared.withLock({ $0.canExchange }) {
                try swap(temporary, located)
                return true
            }
        } catch {
            if error.errno == ENOENT { throw changed(located) }
            guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.errno) else {
                throw ProviderError(error, "'\(display(located.path))' cannot be replaced")
            }
            shared.withLock { $0.canExchange = false }
            logger.notice("the file system cannot exchange files: a change at the same instant can be overwritten")
            guard try isUnchanged(located) else { throw changed(located) }
        }
        try mapped("'\(display(located.path))' cannot be replaced") { () throws(SystemError) in
            try rename(
                temporary.name, in: temporary.folder.number, to: located.entry.name, in: located.folder.number,
                label: "folder.replace.rename")
        }
        return false
    }

    private func swap(_ temporary: TemporaryEntry, _ located: LocatedItem) throws(SystemError) {
        try rename(
            temporary.name, in: temporary.folder.number, to: located.entry.name, in: located.folder.number, flags: .exchange,
            label: "folder.replace.exchange")
    }

    /// Undoes an exchange that brought out somebody else's file. What comes out must be what the last exchange put in; if it
    /// is not, somebody replaced that meanwhile, theirs is the newest, and goes back in its turn.
    private func putBack(_ temporary: TemporaryEntry, _ located: LocatedItem) throws(ProviderError) {
        var put: String? = temporary.entry.identity.own
        for _ in 0..<64 {
            let taken = try ownIdentity(under: temporary)
            do throws(SystemError) {
                try swap(temporary, located)
            } catch {
                guard error.errno == ENOENT else { break }
                // Our file was removed by somebody who never saw what was there before it: that goes back.
                return try restore(temporary.name, from: temporary.folder, to: located)
            }
            if try ownIdentity(under: temporary) == put { return }
            put = taken
        }
        try restore(temporary.name, from: temporary.folder, to: located)
    }

    private func ownIdentity(under temporary: TemporaryEntry) throws(ProviderError) -> String? {
        try mapped("what was replaced cannot be looked at") { () throws(SystemError) in
            try entry(temporary.name, in: temporary.folder.number, parent: "", readsMarks: false)?.identity.own
        }
    }

    /// Gives a file that was taken away its name back, or where that is taken one beside it: nothing is lost.
    private func restore(_ name: [UInt8], from folder: OpenFolder, to located: LocatedItem) throws(ProviderError) {
        try mapped("'\(display(located.path))' cannot be put back") { () throws(SystemError) in
            for attempt in 0..<1000 {
                let original = located.entry.shownName
                let place =
                    attempt == 0 ? original : conflictName(of: original, host: hostName(), date: dateText(), attempt: attempt)
                do throws(SystemError) {
                    return try moveWithoutReplacing(name, in: folder.number, to: stored(place), in: located.folder.number)
                } catch {
                    guard error.errno == EEXIST else { throw error }
                }
            }
        }
    }

    // MARK: Deleting

    func remove(_ located: LocatedItem, baseVersion: ContentVersion?) throws(ProviderError) {
        guard located.parent != nil else { throw ProviderError(.refused, "the root of the folder cannot be deleted") }
        // Also something of another kind has another version.
        if let baseVersion, baseVersion != located.entry.version { throw changed(located) }
        if located.entry.status.kind == .folder { try removeFolder(located) } else { try removeFile(located) }
        places.withLock { $0.forget(located.entry.identifier) }
        removeThumbnail(of: located.entry.identifier)
    }

    private func removeFile(_ located: LocatedItem) throws(ProviderError) {
        let place = try temporaryPlace(for: located.folder, device: located.entry.status.device)
        let folder = place == .store ? try openUploads() : located.folder
        let name = temporaryName(place)
        try withStoreLock { () throws(ProviderError) in
            beforeTakingEffect?()
            do throws(SystemError) {
                try moveWithoutReplacing(located.entry.name, in: located.folder.number, to: name, in: folder.number)
            } catch {
                if error.errno == ENOENT { throw changed(located) }
                throw ProviderError(error, "'\(display(located.path))' cannot be deleted")
            }
            let taken = try mapped("what was deleted cannot be looked at") { () throws(SystemError) in
                try entry(name, in: folder.number, parent: "", readsMarks: false)
            }
            guard taken?.identity.own == located.entry.identity.own, taken?.version == located.entry.version else {
                try restore(name, from: folder, to: located)
                throw changed(located)
            }
        }
        remove(name, in: folder)
    }

    private func removeFolder(_ located: LocatedItem) throws(ProviderError) {
        let name = located.entry.name
        try mapped("the folder '\(display(located.path))' cannot be deleted") { () throws(SystemError) in
            do throws(SystemError) {
                try unlink(name, in: located.folder.number, isFolder: true, label: "folder.delete.folder")
            } catch {
                guard error.errno == ENOTEMPTY else { throw error }
                // Only what a crash left behind may be in it, which nobody can see.
                try removeOldUploads(beside: try located.folder.open(name))
                try unlink(name, in: located.folder.number, isFolder: true, label: "folder.delete.folder")
            }
        }
        watcher.unwatch(located.entry.identifier)
    }
}

func hostName() -> String {
    var buffer = [UInt8](repeating: 0, count: 256)
    let result = buffer.withUnsafeMutableBytes { gethostname($0.baseAddress!.assumingMemoryBound(to: CChar.self), 255) }
    return result == 0 ? escapedForDisplay(buffer.prefix { $0 != 0 }) : "unknown"
}

/// Today as `YYYY-MM-DD`, in the local time zone.
func dateText() -> String {
    var now = time(nil)
    var parts = tm()
    localtime_r(&now, &parts)
    func padded(_ number: CInt, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
    return "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
}
