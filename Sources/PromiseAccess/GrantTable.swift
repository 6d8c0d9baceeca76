package import PromiseCore
package import PromiseKeyValue

/// One name on the way from an item up to the root, as the index has it.
package struct GrantStep: Hashable, Sendable {
    package var entry: EntryID
    package var identifier: ItemIdentifier?
    /// Neither a backup that an editor made of a document nor the second version of a conflict:
    /// those have the document's name on this machine, but are not the document.
    package var isDocument: Bool

    package init(entry: EntryID, identifier: ItemIdentifier?, isDocument: Bool) {
        self.entry = entry
        self.identifier = identifier
        self.isDocument = isDocument
    }
}

/// What a change of the table is to the disk.
package struct GrantChange: Hashable, Sendable {
    package var stored: [Grant] = []
    package var removed: [Grant] = []
    package var applications: Set<Key> = []

    package init() {}
    package var isEmpty: Bool { stored.isEmpty && removed.isEmpty }

    package mutating func store(_ grant: Grant) {
        stored.append(grant)
        applications.insert(grant.application)
    }

    package mutating func remove(_ grant: Grant) {
        removed.append(grant)
        applications.insert(grant.application)
    }
}

/// Who may do what to which item. A value: a change is made to a copy, stored, and only then shown,
/// so that a disk that fails leaves everybody with the rights that they had.
package struct GrantTable: Sendable {
    private var grants: [GrantID: Grant] = [:]
    private var byEntry: [Key: [EntryID: [GrantID]]] = [:]
    private var byIdentifier: [Key: [ItemIdentifier: [GrantID]]] = [:]
    private var children: [GrantID: Set<GrantID>] = [:]
    private var withoutIdentifier: Set<GrantID> = []

    package init() {}

    // MARK: Asking

    package var all: [Grant] { grants.values.sorted { $0.id < $1.id } }
    package subscript(_ id: GrantID) -> Grant? { grants[id] }

    package func grants(of application: Key) -> [Grant] {
        all.filter { $0.application == application }
    }

    /// Of what the provider did not have when it was given.
    package var nameless: [Grant] { withoutIdentifier.sorted().compactMap { grants[$0] } }

    /// What this machine alone calls items that somebody was given.
    package var placeIdentifiers: Set<ItemIdentifier> {
        Set(grants.values.compactMap(\.key.placeIdentifier))
    }

    package func hasAny(_ identifier: ItemIdentifier) -> Bool {
        byIdentifier.values.contains { $0[identifier] != nil }
    }

    package func hasAny(_ application: Key) -> Bool { byEntry[application] != nil }

    /// What a grant gives at that time: never more than what it was made from. None when either is
    /// over.
    package func rights(_ grant: Grant, at now: Timestamp) -> Rights {
        var rights = grant.rights
        var current = grant
        while true {
            if let date = current.end.date, date <= now { return .none }
            guard let parent = current.parent else { return rights }
            // A parent is older, so that this ends.
            guard let above = grants[parent], above.id < current.id else { return .none }
            rights = min(rights, above.rights)
            current = above
        }
    }

    /// What an application may do to the item of one step, and so to all that is below it.
    /// `isElsewhere`: whether another name stands for an item of the provider's now; asked where
    /// the name that was granted stands for another one.
    package func rights(
        of application: Key, in launch: LaunchID?, at step: GrantStep, now: Timestamp,
        isElsewhere: (ItemIdentifier) throws(Failure) -> Bool
    ) throws(Failure) -> Rights {
        var best = Rights.none
        if let identifier = step.identifier {
            for id in byIdentifier[application]?[identifier] ?? [] {
                best = max(best, direct(id, in: launch, now))
            }
        }
        if best == .readWrite || !step.isDocument { return best }
        for id in byEntry[application]?[step.entry] ?? [] {
            guard let grant = grants[id] else { continue }
            let given = direct(id, in: launch, now)
            guard given > best else { continue }
            if let identifier = grant.key.identifier, identifier != step.identifier,
                try isElsewhere(identifier)
            {
                continue
            }
            best = given
        }
        return best
    }

    /// Of those that open something in a launch.
    private func direct(_ id: GrantID, in launch: LaunchID?, _ now: Timestamp) -> Rights {
        guard let grant = grants[id], grant.kind != .bookmark else { return .none }
        if let own = grant.end.launch, own != launch { return .none }
        return rights(grant, at: now)
    }

    /// Those that open something for an application in a launch.
    package func open(for application: Key, in launch: LaunchID?, now: Timestamp) -> [Grant] {
        grants(of: application).filter { direct($0.id, in: launch, now) > .none }
    }

    /// A name for an item that the application has no other item under: the one it has it under
    /// already, or `Text.txt`, `Text 2.txt` and so on. Its container has one of its own, elsewhere.
    package func name(
        for item: FileName, _ entry: EntryID, of application: Key, besides reserved: [FileName]
    ) -> FileName {
        let own = grants(of: application).filter { $0.kind != .container }
        if let known = own.first(where: { $0.entry == entry }) { return known.name }
        let taken = Set(own.map(\.name) + reserved)
        if !taken.contains(item) { return item }
        for number in 2... {
            let name = GrantTable.numbered(item, number)
            if !taken.contains(name) { return name }
        }
        return item
    }

    private static func numbered(_ name: FileName, _ number: Int) -> FileName {
        let bytes = name.bytes
        let dot = bytes.lastIndex(of: UInt8(ascii: "."))
        // What begins with its only dot has no ending.
        let end = dot.flatMap { $0 > 0 && bytes.count - $0 <= 32 ? $0 : nil } ?? bytes.count
        let (mark, ending) = (Array(" \(number)".utf8), bytes[end...])
        var cut = min(end, FileName.byteCountMax - mark.count - ending.count)
        // No character of UTF-8 is cut into two.
        while cut < end, cut > 1, bytes[cut] & 0xC0 == 0x80 { cut -= 1 }
        return FileName(Array(bytes[..<cut]) + mark + Array(ending)) ?? name
    }

    // MARK: Changing

    /// Refused when it would give more than what it is made from.
    package mutating func add(_ grant: Grant, now: Timestamp) throws(Failure) -> GrantChange {
        if grants[grant.id] != nil {
            throw Failure(.exists, "there is a grant \(grant.id) already")
        }
        if let parent = grant.parent {
            guard let above = grants[parent], above.id < grant.id, rights(above, at: now) >= grant.rights
            else { throw Failure(.refused, "nobody gives more rights than there are") }
        }
        insert(grant)
        var change = GrantChange()
        change.store(grant)
        return change
    }

    /// What was stored: one whose parent is missing gives nothing, and is not taken in. Returns
    /// those.
    package mutating func take(stored: [Grant]) -> [Grant] {
        var orphans: [Grant] = []
        for grant in stored.sorted(by: { $0.id < $1.id }) {
            let isWhole = grant.parent.map { grants[$0] != nil } ?? true
            if isWhole, grants[grant.id] == nil { insert(grant) } else { orphans.append(grant) }
        }
        return orphans
    }

    /// With all that was made from it.
    package mutating func remove(_ id: GrantID) -> GrantChange {
        var change = GrantChange()
        var waiting = [id]
        while let next = waiting.popLast() {
            waiting += children[next] ?? []
            guard let grant = delete(next) else { continue }
            change.remove(grant)
        }
        change.removed.sort { $0.id < $1.id }
        return change
    }

    /// What was given for one launch ends with it. What the application keeps by a bookmark of it
    /// stays, as it was made to find the item again in the next launch.
    package mutating func end(_ launch: LaunchID) -> GrantChange {
        var change = GrantChange()
        for grant in all where grant.end.launch == launch {
            for child in children[grant.id] ?? [] {
                guard var kept = grants[child], kept.source == grant.id else { continue }
                kept.source = nil
                replace(kept)
            }
            for grant in remove(grant.id).removed { change.remove(grant) }
        }
        return change
    }

    /// Those whose date has come.
    package mutating func expire(now: Timestamp) -> GrantChange {
        var change = GrantChange()
        for grant in all {
            guard let date = grant.end.date, date <= now else { continue }
            for grant in remove(grant.id).removed { change.remove(grant) }
        }
        return change
    }

    /// The item is found by another identifier or under another name from now on.
    package mutating func rebind(_ id: GrantID, to key: ItemKey, _ entry: EntryID) -> GrantChange {
        var change = GrantChange()
        guard var grant = grants[id], grant.key != key || grant.entry != entry else { return change }
        (grant.key, grant.entry) = (key, entry)
        replace(grant)
        change.store(grant)
        return change
    }

    /// What was made from it stays made from it.
    private mutating func replace(_ grant: Grant) {
        let below = children[grant.id]
        _ = delete(grant.id)
        insert(grant)
        children[grant.id] = below
    }

    private mutating func insert(_ grant: Grant) {
        grants[grant.id] = grant
        byEntry[grant.application, default: [:]][grant.entry, default: []].append(grant.id)
        if let identifier = grant.key.identifier {
            byIdentifier[grant.application, default: [:]][identifier, default: []].append(grant.id)
        } else {
            withoutIdentifier.insert(grant.id)
        }
        for above in [grant.parent, grant.source].compactMap(\.self) {
            children[above, default: []].insert(grant.id)
        }
    }

    private mutating func delete(_ id: GrantID) -> Grant? {
        guard let grant = grants.removeValue(forKey: id) else { return nil }
        withoutIdentifier.remove(id)
        let application = grant.application
        byEntry[application]?[grant.entry]?.removeAll { $0 == id }
        if byEntry[application]?[grant.entry]?.isEmpty == true {
            byEntry[application]?[grant.entry] = nil
        }
        if byEntry[application]?.isEmpty == true { byEntry[application] = nil }
        if let identifier = grant.key.identifier {
            byIdentifier[application]?[identifier]?.removeAll { $0 == id }
            if byIdentifier[application]?[identifier]?.isEmpty == true {
                byIdentifier[application]?[identifier] = nil
            }
        }
        for above in [grant.parent, grant.source].compactMap(\.self) { children[above]?.remove(id) }
        children[id] = nil
        return grant
    }
}
