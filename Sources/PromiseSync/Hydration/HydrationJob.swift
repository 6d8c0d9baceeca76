import PromiseContent
package import PromiseCore
package import PromiseProvider
package import PromiseSystem
import Synchronization

package typealias HydrationReply = @Sendable (Result<Void, Failure>) -> Void

/// One node whose content is on its way: the plan, who waits for which bytes, and the file they go to.
///
/// Thread-safe. The lock (a leaf, taken after the index and the hydrator's table) is held over no call. Fetched bytes never
/// land on bytes written here: while some of them are being written into the content file their range is *landing*, and who
/// changes just these bytes, or ends the job, waits for that. It takes no longer than the disk
/// takes for one write. What a call on the mount changes is *claimed* in the same way
/// (`ContentClaim`).
///
/// A job ends in three steps, so that no other job of the node has the file while this one does: it
/// is *closed* by one thread, it goes from the hydrator's table, and whoever waits is answered.
package final class HydrationJob: Sendable {
    /// What the provider calls the content. `size` is nil where nothing is agreed on.
    struct Source: Sendable {
        var reference: ItemReference
        var version: ContentVersion
        var size: UInt64?
    }

    struct Claim {
        var number: UInt64
        var range: ByteRange
        /// The index is being told, and by nobody else.
        var isBeingStored = false
    }

    struct State {
        var plan: HydrationPlan
        var waiters: [Waiter] = []
        var tasks: [ByteRange: Task<Void, Never>] = [:]
        /// How often the last waiter went away, so that what was being fetched was cancelled.
        var abandonedCount = 0
        /// How much was here when the last waiter went away.
        var presentWhenLeft: UInt64 = 0
        /// Everything is wanted although nobody waits, e.g. because the file is pinned.
        var isWantedInBackground = false
        var program: String?
        /// Where it was fetched from last.
        var source: Source?
        /// Being written into the file at this moment.
        var landing: [ByteRange] = []
        /// Fetched since the file was synchronized last: a power cut may leave zeros there.
        var unsynchronized = ByteRangeSet()
        /// Being changed by calls on the mount at this moment.
        var claims: [Claim] = []
        var claimCount: UInt64 = 0
        /// Being given to readers at this moment, who read the file: it must not go.
        var serving: [ByteRange] = []
        var isTrimming = false
        /// How often there was no room for a fetch, and nothing could go.
        var starvationCount = 0
        var isCompleting = false
        /// Nothing lands and nothing is claimed any more.
        var isClosed = false
        /// Another job may have taken its place.
        var isGone = false
        /// Nobody waits any more.
        var isEnded = false
        /// What is here is about to go: nothing of it is given to readers any more.
        var isGivenUp = false
        /// Nil until there is something to put into it.
        var file: SharedDescriptor?
        var isMakingFile = false
        /// The index knows that the content is partial, or that it is whole.
        var isNoted: Bool

        func isFree(_ range: ByteRange) -> Bool {
            !landing.contains { $0.overlaps(range) }
                && !claims.contains { $0.range.overlaps(range) }
        }

        var isStill: Bool { landing.isEmpty && claims.isEmpty && !isMakingFile }

        /// Takes out those whose bytes are here, which stay until `handedOver`.
        mutating func takeServed() -> [Waiter] {
            let plan = plan
            let isServed = { (waiter: Waiter) in waiter.range.map { plan.isPresent($0) } ?? false }
            let served = waiters.filter(isServed)
            waiters.removeAll(where: isServed)
            serving += served.compactMap(\.range)
            return served
        }

        /// Takes out what fetches beyond the end, which nobody needs any more.
        mutating func takeFetchesBeyondEnd() -> [Task<Void, Never>] {
            let useless = tasks.filter { $0.key.lower >= plan.size }
            for range in useless.keys { tasks[range] = nil }
            return Array(useless.values)
        }
    }

    let node: NodeID
    let generation: Generation
    let version: ContentVersion
    /// The node's, when the job was made.
    let modificationTime: Timestamp
    /// How often whoever waits was sent from one version to the next, without anything of either.
    let restarts: Int
    /// After so many bytes the index is told how far the file has come: a daemon that is killed fetches no more than that again.
    private static let storedByteCount: UInt64 = 2 << 20
    private let unstoredByteCount = Atomic<UInt64>(0)
    let state: Monitor<State>

    /// `file` is there when the index knows of it.
    package init(
        node: NodeID, generation: Generation, version: ContentVersion, modificationTime: Timestamp, file: SharedDescriptor?,
        plan: HydrationPlan, restarts: Int = 0
    ) {
        self.node = node
        self.generation = generation
        self.version = version
        self.modificationTime = modificationTime
        self.restarts = restarts
        state = Monitor(
            State(plan: plan, unsynchronized: plan.unproven, file: file, isNoted: file != nil), rank: .hydrationJob)
    }

    // MARK: The content file

    /// Made by `make` for whoever asks first, which takes as long as the disk; nil, and nothing is
    /// made, when the job is closed.
    func file(making make: () throws(Failure) -> SharedDescriptor) throws(Failure) -> SharedDescriptor? {
        enum Opened { case file(SharedDescriptor), make, ended }
        let opened: Opened? = state.wait { state in
            if state.isMakingFile { return nil }
            if let file = state.file { return .file(file) }
            if state.isClosed { return .ended }
            state.isMakingFile = true
            return .make
        }
        switch opened {
        case .file(let file): return file
        case .ended, nil: return nil
        case .make: break
        }
        let made: Result<SharedDescriptor, Failure>
        do throws(Failure) { made = .success(try make()) } catch { made = .failure(error) }
        state.update { state in
            state.isMakingFile = false
            state.file = try? made.get()
        }
        return try made.get()
    }

    var source: Source? { state.withLock { $0.source } }
    func fetches(from source: Source) { state.withLock { $0.source = source } }
    var hasFile: Bool { state.withLock { $0.file != nil } }
    var isNoted: Bool { state.withLock { $0.isNoted } }
    func noted() { state.withLock { $0.isNoted = true } }
    var staleness: Failure { Failure(.stale, "the content of node \(node) was replaced while it was fetched") }

    // MARK: Readers

    /// True when the bytes are here, and stay until `handedOver`; else the reply comes later, unless the job ends (nil: ask
    /// again, after `waitWhileClosing`).
    func wait(_ waiter: Waiter, for program: String?) -> Bool? {
        state.withLock { state in
            if state.isEnded || state.isGivenUp { return nil }
            if let program { state.program = program }
            if let range = waiter.range {
                state.plan.read(range)
                if state.plan.isPresent(range) {
                    state.serving.append(range)
                    return true
                }
            } else {
                state.plan.wantsWhole = true
            }
            state.waiters.append(waiter)
            return false
        }
    }

    func wantWhole() {
        state.withLock { state in
            state.isWantedInBackground = true
            state.plan.wantsWhole = true
        }
    }

    /// Who waited for bytes last.
    var program: String? { state.withLock { $0.program } }
    func isHere(_ range: ByteRange) -> Bool { state.withLock { $0.plan.isPresent(range) } }
    var isWanted: Bool { state.withLock { !$0.waiters.isEmpty || $0.plan.wantsWhole } }
    /// Nobody waits, nothing is on its way.
    var isIdle: Bool { state.withLock { $0.waiters.isEmpty && !$0.plan.wantsWhole && $0.plan.inFlight.isEmpty } }
    var progress: (present: UInt64, size: UInt64) { state.withLock { ($0.plan.presentByteCount, $0.plan.size) } }
    var ranges: ByteRangeSet { state.withLock { $0.plan.present } }
    var leftover: UnprovenLeftovers.Leftover {
        state.withLock { .init(generation: generation, size: $0.plan.size, ranges: $0.plan.unproven) }
    }
    var isComplete: Bool { state.withLock { $0.plan.isComplete } }
    var isClosed: Bool { state.withLock { $0.isClosed } }
    /// What the index may be told is here; nil when it is told by others, or must not be told any
    /// more, but by whoever has closed the job (`isLast`). `isDurable`: as being on the disk. `isOurs`:
    /// it may be kept, or sent, as our content; what is not is only gone on with after a kill.
    func rangesToStore(isDurable: Bool, isOurs: Bool, isLast: Bool = false) -> ByteRangeSet? {
        state.withLock { state in
            let isToldByOthers = state.claims.contains(where: \.isBeingStored)
            if state.isClosed && !isLast || isToldByOthers { return nil }
            let ranges = isOurs ? state.plan.proven : state.plan.present
            return isDurable ? ranges.without(state.unsynchronized) : ranges
        }
    }

    /// Fetched, and not on the disk for certain.
    var unsynchronized: ByteRangeSet { state.withLock { $0.unsynchronized } }

    /// The file was synchronized after these were fetched.
    func synchronized(_ ranges: ByteRangeSet) {
        state.withLock { $0.unsynchronized = $0.unsynchronized.without(ranges) }
    }

    // MARK: Fetching

    /// The fetches to start. They count as in flight from here on, and each is to be told of by `began`, with the turn.
    func nextFetches(
        atOnce countMax: Int, aheadMax: UInt64, isSlow: Bool, isWhole: Bool
    ) -> (ranges: [ByteRange], turn: Int) {
        state.withLock { state in
            guard !state.isClosed else { return ([], 0) }
            (state.plan.isSlow, state.plan.fetchesWhole) = (isSlow, isWhole)
            let ranges = state.plan.next(waiting: state.waiters.compactMap(\.range), atOnce: countMax, aheadMax: aheadMax)
            return (ranges, state.abandonedCount)
        }
    }

    /// Cancels the task when nobody has wanted it since its turn.
    func began(_ range: ByteRange, in turn: Int, _ task: Task<Void, Never>) {
        let isUnwanted = state.withLock { state in
            if state.isClosed || state.abandonedCount != turn { return true }
            if state.plan.inFlight.contains(range) { state.tasks[range] = task }
            return false
        }
        if isUnwanted { task.cancel() }
    }

    /// Puts fetched bytes where nothing is yet, by calling `store` for each gap, and answers who waited for them.
    package func arrived(_ range: ByteRange, store: (ByteRange) throws(ProviderError) -> UInt64) throws(ProviderError) -> UInt64 {
        let begun: [ByteRange]?? = state.wait { state in
            // Late bytes of a job that has ended must not reach a file that another job may have now.
            if state.isClosed { return .some(nil) }
            // The same bytes from a fetch that was given up a moment ago, or from a program.
            guard state.isFree(range) else { return nil }
            let gaps = state.plan.present.missing(in: range.clamped(to: state.plan.size))
            state.landing += gaps
            return .some(gaps)
        }
        guard case .some(.some(var gaps)) = begun else { throw ProviderError(.cancelled, "the content is not wanted any more") }
        var stored: UInt64 = 0
        var problem: ProviderError?
        while let gap = gaps.first, problem == nil {
            var count: UInt64 = 0
            do throws(ProviderError) {
                count = try store(gap)
            } catch {
                problem = error
            }
            land(gap, ByteRange(offset: gap.lower, count: count))
            gaps.removeFirst()
            stored += count
            if count < gap.count { break }
        }
        answerServed(givingUp: gaps)
        if let problem { throw problem }
        return stored
    }

    /// Of `count` bytes more; true for one of several fetches.
    func isWorthStoring(after count: UInt64) -> Bool {
        let (before, now) = unstoredByteCount.wrappingAdd(count, ordering: .relaxed)
        return before / HydrationJob.storedByteCount < now / HydrationJob.storedByteCount
    }

    private func land(_ gap: ByteRange, _ present: ByteRange) {
        state.update { state in
            state.landing.removeAll { $0 == gap }
            state.plan.arrived(present)
            state.unsynchronized.insert(present)
        }
    }

    /// Called when nothing of the caller's lands any more, as a reply may end the job.
    private func answerServed(givingUp gaps: [ByteRange]) {
        let served = state.update { state in
            state.landing.removeAll { gaps.contains($0) }
            return state.takeServed()
        }
        answer(served)
    }

    /// With no lock held.
    func answer(_ served: [Waiter]) {
        served.forEach { $0.reply(.success(())) }
        handedOver(served.compactMap(\.range))
    }

    /// The provider has another version than the one that is fetched, or sent something else.
    func refuteUnproven() { state.withLock { $0.plan.refuteUnproven() } }

    /// `isWell`: the provider has said that all of it is of the version that was asked for.
    package func fetchEnded(_ range: ByteRange, isWell: Bool) {
        state.withLock { state in
            if isWell { state.plan.ended(range) } else { state.plan.brokeOff(range) }
            state.tasks[range] = nil
        }
    }

    // MARK: The end

    /// True once, when everything is here, for whoever is to store that. Several fetches may end at one moment, and what was
    /// missing may be written here instead of fetched.
    func beginCompletion() -> Bool {
        state.withLock { state in
            guard state.plan.isComplete, !state.isCompleting, !state.isClosed else { return false }
            state.isCompleting = true
            return true
        }
    }

    /// Closes and ends the job if nobody waits and nothing is on its way; false when somebody has
    /// come.
    func endIfUnwanted() -> Bool {
        state.withLock { state in
            guard state.waiters.isEmpty, !state.plan.wantsWhole, state.plan.inFlight.isEmpty,
                state.isStill, !state.isClosed
            else { return false }
            state.isClosed = true
            state.isEnded = true
            return true
        }
    }

    /// True for one, who then stores what is left to store, takes the job from the table and ends
    /// it. When it returns nothing lands in the file and no call on the mount changes it.
    package func close() -> Bool {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        _ = state.wait { $0.isStill ? true : nil }
        return isFirst
    }

    /// Of a job that is closed: when it returns nobody reads what is here.
    func giveUp() {
        state.update { $0.isGivenUp = true }
        _ = state.wait { $0.serving.isEmpty ? true : nil }
    }

    /// It is not in the table any more.
    func left() { state.update { $0.isGone = true } }

    /// Returns at once when it is not closed.
    func waitWhileClosing() { _ = state.wait { !$0.isClosed || $0.isGone ? true : nil } }

    /// No more waiters and fetches; those there are get `result`. When it returns nothing lands in the file any more.
    package func end(_ result: Result<Void, Failure>) {
        for waiter in endForSuccessor() { waiter.reply(result) }
    }

    /// As `end`, but whoever waits is not answered: another job goes on for them.
    func endForSuccessor() -> [Waiter] {
        let (waiters, tasks) = state.update { state in
            state.isClosed = true
            state.isGone = true
            state.isEnded = true
            defer {
                state.waiters = []
                state.tasks = [:]
            }
            return (state.waiters, Array(state.tasks.values))
        }
        tasks.forEach { $0.cancel() }
        _ = state.wait { $0.isStill ? true : nil }
        return waiters
    }
}
