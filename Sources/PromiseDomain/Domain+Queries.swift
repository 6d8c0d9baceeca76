package import PromiseCore
import PromiseIndex

// Questions about many items, and what has changed. The index alone answers: no content, no provider.

/// A step of the change feed, as the control API shows it.
package struct ChangeRecord: Sendable {
    package var sequence: Int64
    /// `created`, `modified`, `moved`, `deleted`, `content` or `upload`.
    package var kind: String
    package var node: NodeID
    /// How many nodes, one after the other from `node` on.
    package var count: Int
    package var parent: NodeID
    /// At that moment.
    package var name: FileName?
    /// Of the node now; nil when it has gone, and for several nodes.
    package var path: [FileName]?

    package init(
        sequence: Int64, kind: String, node: NodeID, count: Int, parent: NodeID, name: FileName?, path: [FileName]?
    ) {
        self.sequence = sequence
        self.kind = kind
        self.node = node
        self.count = count
        self.parent = parent
        self.name = name
        self.path = path
    }
}

package struct ChangePage: Sendable {
    package var changes: [ChangeRecord]
    /// The oldest and the newest change in the feed; 0 when it is empty.
    package var first: Int64
    package var last: Int64

    package init(changes: [ChangeRecord], first: Int64, last: Int64) {
        self.changes = changes
        self.first = first
        self.last = last
    }
}

extension Domain {
    /// Opens a question; whoever runs it gets the answer. Throws `.busy` when too many run.
    package func query(_ request: QueryRequest) throws(Failure) -> LiveQuery { try hub.open(request) }

    /// The changes after a sequence number, oldest first.
    package func changes(since sequence: Int64, limit: Int) throws(Failure) -> ChangePage {
        try index.read { transaction throws(Failure) in
            var records: [ChangeRecord] = []
            for change in try transaction.changes(since: sequence, limit: limit) {
                let path = change.count == 1 ? try transaction.path(of: change.node) : nil
                records.append(
                    ChangeRecord(
                        sequence: change.sequence, kind: change.kind.name, node: change.node, count: change.count,
                        parent: change.parent, name: change.name, path: path))
            }
            return ChangePage(changes: records, first: try transaction.firstChange(), last: try transaction.lastChange())
        }
    }

    /// Waits until there may be changes after a number, or until the time is over.
    package func waitForChange(after sequence: Int64, timeout: Duration) async {
        await hub.waitForChange(after: sequence, timeout: timeout)
    }
}

extension Change.Kind {
    fileprivate var name: String {
        switch self {
        case .created: "created"
        case .modified: "modified"
        case .moved: "moved"
        case .deleted: "deleted"
        case .content: "content"
        case .upload: "upload"
        }
    }
}
