import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// What programs remove stays on this machine for a while and can come back: its content file is
/// not removed, and costs a row of the index. It gives way to whatever wants its room.
struct Trash {
    let tree: FileSystem

    /// More are not kept; those that were removed first go.
    private static let countMax = 10_000
    /// How many go for one that comes, so that a removal never takes long.
    private static let goingMax = 64
    /// A version that was saved less than this ago is none that somebody would miss.
    private static let versionAge = Duration.seconds(60)
    /// Of the names and values of all attributes of one item.
    private static let attributeByteCountMax = 64 << 10
    private static let userPrefix = Array("user.".utf8)

    /// Takes a name from a node for a program, and keeps the node if that was the last one. Within
    /// a transaction.
    func remove(_ entry: Entry, _ node: Node, _ transaction: borrowing Transaction) throws(Failure)
        -> Removed?
    {
        var going: [(node: NodeID, generation: Generation)] = []
        let isKept = try keep(entry, node, isReplaced: false, &going, transaction)
        return Trash.noted(try tree.remove(entry, node, transaction), isKept, going)
    }

    /// Another file takes the name by `body`, as when a program saves: what had it is kept as an
    /// earlier version, if it had been there for a while. Within a transaction.
    func replace(
        _ entry: Entry, _ node: Node, _ transaction: borrowing Transaction,
        _ body: () throws(Failure) -> Removed?
    ) throws(Failure) -> Removed? {
        var going: [(node: NodeID, generation: Generation)] = []
        let isOld = tree.clock.now() >= node.birthTime.advanced(by: Trash.versionAge)
        let isKept =
            node.kind == .file && isOld
            ? try keep(entry, node, isReplaced: true, &going, transaction) : false
        return Trash.noted(try body(), isKept, going)
    }

    private static func noted(
        _ removed: Removed?, _ isKept: Bool, _ going: [(node: NodeID, generation: Generation)]
    ) -> Removed? {
        var removed = removed
        removed?.isKept = isKept
        removed?.going = going
        return removed
    }

    /// Before the name goes.
    private func keep(
        _ entry: Entry, _ node: Node, isReplaced: Bool,
        _ going: inout [(node: NodeID, generation: Generation)],
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard tree.engine.removed.age != nil, isDocument(entry, node),
            let folder = try transaction.path(of: entry.parent)
        else { return false }
        var item = RemovedItem(node, at: folder + [entry.name], removed: tree.clock.now())
        item.isReplaced = isReplaced
        if node.kind == .file {
            guard node.content == .whole, try transaction.holes(of: node.id).ranges.isEmpty else {
                // Whoever has removed it is told that it cannot come back from here.
                if !isReplaced { try RemovedRows.mention(item, transaction) }
                return false
            }
            // What is open for writing may have grown since anybody looked.
            if node.isOpenForWriting,
                let status = try? tree.content.status(node.id, node.generation)
            {
                (item.size, item.localBytes) = (status.size, status.blocks * 512)
            }
        }
        guard try makeRoom(for: item.localBytes, &going, transaction) else { return false }
        item.attributes = try attributes(of: node, transaction)
        try RemovedRows.insert(item, transaction)
        tree.removedRoom.noteWriter(transaction)
        return true
    }

    /// Others have it or had it, or it has been there for a while, under a name of its own: no
    /// temporary file.
    private func isDocument(_ entry: Entry, _ node: Node) -> Bool {
        guard node.kind.isStorable, node.kind == .folder || node.linkCount <= 1, !entry.isExcluded,
            !tree.exclusion.rules.excludes(entry.name, isFolder: node.kind == .folder)
        else { return false }
        let isSent = node.kind == .file ? node.version != nil : entry.identifier != nil
        return isSent || tree.clock.now() >= node.birthTime.advanced(by: tree.engine.removed.draftAge)
    }

    /// False when it is to go at once.
    private func makeRoom(
        for byteCount: UInt64, _ going: inout [(node: NodeID, generation: Generation)],
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let room = tree.engine.removed.room()
        guard room > 0, byteCount <= room else { return false }
        func fits() -> Bool {
            let kept = RemovedRows.totals(transaction)
            return kept.count < Trash.countMax && kept.bytes <= room - byteCount
        }
        for _ in 0..<Trash.goingMax where !fits() {
            guard let item = try RemovedRows.oldest(limit: 1, onlyKept: true, transaction).first else {
                return false
            }
            if let file = try RemovedRows.drop(item, transaction) { going.append(file) }
        }
        return fits()
    }

    /// After the power has failed: of what was not on the disk nobody can say whether it is whole.
    func forgetTorn() throws(Failure) {
        let removed = try tree.index.read { transaction throws(Failure) in
            try RemovedRows.all(transaction)
        }
        try tree.engine.removed.drop(removed.filter { $0.kind == .file && !$0.isDurable })
    }

    /// A removed file that is still open gets a name: it was not removed.
    func forget(_ node: Node, _ transaction: borrowing Transaction) throws(Failure) {
        guard node.linkCount == 0, let kept = try RemovedRows.file(of: node.id, transaction) else {
            return
        }
        try RemovedRows.delete(kept, transaction)
    }

    /// A removed file that nobody has open any more goes from the index.
    func delete(_ node: Node, _ transaction: borrowing Transaction) throws(Failure) -> Removed {
        let isKept = try RemovedRows.noteLastClose(of: node, transaction)
        try transaction.delete(node.id)
        return Removed(node: node, isDeleted: true, isKept: isKept)
    }

    private func attributes(
        of node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> [RemovedItem.ExtendedAttribute] {
        var (result, byteCount): ([RemovedItem.ExtendedAttribute], Int) = ([], 0)
        for name in try transaction.attributeNames(of: node.id)
        where name.starts(with: Trash.userPrefix) {
            guard let value = try transaction.attribute(name, of: node.id) else { continue }
            byteCount += name.count + value.count
            if byteCount > Trash.attributeByteCountMax { break }
            result.append(RemovedItem.ExtendedAttribute(name: name, value: value))
        }
        return result
    }
}

extension FileSystem {
    var trash: Trash { Trash(tree: self) }
}
