import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// What is to be done after the index has committed a decision, in order.
enum Action {
    /// The machine's own memory changes.
    case remember((inout Memory) -> Void)

    // The provider.

    case call(Call)
    case cancelListing(number: Int)
    case cancelTelling(Pending.Subject)
    case cancelFeed(Int)
    /// A call for the root that nobody waits for any more.
    case cancelRoot(number: Int)

    // Time.

    case wait(Duration, Event)
    /// Handled before anything else.
    case go(Event)

    // Programs.

    case show(Notices)
    case reply(Waiter, Result<Void, Failure>)
    /// To whoever waits for a step; nil: there was nothing that could be done.
    case stepped(Waiter, SteppedOperation?)
    /// Nobody is left waiting for content that cannot come.
    case failFetches(Failure)
    case fetch(NodeID)
    /// One that nobody waits for; it counts as interrupted.
    case endFetch(NodeID)
    /// A fetch that has paused ends, unless somebody has the file open.
    case releaseFetch(NodeID)
    case evict(NodeID)
    case makeRoom
    case storeUses([NodeID: Timestamp])
    case noteOpenWrites
    /// What programs used lately is to be told.
    case takeUsed(withWatched: Bool)
    case takeFreshlyUsed

    // People.

    /// Since when nothing is told and fetched by itself; nil: it is.
    case paused(since: Timestamp?)
    case limited(Limits)
    case log(Logger.Level, Logger.Message, reason: String?)
    case uploaded(byteCount: UInt64)
}

/// What programs must be told after a decision about the tree.
struct Notices {
    var entries: [(parent: NodeID, name: FileName)] = []
    var nodes: [(node: NodeID, content: Bool)] = []
    /// Whoever waits for it waits for what is there instead, or is told that nothing is.
    var removedContent: [(node: NodeID, generation: Generation)] = []
    var hydrate: [NodeID] = []
    var discarded: [NodeID] = []
    var hollow: [HollowContent] = []
    /// Content that is not here any more, of versions that the provider has.
    var released: [(item: ItemReference, version: ContentVersion)] = []
    /// They show another version: what is on its way to the content they had is of the one before.
    var startedAgain: [(node: NodeID, generation: Generation)] = []
    /// Documents that are other nodes now: their names, as they were.
    var replaced: [Entry] = []
    /// The same as `entries` and `nodes` as far as programs see it, for those that watch.
    var tree: [TreeChange] = []

    var isEmpty: Bool {
        entries.isEmpty && nodes.isEmpty && removedContent.isEmpty && hydrate.isEmpty
            && discarded.isEmpty && hollow.isEmpty && released.isEmpty && startedAgain.isEmpty
            && replaced.isEmpty && tree.isEmpty
    }
}
