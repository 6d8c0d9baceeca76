package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
package import PromiseSystem
import Synchronization

/// Makes a socket for each launch, and ends it.
package protocol LaunchSockets: Sendable {
    func open(for principal: Principal, _ launch: LaunchID) async throws(Failure) -> String
    func close(_ launch: LaunchID) async
}

/// What all processes of a launch are in, and nobody else is.
package enum BoundNamespace: Hashable, Sendable {
    /// This mount namespace.
    case mount(UInt64)
    /// Mount namespaces that belong to this user namespace, or to one below it.
    case user(UInt64)

    func holds(_ peer: PeerProcess) -> Bool {
        switch self {
        case .mount(let number): peer.mountNamespace == number
        case .user(let number): peer.userNamespaces.contains(number)
        }
    }

    /// Whether the process may have come out of it: from a mount namespace anybody gets into another
    /// one with a user namespace of its own (unshare(2)), but never back into the daemon's.
    func mayHaveHeld(_ peer: PeerProcess) -> Bool {
        guard case .mount = self else { return false }
        return peer.userNamespaces.first != BoundNamespace.daemonsUserNamespace
    }

    private static let daemonsUserNamespace = PeerProcess.ofThisProcess()?.userNamespaces.first
}

// The launches of applications, and what they start by bookmarks.

extension Grants {
    /// An application begins: it has its container, what was given to it for good, and from now on
    /// what is given to this launch. `endLaunch` is to be called, whatever becomes of it.
    package func beginLaunch(
        of application: String, by principal: Principal
    ) async throws(Failure) -> (principal: Principal, launch: LaunchID, socket: String?) {
        try door.admitOwner(principal, to: "launches.begin", of: application)
        let key = try checked(application)
        let launch = LaunchID(
            String(UInt64.random(in: 0 ... .max), radix: 36)
                + String(UInt64.random(in: 0 ... .max), radix: 36))
        let sockets = state.withLock { state in
            state.launches[launch] = Launch(application: key, number: launch)
            return state.sockets
        }
        let begun = Principal.application(application, launch: launch)
        await giveContainer(to: begun)
        do throws(Failure) {
            return (begun, launch, try await sockets?.open(for: begun, launch))
        } catch {
            await endLaunch(launch)
            throw error
        }
    }

    /// Says whose processes the launch has: before that its socket takes no call. Said once.
    package func bind(
        _ launch: LaunchID, to namespace: BoundNamespace, by principal: Principal
    ) throws(Failure) {
        try door.admitOwner(principal, to: "launches.bind", of: nil)
        guard let own = PeerProcess.ofThisProcess(), !namespace.holds(own) else {
            throw Failure(.invalid, "a launch has a namespace of its own, not that of the daemon")
        }
        let isBound = state.withLock { state in
            guard var known = state.launches[launch], known.bound == nil else { return false }
            known.bound = namespace
            state.launches[launch] = known
            return true
        }
        if !isBound { throw Failure(.notFound, "there is no such launch, or it was bound already") }
    }

    /// Whether a process is one of a launch; never before `bind`.
    package func isProcess(_ peer: PeerProcess?, of launch: LaunchID) -> Bool {
        guard let peer, let bound = state.withLock({ $0.launches[launch]?.bound }) else { return false }
        return bound.holds(peer)
    }

    /// Whether a process is one of any launch: it is never the owner, whatever its user is. One of
    /// which nothing is told may be: what it has started uses its connection when it has ended.
    package func isSandboxed(_ peer: PeerProcess?) -> Bool {
        let mayBeAny = peer == nil && PeerProcess.isTold
        return state.withLock { state in
            state.launches.values.contains { launch in
                guard let bound = launch.bound else { return false }
                return peer.map { bound.holds($0) || bound.mayHaveHeld($0) } ?? mayBeAny
            }
        }
    }

    /// Whoever makes the sockets of launches; once, before the first.
    package func serve(by sockets: any LaunchSockets) {
        state.withLock { $0.sockets = sockets }
    }

    /// What was given to the launch ends with it. Does nothing when it has ended.
    package func endLaunch(_ launch: LaunchID) async {
        let ended: Launch? = state.withLock { state in
            guard let ended = state.launches.removeValue(forKey: launch) else { return nil }
            let open = state.table.all.filter { $0.end.launch == launch }
            let count = open.reduce(0) { $0 + (state.scopes[$1.id] ?? 0) }
            if count > 0 { state.unbalanced[ended.application, default: 0] += count }
            return ended
        }
        guard let ended else { return }
        await state.withLock({ $0.sockets })?.close(launch)
        door.note(
            .application(ended.application.text, launch: launch), "launches.end",
            of: ended.application.text, isChange: true)
        _ = try? await onThread { () throws(Failure) in
            try self.change { table, _ in table.end(launch) }
        }
    }

    /// Those under way, for `grants list`.
    package var launches: [(launch: LaunchID, application: String)] {
        state.withLock { $0.launches.values.map { ($0.number, $0.application.text) } }
            .sorted { $0.1 < $1.1 }
    }

    package func isUnderWay(_ launch: LaunchID) -> Bool {
        state.withLock { $0.launches[launch] != nil }
    }

    /// Starts of scoped access that launches which have ended never stopped, by application.
    package var unbalancedStarts: [String: Int] {
        state.withLock { state in
            Dictionary(uniqueKeysWithValues: state.unbalanced.map { ($0.key.text, $0.value) })
        }
    }

    /// Its own folder, where it has one that is here. Called again when it was made meanwhile.
    package func giveContainer(to principal: Principal) async {
        guard case .application(let application, let launch) = principal,
            let key = try? checked(application), isUnderWay(launch),
            let container = (try? await containers.containers())?[key],
            let finding = try? tree.look(for: container.record.folder, bound: container.entry),
            finding.fate == .found, let entry = finding.entry,
            let item = try? self.item(NamedItem(entry))
        else { return }
        _ = try? await give(
            item, to: key, .readWrite, until: .launch(launch), kind: .container, parent: nil,
            by: principal)
    }

    /// The folder is no container any more.
    package func takeContainers(of application: String) async {
        guard let key = try? checked(application) else { return }
        _ = try? await onThread { () throws(Failure) in
            try self.change { table, _ in
                var change = GrantChange()
                for grant in table.grants(of: key) where grant.kind == .container {
                    for grant in table.remove(grant.id).removed { change.remove(grant) }
                }
                return change
            }
        }
    }

    // MARK: Bookmarks

    /// What a bookmark of an application is backed by: resolving it gives no more than that, and
    /// nothing once it was revoked. One for the same item and rights is used again.
    func back(
        _ item: NamedItem, for application: String, _ rights: Rights, by principal: Principal
    ) async throws(Failure) -> GrantID {
        let key = try checked(application)
        let known = try self.item(item)
        guard case .application(_, let launch) = principal else {
            return try await give(
                known, to: key, rights, until: .revoked, kind: .bookmark, parent: nil, by: principal
            ).grant.id
        }
        // What it is made from: the grant that gives most here.
        let (table, now) = snapshot()
        let chain = try steps(from: known.entry)
        var above: Grant?
        for grant in table.open(for: key, in: launch, now: now)
        where table.rights(grant, at: now) >= rights {
            let finding = try tree.look(
                for: grant.key, bound: grant.entry, believesNotes: false)
            // One whose item is gone gives nothing of another.
            guard let root = finding.entry, chain.contains(root.id) else { continue }
            above = above.map { better($0, grant) } ?? grant
        }
        guard let above else {
            throw door.refusal(
                principal, "bookmarks.create", "this application was not given that item",
                of: application)
        }
        let isKept = above.isStored
        return try await give(
            known, to: key, rights, until: above.end.date.map { .date($0) } ?? .revoked,
            kind: .bookmark, parent: isKept ? above.id : nil,
            source: isKept || above.kind == .container ? nil : above.id, by: principal
        ).grant.id
    }

    /// What lasts longer.
    private func better(_ one: Grant, _ other: Grant) -> Grant {
        one.isStored || !other.isStored ? one : other
    }

    private func steps(from entry: Entry) throws(Failure) -> Set<EntryID> {
        try tree.index.read { transaction throws(Failure) in
            var result: Set<EntryID> = [entry.id]
            var current = entry
            while current.parent != .root,
                let above = try transaction.entries(of: current.parent).first,
                result.insert(above.id).inserted
            { current = above }
            return result
        }
    }

    /// Resolving a bookmark starts an access: a grant of the launch, which is counted. Refused when
    /// what backs it was revoked or is over.
    func start(
        _ backing: GrantID?, _ item: NamedItem, by principal: Principal
    ) async throws(Failure) -> GrantStanding {
        guard case .application(let application, let launch) = principal, isUnderWay(launch) else {
            throw door.refusal(principal, "scopes.start", "this launch has ended")
        }
        let key = try checked(application)
        let (table, now) = snapshot()
        guard let backing, let grant = table[backing], grant.application == key,
            grant.kind == .bookmark, table.rights(grant, at: now) > .none
        else {
            throw door.refusal(
                principal, "scopes.start", "what this bookmark was given for was revoked, or is over",
                of: application)
        }
        let started = try await give(
            try self.item(item), to: key, table.rights(grant, at: now), until: .launch(launch),
            kind: .item, parent: backing, by: principal)
        return try await onThread { () throws(Failure) in
            self.state.withLock { state in
                // Revoked meanwhile: nothing is counted.
                if state.table[started.grant.id] != nil {
                    state.scopes[started.grant.id, default: 0] += 1
                }
            }
            return try self.standing(started.grant)
        }
    }

    /// Ends one start; the grant goes with the last. Refused for what was not started in this
    /// launch.
    package func stopScope(
        _ id: GrantID, by principal: Principal
    ) async throws(Failure) -> Int {
        door.note(principal, "scopes.stop")
        guard case .application(let application, let launch) = principal else {
            throw Failure(.invalid, "the owner has no scoped access: see 'promisefs grants revoke'")
        }
        let remaining: Int? = state.withLock { state in
            guard let grant = state.table[id], grant.application == Key(application),
                grant.end.launch == launch, let count = state.scopes[id], count > 0
            else { return nil }
            state.scopes[id] = count - 1
            return count - 1
        }
        guard let remaining else {
            throw door.refusal(principal, "scopes.stop", "nothing was started by that number", of: application)
        }
        if remaining > 0 { return remaining }
        _ = try await onThread { () throws(Failure) in
            // Started again meanwhile: it stays.
            guard self.state.withLock({ $0.scopes[id] == 0 }) else { return GrantChange() }
            return try self.change { table, _ in table.remove(id) }
        }
        return 0
    }
}
