import Glibc
import Logging
import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

/// Machines tell each other where they have moved items to, at a store that knows places only: so
/// references and bookmarks find what another machine has moved. The notes are in one private object,
/// values under the old place that merge as those of applications do.
///
/// A note is asked for when something is missed, and not before. It goes when something else is at the
/// old place.
///
/// **Threads.** Rounds run one after the other, in a task. `state` is a leaf.
final class MoveNotes: Sendable {
    private static let limits = ValueLimits(
        totalByteCount: 1 << 20, valueByteCount: 8 << 10, keyCount: 1_000, nameByteCount: 8 << 10)
    private static let store = MovedPaths.store.text
    private static let toldSetting = "moves.told"
    /// Between two looks at what was moved here; nobody is asked for that.
    private static let pause = Duration.seconds(5)
    private static let turnPause = Duration.milliseconds(20)
    /// How many places that were told at once are looked into, and how many notes make room for new ones.
    private static let pieceCount = 100

    private struct State {
        var isOver = false
        var isRunning = false
        var asked: ContinuousClock.Instant?
        var whenTold: (@Sendable () -> Void)?
    }

    private let tree: DomainTree
    private let values: Values
    private let configuration: DomainConfiguration
    private let logger: Logger
    private let state = Mutex(State())

    init(_ tree: DomainTree, folder: [UInt8], _ configuration: DomainConfiguration, _ logger: Logger) {
        self.tree = tree
        self.configuration = configuration
        self.logger = logger
        let needs = Values.Needs(tree, .moves, MoveNotes.limits, configuration)
        values = Values(folder: folder, needs: needs, logger: logger)
    }

    func start() {
        Task { [weak self, interval = min(configuration.pollInterval, MoveNotes.pause)] in
            while let self, !self.state.withLock({ $0.isOver }) {
                await self.tell()
                try? await Task.sleep(for: interval)
            }
        }
    }

    func stop() {
        state.withLock { $0.isOver = true }
        values.stop()
    }

    /// Called when others were told of moves; it returns at once.
    func whenTold(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.whenTold = body } }

    /// For who does not wait.
    func askSoon() { Task { [weak self] in await self?.ask() } }

    /// What others have moved; at most once each poll interval, if not `atOnce`.
    func ask(atOnce: Bool = false) async {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if !atOnce, let asked = state.asked, now - asked < configuration.pollInterval { return false }
            state.asked = now
            return true
        }
        guard isDue, isOfUse, tree.engine.connectionFailure == nil else { return }
        await logged { () async throws(Failure) in
            try await self.exchange()
        }
    }

    private var isOfUse: Bool {
        tree.provider.capabilities.contains(.placeIdentifiers) && tree.provider.privateObjects != nil
            && !state.withLock { $0.isOver }
    }

    private func logged(_ body: @Sendable () async throws(Failure) -> Void) async {
        do throws(Failure) {
            try await body()
        } catch {
            logger.info("moves are not exchanged", metadata: ["reason": "\(error.message)"])
        }
    }

    private func exchange() async throws(Failure) {
        try await values.synchronize(MoveNotes.store, by: .owner(user: geteuid(), process: getpid()))
        for path in try await takeOver().prefix(MoveNotes.pieceCount) { _ = try? await tree.node(at: path) }
    }

    /// Compares the file with what is in memory.
    func check(isRepairing: Bool, _ shelf: RecordShelf) async throws(Failure) -> RecordFindings {
        try await values.check(isRepairing: isRepairing, shelf)
    }

    /// What was mended is exchanged, too.
    func look() async {
        guard isOfUse, tree.engine.connectionFailure == nil else { return }
        await logged { () async throws(Failure) in try await self.exchange() }
    }

    // MARK: From here

    /// What nobody was told of so far, before this machine goes; waits no longer than that.
    func tell(within limit: Duration) async {
        guard isOfUse, !configuration.isReadOnly, (try? changes().1) != nil || values.unsentCount > 0 else { return }
        _ = try? await withDeadline(limit, "the provider did not answer") {
            [weak self] () async throws(ProviderError) in
            while await self?.tell() == false { try? await Task.sleep(for: MoveNotes.turnPause) }
        }
    }

    /// False: it is under way.
    @discardableResult
    private func tell() async -> Bool {
        guard isOfUse, !configuration.isReadOnly else { return true }
        let begins = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard begins else { return false }
        defer { state.withLock { $0.isRunning = false } }
        await logged { () async throws(Failure) in
            let (changes, next) = try self.changes()
            if !changes.isEmpty { try await self.apply(changes) }
            if let next {
                self.state.withLock { $0.whenTold }?()
                try self.tree.index.write { transaction throws(Failure) in
                    try transaction.setSetting(MoveNotes.toldSetting, "\(next)")
                }
            }
            let isOnline = self.tree.engine.connectionFailure == nil
            if isOnline, !changes.isEmpty || self.values.unsentCount > 0 { try await self.exchange() }
        }
        return true
    }

    /// Where something has gone from, and where something else is by now; and how far moves are told
    /// then, where that is news.
    private func changes() throws(Failure) -> ([Key: Value?], UInt64?) {
        let now = SystemClock().now().rawValue
        return try tree.index.read { transaction throws(Failure) in
            var changes: [Key: Value?] = [:]
            for (from, place) in try MovedPlace.all(transaction) where place.isLeft {
                if try MovedPlace.entry(at: from, transaction) != nil { changes[MoveNotes.key(from)] = .some(nil) }
            }
            let told = try transaction.setting(MoveNotes.toldSetting).flatMap { UInt64($0) } ?? 0
            let next = try ToldMove.next(transaction)
            for move in try told < next ? ToldMove.all(since: told, transaction) : [] {
                // An editor's backup, or what was moved on since, of which there is another note.
                guard try MovedPlace.entry(at: move.from, transaction) == nil else { continue }
                changes[MoveNotes.key(move.from)] = .some(.string("\(now) \(ItemKey.text(move.to))"))
            }
            return (changes, told == next ? nil : next)
        }
    }

    private func apply(_ changes: [Key: Value?]) async throws(Failure) {
        let refused = try await values.apply(changes, to: MoveNotes.store)
        if refused.isEmpty { return }
        let known = try await values.entries(of: MoveNotes.store).compactMap { key, value in
            MovedPaths.note(value).map { (key: key, time: $0.time) }
        }
        let oldest = known.sorted { $0.time < $1.time }.prefix(max(refused.count, MoveNotes.pieceCount))
        var again = changes.filter { refused.contains($0.key) }
        for (key, _) in oldest where again[key] == nil { again[key] = .some(nil) }
        _ = try await values.apply(again.filter { $0.value == nil }, to: MoveNotes.store)
        _ = try await values.apply(again.filter { $0.value != nil }, to: MoveNotes.store)
    }

    // MARK: From there

    /// Returns where something has gone that was not known to have.
    private func takeOver() async throws(Failure) -> [[FileName]] {
        let there = try await values.entries(of: MoveNotes.store)
        var wanted: [[FileName]: [FileName]] = [:]
        for (key, value) in there {
            if let from = ItemKey.names(key.text), let note = MovedPaths.note(value) { wanted[from] = note.path }
        }
        let known = try tree.index.read { transaction throws(Failure) in try MovedPlace.all(transaction) }
        let unseen = known.contains { !$0.value.isLeft }
        if known.mapValues(\.path) == wanted, !unseen { return [] }
        try tree.index.write { [wanted] transaction throws(Failure) in
            for from in known.keys where wanted[from] == nil { try MovedPlace.set(nil, from: from, transaction) }
            for (from, path) in wanted {
                let isLeft = try MovedPlace.entry(at: from, transaction) == nil
                let place = MovedPlace(path: path, isLeft: isLeft || known[from]?.isLeft == true)
                if known[from] != place { try MovedPlace.set(place, from: from, transaction) }
            }
        }
        return wanted.filter { known[$0.key]?.path != $0.value }.map(\.value)
    }

    private static func key(_ path: [FileName]) -> Key { Key(ItemKey.text(path)) }
}
