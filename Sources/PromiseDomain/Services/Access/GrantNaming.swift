import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseSystem
import Synchronization

/// What was given before the provider had it is found by what that calls it, from when it has it:
/// its name on this machine goes when others move it to where nobody here has looked, and when a
/// program saves it in some ways.
struct GrantNaming: Sendable {
    /// Between two looks.
    private static let pause = Duration.seconds(5)

    let grants: Grants

    static func start(for grants: Grants, pollInterval: Duration) {
        Task { [weak grants, interval = min(pollInterval, pause)] in
            while true {
                // They are not held while nothing is done.
                do {
                    guard let grants, !grants.state.withLock({ $0.isOver }) else { return }
                    await GrantNaming(grants: grants).look()
                }
                try? await Task.sleep(for: interval)
            }
        }
    }

    /// Somebody was seen to use what has another name by now. Called on threads that serve a mount:
    /// it returns at once.
    func lookSoon() {
        let begins = grants.state.withLock { state in
            defer { state.isNaming = true }
            return !state.isNaming && !state.isOver
        }
        if begins { grants.pool.submit { try? lookOnThread() } }
    }

    private func look() async {
        if nameless.isEmpty { return }
        try? await grants.onThread { () throws(Failure) in try lookOnThread() }
    }

    private var nameless: [Grant] { grants.state.withLock { $0.table.nameless } }

    private func lookOnThread() throws(Failure) {
        let nameless = grants.state.withLock { state in
            state.isNaming = false
            return state.table.nameless
        }
        let known = try self.known(of: nameless)
        if known.isEmpty { return }
        _ = try grants.change { table, _ in
            var change = GrantChange()
            for new in known {
                let rebound = table.rebind(new.id, to: new.key, new.entry)
                for grant in rebound.stored { change.store(grant) }
            }
            return change
        }
    }

    /// Those of which more is known, or that are of another name by now.
    private func known(
        of nameless: [Grant]
    ) throws(Failure) -> [(id: GrantID, key: ItemKey, entry: EntryID)] {
        let index = grants.tree.index
        let known = try index.read { transaction throws(Failure) in
            var known: [(id: GrantID, key: ItemKey, entry: EntryID)] = []
            for grant in nameless {
                var (key, entry) = (grant.key, grant.entry)
                key.identifier = try NotedName.identifier(of: entry, transaction)
                if key.identifier == nil, let heir = try heir(of: grant, transaction) {
                    (key.identifier, entry) = (heir.identifier, heir.id)
                }
                if key != grant.key || entry != grant.entry { known.append((grant.id, key, entry)) }
            }
            return known
        }
        let unsent = known.filter { $0.key.identifier == nil }.map(\.entry)
        if unsent.isEmpty { return known }
        try index.write { transaction throws(Failure) in
            for entry in unsent { try NotedName.noteUnsent(entry, transaction) }
        }
        return known
    }

    // MARK: Saved from a view

    /// A program of an application saved a document anew: what was given is the new entry from now
    /// on. For a view, which has seen that it is the same document, and is told when it is so: on a
    /// thread that serves it, which goes on at once.
    func replaced(
        _ entry: EntryID, by other: EntryID, for principal: Principal,
        done: @escaping @Sendable () -> Void
    ) {
        guard case .application(let application, _) = principal, !grants.state.withLock({ $0.isOver })
        else { return done() }
        grants.pool.submit {
            defer { done() }
            rebind(entry, to: other, of: Key(application))
        }
    }

    private func rebind(_ entry: EntryID, to other: EntryID, of application: Key) {
        guard
            let found = try? grants.tree.index.read({ transaction throws(Failure) in
                try transaction.entry(other)
            }), let item = try? grants.item(NamedItem(found)), item.entry.id == other
        else { return }
        _ = try? grants.change { table, _ in
            var change = GrantChange()
            for grant in table.grants(of: application) where grant.entry == entry {
                for grant in table.rebind(grant.id, to: item.key, other).stored { change.store(grant) }
            }
            return change
        }
    }

    /// What was made in its place, where it has gone or is a backup.
    private func heir(
        of grant: Grant, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        if let entry = try transaction.entry(grant.entry),
            try !ItemFinder.isBackup(entry, transaction)
        {
            return nil
        }
        return try NotedName.heir(of: grant.entry, transaction)
    }
}
