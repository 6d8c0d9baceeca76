package import PromiseCoordination
package import PromiseCore
package import PromiseSystem
import Synchronization

/// What programs that know nothing of coordination are held to.
package enum CoordinationMode: String, Sendable, CaseIterable {
    /// They go on; presenters hear of what they did.
    case advisory
    /// They wait for the end of conflicting claims, up to a deadline.
    case wait
    /// They are refused with EBUSY.
    case refuse
}

/// Claims and presenters of a domain: the state machine `ClaimTable` behind a lock, with a clock.
///
/// Handlers are called with the lock held, so that each hears things in order: they hand on and return. The lock is a leaf.
package final class Coordinator: Sendable {
    package enum ClaimOutcome: Sendable {
        case granted
        case refused(ClaimTable.Refusal)
        /// Granted before, and somebody waits for its end for longer than its `patience`.
        case overdue
        /// The domain is being unmounted.
        case ended
    }

    package enum PresenterEvent: Sendable {
        case ask(Question, number: UInt64, node: NodeID)
        case tell(Notice)
        /// Nothing happened; so that the end of who listens is noticed.
        case alive
        /// The domain is being unmounted: nothing follows.
        case ended
    }

    struct ClaimHandler { let call: @Sendable (ClaimID, ClaimOutcome) -> Void }
    struct PresenterHandler { let call: @Sendable (PresenterEvent) -> Bool }

    struct State {
        var table: ClaimTable
        var claims: [ClaimID: ClaimHandler] = [:]
        var presenters: [PresenterID: PresenterHandler] = [:]
        /// Who may get at items while a claim is there: the processes it was made for.
        var processes: [ClaimID: Int32] = [:]
        /// Those that the daemon made for changes of its own.
        var own: Set<ClaimID> = []
        /// So many look items up that they are about to claim or present.
        var entering = 0
        var isEnded = false
        var hasThread = false
        /// Until when the thread that watches deadlines sleeps; nil: until it is called.
        var watched: Duration?
        /// There is an earlier deadline.
        var isCalled = false
        /// The latest ones, oldest first.
        var replacements: [Replacement] = []
        /// The latest ones, oldest first.
        var resolutions: [Resolution] = []

        func current(_ node: NodeID, after change: Int64) -> NodeID {
            replacements.reduce(node) { $1.change < change ? $0 : $1.nodes[$0] ?? $0 }
        }

        /// It took another node's place with this change or later, and that was told. `moved`: so was where it is.
        func isTold(_ event: ClaimTable.Event, of node: NodeID, since change: Int64) -> Bool {
            guard event == .changed || event == .moved else { return false }
            return replacements.contains { known in
                known.change >= change && (event == .moved ? known.moved : Set(known.nodes.values)).contains(node)
            }
        }
    }

    /// Versions that somebody has dealt with, by the index's changes: whoever shows them for the same purpose knows.
    struct Resolution {
        var purpose: Purpose
        var changes: Range<Int64>
    }

    /// Items that became other nodes, and the newest change of the index when that was told.
    struct Replacement {
        var nodes: [NodeID: NodeID]
        /// Those of them that are elsewhere, too.
        var moved: Set<NodeID>
        var change: Int64
    }

    /// How long a presenter may take for an answer.
    package static let answerLimit = Duration.seconds(5)
    private static let claimCountMax = 100_000
    /// Far below what JSON's numbers hold exactly.
    private static let firstNumberMax: UInt64 = 1 << 48
    private static let presenterCountMax = 10_000
    static let replacementCountMax = 1_000

    let state: Monitor<State>
    let clock: any TimeSource
    /// Claims and presenters: the one number a request on the mount looks at.
    private let count = Atomic<Int>(0)
    /// Requests of the kernel whose turn has come.
    private let passing = Mutex<Set<UInt64>>([])
    package let mode: CoordinationMode

    package init(clock: any TimeSource, mode: CoordinationMode) {
        self.clock = clock
        self.mode = mode
        // What was asked by the daemon before is not answered to this one, and its claims are none that anybody is in.
        let first = UInt64.random(in: 1...Coordinator.firstNumberMax)
        let table = ClaimTable(answerLimit: Coordinator.answerLimit, firstNumber: first)
        state = Monitor(State(table: table), rank: .coordinator)
    }

    /// There is a claim or a presenter, or about to be one.
    package var isActive: Bool { count.load(ordering: .relaxed) > 0 }

    /// Nobody is asked or told any more: everybody hears `ended`.
    package func end() {
        let (claims, presenters) = state.update { state in
            defer {
                state.isEnded = true
                state.claims = [:]
                state.presenters = [:]
            }
            return (state.claims, state.presenters)
        }
        for (id, handler) in claims { handler.call(id, .ended) }
        for handler in presenters.values { _ = handler.call(.ended) }
    }

    /// From here on it is remembered what items become, also before the first claim: whoever looks
    /// one up and enters it then may name the change of the index before its look. Ended by
    /// `endEntering`.
    package func beginEntering() {
        change { state in
            state.entering += 1
            settle(&state)
        }
    }

    package func endEntering() {
        change { state in
            state.entering -= 1
            settle(&state)
        }
    }

    // MARK: - Claims

    /// `handler` is called once, unless the claim is released before, and once more when the domain ends; with a `patience`
    /// also whenever others wait for it for so long.
    /// `process`: who may get at the items, with its children. `isOwn`: for a change that the daemon makes itself.
    /// `isPreparation`: nobody is kept out; presenters are asked for all claims that are nested in it.
    /// `number`: of the first change of the index that whoever looked the items up may have missed: what
    /// was saved since then is another node.
    package func claim(
        _ intents: [Intent], purpose: Purpose?, within: Set<ClaimID>? = nil, isPreparation: Bool = false,
        process: Int32 = 0, isOwn: Bool = false, patience: Duration? = nil, timeout: Duration?,
        since number: Int64 = .max, handler: @escaping @Sendable (ClaimID, ClaimOutcome) -> Void
    ) throws(Failure) -> ClaimID {
        let now = clock.uptime()
        let result: Result<ClaimID, Failure> = change { state in
            if state.isEnded { return .failure(Failure(.interrupted, "the domain is being unmounted")) }
            guard state.table.claimCount < Coordinator.claimCountMax else {
                return .failure(Failure(.busy, "there are \(Coordinator.claimCountMax) claims already"))
            }
            let intents = intents.map { intent in
                var intent = intent
                intent.node = state.current(intent.node, after: number)
                return intent
            }
            let id = state.table.claim(
                intents, purpose: purpose, within: within, isPreparation: isPreparation, now: now,
                deadline: timeout.map { now + $0 }, patience: patience)
            // Its outcome may be known already, and is handed on below.
            state.claims[id] = ClaimHandler(call: handler)
            if process > 0 { state.processes[id] = process }
            if isOwn { state.own.insert(id) }
            settle(&state)
            if let timeout, !state.table.isGranted(id) { watch(now + timeout, &state) }
            startThread(&state)
            return .success(id)
        }
        return try result.get()
    }

    /// More than once is fine.
    package func release(_ claim: ClaimID) {
        let now = clock.uptime()
        change { state in
            state.table.release(claim, now: now)
            state.claims[claim] = nil
            state.processes[claim] = nil
            state.own.remove(claim)
            settle(&state)
        }
    }

    // MARK: - Presenters

    /// `handler` returns whether it listens still; else the presenter is removed. `name`: the one that it shows.
    /// `chains`: the folders above each name of the item. `number`: as of `claim`.
    package func addPresenter(
        of node: NodeID, named name: EntryID? = nil, chains: [[NodeID]], purpose: Purpose?,
        since number: Int64 = .max, handler: @escaping @Sendable (PresenterEvent) -> Bool
    ) throws(Failure) -> PresenterID {
        let result: Result<PresenterID, Failure> = change { state in
            if state.isEnded { return .failure(Failure(.interrupted, "the domain is being unmounted")) }
            guard state.table.presenterCount < Coordinator.presenterCountMax else {
                return .failure(Failure(.busy, "there are \(Coordinator.presenterCountMax) presenters already"))
            }
            let node = state.current(node, after: number)
            let id = state.table.addPresenter(of: node, named: name, chains: chains, purpose: purpose)
            state.presenters[id] = PresenterHandler(call: handler)
            settle(&state)
            startThread(&state)
            return .success(id)
        }
        return try result.get()
    }

    package func removePresenter(_ id: PresenterID) {
        let now = clock.uptime()
        change { state in
            state.presenters[id] = nil
            state.table.removePresenter(id, now: now)
            settle(&state)
        }
    }

    /// False when the presenter was not asked that, or too late.
    /// `hasFailed`: it could not do it. Then the claim is refused, but for those of the daemon, which go on.
    package func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool = false) -> Bool {
        let now = clock.uptime()
        return change { state in
            state.table.heard(from: presenter)
            guard state.table.presenter(asked: number) == presenter else { return false }
            if hasFailed, let claim = state.table.claim(asking: number), !state.own.contains(claim) {
                state.table.failed(number, now: now)
            } else {
                state.table.answered(number, now: now)
            }
            settle(&state)
            return true
        }
    }

    /// The nodes of a claim's items as they are now, in the order in which they were asked for.
    package func nodes(of claim: ClaimID) -> [NodeID] { state.withLock { $0.table.nodes(of: claim) } }

    /// Whether content had better stay where it is: somebody has a claim on the item or shows it.
    func isUsed(_ intent: Intent) -> Bool {
        guard isActive else { return false }
        return state.withLock { $0.table.isBlocked([intent]) || $0.table.isPresented(intent.node) }
    }

    /// Items that presenters show.
    var presentedNodes: Set<NodeID> {
        isActive ? state.withLock { $0.table.presentedNodes } : []
    }

    // MARK: - Programs that know nothing of it

    /// Whether an access has to wait or to ask somebody. `isInside` says whether the caller belongs to a claim's process.
    package func isInTheWay(of intents: [Intent], isInside: (Int32) -> Bool) -> Bool {
        let (hasConflicts, writers, held, hasPresenters) = state.withLock { state in
            var conflicts = state.table.conflicts(of: intents)
            // The daemon's are over in a moment, which is a reason to wait and none to refuse.
            if mode == .refuse { conflicts.subtract(state.own) }
            // A claim for no process in particular is held against everybody, and one to read lets nobody write.
            let writers = conflicts.filter { state.table.isGranted($0, toWrite: intents) }.compactMap { state.processes[$0] }
            // Who is to write each of those that somebody has: nobody, of one to read.
            let held: [[Int32]] = intents.compactMap { intent in
                var inside = state.table.conflicts(of: [intent]).filter(state.table.isGranted)
                if mode == .refuse { inside.subtract(state.own) }
                guard !inside.isEmpty else { return nil }
                inside = inside.filter { state.table.isGranted($0, toWrite: [intent]) }
                return inside.compactMap { state.processes[$0] }
            }
            return (!conflicts.isEmpty, writers, held, state.table.presenterCount > 0)
        }
        // Who is inside of one claim has waited for those that wait already, and has no part in what
        // another one has.
        if hasConflicts {
            return !writers.contains(where: isInside)
                || held.contains { !$0.contains(where: isInside) }
        }
        // Presenters are asked, which takes its time, and are no reason to refuse anything.
        return hasPresenters && mode == .wait
    }

    /// What of it the caller has not got already: its own claim would not end before it has gone on.
    func awaited(_ intents: [Intent], isInside: (Int32) -> Bool) -> [Intent] {
        let writers: [[Int32]] = state.withLock { state in
            intents.map { intent in
                state.table.conflicts(of: [intent])
                    .filter { state.table.isGranted($0, toWrite: [intent]) }
                    .compactMap { state.processes[$0] }
            }
        }
        let others = zip(intents, writers).filter { !$1.contains(where: isInside) }.map(\.0)
        return others.isEmpty ? intents : others
    }

    func letPass(_ request: UInt64) { passing.withLock { _ = $0.insert(request) } }
    func isPassing(_ request: UInt64) -> Bool { passing.withLock { $0.remove(request) != nil } }

    // MARK: - Below

    /// Changes the state, and wakes the thread that watches deadlines only when it has to look: most claims have none.
    func change<Value>(_ body: (inout State) -> Value) -> Value {
        let (value, isCalled) = state.withLock { state in (body(&state), state.isCalled) }
        if isCalled { state.update { _ in } }
        return value
    }

    private func watch(_ deadline: Duration, _ state: inout State) {
        if state.watched.map({ deadline < $0 }) ?? true { state.isCalled = true }
    }

    /// Hands the state machine's actions on. The lock is held.
    func settle(_ state: inout State) {
        while case let actions = state.table.takeActions(), !actions.isEmpty {
            for action in actions {
                switch action {
                case .granted(let id): state.claims[id]?.call(id, .granted)
                case .refused(let id, let refusal): state.claims.removeValue(forKey: id)?.call(id, .refused(refusal))
                case .overdue(let id): state.claims[id]?.call(id, .overdue)
                case .ask(let id, let question, let number, let node):
                    watch(clock.uptime() + Coordinator.answerLimit, &state)
                    tell(id, .ask(question, number: number, node: node), &state)
                case .tell(let id, let notice): tell(id, .tell(notice), &state)
                }
            }
        }
        if let next = state.table.watchWaiters(now: clock.uptime()) { watch(next, &state) }
        count.store(
            state.table.claimCount + state.table.presenterCount + state.entering,
            ordering: .relaxed)
    }

    private func tell(_ id: PresenterID, _ event: PresenterEvent, _ state: inout State) {
        guard let handler = state.presenters[id], !handler.call(event) else { return }
        state.presenters[id] = nil
        state.table.removePresenter(id, now: clock.uptime())
    }

    /// The thread that watches deadlines exists from the first claim or presenter on.
    private func startThread(_ state: inout State) {
        guard !state.hasThread else { return }
        state.hasThread = true
        OwnedThread(name: "coordination") { [self] in watchDeadlines() }.detach()
    }

    private func watchDeadlines() {
        while true {
            let next = state.withLock { state in
                state.isCalled = false
                state.watched = state.table.nextDeadline
                return state.watched
            }
            let timeout = next.map { max($0 - clock.uptime(), .milliseconds(1)) }
            // Ends early when there is an earlier deadline. One that is no more is noticed when it comes.
            _ = state.wait(timeout: timeout) { $0.isEnded || $0.isCalled ? true : nil }
            let now = clock.uptime()
            let isEnded = state.withLock { state in
                if let next = state.table.nextDeadline, next <= now {
                    state.table.tick(now: now)
                    settle(&state)
                }
                return state.isEnded
            }
            if isEnded { return }
        }
    }
}
