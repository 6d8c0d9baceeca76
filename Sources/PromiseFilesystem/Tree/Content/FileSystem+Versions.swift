package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// What is done with the versions that conflicts have left. Each is a file of its own beside its document until then. Called by
// the daemon itself, which has waited for claims and presenters before.

extension FileSystem {
    /// The version becomes an ordinary document under the name that it has, on other machines, too. Throws `.notFound` for
    /// what is no version.
    package func markResolved(_ version: NodeID) throws(Failure) {
        try index.write { transaction throws(Failure) in
            let (entry, found) = try unresolved(version, transaction)
            try transaction.keepAsDocument(entry)
            if found.kind == .link { return }
            var node = found
            try transaction.setAttribute(KeptVersion.attribute, of: version, to: KeptVersion.value)
            node.changeTime = clock.now()
            try transaction.update(node)
        }
        attributeNews.note(KeptVersion.attribute)
    }

    /// Throws `.notFound` for what is no version: no other file is ever removed; `.conflict` when it was
    /// written since it had one of these states. What a program writes to it from now on stays.
    package func removeVersion(_ version: NodeID, in states: Set<String>) throws(Failure) {
        let (entry, removed): (Entry, Removed?) = try index.writeFreeing { transaction throws(Failure) in
            let (entry, node) = try unwritten(try unresolved(version, transaction), in: states, transaction)
            let document = entry.conflictsWith
            let removed = try remove(entry, node, transaction)
            try transaction.keepWrites(to: removed, under: entry, of: document)
            try touch(try folder(entry.parent, transaction), transaction)
            return (entry, removed)
        }
        finish(removed)
        engine.notePending()
        entryChanged(in: entry.parent, named: entry.name)
    }

    /// The version's content becomes the document's, as an edit of it: identifier and pin stay. The version, and what the
    /// document was, go. Throws `.notFound` for what is no version, `.stale` when its document has gone, `.busy` when its
    /// content is not here, `.conflict` when one of the two was written since it had one of these states. What a
    /// program that has the document open writes from now on becomes a version.
    package func replaceDocument(with version: NodeID, in states: Set<String>) throws(Failure) {
        let (document, source, removed): (Entry, Entry, Removed?) = try index.write { transaction throws(Failure) in
            let (source, sourceNode) = try unwritten(try unresolved(version, transaction), in: states, transaction)
            guard let identifier = source.conflictsWith, let entry = try transaction.entry(for: identifier),
                let found = try transaction.node(entry.node)
            else { throw Failure(.stale, "the document of this version is gone: give the version another name to keep it") }
            let (document, node) = try unwritten((entry, found), in: states, transaction)
            guard sourceNode.kind == node.kind, node.kind == .link || sourceNode.content == .whole else {
                throw Failure(.busy, "the content of the version is not here")
            }
            guard try !isAwaitedByOtherName(document, node, transaction) else {
                let what = "the document has another name that was not sent yet"
                throw Failure(.busy, "\(what): try again after 'promisefs sync --wait'")
            }
            let removed = try putUnder(document, node, source, sourceNode, transaction)
            try transaction.keepWrites(to: removed, under: document, of: identifier)
            try touch(try folder(source.parent, transaction), transaction)
            return (document, source, removed)
        }
        follow([document])
        finish(removed)
        engine.notePending()
        for entry in [document, source] { entryChanged(in: entry.parent, named: entry.name) }
    }

    /// As the decision saw it, with what open files tell.
    private func unwritten(
        _ found: (entry: Entry, node: Node), in states: Set<String>, _ transaction: borrowing Transaction
    ) throws(Failure) -> (entry: Entry, node: Node) {
        guard states.contains(try found.node.state(in: content)) else {
            throw Failure(
                .conflict, "'\(found.entry.name)' was written since its versions were listed; list them again")
        }
        try noteOpenWrites(of: found.node.id, transaction)
        return (found.entry, try transaction.node(found.node.id) ?? found.node)
    }

    private func unresolved(
        _ version: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> (entry: Entry, node: Node) {
        let entry = try transaction.entries(of: version).first { $0.conflictsWith != nil }
        guard let entry, let node = try transaction.node(version) else {
            throw Failure(.notFound, "it is no unresolved version of a document")
        }
        return (entry, node)
    }
}
