package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider

// References between the domains of a user: what a domain says of its documents to others, and what
// it asks them.

/// What a domain says of a document that a reference in another one stands for.
package enum ReferenceLead: Sendable {
    /// The document is of another storage than this domain's.
    case notHere
    /// `record`: what a reference that is made now is to say of it.
    case here(ItemFate, path: [FileName], record: ReferenceRecord?, bound: String?)
}

extension ReferenceStanding {
    init(
        _ node: NodeID, _ path: [FileName], _ record: ReferenceRecord, _ finding: ElsewhereFinding
    ) {
        self.init(
            node: node, path: path, kind: record.key.kind,
            identifier: finding.identifier ?? record.key.identifier, fate: finding.fate,
            target: finding.path, elsewhere: finding)
    }
}

extension References {
    private static let questionsMax = 16

    /// What a reference in another domain is to say of a document of this one.
    package func card(
        of document: [FileName], by principal: Principal
    ) async throws(Failure) -> ReferenceRecord {
        try door.admitOwner(principal, to: "references.card", of: nil)
        let meant = try await meant(by: document)
        guard meant.entry != nil else { return meant.record }
        let storage = try await storage.make()
        return ReferenceRecord(
            meant.record.key, of: .init(identifier: storage, domain: tree.domainName))
    }

    /// Makes a link at `place`, or in it where that is a folder, that stands for a document of another
    /// domain, which that has said this of.
    package func add(
        _ record: ReferenceRecord, at place: [FileName], by principal: Principal
    ) async throws(Failure) -> ReferenceStanding {
        try door.admitOwner(principal, to: "references.add", of: nil)
        if configuration.isReadOnly {
            throw Failure(.readOnly, "the domain is mounted read-only: no link can be made")
        }
        guard record.storage != nil else {
            throw Failure(.invalid, "it does not say of which storage the document is")
        }
        return try await add(record, at: place)
    }

    func add(
        _ record: ReferenceRecord, at place: [FileName]
    ) async throws(Failure) -> ReferenceStanding {
        // Two domains may be of one storage.
        let isOwn = record.storage?.identifier == storage.known
        let own = isOwn ? ReferenceRecord(record.key) : record
        return await asked([try made(try await link(own, at: place, for: record.key.path.last))])[0]
    }

    /// Where a document of this domain is that a reference in another one stands for, as far as it is
    /// known here; what is not is looked for afterwards.
    package func lead(
        _ record: ReferenceRecord, bound: String?, by principal: Principal
    ) async throws(Failure) -> ReferenceLead {
        guard principal.isOwner else {
            throw door.refusal(principal, "references.lead", "only the owner may do that")
        }
        guard let wanted = record.storage?.identifier, await storage.look() == wanted else {
            return .notHere
        }
        let machine = try tree.machine()
        let entry = bound.flatMap { References.entry($0, machine) }
        var finding = try tree.look(for: record.key, bound: entry)
        if finding.fate != .found, let now = await formerly(record.key) {
            let key = ItemKey(
                identifier: now.identifier, machine: nil, kind: record.key.kind, path: now.path)
            finding = try tree.look(for: key, bound: entry)
        }
        if finding.fate != .found, let missing = finding.missing { search.begin(missing) }
        if finding.fate.mayHaveMoved { notes.askSoon() }
        let now = try finding.entry.map { entry throws(Failure) in try tree.key(of: NamedItem(entry)).key }
        return .here(
            finding.fate, path: finding.path,
            record: now.map { ReferenceRecord($0, of: record.storage) },
            bound: finding.entry.map { "\(machine)/\($0.id)" })
    }

    /// What a document is that was noted at another storage, where the domain was before.
    private func formerly(_ key: ItemKey) async -> FormerNames.Now? {
        if key.machine == nil, let identifier = key.identifier { return await former.now(of: identifier) }
        // Where names last, what is noted by its place was noted elsewhere.
        return tree.provider.capabilities.contains(.placeIdentifiers) ? nil : await former.now(onceAt: key.path)
    }

    /// The names of items are those of one index; a domain that is set up anew has another one.
    private static func entry(_ bound: String, _ machine: String) -> EntryID? {
        let parts = bound.split(separator: "/")
        guard parts.count == 2, parts[0] == machine[...] else { return nil }
        return Int64(parts[1]).map { EntryID($0) }
    }

    /// The same, with what other domains say now of those that lead there.
    package func asked(_ standings: [ReferenceStanding]) async -> [ReferenceStanding] {
        let targets = tree.filesystem.linkTargets
        await withTaskGroup(of: Void.self) { group in
            var count = 0
            for one in standings where one.elsewhere != nil {
                guard let record = (try? record(of: one.node)) ?? nil else { continue }
                if count >= References.questionsMax { await group.next() }
                count += 1
                group.addTask {
                    await withCheckedContinuation { continuation in
                        targets.ask(record, one.node) { continuation.resume() }
                    }
                }
            }
        }
        return standings.map { one in
            one.elsewhere == nil ? one : ((try? standing(of: one.node)) ?? nil) ?? one
        }
    }
}
