package import PromiseCore
import PromiseFilesystem
import PromiseIndex
package import PromiseQuery

// Questions about many items, and what has changed. The index alone answers: no content, no provider.

/// A step of the change feed, as the control API shows it.
package struct ChangeRecord: Sendable {
    package var sequence: Int64
    /// `created`, `modified`, `moved`, `deleted`, `content`, `upload`, `versionGained`, `versionLost` or `versionResolved`.
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

/// Promised values of an item: what is known of it without its content.
package struct PromisedValues: Sendable {
    package var node: NodeID
    /// Names from the root of the mount.
    package var path: [FileName]
    /// Without what is not known.
    package var values: [AttributeKey: QueryValue]

    package init(node: NodeID, path: [FileName], values: [AttributeKey: QueryValue]) {
        self.node = node
        self.path = path
        self.values = values
    }
}

extension Domain {
    /// Nodes whose values are looked up while the index's lock is held.
    private static let valuesPerLook = 200

    /// Promised values of many items, in their order, placeholders or not; those that have gone are left out. The root has none
    /// but its path. Of an item with several names the first one is meant.
    package func values(of nodes: [NodeID], _ keys: [AttributeKey]) throws(Failure) -> [PromisedValues] {
        let needs = ItemAttributes.Needs(Set(keys)).union(.path)
        var result: [PromisedValues] = []
        var rest = nodes[...]
        while !rest.isEmpty {
            try index.read { transaction throws(Failure) in
                for node in rest.prefix(Domain.valuesPerLook) {
                    if node == .root {
                        result.append(PromisedValues(node: node, path: [], values: [.path: .text([UInt8(ascii: "/")])]))
                    }
                    guard let item = try transaction.items(of: [node]).first else { continue }
                    let attributes = try hub.attributes(of: item, needs, transaction)
                    guard let path = attributes.path else { continue }
                    let values = keys.map { ($0, attributes.value(of: $0)) }.filter { $0.1 != .null }
                    result.append(
                        PromisedValues(
                            node: node, path: path, values: Dictionary(values) { first, _ in first }))
                }
            }
            rest = rest.dropFirst(Domain.valuesPerLook)
        }
        return result
    }

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

    /// Returns when live queries and the kernel have been told of everything that has changed so far; at once when there is
    /// nothing to tell, and after half a second in any case.
    package func settle() async {
        await hub.settle()
        await filesystem.waitUntilKernelIsTold(within: Stitching.limit)
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
        case .versionGained: "versionGained"
        case .versionLost: "versionLost"
        case .versionResolved: "versionResolved"
        }
    }
}
