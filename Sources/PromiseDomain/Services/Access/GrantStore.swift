import PromiseAccess
import PromiseCore
import PromiseIndex

/// The grants in the index. All of a change is there or nothing of it; what does not verify gives
/// no right, and stays for `verify` to tell.
struct GrantStore: Sendable {
    let index: Index
    let key: StateKey

    /// What is stored, and what is wrong with the rest, by row. Blocking.
    func load() throws(Failure) -> (grants: [Grant], problems: [Int64: String]) {
        let rows: [GrantRow] = try index.read { transaction throws(Failure) in
            try GrantRows.all(transaction)
        }
        if rows.isEmpty { return ([], [:]) }
        let seal: GrantSeal?
        do throws(Failure) {
            seal = GrantSeal(key: try key.read(makingIt: false))
        } catch {
            let text = "cannot be verified: \(error.message)"
            return ([], Dictionary(uniqueKeysWithValues: rows.map { ($0.id, text) }))
        }
        var grants: [Grant] = []
        var problems: [Int64: String] = [:]
        for row in rows {
            if let grant = seal?.open(row.record, seal: row.seal, as: row.id) {
                grants.append(grant)
            } else {
                problems[row.id] = "was not made by this domain, or was changed"
            }
        }
        var table = GrantTable()
        for orphan in table.take(stored: grants) {
            problems[orphan.id.rawValue] = "was made from a grant that is gone"
            grants.removeAll { $0.id == orphan.id }
        }
        return (grants, problems)
    }

    /// Blocking. The key is on the disk before anything that needs it. `table`: as it is after the
    /// change.
    func store(_ change: GrantChange, _ table: GrantTable) throws(Failure) {
        guard let seal = GrantSeal(key: try key.read()) else {
            throw Failure(.corrupted, "the key of the state folder has a wrong size")
        }
        let rows = change.stored.compactMap { grant in
            seal.seal(grant).map { GrantRow(id: grant.id.rawValue, record: $0.record, seal: $0.seal) }
        }
        let removed = change.removed.filter(\.isStored)
        // Also of what is not stored itself.
        let names = Set((change.stored + change.removed).compactMap { $0.key.placeIdentifier })
        let given = names.filter { table.hasAny($0) }
        if !rows.isEmpty || !removed.isEmpty || !given.isEmpty {
            try index.write { transaction throws(Failure) in
                for name in given { try GivenNames.set(name, isGiven: true, transaction) }
                for row in rows { try GrantRows.set(row, transaction) }
                for grant in removed { try GrantRows.delete(grant.id.rawValue, transaction) }
            }
        }
        // One too many does no harm, and goes with the next daemon.
        try? forget(names.subtracting(given))
        if rows.isEmpty && removed.isEmpty { return }
        // What was taken back is not there again after a power cut. Of what was given nothing may be.
        if removed.isEmpty { try? index.synchronize() } else { try index.synchronize() }
    }

    private func forget(_ names: Set<ItemIdentifier>) throws(Failure) {
        if names.isEmpty { return }
        try index.write { transaction throws(Failure) in
            for name in names { try GivenNames.set(name, isGiven: false, transaction) }
        }
    }

    /// What ended with a daemon before this one has no name any more; an older one noted none.
    func storeNames(of table: GrantTable) throws(Failure) {
        let wanted = table.placeIdentifiers
        let known = try index.read { transaction throws(Failure) in
            try GivenNames.all(transaction)
        }
        if wanted == known { return }
        try index.write { transaction throws(Failure) in
            for name in wanted.symmetricDifference(known) {
                try GivenNames.set(name, isGiven: wanted.contains(name), transaction)
            }
        }
    }

    func nextID() throws(Failure) -> GrantID {
        try index.write { transaction throws(Failure) in
            GrantID(try GrantRows.nextNumber(transaction))
        }
    }

    /// For `verify`; `isRepairing`: what gives no right is removed. Each a sentence.
    func check(isRepairing: Bool) throws(Failure) -> (problems: [String], repaired: [String]) {
        let problems = try load().problems.sorted { $0.key < $1.key }
        let texts = problems.map { "grant \($0.key) \($0.value), and gives no right" }
        // With the key that was lost, they are what they were.
        if let trouble = key.trouble() { return ([trouble] + texts, []) }
        guard isRepairing, !problems.isEmpty else { return (texts, []) }
        try index.write { transaction throws(Failure) in
            for (id, _) in problems { try GrantRows.delete(id, transaction) }
        }
        return ([], texts.map { $0 + "; it was removed" })
    }
}
