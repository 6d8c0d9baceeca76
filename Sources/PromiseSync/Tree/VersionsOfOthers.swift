package import PromiseCore
package import PromiseIndex
import PromiseProvider

/// Conflict versions that come from other machines.
///
/// What travels of a conflict is the name of its version. Every provider keeps names, every machine
/// makes them in one way, and a name cannot come late, get lost or contradict the tree, as a record
/// beside it could. So what comes under such a name is a version of the document that is beside it.
/// From then on the identifiers tie them together, wherever either goes. What a name cannot say is that
/// a version was kept as a document: that is an attribute, which travels with the others.
enum VersionsOfOthers {
    private static let versionCountMax = 64

    /// Something came to a folder that was known: it may be a version, or what versions that came
    /// before it are of.
    static func arrived(
        _ entry: Entry, _ kind: NodeKind, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard kind == .file || kind == .link else { return }
        try relate(entry, &turn, transaction)
        guard let first = ConflictName.beginning(ofVersionsOf: entry.name) else { return }
        let next = try transaction.children(
            of: entry.parent, after: first, limit: versionCountMax)
        for version in next where version.name.bytes.starts(with: first.bytes) {
            guard ConflictName(version.name)?.isVersion(of: entry.name) == true else { continue }
            try relate(version, &turn, transaction)
        }
    }

    /// What a first listing showed under such names, when all that it showed is here.
    static func listed(
        _ names: [FileName], in folder: NodeID, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        for name in names {
            guard let entry = try transaction.entry(in: folder, named: name) else { continue }
            try relate(entry, &turn, transaction)
        }
    }

    /// Whoever renames or moves a version has dealt with it, on whichever machine.
    static func moves(
        _ entry: Entry, to moved: inout Entry, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if entry.parent == moved.parent && entry.name == moved.name { return }
        try transaction.recordVersion(.versionResolved, entry)
        moved.conflictsWith = nil
    }

    /// Nothing happens to what is no version of anything here, was made here, or was kept as a document.
    private static func relate(
        _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard entry.conflictsWith == nil, entry.identifier != nil, !entry.isExcluded,
            let name = ConflictName(entry.name), let node = try transaction.node(entry.node),
            let document = try document(of: name, beside: entry, node.kind, transaction),
            try transaction.attribute(KeptVersion.attribute, of: node.id) == nil
        else { return }
        var version = entry
        version.conflictsWith = document
        try transaction.update(version)
        var limited = node
        try transaction.limitRights(of: &limited, to: document)
        if limited != node {
            try transaction.update(limited)
            turn.notices.nodes.append((node.id, false))
            try turn.remind(.entry(version.id), transaction)
        }
        // For queries: the file is what it was, and in a conflict now.
        try transaction.record(.upload, node: node.id, parent: version.parent, name: version.name)
        try transaction.recordVersion(.versionGained, version)
    }

    private static func document(
        of name: ConflictName, beside version: Entry, _ kind: NodeKind,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        var found = try transaction.entry(in: version.parent, named: name.document).map { [$0] } ?? []
        if found.isEmpty, name.isCut {
            // Of several that were cut to one name nobody knows which it is.
            let next = try transaction.children(
                of: version.parent, after: name.beginning, limit: versionCountMax)
            found = next.filter { $0.id != version.id && name.isVersion(of: $0.name) }
            if found.count > 1 { return nil }
        }
        guard let document = found.first, let identifier = document.identifier,
            try transaction.node(document.node)?.kind == kind
        else { return nil }
        return identifier
    }
}

/// A version that was kept as a document of its own.
package enum KeptVersion {
    /// Says so to other machines, which see the name of a conflict version.
    package static let attribute = Array("user.conflict".utf8)
    package static let value = Array("resolved".utf8)
}

extension Transaction {
    /// It is no version of anything any more; nothing happens to what is none.
    package func keepAsDocument(_ version: Entry) throws(Failure) {
        guard version.conflictsWith != nil else { return }
        try recordVersion(.versionResolved, version)
        var document = version
        document.conflictsWith = nil
        try update(document)
        // For queries: the file is what it was, and no conflict any more.
        try record(.upload, node: version.node, parent: version.parent, name: version.name)
    }

    /// A document has another identifier now, and its versions are of that.
    func moveVersions(from old: ItemIdentifier, to new: ItemIdentifier) throws(Failure) {
        for var version in try conflicts(with: old) {
            version.conflictsWith = new
            try update(version)
        }
    }
}
