import PromiseCore
import PromiseProvider
import Synchronization

/// The folders that were listed, to be listed again when changes are asked for; what they held
/// then; and what in them cannot be shown. A leaf: nothing else is called under its lock.
final class ListedFolders: Sendable {
    private struct State {
        /// Their keys.
        var keys: [ItemIdentifier: [UInt8]] = [:]
        var digests = FolderDigests()
        /// By folder: how many keys in it cannot be shown, and one of them.
        var hidden: [[UInt8]: (count: Int, example: String)] = [:]
    }

    private let state = Mutex(State())

    var keys: [ItemIdentifier: [UInt8]] { state.withLock { $0.keys } }

    func isListed(_ folder: ItemIdentifier, _ key: [UInt8]) {
        state.withLock { $0.keys[folder] = key }
    }

    /// A page of a folder's listing was made into items.
    func listed(_ key: [UInt8], _ page: S3Listing, isFirst: Bool, isCertain: Bool) {
        state.withLock { $0.digests.listed(key, page, isFirst: isFirst, isCertain: isCertain) }
    }

    /// It is no folder any more.
    func forget(_ folder: ItemIdentifier) { state.withLock { $0.keys[folder] = nil } }

    func forget(_ folder: ItemIdentifier, _ key: [UInt8]) {
        state.withLock { state in
            state.keys[folder] = nil
            state.digests.forget(key)
        }
    }

    /// It is to be listed again, whatever is in it.
    func mustBeListed(_ key: [UInt8]) { state.withLock { $0.digests.forget(key) } }

    /// Those in which there is something else than when they were listed.
    func changed(in look: BucketLook) -> Set<ItemIdentifier> {
        state.withLock { state in
            Set(state.keys.filter { state.digests.isChanged($0.value, in: look) }.keys)
        }
    }

    // MARK: What cannot be shown

    func hiddenCount(in key: [UInt8]) -> Int { state.withLock { $0.hidden[key]?.count ?? 0 } }

    /// Returns whether that is news.
    func hides(_ count: Int, in key: [UInt8], example: String?) -> Bool {
        state.withLock { state in
            let old = state.hidden[key]
            state.hidden[key] = count == 0 ? nil : (count, example ?? old?.example ?? "")
            return count > 0 && old == nil
        }
    }

    /// For people; nil when everything is shown.
    var limitation: String? {
        let hidden = state.withLock { $0.hidden }
        let count = hidden.values.reduce(0) { $0 + $1.count }
        guard count > 0, let example = hidden.values.first?.example else { return nil }
        return "\(count) of the keys seen so far cannot be file names and are not shown, such as "
            + "'\(example)'"
    }
}
