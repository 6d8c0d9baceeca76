package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync

/// A reference, as `reference list` and `info` show it.
package struct ReferenceStanding: Sendable {
    package var node: NodeID
    package var path: [FileName]
    package var kind: NodeKind
    package var identifier: ItemIdentifier?
    package var fate: ItemFate
    /// Where the document is, or was.
    package var target: [FileName]
    /// Of a document in another domain; `target` is from the root of that.
    package var elsewhere: ElsewhereFinding?
}

/// References: links of the mount that stand for a document and follow it.
package struct References: Sendable {
    let tree: DomainTree
    let search: ItemSearch
    let notes: MoveNotes
    let configuration: DomainConfiguration
    let door: AccessDoor
    let storage: StorageIdentity
    let former: FormerItems

    /// The provider is to have the document so soon after its upload was due.
    private static let patience = Duration.seconds(10)

    /// Makes a link at `place`, or in it where that is a folder, that stands for `document`.
    package func add(
        to document: [FileName], at place: [FileName], by principal: Principal
    ) async throws(Failure) -> ReferenceStanding {
        try door.admit(principal, to: "references.add", of: nil, isChange: true)
        if configuration.isReadOnly {
            throw Failure(.readOnly, "the domain is mounted read-only: no link can be made")
        }
        let known = try await meant(by: document)
        guard let entry = known.entry else { return try await add(known.record, at: place) }
        let link = try await link(known.record, at: place, for: entry.name)
        try tree.filesystem.linkTargets.bind(link, to: entry.id)
        return try made(link)
    }

    /// What a reference to `document` is to say, once the provider has that; no entry: it is in
    /// another domain.
    func meant(
        by document: [FileName]
    ) async throws(Failure) -> (record: ReferenceRecord, entry: Entry?) {
        var item = try await tree.item(at: document)
        if item.node == .root { throw Failure(.invalid, "the root of a domain needs no reference") }
        // Of a reference, what it stands for is meant.
        if var standing = try standing(of: item.node), let record = try record(of: item.node) {
            if standing.elsewhere != nil {
                standing = await asked([standing])[0]
            } else if standing.fate != .found {
                let finding = try await tree.find(record.key, bound: nil, search, notes)
                (standing.fate, standing.target) = (finding.fate, finding.path)
            }
            guard standing.fate == .found else {
                throw Failure(.notFound, standing.fate.reason ?? "the reference leads nowhere")
            }
            // Others may have replaced it, or the domain may have been moved, since that was noted.
            if let elsewhere = standing.elsewhere { return (elsewhere.record ?? record, nil) }
            item = try await tree.item(at: standing.target)
        }
        let known = try await tree.sentKey(
            of: item, within: configuration.uploadDelay + References.patience)
        if known.entry.isExcluded {
            throw Failure(.invalid, "it stays on this machine, so that no reference can stand for it")
        }
        guard known.key.identifier != nil else {
            throw tree.engine.connectionFailure
                ?? Failure(
                    .timedOut,
                    "the provider does not have it yet: try again when 'promisefs sync --wait' is done")
        }
        return (ReferenceRecord(known.key), known.entry)
    }

    func link(
        _ record: ReferenceRecord, at place: [FileName], for name: FileName?
    ) async throws(Failure) -> NodeID {
        let target = record.target
        guard target.count <= ReferenceRecord.byteCountMax else {
            throw Failure(.nameTooLong, "the path is too long for a reference")
        }
        let (parent, name) = try await free(place, for: name)
        return try await tree.makeLink(name, in: parent, target: target)
    }

    func made(_ link: NodeID) throws(Failure) -> ReferenceStanding {
        guard let standing = try standing(of: link) else {
            throw Failure(.gone, "the reference was removed again")
        }
        return standing
    }

    /// Below a folder as far as it is known here, by path.
    package func all(
        below folder: NodeID, by principal: Principal
    ) throws(Failure) -> [ReferenceStanding] {
        try door.admit(principal, to: "references.list", of: nil)
        if let one = try standing(of: folder) { return [one] }
        var result: [ReferenceStanding] = []
        var waiting = [folder]
        while let next = waiting.popLast() {
            let children: [Node] = try tree.index.read { transaction throws(Failure) in
                var nodes: [Node] = []
                for entry in try transaction.children(of: next) {
                    if let node = try transaction.node(entry.node) { nodes.append(node) }
                }
                return nodes
            }
            waiting += children.filter { $0.kind == .folder }.map(\.id)
            for child in children where child.kind == .link {
                if let standing = try standing(of: child.id) { result.append(standing) }
            }
        }
        return result.sorted { $0.path.lexicographicallyPrecedes($1.path) }
    }

    /// The document stays.
    package func remove(
        at place: [FileName], by principal: Principal
    ) async throws(Failure) -> ReferenceStanding {
        try door.admit(principal, to: "references.remove", of: nil, isChange: true)
        let node = try await tree.node(at: place)
        guard let standing = try standing(of: node), let name = place.last else {
            throw Failure(.invalid, "it is no reference: 'rm' removes what it is")
        }
        try await tree.unlink(name, in: try await tree.node(at: Array(place.dropLast())))
        return standing
    }

    /// As far as it is known here: asks nobody. Nil of what is no reference.
    package func standing(of node: NodeID) throws(Failure) -> ReferenceStanding? {
        guard let record = try record(of: node) else { return nil }
        let targets = tree.filesystem.linkTargets
        let elsewhere = targets.isElsewhere(record) ? targets.elsewhere(record, node) : nil
        return try tree.index.read { transaction throws(Failure) in
            guard let path = try transaction.path(of: node) else { return nil }
            if let elsewhere { return ReferenceStanding(node, path, record, elsewhere) }
            let bound = try ItemFinder.bound(of: node, transaction)
            let finding = try ItemFinder(record.key, bound: bound).find(transaction)
            return ReferenceStanding(
                node: node, path: path, kind: record.key.kind,
                identifier: finding.entry?.identifier ?? record.key.identifier,
                fate: finding.fate, target: finding.path)
        }
    }

    func record(of node: NodeID) throws(Failure) -> ReferenceRecord? {
        try tree.index.read { transaction throws(Failure) in
            try transaction.node(node)?.target.flatMap { ReferenceRecord(target: $0) }
        }
    }

    private func free(
        _ place: [FileName], for name: FileName?
    ) async throws(Failure) -> (parent: NodeID, name: FileName) {
        do throws(Failure) {
            let node = try await tree.node(at: place)
            let row = try tree.index.read { transaction throws(Failure) in
                try transaction.node(node)
            }
            if row?.kind == .folder, let name { return (node, name) }
        } catch where error.code == .notFound {
            if let last = place.last {
                return (try await tree.node(at: Array(place.dropLast())), last)
            }
        }
        throw Failure(.exists, "there is something at that place already")
    }
}
