package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
package import PromiseIndex
import PromiseKeyValue
import PromiseSystem
import Synchronization

/// What an application's view has at its top: an item that it was given, or its own folder.
package struct GrantedRoot: Hashable, Sendable {
    /// Stays the same for as long as the application has the item, whatever the item is called.
    package var name: FileName
    package var entry: EntryID
    /// What is under the entry now: a safe save puts another node there.
    package var node: NodeID
    package var kind: NodeKind
    package var rights: Rights
    package var isContainer: Bool
}

/// What became of grants. Told after it is so: `allowed` answers by it already.
package struct GrantNews: Hashable, Sendable {
    package var applications: Set<String>
    /// Somebody has fewer rights than before.
    package var isNarrowing: Bool
}

/// The one who knows which application may do what to which item: who shows a view, or answers an
/// application's socket, asks `allowed` each time.
///
/// - `allowed`, `roots`, `node(at:)`, `path(of:)`: at once, on any thread, also one that serves a
///   mount; they read the index, and `state` for a moment. Those that take a transaction can be
///   asked inside one, so that check and use are of one moment.
/// - everything else waits for the disk, and for the door's line in the audit log.
///
/// **Threads.** One thread of its own makes every change; `state` is a leaf.
package final class Grants: Sendable {
    struct State {
        var table = GrantTable()
        var launches: [LaunchID: Launch] = [:]
        var scopes: [GrantID: Int] = [:]
        /// Starts that launches which have ended never stopped.
        var unbalanced: [Key: Int] = [:]
        var observers: [UInt64: Observer] = [:]
        var nextObserver: UInt64 = 0
        /// A clock that is set back makes nothing valid again.
        var latest = Timestamp.zero
        var trouble: String?
        var isOver = false
        var sockets: (any LaunchSockets)?
        var isNaming = false
    }

    struct Observer { let tell: @Sendable (GrantNews) -> Void }

    struct Launch: Sendable {
        var application: Key
        var number: LaunchID
        /// Whose processes are in it; nil: nobody has said yet.
        var bound: BoundNamespace?
    }

    /// At the top of a view: the application's own folder, and the folder of what it was given.
    package static let containerName = FileName(trusted: Array("container".utf8))

    package static let grantedName = FileName(trusted: Array("granted".utf8))

    let tree: DomainTree
    let store: GrantStore
    let search: ItemSearch
    let containers: Containers
    let door: AccessDoor
    let clock: any TimeSource
    let pool = BlockingPool(name: "grants", threads: 1)
    let state = Mutex(State())

    init(
        tree: DomainTree, search: ItemSearch, key: StateKey, containers: Containers, door: AccessDoor,
        clock: any TimeSource = SystemClock()
    ) {
        self.tree = tree
        self.search = search
        store = GrantStore(index: tree.index, key: key)
        self.containers = containers
        self.door = door
        self.clock = clock
    }

    // MARK: At once

    /// What a principal may do to a node. The owner may do anything; an application what it was
    /// given, or something above it; nothing where the node has no name.
    package func allowed(_ principal: Principal, _ node: NodeID) throws(Failure) -> Rights {
        guard case .application = principal else { return .readWrite }
        return try tree.index.read { transaction throws(Failure) in
            try allowed(principal, node, transaction)
        }
    }

    package func allowed(
        _ principal: Principal, _ node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Rights {
        guard case .application(let name, let launch) = principal else { return .readWrite }
        let application = Key(name)
        let (table, now) = snapshot()
        guard table.hasAny(application) else { return .none }
        var best = Rights.none
        for name in try transaction.entries(of: node) {
            best = max(best, try rights(of: application, launch, name, table, now, transaction))
            if best == .readWrite { break }
        }
        return best
    }

    /// The same by a name, where a node has several.
    package func allowed(
        _ principal: Principal, _ entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Rights {
        guard case .application(let name, let launch) = principal else { return .readWrite }
        let (table, now) = snapshot()
        return try rights(of: Key(name), launch, entry, table, now, transaction)
    }

    private func rights(
        of application: Key, _ launch: LaunchID, _ entry: Entry, _ table: GrantTable,
        _ now: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) -> Rights {
        var best = Rights.none
        var current = entry
        var depth = 0
        while true {
            let isBackup = try ItemFinder.isBackup(current, transaction)
            let step = GrantStep(
                entry: current.id, identifier: current.identifier, isDocument: !isBackup && current.conflictsWith == nil)
            best = max(
                best,
                try table.rights(of: application, in: launch, at: step, now: now) {
                    item throws(Failure) in try self.isElsewhere(item, than: current.id, transaction)
                })
            guard best < .readWrite, current.parent != .root,
                let above = try transaction.entries(of: current.parent).first
            else { return best }
            depth += 1
            if depth > 100_000 { return .none }
            current = above
        }
    }

    private func isElsewhere(
        _ item: ItemIdentifier, than entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let other = try transaction.entry(for: item) else { return false }
        return other.id != entry
    }

    /// What an application has at the top of its view in a launch, by name.
    package func roots(of principal: Principal) throws(Failure) -> [GrantedRoot] {
        try tree.index.read { transaction throws(Failure) in
            try roots(of: principal, transaction)
        }
    }

    package func roots(
        of principal: Principal, _ transaction: borrowing Transaction
    ) throws(Failure) -> [GrantedRoot] {
        guard case .application(let name, let launch) = principal else { return [] }
        let (table, now) = snapshot()
        var (found, container): ([FileName: GrantedRoot], GrantedRoot?) = ([:], nil)
        for grant in table.open(for: Key(name), in: launch, now: now) {
            var finder = ItemFinder(grant.key, bound: grant.entry)
            finder.believesNotes = false
            let finding = try finder.find(transaction)
            guard search.fate(of: finding) == .found, let entry = finding.entry,
                let node = try transaction.node(entry.node)
            else { continue }
            if grant.key.identifier == nil, grant.entry != entry.id { GrantNaming(grants: self).lookSoon() }
            let rights = table.rights(grant, at: now)
            let isContainer = grant.kind == .container
            let known = isContainer ? container?.rights : found[grant.name]?.rights
            let root = GrantedRoot(
                name: grant.name, entry: entry.id, node: node.id, kind: node.kind,
                rights: max(rights, known ?? .none), isContainer: isContainer)
            if isContainer { container = root } else { found[grant.name] = root }
        }
        // An item has one place in a view, which knows it by its entry.
        let items = found.values.filter { $0.entry != container?.entry }
        return (items + [container].compactMap(\.self)).sorted { $0.name < $1.name }
    }

    func snapshot() -> (table: GrantTable, now: Timestamp) {
        let now = clock.now()
        return state.withLock { state in
            state.latest = max(state.latest, now)
            return (state.table, state.latest)
        }
    }

    // MARK: Being told

    /// `tell` is called on the thread that makes changes, and returns soon. Returns what `forget`
    /// takes.
    package func whenChanged(_ tell: @escaping @Sendable (GrantNews) -> Void) -> UInt64 {
        state.withLock { state in
            state.nextObserver += 1
            state.observers[state.nextObserver] = Observer(tell: tell)
            return state.nextObserver
        }
    }

    package func forget(_ observer: UInt64) {
        state.withLock { _ = $0.observers.removeValue(forKey: observer) }
    }

    // MARK: Life

    /// Before anybody asks. Grants that cannot be read give nothing, and keep no mount away.
    func load() {
        let now = clock.now()
        do throws(Failure) {
            let (grants, problems) = try store.load()
            var table = GrantTable()
            _ = table.take(stored: grants)
            let expired = table.expire(now: now)
            if !expired.isEmpty { try? store.store(expired, table) }
            // What does not verify now may with the key that was lost.
            if problems.isEmpty { try? store.storeNames(of: table) }
            state.withLock { [table] state in
                (state.table, state.latest) = (table, now)
                state.trouble =
                    problems.isEmpty
                    ? nil : "\(problems.count) grants do not verify, and give no right: see 'promisefs verify'"
            }
        } catch {
            state.withLock { $0.trouble = "grants cannot be read: \(error.message)" }
        }
    }

    func stop() {
        state.withLock { $0.isOver = true }
        pool.stop()
    }

    /// For `status`.
    var troubles: [String] { state.withLock { $0.trouble.map { [$0] } ?? [] } }

    // MARK: Changing

    /// On the thread: the index first, then everybody.
    func change(
        _ body: (inout GrantTable, Timestamp) throws(Failure) -> GrantChange
    ) throws(Failure) -> GrantChange {
        var (table, now) = snapshot()
        var change = table.expire(now: now)
        let more = try body(&table, now)
        change.removed += more.removed
        change.stored += more.stored
        change.applications.formUnion(more.applications)
        if change.isEmpty { return change }
        try store.store(change, table)
        let observers = state.withLock { [table] state in
            state.table = table
            for grant in change.removed { state.scopes[grant.id] = nil }
            return Array(state.observers.values)
        }
        let news = GrantNews(
            applications: Set(change.applications.map(\.text)),
            isNarrowing: !change.removed.isEmpty)
        for observer in observers { observer.tell(news) }
        return change
    }

    func onThread<Value: Sendable>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        if state.withLock({ $0.isOver }) { throw Failure(.gone, "the domain is being unmounted") }
        return try await pool.run(body)
    }
}
