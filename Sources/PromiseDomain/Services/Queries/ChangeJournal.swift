package import PromiseCore
import PromiseIndex

/// A step of the change feed, as the control API shows it.
package struct ChangeRecord: Sendable {
    package var sequence: Int64
    /// `created`, `modified`, `moved`, `deleted`, `content`, `upload`, `versionGained`, `versionLost` or `versionResolved`.
    package var kind: String
    package var node: NodeID
    /// 1; what a listing brought is a record for each item, all with one sequence number.
    package var count: Int
    package var parent: NodeID
    /// At that moment; of what a listing brought, now, as are its folder and path.
    package var name: FileName?
    /// Of the node now; nil when it has gone, and for a name that went.
    package var path: [FileName]?
    /// Of a move: the folder and the name that it left.
    package var oldParent: NodeID?
    package var oldName: FileName?
    /// Of a document that was saved as a new file: the node that it was.
    package var oldNode: NodeID?

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
    /// Whose numbers these are.
    package var journal = ""

    package init(changes: [ChangeRecord], first: Int64, last: Int64) {
        self.changes = changes
        self.first = first
        self.last = last
    }
}

/// Reads the change feed.
struct ChangeJournal {
    private let index: Index

    init(_ index: Index) { self.index = index }

    /// Of this state folder's feed, until a power cut takes some of it: numbers of another one mean
    /// nothing here.
    func identity() throws(Failure) -> String {
        let known = try index.read { transaction throws(Failure) in
            try ChangeNumbers.identity(transaction)
        }
        if let known { return known }
        return try index.write { transaction throws(Failure) in
            try ChangeNumbers.identify(transaction)
        }
    }

    /// The changes after a number, oldest first. `journal`: whose number that is, where it is known. Throws `.conflict` for one
    /// that this journal has not given.
    func page(since sequence: Int64, of journal: String?, limit: Int) throws(Failure) -> ChangePage {
        let identity = try identity()
        return try index.read { transaction throws(Failure) in
            let last = try transaction.lastChange()
            guard journal ?? identity == identity, sequence <= last else {
                throw Failure(
                    .conflict,
                    "change \(sequence) is of another journal; look at everything again, and go on from \(last) of '\(identity)'")
            }
            // The one before them says what the first one means.
            var before = try transaction.changes(since: sequence - 1, limit: 1).first { $0.sequence == sequence }
            var (records, start): ([ChangeRecord], Int64?) = ([], sequence)
            while let position = start, records.isEmpty {
                start = nil
                for change in try transaction.changes(since: position, limit: limit) {
                    if change.kind == .created && change.name == nil {
                        records += try listed(change, transaction)
                    } else if change.kind != .replaced {
                        records.append(try record(change, after: before, transaction))
                    }
                    (before, start) = (change, change.sequence)
                    if records.count >= limit { break }
                }
            }
            var page = ChangePage(changes: records, first: try transaction.firstChange(), last: last)
            page.journal = identity
            return page
        }
    }

    /// What a listing brought has no names in the journal. Those that have gone since are left out: nothing tells of them
    /// but what says that they went, or moved.
    private func listed(
        _ change: Change, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ChangeRecord] {
        var records: [ChangeRecord] = []
        for number in change.node.rawValue..<change.node.rawValue + UInt64(change.count) {
            let node = NodeID(number)
            let entries = try transaction.entries(of: node)
            guard let entry = entries.first(where: { $0.parent == change.parent }) ?? entries.first
            else { continue }
            records.append(
                ChangeRecord(
                    sequence: change.sequence, kind: change.kind.name, node: node, count: 1,
                    parent: entry.parent, name: entry.name,
                    path: try transaction.path(of: entry.parent).map { $0 + [entry.name] }))
        }
        return records
    }

    /// Of the name that it is about, where that is there still: a file may have others.
    private func path(of change: Change, _ transaction: borrowing Transaction) throws(Failure) -> [FileName]? {
        if let name = change.name, let entry = try transaction.entry(in: change.parent, named: name), entry.node == change.node {
            return try transaction.path(of: change.parent).map { $0 + [name] }
        }
        return try transaction.path(of: change.node)
    }

    private func record(
        _ change: Change, after before: Change?, _ transaction: borrowing Transaction
    ) throws(Failure) -> ChangeRecord {
        // Another name of the node may be there: it is not what went.
        let isThere = change.kind != .deleted
        var record = ChangeRecord(
            sequence: change.sequence, kind: change.kind.name, node: change.node, count: change.count,
            parent: change.parent, name: change.name, path: isThere ? try path(of: change, transaction) : nil)
        if let before, change.kind == .moved, before.kind == .left, before.node == change.node {
            (record.oldParent, record.oldName) = (before.parent, before.name)
        }
        if let before, change.kind == .modified, before.kind == .replaced { record.oldNode = before.node }
        return record
    }
}

extension Change.Kind {
    fileprivate var name: String {
        switch self {
        case .created: "created"
        case .modified, .replaced: "modified"
        case .moved, .left: "moved"
        case .deleted: "deleted"
        case .content: "content"
        case .upload: "upload"
        case .versionGained: "versionGained"
        case .versionLost: "versionLost"
        case .versionResolved: "versionResolved"
        }
    }
}
