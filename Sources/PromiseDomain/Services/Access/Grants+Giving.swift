package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSystem
import Synchronization

/// A grant, as `grants list` shows it.
package struct GrantStanding: Sendable {
    package var grant: Grant
    /// What it gives now; none: it is over, or what it was made from is.
    package var rights: Rights
    package var fate: ItemFate
    /// Where the item is, or was.
    package var path: [FileName]
    /// Accesses under way that were started by a bookmark.
    package var scopes: Int
}

// What the owner gives and takes, and what an application hands on. Every call passes the door.

extension Grants {
    /// The owner gives an application an item. What it has already on the same terms is returned.
    package func add(
        _ item: NamedItem, to application: String, _ rights: Rights, until end: Grant.End,
        kind: Grant.Kind = .item, by principal: Principal
    ) async throws(Failure) -> GrantStanding {
        try door.admitOwner(principal, to: "grants.add", of: application)
        let application = try checked(application)
        guard rights > .none else { throw Failure(.invalid, "a grant gives 'read' or 'read-write'") }
        if let launch = end.launch { _ = try self.launch(launch, of: application) }
        let known = try self.item(item)
        return try await give(
            known, to: application, rights, until: end, kind: kind, parent: nil, by: principal)
    }

    /// An application hands on what it has, or something below it, to another: never more, and for
    /// no longer. The owner may do so for it.
    package func passOn(
        _ id: GrantID, _ item: NamedItem?, to application: String, _ rights: Rights,
        until end: Grant.End, by principal: Principal
    ) async throws(Failure) -> GrantStanding {
        door.note(principal, "grants.passOn", of: application, grant: id, isChange: true)
        let other = try checked(application)
        let (table, now) = snapshot()
        guard let grant = table[id], principal.mayAct(for: grant.application.text),
            grant.kind != .container, mayUse(grant, principal)
        else { throw door.refusal(principal, "grants.passOn", "there is no grant \(id)", code: missing(principal)) }
        guard end.launch == nil else {
            throw Failure(.invalid, "what is passed on ends with what it was made from, or earlier")
        }
        guard rights > .none, table.rights(grant, at: now) >= rights else {
            throw door.refusal(
                principal, "grants.passOn", "nobody passes on more rights than there are")
        }
        let known = try await passed(grant, item, principal)
        // What ends with a launch is not stored, nor is what is made from it.
        var limit = end
        if let date = grant.end.date { limit = .date(min(date, end.date ?? date)) }
        return try await give(
            known, to: other, rights, until: limit, kind: .item, parent: id,
            giver: grant.application, by: principal)
    }

    /// Something of a grant's item: the item itself, or what is below it.
    private func passed(
        _ grant: Grant, _ item: NamedItem?, _ principal: Principal
    ) async throws(Failure) -> (key: ItemKey, entry: Entry) {
        let finding = try tree.look(for: grant.key, bound: grant.entry, believesNotes: false)
        guard let root = finding.entry else {
            throw Failure(.gone, finding.fate.reason ?? "the item is gone")
        }
        guard let item, item.node != root.node else { return try self.item(NamedItem(root)) }
        let isBelow: Bool = try tree.index.read { transaction throws(Failure) in
            try transaction.isInside(item.node, root.node)
        }
        guard isBelow else {
            throw door.refusal(
                principal, "grants.passOn", "it is not below what the grant is of")
        }
        return try self.item(item)
    }

    /// With all that was made from it. An application may give up what is its own.
    package func revoke(
        _ id: GrantID, by principal: Principal
    ) async throws(Failure) -> [Grant] {
        let grant = state.withLock { $0.table[id] }
        door.note(
            principal, "grants.revoke", of: grant?.application.text, grant: id, isChange: true)
        guard let grant, principal.mayAct(for: grant.application.text), mayUse(grant, principal)
        else { throw door.refusal(principal, "grants.revoke", "there is no grant \(id)", code: missing(principal)) }
        let removed = try await onThread { () throws(Failure) in
            try self.change { table, _ in table.remove(id) }.removed
        }
        await door.flush()
        return removed
    }

    /// All that an application has, and all that it passed on.
    package func revokeAll(
        of application: String, by principal: Principal
    ) async throws(Failure) -> [Grant] {
        try door.admitOwner(principal, to: "grants.revoke", of: application)
        let key = try checked(application)
        let removed = try await onThread { () throws(Failure) in
            try self.change { table, _ in
                var change = GrantChange()
                for grant in table.grants(of: key) where grant.kind != .container {
                    for grant in table.remove(grant.id).removed { change.remove(grant) }
                }
                return change
            }.removed
        }
        await door.flush()
        return removed
    }

    /// The owner's are all, or those of one application; an application's are its own.
    package func list(
        of application: String?, by principal: Principal
    ) async throws(Failure) -> [GrantStanding] {
        try door.admit(principal, to: "grants.list", of: application)
        let (table, _) = snapshot()
        let wanted = table.all.filter { grant in
            principal.mayAct(for: grant.application.text) && mayUse(grant, principal)
                && application.map { Key($0) == grant.application } ?? true
        }
        await search.settle(wanted.map { ($0.key, $0.entry) })
        return try await onThread { () throws(Failure) in
            try wanted.map { grant throws(Failure) in try self.standing(grant) }
        }
    }

    package func show(
        _ id: GrantID, by principal: Principal
    ) async throws(Failure) -> GrantStanding {
        let grant = state.withLock { $0.table[id] }
        guard let grant, principal.mayAct(for: grant.application.text), mayUse(grant, principal)
        else { throw door.refusal(principal, "grants.show", "there is no grant \(id)", code: missing(principal)) }
        door.note(principal, "grants.show", of: grant.application.text, grant: id)
        await search.settle([(grant.key, grant.entry)])
        return try await onThread { () throws(Failure) in try self.standing(grant) }
    }

    // MARK: Parts

    /// Of another launch of the same application nothing is seen.
    func mayUse(_ grant: Grant, _ principal: Principal) -> Bool {
        guard case .application(_, let own) = principal, let launch = grant.end.launch else {
            return true
        }
        return launch == own
    }

    /// What the owner has mistyped is missing; an application learns of no grant but its own.
    private func missing(_ principal: Principal) -> Failure.Code {
        principal.isOwner ? .notFound : .refused
    }

    func checked(_ application: String) throws(Failure) -> Key { try Key.application(application) }

    func item(_ item: NamedItem) throws(Failure) -> (key: ItemKey, entry: Entry) {
        if item.node == .root {
            throw Failure(.invalid, "the root of a domain is given to nobody: give a folder in it")
        }
        let (key, entry, _) = try tree.noted(item)
        if entry.isExcluded {
            throw Failure(.invalid, "it stays on this machine, so that it cannot be given")
        }
        return (key, entry)
    }

    func give(
        _ item: (key: ItemKey, entry: Entry), to application: Key, _ rights: Rights,
        until end: Grant.End, kind: Grant.Kind, parent: GrantID?, source: GrantID? = nil,
        giver: Key? = nil, by principal: Principal
    ) async throws(Failure) -> GrantStanding {
        let (key, entry) = (item.key, item.entry)
        let standing = try await onThread { () throws(Failure) in
            let same = self.state.withLock { $0.table }.grants(of: application).first {
                $0.entry == entry.id && $0.rights == rights && $0.end == end && $0.kind == kind
                    && $0.parent == parent && $0.source == source
            }
            if let same { return try self.standing(same) }
            let id = try self.store.nextID()
            var made: Grant?
            _ = try self.change { table, now throws(Failure) in
                if let date = end.date, date <= now {
                    throw Failure(.invalid, "the date until which it is given has passed")
                }
                // What it was given is taken from it after that, and only once.
                if let launch = end.launch, !self.isUnderWay(launch) {
                    throw Failure(.gone, "the launch has ended")
                }
                let name =
                    kind == .container
                    ? Grants.containerName
                    : table.name(
                        for: entry.name, entry.id, of: application,
                        besides: [Grants.containerName])
                var grant = Grant(
                    id: id, kind: kind, application: application, key: key, entry: entry.id,
                    rights: rights, end: end, parent: parent, giver: giver, name: name, made: now)
                grant.source = source
                if let parent { grant.isTransient = table[parent]?.isStored == false }
                made = grant
                return try table.add(grant, now: now)
            }
            guard let made else { throw Failure(.gone, "the grant is gone again") }
            self.door.note(
                principal, "grants.given", of: application.text, grant: id,
                detail: "\(rights.name) \(kind.rawValue) \(ItemKey.text(key.path))", isChange: true)
            return try self.standing(made)
        }
        await door.flush()
        return standing
    }

    func standing(_ grant: Grant) throws(Failure) -> GrantStanding {
        let finding = try tree.look(for: grant.key, bound: grant.entry)
        let (table, now) = snapshot()
        return GrantStanding(
            grant: grant, rights: table[grant.id].map { table.rights($0, at: now) } ?? .none,
            fate: search.fate(of: finding), path: finding.path,
            scopes: state.withLock { $0.scopes[grant.id] ?? 0 })
    }

    func launch(_ id: LaunchID, of application: Key) throws(Failure) -> Launch {
        guard let launch = state.withLock({ $0.launches[id] }), launch.application == application
        else { throw Failure(.notFound, "there is no such launch of '\(application)'") }
        return launch
    }
}
