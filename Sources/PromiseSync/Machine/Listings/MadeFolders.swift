import PromiseCore
import PromiseIndex
import PromiseSystem

// A folder that was made here is known from the start, so nobody would list it. But what is polled
// is what was listed, and nobody has seen what others put into the folder meanwhile. So it is
// listed once, when there is nothing else to do.

/// The folders that were made here and not listed since.
struct MadeFolders {
    /// From the last one on, as folders come in groups.
    static let moment = Duration.seconds(1)
    /// From the first one on.
    static let patience = Duration.seconds(10)

    private var fresh: Set<ItemIdentifier> = []
    private var firstMade = Duration.zero
    private var lastMade = Duration.zero
    private var ready: Set<ItemIdentifier> = []
    /// The one that is being listed for having been made.
    var listing: ItemIdentifier?

    mutating func made(_ folder: ItemIdentifier, at now: Duration) {
        if fresh.isEmpty { firstMade = now }
        lastMade = now
        fresh.insert(folder)
    }

    /// When one is to be listed; nil when there are none.
    func due(isBusy: Bool) -> Duration? { ready.isEmpty ? freshDue(isBusy: isBusy) : .zero }

    /// When those that were made last are ready; nil when there are none. While the provider is
    /// being told of more, e.g. of what is in them, that has time.
    private func freshDue(isBusy: Bool) -> Duration? {
        if fresh.isEmpty { return nil }
        let limit = firstMade + MadeFolders.patience
        return isBusy ? limit : min(lastMade + MadeFolders.moment, limit)
    }

    /// One to be listed now.
    mutating func next(isBusy: Bool, at now: Duration) -> ItemIdentifier? {
        if let due = freshDue(isBusy: isBusy), due <= now {
            ready.formUnion(fresh)
            fresh = []
        }
        return ready.popFirst()
    }

    /// It is being listed, for whatever reason.
    mutating func listed(_ folder: ItemIdentifier) {
        fresh.remove(folder)
        ready.remove(folder)
    }
}
