import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// Replaces what is at a name without losing what somebody else wrote. All daemons that share the
/// folder take turns; every other program is caught by looking at what the rename brought out: if
/// that is not what was seen, it is put back and the caller told.
final class ContentExchange: Sendable {
    private let locator: FolderLocator
    private let hidden: HiddenFolder
    private let lock: FolderLock
    /// For tests: called between the last check of a conditional write and its taking effect.
    private let beforeTakingEffect: (@Sendable () -> Void)?
    /// For tests: called before what was replaced is looked at; what it throws is met there.
    private let afterTakingEffect: TakenEffect?
    /// The file system can exchange two files in one step (renameat2(2)).
    private let isAtomic = Atomic(true)

    init(
        locator: FolderLocator, hidden: HiddenFolder, lock: FolderLock,
        beforeTakingEffect: (@Sendable () -> Void)?, afterTakingEffect: TakenEffect?
    ) {
        self.locator = locator
        self.hidden = hidden
        self.lock = lock
        self.beforeTakingEffect = beforeTakingEffect
        self.afterTakingEffect = afterTakingEffect
    }

    private var root: FolderRoot { locator.root }
    private var entries: FolderEntries { locator.entries }

    /// As far as is known: no change of another program at the same instant is lost.
    var canExchange: Bool { isAtomic.load(ordering: .relaxed) }

    /// Puts a temporary entry in the place of the item if that still is what `located` saw; the old
    /// one is removed. `.conflict` otherwise, with everything as others made it. The temporary
    /// entry is gone in any case.
    func exchange(
        _ temporary: TemporaryEntry, with located: LocatedItem,
        validating contents: (any ContentSource)?, flag: CancellationFlag
    ) throws(ProviderError) -> FolderEntry {
        var isExchanged = false
        do throws(ProviderError) {
            try lock.withTurn { () throws(ProviderError) in
                try flag.check()
                try contents?.validate()
                guard try isUnchanged(located) else { throw ProviderError.changed(located) }
                beforeTakingEffect?()
                guard try exchangeNames(temporary, located) else { return }
                isExchanged = true
                if try isTaken(temporary, located) { return }
                try putBack(temporary, located)
                throw ProviderError.changed(located)
            }
        } catch {
            if isExchanged {
                discard(temporary, located)
            } else {
                hidden.names.remove(temporary.name, in: temporary.folder)
            }
            throw error
        }
        hidden.names.remove(temporary.name, in: temporary.folder)
        return temporary.entry
    }

    /// Whether what came out is what was to be replaced. What cannot be looked at is put back.
    private func isTaken(
        _ temporary: TemporaryEntry, _ located: LocatedItem
    ) throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            try afterTakingEffect?()
            return try took(located.entry, as: temporary.name, in: temporary.folder)
        } catch {
            try? putBack(temporary, located)
            throw error
        }
    }

    /// Under the temporary name is our content again, or something else that could not be put back:
    /// that is given a name beside the item, so that nothing is lost.
    private func discard(_ temporary: TemporaryEntry, _ located: LocatedItem) {
        do throws(ProviderError) {
            let own = try? ownIdentity(under: temporary)
            guard own == temporary.entry.identity.own else {
                return try restore(temporary.name, from: temporary.folder, to: located)
            }
            hidden.names.remove(temporary.name, in: temporary.folder)
        } catch {
            if case .notFound = error.code { return }
            root.logger.error(
                "what was replaced could not be put back",
                metadata: [
                    "reason": "\(error.description)",
                    "name": "\(escapedForDisplay(temporary.name))",
                ])
        }
    }

    func isUnchanged(_ located: LocatedItem) throws(ProviderError) -> Bool {
        try mapped("'\(display(located.path))' cannot be looked at") { () throws(SystemError) in
            let now = try entries.entry(
                located.entry.name, in: located.folder.number, parent: located.folderText,
                readsMarks: root.mayHaveMarks)
            let isLasting = located.entry.identity.isLasting
            return now?.version == located.entry.version
                && (isLasting
                    ? now?.identity.own == located.entry.identity.own
                    : now?.identifier == located.entry.identifier)
        }
    }

    /// Whether a rename brought out the very file that was seen, unchanged and without a new second
    /// name: the item's identifier would then be on both.
    private func took(_ expected: FolderEntry, as name: [UInt8], in folder: OpenFolder)
        throws(ProviderError) -> Bool
    {
        try mapped("what was replaced cannot be looked at") { () throws(SystemError) in
            let taken = try entries.entry(name, in: folder.number, parent: "", readsMarks: false)
            return taken?.identity.own == expected.identity.own
                && taken?.version == expected.version
                && (expected.identity.hasSeveralNames || taken?.identity.hasSeveralNames == false)
        }
    }

    /// True when the names were exchanged; false when the file system cannot and the item was
    /// replaced by a plain rename.
    private func exchangeNames(_ temporary: TemporaryEntry, _ located: LocatedItem)
        throws(ProviderError) -> Bool
    {
        do throws(SystemError) {
            if canExchange {
                try swap(temporary, located)
                return true
            }
        } catch {
            if error.errno == ENOENT { throw ProviderError.changed(located) }
            guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.errno) else {
                throw ProviderError(error, "'\(display(located.path))' cannot be replaced")
            }
            isAtomic.store(false, ordering: .relaxed)
            root.logger.notice(
                """
                the file system cannot exchange files: \
                a change at the same instant can be overwritten
                """)
            guard try isUnchanged(located) else { throw ProviderError.changed(located) }
        }
        try mapped("'\(display(located.path))' cannot be replaced") { () throws(SystemError) in
            try rename(
                temporary.name, in: temporary.folder.number, to: located.entry.name,
                in: located.folder.number,
                label: "folder.replace.rename")
        }
        return false
    }

    private func swap(_ temporary: TemporaryEntry, _ located: LocatedItem) throws(SystemError) {
        try rename(
            temporary.name, in: temporary.folder.number, to: located.entry.name,
            in: located.folder.number, flags: .exchange,
            label: "folder.replace.exchange")
    }

    /// Undoes an exchange that brought out somebody else's file. What comes out must be what the
    /// last exchange put in; if it is not, somebody replaced that meanwhile, theirs is the newest,
    /// and goes back in its turn.
    private func putBack(_ temporary: TemporaryEntry, _ located: LocatedItem) throws(ProviderError)
    {
        var put: String? = temporary.entry.identity.own
        for _ in 0..<64 {
            let taken = try ownIdentity(under: temporary)
            do throws(SystemError) {
                try swap(temporary, located)
            } catch {
                guard error.errno == ENOENT else { break }
                // Our file was removed by somebody who never saw what was there before it: that
                // goes back.
                return try restore(temporary.name, from: temporary.folder, to: located)
            }
            if try ownIdentity(under: temporary) == put { return }
            put = taken
        }
        try restore(temporary.name, from: temporary.folder, to: located)
    }

    private func ownIdentity(under temporary: TemporaryEntry) throws(ProviderError) -> String? {
        try mapped("what was replaced cannot be looked at") { () throws(SystemError) in
            try entries.entry(
                temporary.name, in: temporary.folder.number, parent: "", readsMarks: false)?
                .identity.own
        }
    }

    /// Gives a file that was taken away its name back, or where that is taken one beside it:
    /// nothing is lost.
    func restore(_ name: [UInt8], from folder: OpenFolder, to located: LocatedItem)
        throws(ProviderError)
    {
        try mapped("'\(display(located.path))' cannot be put back") { () throws(SystemError) in
            for attempt in 0..<1000 {
                let original = located.entry.shownName
                let place =
                    attempt == 0
                    ? original
                    : conflictName(
                        of: original, host: hostName(), date: dateText(), attempt: attempt)
                do throws(SystemError) {
                    return try moveWithoutReplacing(
                        name, in: folder.number, to: locator.names.stored(place),
                        in: located.folder.number)
                } catch {
                    guard error.errno == EEXIST else { throw error }
                }
            }
        }
    }
}
