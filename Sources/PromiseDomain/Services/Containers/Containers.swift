import Logging
package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

/// The containers of applications: each is a folder of the domain and one private object at the
/// provider that says whose it is, so that it stays the container wherever the folder is moved.
///
/// **Threads.** One thread of its own writes the file; `state` is a leaf.
package final class Containers: Sendable {
    package static let documentsName = "Documents"
    /// What providers keep for themselves is in it.
    private static let reservedName = ".promisefs"

    struct State {
        /// Nil before they were read.
        var known: [Key: KnownContainer]?
        var trouble: [Key: String] = [:]
        var hasLooked = false
        /// The last of the settled ones that was looked at again.
        var lastLooked: Key?
        var isOver = false
        var isSending = false
        /// How often a folder became a container's, or was one no more.
        var changeCount = 0
        var whenChanged: (@Sendable () -> Void)?
    }

    static let attemptsMax = 10
    /// So many of those in which nothing is known to be new are looked at again with each poll.
    static let settledCount = 2
    /// Whether the connection became another one is looked at so often while somebody wants to know.
    private static let lookingTime = Duration.milliseconds(200)
    /// The first to ask on a machine waits so long for what others have.
    static let firstPatience = Duration.seconds(2)
    /// A look at the provider before a folder is taken for deleted takes no longer.
    static let lookPatience = Duration.seconds(10)
    /// So long the identifier of a folder that was just made is waited for before the next poll.
    static let sendingPatience = Duration.seconds(30)

    let tree: DomainTree
    private let search: ItemSearch
    private let notes: MoveNotes
    private let file: ContainerFile
    let configuration: DomainConfiguration
    private let door: AccessDoor
    let logger: Logger
    private let account: AccountName
    private let pool = BlockingPool(name: "containers", threads: 1)
    let state = Mutex(State())
    /// An exchange or a removal, one at a time for each application.
    let turns = KeyTurns<Key>()

    init(
        tree: DomainTree, search: ItemSearch, notes: MoveNotes, file: [UInt8],
        configuration: DomainConfiguration, door: AccessDoor, logger: Logger
    ) {
        self.tree = tree
        self.search = search
        self.notes = notes
        self.file = ContainerFile(path: file)
        self.configuration = configuration
        self.door = door
        account = AccountName(tree.account, configuration)
        self.logger = logger
    }

    // MARK: What is asked

    /// Makes the folder, unless the application has one on any machine. Returns when it is noted on
    /// the disk; the provider has the record a moment later.
    package func add(
        _ application: String, name: String?, isPublic: Bool?, icon: [UInt8]? = nil, by principal: Principal
    ) async throws(Failure) -> ContainerStanding {
        let key = try checked(application)
        try door.admit(principal, to: "containers.add", of: application, isChange: true)
        if let name {
            let isFit = FileName(name) != nil && name.utf8.count <= ContainerRecord.nameByteCountMax
            guard isFit, name != Containers.reservedName else {
                throw Failure(.invalid, "a container's name is that of a folder, at most 200 bytes")
            }
        }
        if let icon, !ContainerRecord.isIcon(icon) {
            throw Failure(.invalid, "an icon is a PNG file of at most \(ContainerRecord.iconByteCountMax) bytes")
        }
        if configuration.isReadOnly {
            throw Failure(.readOnly, "the domain is mounted read-only: it gets no container")
        }
        await lookOnce()
        if isOnline { _ = await within(Containers.firstPatience) { await $0.exchange(key) } }
        let container = try await containers()[key]
        if let known = container, try await isThere(known, key) {
            let known = try await containers()[key] ?? known
            // Without the provider it may not be known what is in it.
            try? await makeDocuments(known)
            try await change(key) { ($0 ?? known).asked(name: name, isPublic: isPublic, icon: icon) }
        } else {
            var fresh = try await make(key, name, isPublic ?? container?.record.isPublic ?? false)
            fresh.wasSent = container?.wasSent ?? false
            fresh.record.name = name ?? container?.record.name ?? fresh.record.name
            fresh.replaced = container?.record.folder
            fresh.record.icon = icon ?? container?.record.icon
            try await keepMade(fresh, of: key, before: container)
        }
        sendSoon()
        return try await standing(key)
    }

    /// What is here; only the first to ask on a machine waits, two seconds at most, for what
    /// others have. An application sees its own and those that are public.
    package func all(by principal: Principal) async throws(Failure) -> [ContainerStanding] {
        try door.admit(principal, to: "containers.list", of: nil)
        await lookOnce()
        var result: [ContainerStanding] = []
        for (key, container) in try await containers().sorted(by: { $0.key < $1.key })
        where container.record.isPublic || principal.mayAct(for: key.text) {
            result.append(try await standing(key))
        }
        return result
    }

    /// Of one application. `.notFound` when it has none.
    package func container(
        of application: String, by principal: Principal
    ) async throws(Failure) -> ContainerStanding {
        let key = try checked(application)
        try door.admit(principal, to: "containers.show", of: application)
        await lookOnce()
        return try await standing(key)
    }

    /// A PNG. `.notFound` when there is none; an application sees its own and those of public ones.
    package func icon(of application: String, by principal: Principal) async throws(Failure) -> [UInt8] {
        let key = try checked(application)
        await lookOnce()
        let record = try await containers()[key]?.record
        try door.admit(principal, to: "containers.icon", of: record?.isPublic == true ? nil : application)
        guard let icon = record?.icon else {
            throw Failure(.notFound, "the container of '\(key)' has no icon: 'promisefs container add --icon FILE' gives it one")
        }
        return icon
    }

    /// The folder stays, and is an ordinary one from now on.
    package func remove(
        _ application: String, by principal: Principal
    ) async throws(Failure) -> ContainerStanding {
        let key = try checked(application)
        try door.admit(principal, to: "containers.remove", of: application, isChange: true)
        if configuration.isReadOnly {
            throw Failure(.readOnly, "the domain is mounted read-only: it loses no container")
        }
        await lookOnce()
        // An exchange under way would write the record anew, or take it in again.
        await turns.take(key)
        defer { turns.giveBack(key) }
        let last = try await standing(key)
        let wasSent = try await containers()[key]?.wasSent ?? false
        if wasSent, let failure = tree.engine.connectionFailure { throw failure }
        if isOnline, let objects = tree.provider.privateObjects, let place = place(key) {
            let removal = await call { () async throws(ProviderError) in
                guard let found = try await objects.read(place) else { return }
                try await objects.delete(place, base: found.version)
            }
            switch removal {
            case .success: break
            case .failure(let error) where error.code == .conflict:
                throw Failure(.conflict, "another machine changes this container: try again")
            case .failure(let error): throw error.failure
            }
        }
        try await keep(nil, of: key)
        return last
    }

    /// Why records are not exchanged with other machines; nil when they are.
    package var trouble: String? {
        if tree.provider.privateObjects == nil, isOnline {
            return "containers stay on this machine: the provider keeps no private objects"
        }
        return state.withLock { $0.trouble.values.sorted().first }
    }

    /// Whether the domain can be used now, and whose it is. Asks nobody.
    package var availability: (domain: String, provider: String, account: String, message: String?) {
        let message: String? =
            switch tree.engine.connection {
            case .online: nil
            case .connecting: "the provider has not answered yet"
            case .offline(let message), .failing(let message): message
            }
        return (tree.domainName, tree.provider.name, account.text, message)
    }

    /// What `availability` says now, and then whenever it says something else. Ends with the domain.
    package func availabilities() -> AsyncStream<ContainerAvailability> {
        AsyncStream { continuation in
            let task = Task { [weak self] in
                var last: ContainerAvailability?
                while let self, !Task.isCancelled, !self.state.withLock({ $0.isOver }) {
                    let now = ContainerAvailability(self.availability)
                    if now != last { continuation.yield(now) }
                    last = now
                    try? await Task.sleep(for: Containers.lookingTime)
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// For `status`.
    var troubles: [String] {
        state.withLock { $0.trouble }.sorted { $0.key < $1.key }.map {
            "the container of \($0.key) is not exchanged: \($0.value)"
        }
    }

    /// Of how many applications the record is only on this machine, though the provider could have it.
    package var unsentCount: Int {
        guard tree.provider.privateObjects != nil else { return 0 }
        return state.withLock { $0.known?.values.count { !$0.isSent } ?? 0 }
    }

    /// Compares the file with what is in memory.
    func check(isRepairing: Bool, _ shelf: RecordShelf) async throws(Failure) -> RecordFindings {
        try await onThread { () throws(Failure) in
            self.file.check(known: self.state.withLock { $0.known }, isRepairing: isRepairing, shelf)
        }
    }

    // MARK: Life

    func start() {
        Task { [weak self, interval = configuration.pollInterval] in
            // Also without the provider `status` says what waits.
            _ = try? await self?.containers()
            // The first folder is shown before.
            try? await Task.sleep(for: min(.seconds(1), interval))
            while self?.state.withLock({ $0.isOver }) == false {
                await self?.exchangeAll()
                try? await Task.sleep(for: interval)
            }
        }
    }

    func stop() {
        state.withLock { $0.isOver = true }
        pool.stop()
    }

    // MARK: Here

    var changeCount: Int { state.withLock { $0.changeCount } }

    /// Called on a thread that does other things, too, when a folder became a container's, or was one no more.
    func whenChanged(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.whenChanged = body } }

    var isOnline: Bool { tree.engine.connection == .online }

    func place(_ key: Key) -> PrivateName? { PrivateName(.containers, key.text + ".json") }

    func checked(_ application: String) throws(Failure) -> Key { try Key.application(application) }

    func containers() async throws(Failure) -> [Key: KnownContainer] {
        if let known = state.withLock({ $0.known }) { return known }
        return try await onThread { () throws(Failure) in try self.load() }
    }

    private func onThread<Result: Sendable>(
        _ body: @escaping @Sendable () throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        if state.withLock({ $0.isOver }) { throw Failure(.gone, "the domain is being unmounted") }
        return try await pool.run(body)
    }

    /// On the thread.
    private func load() throws(Failure) -> [Key: KnownContainer] {
        if let known = state.withLock({ $0.known }) { return known }
        let read = try file.read()
        state.withLock { $0.known = read }
        return read
    }

    func keep(_ container: KnownContainer?, of key: Key) async throws(Failure) {
        try await change(key) { _ in container }
    }

    /// `body` makes what is to be known of what is known then: whoever asked before may have waited, and
    /// others have changed it meanwhile. Returns that. On the disk first: a disk that is full changes
    /// nothing.
    @discardableResult
    func change(
        _ key: Key, _ body: @escaping @Sendable (KnownContainer?) -> KnownContainer?
    ) async throws(Failure) -> KnownContainer? {
        try await onThread { () throws(Failure) in
            let before = try self.load()
            let container = body(before[key])
            guard before[key] != container else { return container }
            var known = before
            known[key] = container
            do throws(Failure) {
                try self.file.write(known)
            } catch {
                // The last step may have failed when the new file had its name already.
                try? self.file.write(before)
                throw error
            }
            let isElsewhere = before[key]?.entry != container?.entry
            let whenChanged = self.state.withLock { state in
                state.known = known
                if isElsewhere { state.changeCount += 1 }
                return isElsewhere ? state.whenChanged : nil
            }
            whenChanged?()
            return container
        }
    }

    func find(_ container: KnownContainer) async throws(Failure) -> ItemFinder.Finding {
        try await tree.find(container.record.folder, bound: container.entry, search)
    }

    /// False when the folder was deleted. Others may have made or moved it just now: before it is
    /// taken for deleted the provider is asked.
    private func isThere(_ container: KnownContainer, _ key: Key) async throws(Failure) -> Bool {
        var finding = try await find(container)
        if finding.fate != .found, isOnline {
            try? await Barrier(engine: tree.engine, clock: SystemClock(), below: nil)
                .wait(untilDone: false, timeout: Containers.lookPatience)
            _ = await within(Containers.firstPatience) { containers in
                await containers.notes.ask(atOnce: true)
                await containers.exchange(key)
            }
            if let known = try await containers()[key] { finding = try await find(known) }
        }
        if finding.fate == .unknown {
            throw tree.engine.connectionFailure
                ?? Failure(.timedOut, "it is not known yet where the container of '\(key)' is: try again later")
        }
        return finding.fate == .found
    }

    private func standing(_ key: Key) async throws(Failure) -> ContainerStanding {
        guard let container = try await containers()[key] else {
            throw Failure(
                .notFound,
                "'\(key)' has no container here; 'promisefs container add --app \(key)' makes one")
        }
        let finding = try await find(container)
        let isFound = finding.fate == .found
        return ContainerStanding(
            application: key.text, name: container.record.name, isPublic: container.record.isPublic,
            identifier: isFound ? finding.entry?.identifier : container.record.folder.identifier,
            path: isFound ? finding.path : nil, reason: finding.fate.reason,
            isSent: container.isSent, hasIcon: container.record.icon != nil)
    }
}
