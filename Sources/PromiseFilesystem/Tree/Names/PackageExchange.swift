import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// A folder that stays on this machine is exchanged with one that does not: that is how a file package is saved. The names keep
/// their items, of the package and of every file that is in both, so that the provider is told of edits and not of another
/// package; what was there before is what stays on this machine now. All of it is one transaction.
struct PackageExchange {
    let tree: FileSystem

    static func isOne(_ one: Entry, _ other: Entry, _ nodes: [Node]) -> Bool {
        one.isExcluded != other.isExcluded && nodes.allSatisfy { $0.kind == .folder }
    }

    func exchange(_ one: Entry, _ other: Entry, _ transaction: borrowing Transaction) throws(Failure) {
        var (draft, package) = one.isExcluded ? (one, other) : (other, one)
        let (old, new) = (package.node, draft.node)
        try demandWhole(old, transaction)
        (draft.node, package.node) = (old, new)
        try transaction.update(draft)
        try transaction.update(package)
        guard var oldFolder = try transaction.node(old), var newFolder = try transaction.node(new) else { return }
        (oldFolder.pin, newFolder.pin) = (newFolder.pin, oldFolder.pin)
        newFolder.edits = oldFolder.edits
        oldFolder.changeTime = tree.clock.now()
        newFolder.changeTime = oldFolder.changeTime
        try transaction.update(oldFolder)
        try transaction.update(newFolder)
        try replace(below: old, by: new, transaction)
        try tree.markPending(package, transaction)
        try transaction.recordReplacement(of: old, by: package)
    }

    /// No program nests packages as deep; what follows goes down a package by recursion.
    private static let depthMax = 256

    /// What is at the provider only would be out of reach.
    private func demandWhole(
        _ folder: NodeID, depth: Int = 0, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard depth < PackageExchange.depthMax else {
            throw Failure(.crossDevice, "the folders in the package are nested too deep")
        }
        guard try transaction.node(folder)?.isPopulated == true else {
            throw Failure(.crossDevice, "a folder in the package was not listed yet")
        }
        for child in try transaction.children(of: folder) {
            guard let node = try transaction.node(child.node) else { continue }
            if node.kind == .folder { try demandWhole(node.id, depth: depth + 1, transaction) }
            if node.kind == .file, node.content != .whole {
                throw Failure(.crossDevice, "'\(child.name)' in the package is not on this machine")
            }
        }
    }

    private func replace(below old: NodeID, by new: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        let before = try transaction.children(of: old)
        var kept: Set<FileName> = []
        for child in try transaction.children(of: new) {
            guard let node = try transaction.node(child.node) else { continue }
            let document = before.first { $0.name == child.name && !$0.isExcluded }
            if let document, let oldNode = try transaction.node(document.node), oldNode.kind == node.kind {
                kept.insert(child.name)
                try put(child, node, under: document, oldNode, in: new, transaction)
            } else {
                try send(child, node, in: new, transaction)
            }
        }
        for child in before where !kept.contains(child.name) { try keepHere(child, transaction) }
    }

    /// The document keeps its entry, with its identifier and what waits for an answer; what is under it is the new node.
    private func put(
        _ child: Entry, _ node: Node, under document: Entry, _ oldNode: Node, in new: NodeID,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        let old = document.parent
        var (document, node) = (document, node)
        try transaction.delete(child.id)
        (document.parent, document.node) = (new, node.id)
        try transaction.update(document)
        _ = try transaction.insertEntry(in: old, named: child.name, node: oldNode.id, identifier: nil, isExcluded: true)
        if node.kind == .folder { try replace(below: oldNode.id, by: node.id, transaction) }
        // A file that is in both, by a second name, is as it was.
        guard node.id != oldNode.id, let known = try transaction.node(node.id) else { return }
        node = known
        tree.lastCopies.note(oldNode)
        node.pin = oldNode.pin
        node.changeTime = tree.clock.now()
        if node.kind == .folder {
            node.edits = oldNode.edits
        } else {
            let agreed = try document.identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
            node.succeed(max(oldNode.edits, agreed?.edits ?? 0))
        }
        try transaction.update(node)
        try tree.markPending(document, transaction)
        try transaction.recordReplacement(of: oldNode.id, by: document)
    }

    /// It is new in the package.
    private func send(
        _ child: Entry, _ node: Node, in folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var child = child
        child.isExcluded = try tree.exclusion.covers(child.name, node.kind, in: folder, of: node.id, transaction)
        // What the provider has in it would wait for ever for a folder that it never gets.
        if child.isExcluded, try tree.exclusion.isThere(child, node, transaction) {
            child.isExcluded = false
        }
        try transaction.update(child)
        try tree.markPending(child, transaction)
        try transaction.record(.created, node: node.id, parent: folder, name: child.name)
        guard node.kind == .folder else { return }
        try tree.exclusion.spread(child.isExcluded, below: node.id, transaction) { entry throws(Failure) in
            try tree.markPending(entry, transaction)
        }
    }

    /// It is in the package no more.
    private func keepHere(_ child: Entry, _ transaction: borrowing Transaction) throws(Failure) {
        guard !child.isExcluded, let node = try transaction.node(child.node) else { return }
        if node.kind == .folder {
            for inner in try transaction.children(of: node.id) { try keepHere(inner, transaction) }
        }
        var kept = child
        kept.identifier = nil
        kept.isExcluded = true
        try transaction.update(kept)
        try transaction.deletePending(.entry(child.id))
        if let identifier = child.identifier {
            tree.lastCopies.note(node)
            try transaction.rememberPin(node.pin, of: identifier)
            try tree.markPending(.deletion(identifier), transaction)
        }
        try transaction.record(.deleted, node: node.id, parent: child.parent, name: child.name)
    }
}
