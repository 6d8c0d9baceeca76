import Logging
import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// Removing and renaming names.

extension FileSystem {
    package func unlink(_ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>) -> ParkedRequest? {
        if let answer = echoed(removing: name, in: parent, by: caller) {
            reply(answer)
            return nil
        }
        return inTurn(for: .removing(name, in: parent), caller, listing: { parent }, reply: reply) {
            [self] () throws(Failure) in
            if isCarriedOut(caller) { return () }
            var removed: Removed?
            var before: Entry?
            let isListed: Bool = try carryOut(caller, isFreeing: true) { transaction throws(Failure) in
                let folder = try folder(parent, transaction)
                guard folder.isPopulated else { return false }
                guard let entry = try transaction.entry(in: parent, named: name), let node = try transaction.node(entry.node)
                else {
                    throw Failure(.notFound, "there is no such name")
                }
                if node.kind == .folder { throw Failure(.isFolder, "it is a folder") }
                before = entry
                removed = try trash.remove(entry, node, transaction)
                try touch(folder, transaction)
                return true
            }
            guard isListed else { return nil }
            if let before { follow([before]) }
            finish(removed)
            engine.notePending()
            return ()
        }
    }

    package func removeFolder(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if let answer = echoed(removing: name, in: parent, by: caller) {
            reply(answer)
            return nil
        }
        // Whether a folder is empty is known only when it is listed, so two folders may have to be.
        let target = Chosen(parent)
        return inTurn(for: .removing(name, in: parent), caller, listing: { target.folder }, reply: reply) {
            [self] () throws(Failure) in
            if isCarriedOut(caller) { return () }
            var removed: Removed?
            let isDone: Bool = try carryOut(caller, isFreeing: true) { transaction throws(Failure) in
                let folder = try folder(parent, transaction)
                guard folder.isPopulated else { return false }
                guard let entry = try transaction.entry(in: parent, named: name), let node = try transaction.node(entry.node)
                else {
                    throw Failure(.notFound, "there is no such name")
                }
                if node.kind != .folder { throw Failure(.notFolder, "it is not a folder") }
                guard node.isPopulated else {
                    target.folder = node.id
                    return false
                }
                if try transaction.hasChildren(node.id) { throw Failure(.notEmpty, "the folder is not empty") }
                removed = try trash.remove(entry, node, transaction)
                try touch(folder, subfolders: -1, transaction)
                return true
            }
            guard isDone else { return nil }
            finish(removed)
            engine.notePending()
            return ()
        }
    }

    /// Takes one name from a node within a transaction.
    func remove(_ entry: Entry, _ node: Node, _ transaction: borrowing Transaction) throws(Failure) -> Removed? {
        try exclusion.noteLeft(entry, node.kind, at: clock.now(), transaction)
        if try nextName(of: node, besides: entry, transaction) == nil,
            let heir = try succession.heir(of: entry, node, transaction)
        {
            return try succession.bequeath(entry, node, to: heir, transaction)
        }
        try transaction.delete(entry.id)
        if let identifier = entry.identifier, let known = try transaction.synced(identifier),
            try !handOver(identifier, of: node, besides: entry, transaction)
        {
            leftNames.note(removed: entry, known: known.item, in: try self.identifier(of: entry.parent, transaction))
            try transaction.rememberPin(node.pin, of: identifier)
            try markPending(.deletion(identifier), transaction)
        }
        try transaction.record(.deleted, node: node.id, parent: entry.parent, name: entry.name)
        try transaction.recordVersion(.versionLost, entry)
        return try release(node, transaction)
    }

    /// A file that has another name, of which the provider knows nothing yet, was in effect renamed by link(2) and unlink(2).
    /// What is not local could not be sent under the other name once the item is gone.
    private func handOver(
        _ identifier: ItemIdentifier, of node: Node, besides entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard var other = try nextName(of: node, besides: entry, transaction) else { return false }
        other.identifier = identifier
        try transaction.update(other)
        try markPending(other, transaction)
        return true
    }

    /// Which of its names takes the item over.
    func nextName(
        of node: Node, besides entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        guard entry.identifier != nil, node.kind != .folder, node.linkCount > 1 else { return nil }
        return try transaction.entries(of: node.id).first { other in
            other.id != entry.id && other.identifier == nil && !other.isExcluded
        }
    }

    /// A node has one name less. Nil while it has others.
    func release(_ node: Node, _ transaction: borrowing Transaction) throws(Failure) -> Removed? {
        var node = node
        node.changeTime = clock.now()
        if node.kind != .folder && node.linkCount > 1 {
            node.linkCount -= 1
            try node.keepVersion(transaction)
            try transaction.update(node)
            return nil
        }
        node.linkCount = 0
        if opens.isOpen(node.id) {
            try transaction.update(node)
            return Removed(node: node, isDeleted: false)
        }
        try transaction.delete(node.id)
        return Removed(node: node, isDeleted: true)
    }

    func finish(_ removed: Removed?) { removed?.finish(in: self) }
}
