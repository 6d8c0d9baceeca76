package import PromiseCore

extension Node {
    /// After one of several names went. Each name is an item of its own, with a version of its own, that
    /// was sent the same content. When the version that is remembered was that of the name that went,
    /// another one's takes its place: what is here could not be evicted otherwise, and what is not here
    /// could not be fetched. (Content goes only when every name that has an item has been sent it:
    /// `SyncEngine.evict`.)
    package mutating func keepVersion(_ transaction: borrowing Transaction) throws(Failure) {
        guard kind == .file else { return }
        var latest: SyncedItem?
        for entry in try transaction.entries(of: id) {
            guard let identifier = entry.identifier, let synced = try transaction.synced(identifier)
            else { continue }
            if synced.item.version == version { return }
            if synced.edits > latest?.edits ?? 0 || latest == nil { latest = synced }
        }
        if let latest { version = latest.item.version }
    }

    /// The version that is remembered may be that of another name's item.
    package func hasVersionOfAnotherName(
        than own: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        for other in try transaction.entries(of: id) where other.id != own {
            guard let identifier = other.identifier else { continue }
            if try transaction.synced(identifier)?.item.version == version { return true }
        }
        return false
    }
}
