package import Logging
package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// Brings content here: one job a node, shared by everybody who waits for it.
///
/// Thread-safe. Called by threads that serve the mount: nothing here waits for the provider.
package final class Hydrator: Sendable {
    struct State {
        var jobs: [NodeID: HydrationJob] = [:]
        var nextWaiter: UInt64 = 1
        /// Why content did not come when it was wanted last.
        var problems: [NodeID: ProviderError] = [:]
        /// How often the jobs before the one that is made now were ended for another version.
        var restarts: [NodeID: Int] = [:]
        var leftovers = UnprovenLeftovers()
    }

    let index: Index
    let content: ContentStore
    let provider: any Provider
    package let copies: LocalCopies
    let clock: any TimeSource
    let logger: Logger
    private let backoff: Backoff
    private let sleep: @Sendable (Duration) async -> Void
    /// Where tasks go on that the provider's executor is not for.
    let executor: any TaskExecutor
    private let delay: ProviderDelay
    private let line = Mutex(LineSpeed())
    /// Told of every provider error of a fetch: the engine judges the connection and looks at the item again.
    private let onTrouble: @Sendable (NodeID, ProviderError) -> Void
    /// Told when content has become whole that work in line has waited for, or that takes room worth a look.
    let onCompletion: @Sendable () -> Void
    /// Told when a job has nothing left to do: if no program has the file open, `release` frees what it holds.
    private let onIdle: @Sendable (NodeID) -> Void
    /// Set once, before anything is fetched. A closure stored as a generic value itself would be wrapped at every access.
    private struct RoomMaker { var body: @Sendable (NodeID, UInt64) async -> Bool }
    private let roomMaker = Mutex<RoomMaker?>(nil)
    struct RoomQuestion { var body: @Sendable (UInt64, UInt64) -> UInt64? }
    let roomAsked = Mutex<RoomQuestion?>(nil)
    private static let problemCountMax = 1_000
    /// How often room is made for one fetch: others may take it.
    private static let roomAttemptsMax = 3
    private let fetchedByteCount = Atomic<UInt64>(0)
    let completionCount = Atomic<UInt64>(0)
    let state = RankedMutex(.hydrator, State())
    package let sizes: FetchSizes
    package let transfers: TransferHistory
    /// A leaf: nothing is called while it is held.
    private let budgets = Mutex(HydrationBudgets())

    package init(
        index: Index, content: ContentStore, provider: any Provider, clock: any TimeSource, logger: Logger,
        backoff: Backoff = Backoff(first: .milliseconds(200), longest: .seconds(5)),
        sizes: FetchSizes = .usual, answers: AnswerWatch? = nil, executor: (any TaskExecutor)? = nil,
        sleep: @escaping @Sendable (Duration) async -> Void,
        onTrouble: @escaping @Sendable (NodeID, ProviderError) -> Void, onCompletion: @escaping @Sendable () -> Void,
        onIdle: @escaping @Sendable (NodeID) -> Void
    ) {
        self.sizes = sizes
        self.index = index
        self.content = content
        copies = LocalCopies(content: content)
        transfers = TransferHistory(clock: clock, logger: logger)
        self.provider = provider
        self.clock = clock
        self.logger = logger
        self.backoff = backoff
        self.sleep = sleep
        delay = ProviderDelay(answers)
        self.executor = executor ?? globalConcurrentExecutor
        self.onTrouble = onTrouble
        self.onCompletion = onCompletion
        self.onIdle = onIdle
    }

    /// Bytes that came from the provider since the start.
    /// What may be under way at a time that no program waits for.
    var byteCountAhead: UInt64 { line.withLock { $0.byteCountAhead } }
    package var bytesFetched: UInt64 { fetchedByteCount.load(ordering: .relaxed) }
    package var runningCount: Int { state.withLock { $0.jobs.values.filter(\.isWanted).count } }
    package var runningNodes: [NodeID] { state.withLock { $0.jobs.filter { $0.value.isWanted }.map(\.key) } }

    package func progress(of node: NodeID) -> (present: UInt64, size: UInt64)? {
        state.withLock { $0.jobs[node] }?.progress
    }

    /// Why the content did not come when it was wanted last; nil when it came, nobody has wanted it since the start, or so
    /// many others failed that nobody remembers.
    package func problem(of node: NodeID) -> Failure? { state.withLock { $0.problems[node]?.failure } }

    func note(_ problem: ProviderError?, of node: NodeID) {
        state.withLock { state in
            if problem != nil, state.problems.count >= Hydrator.problemCountMax { state.problems = [:] }
            state.problems[node] = problem
        }
        index.touch([node])
    }

    // MARK: Waiting for content

    /// Replies when the whole content is here and the index says so. The id detaches the waiter; nil: replied already.
    /// `program` goes into the ledger; nil: nobody waits for it on the mount. `inBackground`: nor elsewhere.
    package func hydrate(
        _ node: NodeID, for program: String? = nil, inBackground: Bool = false, reply: @escaping HydrationReply
    ) -> UInt64? {
        request(node, HydrationJob.Waiter(isBackground: inBackground, reply: reply), for: program)
    }

    /// Replies when `range` is here. The id detaches the waiter; nil: replied already.
    package func read(
        _ node: NodeID, _ range: ByteRange, for program: String? = nil, reply: @escaping HydrationReply
    ) -> UInt64? {
        request(node, HydrationJob.Waiter(range: range, reply: reply), for: program)
    }

    /// Whether reading `range` needs nothing of the provider. False while there is no job, as nobody has looked then.
    package func isHere(_ range: ByteRange, of node: NodeID) -> Bool {
        state.withLock { $0.jobs[node] }?.isHere(range) ?? false
    }

    /// `body` is asked to make room for so many bytes of a node when a fetch finds the disk full; false: there is none.
    package func onFullDisk(_ body: @escaping @Sendable (NodeID, UInt64) async -> Bool) {
        roomMaker.withLock { $0 = RoomMaker(body: body) }
    }

    // MARK: The ledger

    package func noteRefusal(of program: String) { transfers.count { $0.ledger.refused(program) } }
    package func isWithin(_ budget: HydrationBudget, program: String) -> Bool {
        budgets.withLock { $0.admits(program, budget, at: clock.uptime()) }
    }

    /// Starts bringing everything without anybody waiting.
    package func hydrateInBackground(_ node: NodeID) {
        do throws(Failure) {
            guard let job = try job(for: node) else { return }
            job.wantWhole()
            pump(job)
        } catch {
            logger.warning("background hydration could not start", metadata: ["node": "\(node)", "reason": "\(error.message)"])
        }
    }

    package func detach(_ waiter: UInt64, from node: NodeID) {
        state.withLock { $0.jobs[node] }?.detach(waiter)
    }

    /// Replies at once with nil, or later with an id.
    private func request(_ node: NodeID, _ wish: HydrationJob.Waiter, for program: String?) -> UInt64? {
        var waiter = wish
        waiter.isProgram = program != nil
        waiter.id = state.withLock { state in
            defer { state.nextWaiter += 1 }
            return state.nextWaiter
        }
        return join(waiter, of: node, for: program) ? nil : waiter.id
    }

    /// True when it has been answered. Somebody who waited for the version before keeps the number by which
    /// the wait is given up.
    @discardableResult
    func join(_ waiter: HydrationJob.Waiter, of node: NodeID, for program: String?) -> Bool {
        do throws(Failure) {
            // A job may end between being found and being joined; then the index knows more than it did.
            for _ in 0..<8 {
                guard let job = try job(for: node) else {
                    waiter.reply(.success(()))
                    return true
                }
                guard let isHere = job.wait(waiter, for: program) else {
                    job.waitWhileClosing()
                    continue
                }
                pump(job)
                if isHere {
                    waiter.reply(.success(()))
                    job.handedOver([waiter.range].compactMap(\.self))
                }
                return isHere
            }
            waiter.reply(.failure(Failure(.busy, "the content of node \(node) keeps changing")))
        } catch {
            waiter.reply(.failure(error))
        }
        return true
    }

    // MARK: Fetching

    /// What a fetch is made with: where from, and where to.
    private struct Means {
        var source: HydrationJob.Source
        var file: SharedDescriptor
    }

    private func pump(_ job: HydrationJob) {
        let (ranges, turn) = job.nextFetches(
            atOnce: delay.fetchesAtOnce, aheadMax: byteCountAhead, isSlow: delay.isSlow,
            isWhole: !provider.capabilities.contains(.ranges) && !streaming.isNeeded(for: job))
        if !ranges.isEmpty {
            // Here, as tasks begin on the provider's executor, where nothing waits for the index or the disk.
            let means = means(for: job)
            for range in ranges {
                let task = Task(executorPreference: provider.executor ?? executor) { await self.fetch(range, of: job, by: means) }
                job.began(range, in: turn, task)
            }
        }
        // When local writes filled the last gap there is no fetch whose end would tell.
        if job.isWanted, job.beginCompletion() { complete(job) }
    }

    private func means(for job: HydrationJob) -> Result<Means, ProviderError> {
        do throws(ProviderError) {
            let source = try HydrationJob.Source.of(job, in: index)
            job.fetches(from: source)
            return .success(Means(source: source, file: try fileToFill(of: job)))
        } catch {
            return .failure(error)
        }
    }

    private func fetch(_ range: ByteRange, of job: HydrationJob, by means: Result<Means, ProviderError>) async {
        if let pause = job.pauseBeforeFetch(backoff) {
            await sleep(pause)
            if job.isClosed || Task.isCancelled { return await goOn(with: range, of: job, after: nil) }
        }
        let (began, before) = (clock.uptime(), bytesFetched)
        let problem = await attempt(range, of: job, by: means)
        let came = bytesFetched - before
        line.withLock { $0.came(came, in: clock.uptime() - began) }
        // The usual end of what is small: whoever waited has been answered while the provider's call returned.
        if job.isClosed { return }
        await withTaskExecutorPreference(executor) { await goOn(with: range, of: job, after: problem) }
    }

    private func goOn(with range: ByteRange, of job: HydrationJob, after first: ProviderError?) async {
        var (attempts, last) = (0, first)
        while true {
            // Whoever has closed it ends it, and what was refused because of that is no trouble.
            if job.isClosed { return }
            if Task.isCancelled {
                job.fetchEnded(range, isWell: false)
                retire(job)
                // Who came while a call ended that nobody had wanted any more still waits.
                pump(job)
                return
            }
            guard let problem = last else { break }
            onTrouble(job.node, problem)
            attempts += 1
            // Who waits goes on waiting, and what waits to be sent counts as failing meanwhile.
            if attempts >= Hydrator.silentAttemptsMax { note(problem, of: job.node) }
            if await !makesRoom(for: range, of: job, after: problem, attempts: attempts) {
                if problem.code == .localDiskFull, await streaming.goesOn(without: range, of: job) { return }
                let goesOn = job.isAwaited || job.isWanted && attempts < Hydrator.unawaitedMax
                guard goesOn, let delay = pause(after: problem, of: job, attempts: attempts) else {
                    job.fetchEnded(range, isWell: false)
                    fail(job, problem)
                    return
                }
                await sleep(delay)
            }
            let means = means(for: job)
            last = await withTaskExecutorPreference(provider.executor) { await attempt(range, of: job, by: means) }
        }
        if attempts >= Hydrator.silentAttemptsMax { note(nil, of: job.node) }
        job.fetchEnded(range, isWell: true)
        if job.beginCompletion() {
            complete(job)
        } else if !job.isComplete {
            store(job)
            streaming.keepWithinRoom(job)
            goOn(job)
        }
    }

    func goOn(_ job: HydrationJob) {
        pump(job)
        if job.isIdle { onIdle(job.node) }
    }

    /// A file that is on its way was cut or grown here: perhaps nothing of it is missing any more.
    package func resized(_ node: NodeID) {
        if let job = state.withLock({ $0.jobs[node] }) { goOn(job) }
    }

    func pause(_ time: Duration) async { await sleep(time) }

    private func makesRoom(
        for range: ByteRange, of job: HydrationJob, after problem: ProviderError, attempts: Int
    ) async -> Bool {
        guard problem.code == .localDiskFull, attempts <= Hydrator.roomAttemptsMax, job.isWanted else { return false }
        return await roomMaker.withLock { $0 }?.body(job.node, job.missingCount(in: range)) ?? false
    }

    private func attempt(
        _ range: ByteRange, of job: HydrationJob, by means: Result<Means, ProviderError>
    ) async -> ProviderError? {
        do throws(ProviderError) {
            let program = job.program ?? HydrationLedger.background
            transfers.count { $0.ledger.began(for: program) }
            let means = try means.get()
            let (reference, version, size) = (means.source.reference, means.source.version, means.source.size)
            let sink = sink(of: job, range, means, for: program)
            // Of a file that was cut or grown here less is wanted than the item has, or more.
            let wanted = range.clamped(to: size ?? range.upper)
            let whole = wanted == ByteRange(0, size ?? job.progress.size) || !provider.capabilities.contains(.ranges)
            if await !copies.bring(whole ? ByteRange(0, job.progress.size) : wanted, of: job.node, into: sink) {
                try await provider.fetchContents(of: reference, version: version, range: whole ? nil : wanted, into: sink)
            }
            guard job.ranges.contains(range.clamped(to: job.progress.size)) else {
                throw ProviderError(.corrupted, "'\(provider.name)' sent fewer bytes than the item has")
            }
            return nil
        } catch {
            // Of what is edited here, and not dropped as a whole for it, it would be sent.
            if error.code == .stale || error.code == .corrupted { job.refuteUnproven() }
            return error
        }
    }

    private func sink(of job: HydrationJob, _ range: ByteRange, _ means: Means, for program: String) -> HydrationSink {
        HydrationSink(
            job: job, file: means.file, call: ProviderDelay.Call(delay, clock), size: means.source.size,
            counted: { count in
                self.fetchedByteCount.wrappingAdd(count, ordering: .relaxed)
                self.transfers.count { $0.ledger.fetched(count, for: program) }
                self.budgets.withLock { $0.fetched(count, for: program) }
                guard job.isWorthStoring(after: count) else { return }
                self.store(job)
                self.streaming.keepWithinRoom(job)
            },
            finished: {
                // First, as the end of a job cancels the fetches that it has.
                job.fetchEnded(range, isWell: true)
                guard job.beginCompletion() else { return }
                self.complete(job)
            })
    }

    /// How often a version that is gone is tried again, in all two seconds: the engine is asking what there is
    /// instead, and shows that here, where nobody has seen anything of the one before.
    private static let goneAttemptsMax = 10

    /// After so many attempts that brought nothing it is no secret that content does not come.
    private static let silentAttemptsMax = 4
    /// What nobody waits for is given up for now, and gives way to other files.
    private static let unawaitedMax = 8

    /// nil: not to be tried again.
    private func pause(after problem: ProviderError, of job: HydrationJob, attempts: Int) -> Duration? {
        let mayChange = !job.isNoted && attempts <= Hydrator.goneAttemptsMax
        return switch problem.code {
        case .stale where mayChange, .notFound where mayChange: .milliseconds(200)
        case .retry: backoff.delay(after: attempts)
        case .retryAfter(let delay): delay
        // A move of ours may have taken the path away a moment ago; its outcome tells the new one.
        case .notFound where provider.capabilities.contains(.placeIdentifiers) && attempts <= 2: .milliseconds(250)
        default: nil
        }
    }
}
