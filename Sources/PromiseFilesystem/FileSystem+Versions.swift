package import PromiseCore
import PromiseIndex
import PromiseSync

// What is done with the versions that conflicts have left. Each is a file of its own beside its document until then. Called by
// the daemon itself, which has waited for claims and presenters before.

extension FileSystem {
    /// The version becomes an ordinary document under the name that it has. Throws `.notFound` for what is no version.
    package func markResolved(_ version: NodeID) throws(Failure) {
        try index.write { transaction throws(Failure) in
            var entry = try unresolved(version, transaction).entry
            try transaction.recordVersion(.versionResolved, entry)
            entry.conflictsWith = nil
            try transaction.update(entry)
            // For queries: the file is what it was, and no conflict any more.
            try transaction.record(.upload, node: version, parent: entry.parent, name: entry.name)
        }
    }

    /// Throws `.notFound` for what is no version: no other file is ever removed.
    package func removeVersion(_ version: NodeID) throws(Failure) {
        let (entry, removed): (Entry, Removed?) = try index.writeFreeing { transaction throws(Failure) in
            let (entry, node) = try unresolved(version, transaction)
            let removed = try remove(entry, node, transaction)
            try touch(try folder(entry.parent, transaction), transaction)
            return (entry, removed)
        }
        finish(removed)
        engine.notePending()
        entryChanged(in: entry.parent, named: entry.name)
    }

    /// The version's content becomes the document's, as an edit of it: identifier and pin stay. The version, and what the
    /// document was, go. Throws `.notFound` for what is no version, `.stale` when its document has gone, `.busy` when its
    /// content is not here.
    package func replaceDocument(with version: NodeID) throws(Failure) {
        let (document, source, removed): (Entry, Entry, Removed?) = try index.write { transaction throws(Failure) in
            let (source, sourceNode) = try unresolved(version, transaction)
            guard let identifier = source.conflictsWith, let document = try transaction.entry(for: identifier),
                let node = try transaction.node(document.node)
            else { throw Failure(.stale, "the document of this version is gone: give the version another name to keep it") }
            guard sourceNode.kind == node.kind, node.kind == .link || sourceNode.content == .whole else {
                throw Failure(.busy, "the content of the version is not here")
            }
            let removed = try putUnder(document, node, source, sourceNode, transaction)
            try touch(try folder(source.parent, transaction), transaction)
            return (document, source, removed)
        }
        followRename(of: [document])
        finish(removed)
        engine.notePending()
        for entry in [document, source] { entryChanged(in: entry.parent, named: entry.name) }
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
