import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

/// What stays on this machine: by its own name, an attribute, by its folder, or as a companion of an open database beside it.
struct Exclusion {
    let rules: ExclusionRules
    let content: ContentStore
    let opens: OpenTable
    let ignores: IgnoreFiles

    /// `node`: what has or gets the name, when it is there already.
    func covers(
        _ name: FileName, _ kind: NodeKind, in parent: NodeID, of node: NodeID? = nil, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if let node, try marks.isMarked(node, transaction) { return true }
        if try coversByName(name, kind, in: parent, transaction) { return true }
        if try covers(parent, transaction) { return true }
        return try marks.cover(parent, transaction)
    }

    /// A folder, so everything that is made below it.
    func covers(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard folder != .root else { return false }
        return try transaction.entries(of: folder).first?.isExcluded ?? false
    }

    /// Whether another name of a file is never sent. As of a rename: content that is not here has
    /// no other place than the provider, and would go with the name that is sent.
    func covers(
        secondName name: FileName, of node: Node, in parent: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard try covers(name, node.kind, in: parent, of: node.id, transaction)
        else { return false }
        guard node.kind == .file, node.content != .whole else { return true }
        guard try !covers(parent, transaction) else {
            let what = "the content of '\(name)' is at the provider"
            throw Failure(.crossDevice, "\(what), and its folder stays on this machine")
        }
        return false
    }

    /// What the folder says is not looked at.
    func coversByName(
        _ name: FileName, _ kind: NodeKind, in parent: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if !kind.isStorable || rules.excludes(name, isFolder: kind == .folder) { return true }
        let isIgnored = try ignores.excludes(
            name, isFolder: kind == .folder, in: parent, own: rules.own, content, transaction)
        if let isIgnored { return isIgnored }
        guard kind == .file, let database = ExclusionRules.databaseName(ofCompanion: name),
            let entry = try transaction.entry(in: parent, named: database)
        else { return false }
        return try isOpenDatabase(entry.node, transaction)
    }

    /// SQLite makes its companions of an empty file, too, before it writes to that for the first time.
    private func isOpenDatabase(
        _ id: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard opens.isOpen(id), let node = try transaction.node(id), node.kind == .file,
            let file = try? content.open(id, node.generation, writable: false)
        else { return false }
        let expected = ExclusionRules.databaseBeginning
        var bytes = [UInt8](repeating: 0, count: expected.count)
        let count = bytes.withUnsafeMutableBytes { buffer in
            try? readFully(file.number, into: buffer, at: 0, label: "filesystem.database")
        }
        return count == 0 || bytes == expected
    }

    /// The node of a document whose file was renamed to a name that stays here: that file is a backup, and the document is
    /// what is made anew. Nil of any other.
    func backup(_ document: Entry, _ transaction: borrowing Transaction) throws(Failure) -> Node? {
        guard let node = try transaction.node(document.node), node.kind == .file, node.content == .whole,
            try coversByName(document.name, node.kind, in: document.parent, transaction)
        else { return nil }
        return node
    }
}
