import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
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

    /// Somebody was seen to use what has another name by now.
    func lookSoon() {
        let begins = grants.state.withLock { state in
            defer { state.isNaming = true }
            return !state.isNaming
        }
        if begins { Task { await look() } }
    }

    private func look() async {
        let nameless = grants.state.withLock { state in
            state.isNaming = false
            return state.table.nameless
        }
        if nameless.isEmpty { return }
        _ = try? await grants.onThread { () throws(Failure) in
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
