import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Gives an item another place or name: one rename, and a look at what it moved.
struct ItemMover: Sendable {
    let locator: FolderLocator
    let renames: FolderRenames
    /// For tests: called between the last check and its taking effect.
    let beforeTakingEffect: (@Sendable () -> Void)?
    private var root: FolderRoot { locator.root }
    private var names: FolderNames { locator.names }
    private var entries: FolderEntries { locator.entries }

    func move(
        _ located: LocatedItem, to folder: LocatedFolder, name: FileName, form: [UInt8]
    ) throws(ProviderError) -> LocatedItem {
        let (old, what) = (located.entry.name, "'\(display(located.path))' cannot be moved")
        beforeTakingEffect?()
        try renames.moveIfFree(
            old, in: located.folder.number, to: form, in: folder.folder.number, what)
        names.learnForm(form, of: name, in: folder.text)
        return try mapped(what) { () throws(SystemError) in
            let found = try entries.entry(
                form, in: folder.folder.number, parent: folder.text,
                readsMarks: root.mayHaveMarks)
            guard var found, found.isSame(as: located.entry) else {
                // Another item had taken the name meanwhile and was moved instead of ours.
                try moveWithoutReplacing(
                    form, in: folder.folder.number, to: old, in: located.folder.number)
                throw SystemError(errno: EEXIST, label: "folder.move.check")
            }
            // Also one whose mark is not believed.
            found.identity.base = located.entry.identity.base
            found.identifier = found.identity.identifier(parent: folder.text, name: found.shownName)
            return LocatedItem(
                folder: folder.folder, folderText: folder.text, parent: folder.identifier,
                entry: found,
                path: folder.path + [name])
        }
    }

    /// Whether only the case of an item's name is to change, where its file system finds it under
    /// any.
    func isOtherCase(_ name: FileName, in folder: LocatedFolder, of located: LocatedItem)
        throws(ProviderError) -> Bool
    {
        guard folder.text == located.folderText, !located.entry.identity.hasSeveralNames,
            located.entry.name == names.stored(located.entry.shownName),
            name.display.lowercased() == located.entry.shownName.display.lowercased()
        else { return false }
        return try mapped("'\(name.display)' cannot be looked at") { () throws(SystemError) in
            if root.facts.traits.ignoresCase {
                // Looked up, the new name would lead to the item for a while, also when it has been
                // renamed.
                let (taken, twins) = try names.lookForTwins(in: folder.folder, folder.text)
                return twins[name] == nil && !taken.contains(names.stored(name))
            }
            let found = try entries.entry(
                names.stored(name), in: folder.folder.number, parent: folder.text, readsMarks: false
            )
            return found?.identity.own == located.entry.identity.own
        }
    }

    /// Renaming to a name that leads to the file itself does nothing (rename(2)), so there is one
    /// in between, which everybody sees: nothing is lost in a crash.
    func moveAside(_ located: LocatedItem) throws(ProviderError) -> LocatedItem {
        let (old, what) = (located.entry.shownName, "'\(display(located.path))' cannot be moved")
        var result = located
        for attempt in 1..<1000 {
            let between = conflictName(
                of: old, host: hostName(), date: dateText(), attempt: attempt)
            do throws(ProviderError) {
                let folder = located.folder.number
                try renames.moveIfFree(
                    located.entry.name, in: folder, to: names.stored(between), in: folder, what)
                (result.entry.name, result.entry.shownName) = (names.stored(between), between)
                return result
            } catch {
                guard case .conflict = error.code else { throw error }
            }
        }
        throw ProviderError(.conflict, what)
    }
}
