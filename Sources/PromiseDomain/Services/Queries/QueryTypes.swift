package import PromiseCore
package import PromiseQuery
import Synchronization

/// A question about the items of a domain.
package struct QueryRequest: Sendable {
    package struct Order: Sendable {
        package var key: AttributeKey
        package var isDescending: Bool

        package init(key: AttributeKey, isDescending: Bool) {
            self.key = key
            self.isDescending = isDescending
        }
    }

    package var predicate: Predicate
    /// Only what is below this folder, which itself is not among the results.
    package var scope: NodeID
    package var area: QueryArea
    /// Whose containers: an application's; nil: everybody's.
    package var application: String?
    package var isLive: Bool
    package var order: [Order]
    package var limit: Int?
    /// Attributes to be told besides the usual ones.
    package var keys: [AttributeKey]
    /// Changes are gathered for so long before they are told.
    package var batching: Duration?
    /// Of a sorted one: of what was found, what counts; nil: everything.
    package var isWanted: (@Sendable (FoundItem) throws -> Bool)?
    /// Of a live one: whoever has it can have the query begin again.
    package var restart: QueryRestart?

    package init(
        predicate: Predicate, scope: NodeID = .root, area: QueryArea = .everywhere, isLive: Bool = false, order: [Order] = [],
        limit: Int? = nil, keys: [AttributeKey] = []
    ) {
        self.area = area
        self.predicate = predicate
        self.scope = scope
        self.isLive = isLive
        self.order = order
        self.limit = limit
        self.keys = keys
    }

    /// By what came before first. What is equal by a key is so the second time, too.
    package mutating func sort(by key: AttributeKey, isDescending: Bool) {
        if order.contains(where: { $0.key == key }) { return }
        order.append(Order(key: key, isDescending: isDescending))
    }

    /// Each key once: whoever asks may name it a thousand times.
    package mutating func tell(_ key: AttributeKey) {
        if !keys.contains(key) { keys.append(key) }
    }
}

/// Has a live query begin again: who asks it sees something else by now.
package final class QueryRestart: Sendable {
    private struct Asked { let call: @Sendable () -> Void }

    private let asked = Mutex<Asked?>(nil)

    package init() {}

    func whenAsked(_ body: @escaping @Sendable () -> Void) {
        asked.withLock { $0 = Asked(call: body) }
    }

    /// From any thread; it is told `reset` soon.
    package func ask() { asked.withLock { $0 }?.call() }
}

/// An item that satisfies a predicate.
package struct FoundItem: Sendable, Hashable {
    /// Of this name of the item: stays when the item is renamed, moved, saved by replacing it, or confirmed by the provider.
    package var id: EntryID
    package var node: NodeID
    /// Names from the root of the mount.
    package var path: [FileName]
    package var kind: NodeKind
    package var size: UInt64
    package var modificationTime: Timestamp
    package var identifier: ItemIdentifier?
    package var state: ItemState
    package var isUploaded: Bool
    package var values: [AttributeKey: QueryValue]

    package init(
        id: EntryID, node: NodeID, path: [FileName], kind: NodeKind, size: UInt64, modificationTime: Timestamp,
        identifier: ItemIdentifier?, state: ItemState, isUploaded: Bool, values: [AttributeKey: QueryValue]
    ) {
        self.id = id
        self.node = node
        self.path = path
        self.kind = kind
        self.size = size
        self.modificationTime = modificationTime
        self.identifier = identifier
        self.state = state
        self.isUploaded = isUploaded
        self.values = values
    }
}

/// What a query tells, in this order: any number of `added`, `gathered`, and for a live one then changes for ever. After a
/// `reset` it starts again, as when nothing had been told.
package enum QueryEvent: Sendable {
    case added([FoundItem])
    /// Everything there was has been told.
    case gathered
    case changed([FoundItem])
    case removed([(id: EntryID, node: NodeID)])
    /// The client was too slow, or the feed of changes does not reach back far enough.
    case reset
    /// Nothing happened; so that the client's end is noticed.
    case alive
}
