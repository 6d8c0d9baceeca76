import Glibc
package import Logging
package import PromiseAccess
package import PromiseCore
package import PromiseKeyValue
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// The key-value store of each application of a domain: its values are here on the disk, so that
/// reading asks nobody, and one private object an application at the provider, by which machines
/// exchange them.
///
/// **Threads.** One thread of its own changes values and writes their files, one after the other;
/// `state` is a leaf.
package final class Values: Sendable {
    /// What it needs of the domain.
    package struct Needs: Sendable {
        /// Whose values they are now.
        package var account: @Sendable () -> String
        /// Nil where the provider keeps none.
        package var objects: @Sendable () -> (any PrivateObjects)?
        package var isOnline: @Sendable () -> Bool
        package var pollInterval: Duration
        /// A call of the provider takes no longer.
        package var deadline: Duration
        package var isReadOnly: Bool
        package var limits = ValueLimits()
        /// Whoever has the account, the values are the same ones: a change of it is told and takes none.
        package var isShared = false
        package var kind = PrivateName.Kind.values

        package init(
            account: @autoclosure @escaping @Sendable () -> String, objects: @escaping @Sendable () -> (any PrivateObjects)?,
            isOnline: @escaping @Sendable () -> Bool, pollInterval: Duration = .seconds(30),
            deadline: Duration = .seconds(30), isReadOnly: Bool = false
        ) {
            self.account = account
            self.objects = objects
            self.isOnline = isOnline
            self.pollInterval = pollInterval
            self.deadline = deadline
            self.isReadOnly = isReadOnly
        }
    }

    struct State {
        var stores: [Key: ValueStore] = [:]
        /// Under way, and asked for once more meanwhile.
        var exchanging: Set<Key> = []
        var again: Set<Key> = []
        /// Where a damaged file is whose values are those of the provider since.
        var setAside: [Key: String] = [:]
        /// A change waits to be sent together with those that follow it.
        var waiting: Set<Key> = []
        var trouble: [Key: String] = [:]
        var watchers:
            [UInt64: (application: Key, continuation: AsyncStream<ValueNotice>.Continuation)] = [:]
        var watcherCount: UInt64 = 0
        var isOver = false
    }

    /// Others that write at the same moment win a few times at most.
    static let attemptsMax = 10
    /// So that what is set together is sent together.
    static let quietTime = Duration.milliseconds(500)
    /// The first to ask on a machine waits so long for what others have.
    private static let firstPatience = Duration.seconds(2)
    private static let turnPause = Duration.milliseconds(10)

    let needs: Needs
    private let files: ValueFiles
    let clock: any TimeSource
    let logger: Logger
    private let door: AccessDoor
    private let pool = BlockingPool(name: "values", threads: 1)
    let state = Mutex(State())

    package init(
        folder: [UInt8], needs: Needs, clock: any TimeSource = SystemClock(),
        audit: AuditLog? = nil, logger: Logger
    ) {
        files = ValueFiles(folder: folder)
        self.needs = needs
        self.clock = clock
        self.logger = logger
        door = AccessDoor(logger: logger, audit: audit)
    }

    // MARK: What applications ask

    /// Of what is here. Only the first question of an application on this machine asks the
    /// provider.
    package func values(
        of application: String, by principal: Principal
    ) async throws(Failure) -> [Key: Value] {
        let name = try name(application)
        try door.admit(principal, to: "values.get", of: application)
        if try await usable(name).account == nil, needs.isOnline() { await exchangeSoon(name) }
        return try await store(name).values
    }

    /// Returns when the value is on the disk; other machines have it a moment later.
    package func set(
        _ value: Value, for key: String, of application: String, by principal: Principal
    ) async throws(Failure) {
        let name = try name(application)
        try door.admit(principal, to: "values.set", of: application, isChange: true)
        _ = try await usable(name)
        let key = Key(key)
        do throws(Failure) {
            try await change(name) { (store, now) throws(Failure) in
                do throws(ValueRefusal) {
                    try store.set(value, for: key, at: now, limits: self.needs.limits)
                } catch {
                    throw Failure(error.reason == .quota ? .quotaExceeded : .invalid, error.message)
                }
            }
        } catch {
            if error.code == .quotaExceeded {
                tell([ValueNotice(.quotaViolation, [key])], of: name)
            }
            throw error
        }
        sendSoon(name)
    }

    /// Several at once, of what the domain itself keeps; nil removes one. Returns those for which
    /// there is no room.
    func apply(_ changes: [Key: Value?], to application: String) async throws(Failure) -> Set<Key> {
        if changes.isEmpty { return [] }
        let refused = Mutex<Set<Key>>([])
        try await change(try name(application)) { [limits = needs.limits] (store, now) in
            for (key, value) in changes.sorted(by: { $0.key < $1.key }) {
                guard let value else {
                    store.remove(key, at: now)
                    continue
                }
                do throws(ValueRefusal) {
                    try store.set(value, for: key, at: now, limits: limits)
                } catch {
                    refused.withLock { _ = $0.insert(key) }
                }
            }
        }
        return refused.withLock { $0 }
    }

    /// What the domain itself keeps; nil: it was removed, not long ago.
    func entries(of application: String) async throws(Failure) -> [Key: Value?] {
        try await store(try name(application)).record.entries.mapValues(\.value)
    }

    /// False when there was none.
    package func remove(
        _ key: String, of application: String, by principal: Principal
    ) async throws(Failure) -> Bool {
        let name = try name(application)
        try door.admit(principal, to: "values.remove", of: application, isChange: true)
        _ = try await usable(name)
        let isRemoved = Mutex(false)
        try await change(name) { (store, now) throws(Failure) in
            let was = store.remove(Key(key), at: now)
            isRemoved.withLock { $0 = was }
        }
        sendSoon(name)
        return isRemoved.withLock { $0 }
    }

    /// Looks at the provider now and sends what is new here. Returns when that is done, or cannot
    /// be done now.
    package func synchronize(
        _ application: String, by principal: Principal
    ) async throws(Failure) {
        let name = try name(application)
        try door.admit(principal, to: "values.synchronize", of: application)
        await exchange(name)
        _ = try await store(name)
    }

    /// What other machines change, from now on. Ends with the task that reads it.
    package func notices(
        of application: String, by principal: Principal
    ) async throws(Failure) -> AsyncStream<ValueNotice> {
        let name = try name(application)
        try door.admit(principal, to: "values.watch", of: application)
        let (stream, continuation) = AsyncStream.makeStream(
            of: ValueNotice.self, bufferingPolicy: .bufferingNewest(1000))
        let number = state.withLock { state in
            state.watcherCount += 1
            state.watchers[state.watcherCount] = (name, continuation)
            return state.watcherCount
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.watchers[number] = nil }
        }
        // Who watches is told of what comes, also if nobody has asked for a value yet.
        _ = try await usable(name)
        sendSoon(name)
        return stream
    }

    /// Why the values of an application are not exchanged; nil when they are.
    package func trouble(of application: String) -> String? {
        if needs.objects() == nil, needs.isOnline() {
            return "values stay on this machine: the provider keeps no private objects"
        }
        return state.withLock { $0.trouble[Key(application)] }
    }

    /// Of how many applications something is only on this machine, though the provider could have
    /// it.
    package var unsentCount: Int {
        needs.objects() == nil ? 0 : state.withLock { $0.stores.values.count { !$0.isSent } }
    }

    /// Compares the files with what is in memory.
    func check(isRepairing: Bool, _ shelf: RecordShelf) async throws(Failure) -> RecordFindings {
        try await onThread { () throws(Failure) in
            self.files.check(
                self.needs.kind, known: self.state.withLock { $0.stores }, isRepairing: isRepairing, shelf)
        }
    }

    /// Sends what is new here; waits no longer than that.
    package func send(within limit: Duration) async {
        if unsentCount == 0 { return }
        _ = try? await withDeadline(limit, "the provider did not answer") {
            [weak self] () async throws(ProviderError) in
            await self?.exchangeAll()
        }
    }

    /// All of these, for `status`.
    package var troubles: [String] {
        let (trouble, setAside) = state.withLock { ($0.trouble, $0.setAside) }
        return trouble.sorted { $0.key < $1.key }.map { "values of \($0.key) are not exchanged: \($0.value)" }
            + setAside.sorted { $0.key < $1.key }.map {
                "values of \($0.key) were damaged, and are those of the provider since: '\($0.value)' is what was here"
            }
    }

    // MARK: Life

    /// Goes on with what is known here, and looks at the provider at each poll interval.
    package func start() {
        Task { [weak self, pool, files, interval = needs.pollInterval] in
            for name in await pool.run({ files.applications() }) {
                _ = try? await self?.store(name)
                await self?.exchange(name)
            }
            while self?.state.withLock({ $0.isOver }) == false {
                try? await Task.sleep(for: interval)
                await self?.exchangeAll()
            }
        }
    }

    /// Also when somebody wants the provider to be looked at now.
    package func exchangeAll() async {
        for name in state.withLock({ $0.isOver ? [] : Set($0.stores.keys).union($0.trouble.keys) }) {
            await exchange(name)
        }
    }

    package func stop() {
        let watchers = state.withLock { state in
            state.isOver = true
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher.continuation.finish() }
        pool.stop()
    }

    // MARK: Here

    private func name(_ application: String) throws(Failure) -> Key { try Key.application(application) }

    private func store(_ name: Key) async throws(Failure) -> ValueStore {
        if let known = state.withLock({ $0.stores[name] }) { return known }
        return try await onThread { () throws(Failure) in try self.load(name) }
    }

    /// What is damaged here may be whole at the provider.
    private func usable(_ name: Key) async throws(Failure) -> ValueStore {
        do throws(Failure) { return try await store(name) } catch {
            guard error.code == .corrupted, needs.isOnline() else { throw error }
            await exchangeSoon(name)
            return try await store(name)
        }
    }

    private func exchangeSoon(_ name: Key) async {
        _ = try? await withDeadline(Values.firstPatience, "the provider did not answer") {
            [weak self] () async throws(ProviderError) in
            await self?.exchange(name)
            // Somebody else's, as that of the start, is one as well.
            while self?.isExchanging(name) == true, !Task.isCancelled {
                try? await Task.sleep(for: Values.turnPause)
            }
        }
    }

    private func isExchanging(_ name: Key) -> Bool { state.withLock { $0.exchanging.contains(name) } }

    func onThread<Result: Sendable>(
        _ body: @escaping @Sendable () throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        if state.withLock({ $0.isOver }) { throw Failure(.gone, "the domain is being unmounted") }
        return try await pool.run(body)
    }

    /// On the thread.
    func load(_ name: Key) throws(Failure) -> ValueStore {
        if let known = state.withLock({ $0.stores[name] }) { return known }
        let machine = Key(String(UInt64.random(in: 0 ... .max), radix: 36))
        let store = try files.read(name) ?? ValueStore(application: name, machine: machine)
        state.withLock { $0.stores[name] = store }
        return store
    }

    /// On the thread. What is here is of no use either.
    func isDamaged(_ name: Key) -> Bool {
        state.withLock { $0.stores[name] } == nil && files.isDamaged(name)
    }

    /// On the thread, when the provider has values that can be read. A file that is damaged is kept, for people to look into.
    func setAsideDamaged(_ name: Key) throws(Failure) {
        guard isDamaged(name) else { return }
        let stateFolder = Array(files.folder[..<(files.folder.lastIndex(of: 0x2F) ?? 0)])
        let shelf = RecordShelf(stateFolder: stateFolder)
        let place = try shelf.setAside(files.path(name), as: "\(needs.kind.rawValue)-\(name).json")
        state.withLock { $0.setAside[name] = place }
        logger.warning(
            "values were damaged, and are those of the provider from now on",
            metadata: ["application": "\(name)", "kept": "\(place)"])
    }

    /// On the disk first: a disk that is full changes nothing.
    private func change(
        _ name: Key,
        _ body: @escaping @Sendable (inout ValueStore, Timestamp) throws(Failure) -> Void
    ) async throws(Failure) {
        if needs.isReadOnly {
            throw Failure(.readOnly, "the domain is mounted read-only: values cannot be changed")
        }
        try await onThread { () throws(Failure) in
            let before = try self.load(name)
            var store = before
            try body(&store, self.clock.now())
            try self.keep(store, over: before)
        }
    }

    /// On the thread.
    func keep(_ store: ValueStore, over before: ValueStore) throws(Failure) {
        guard store != before else { return }
        do throws(Failure) {
            try files.write(store)
        } catch {
            // The last step may have failed when the new file had its name already.
            try? files.write(before)
            throw error
        }
        state.withLock { $0.stores[store.record.application] = store }
    }

    func tell(_ notices: [ValueNotice], of name: Key) {
        let watchers = state.withLock { $0.watchers.values.filter { $0.application == name } }
        for watcher in watchers { for notice in notices { watcher.continuation.yield(notice) } }
    }
}
