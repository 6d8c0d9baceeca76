package import PromiseSystem
import Synchronization

/// Answers that are held back until live queries have heard of the change that they confirm: who sees what a call has done,
/// and looks into a live query, finds it there.
///
/// Without live queries it costs one look at a number. An answer is held for `limit` at most, and a reader who has let one
/// wait so long is not waited for again until it has caught up. The lock is taken before that of a `StitchedReader`; answers
/// are given with none held.
package final class Stitching: Sendable {
    fileprivate struct Held {
        var position: Int64
        var deadline: Duration
        var answer: @Sendable () -> Void
    }

    fileprivate struct Reader {
        var reader: any StitchedReader
        /// It let somebody wait too long.
        var isLate = false
    }

    fileprivate struct State {
        var readers: [ObjectIdentifier: Reader] = [:]
        /// All readers have been asked whether changes up to this one concern them.
        var told: Int64 = 0
        /// Whoever tells them let somebody wait too long.
        var isTellingLate = false
        /// Oldest first.
        var held: [Held] = []
        /// Whoever tells sleeps and looks at no deadline.
        var isAsleep = false
    }

    /// How long an answer may be held.
    package static let limit = Duration.milliseconds(500)

    private let state = RankedMutex(.stitching, State())
    private let readerCount = Atomic<Int>(0)
    private let clock: any TimeSource

    package init(clock: any TimeSource) { self.clock = clock }

    /// Somebody has a live query.
    package var isWanted: Bool { readerCount.load(ordering: .relaxed) > 0 }

    // MARK: - Readers

    package func enter(_ reader: any StitchedReader) {
        state.withLock { state in
            state.readers[ObjectIdentifier(reader)] = Reader(reader: reader)
            readerCount.store(state.readers.count, ordering: .relaxed)
        }
    }

    /// More than once is fine.
    package func leave(_ reader: any StitchedReader) {
        let ready = state.withLock { state in
            state.readers[ObjectIdentifier(reader)] = nil
            readerCount.store(state.readers.count, ordering: .relaxed)
            return state.takeReady()
        }
        for held in ready { held.answer() }
    }

    /// Every reader has been told of the changes up to `position`, as far as they concern it.
    package func told(upTo position: Int64) {
        let ready = state.withLock { state in
            state.told = max(state.told, position)
            state.isTellingLate = false
            return state.takeReady()
        }
        for held in ready { held.answer() }
    }

    /// A reader has been given something.
    package func delivered() {
        guard isWanted else { return }
        let ready = state.withLock { $0.takeReady() }
        for held in ready { held.answer() }
    }

    // MARK: - Answers

    /// Calls `answer` when all readers have been given what concerns them of the changes up to `position`: at once, or later
    /// on another thread. Returns whether whoever tells must be woken, to look at the deadline.
    package func hold(until position: Int64, _ answer: @escaping @Sendable () -> Void) -> Bool {
        let deadline = clock.uptime() + Stitching.limit
        let (isReady, mustWake) = state.withLock { state in
            if state.isReady(position) { return (true, false) }
            state.held.append(Held(position: position, deadline: deadline, answer: answer))
            return (false, state.isAsleep && state.told >= position)
        }
        if isReady { answer() }
        return mustWake
    }

    /// How long whoever tells may sleep; nil: until there is something to tell. To be asked right before it sleeps.
    package func timeUntilDeadline() -> Duration? {
        let now = clock.uptime()
        return state.withLock { state in
            state.isAsleep = state.held.isEmpty
            return state.held.map(\.deadline).min().map { max($0 - now, .milliseconds(1)) }
        }
    }

    /// Gives the answers that have been held for too long. To be called often by whoever tells.
    package func giveUpLate() {
        guard isWanted else { return }
        let now = clock.uptime()
        let ready = state.withLock { state in
            state.isAsleep = false
            guard let position = state.held.filter({ $0.deadline <= now }).map(\.position).max() else { return [Held]() }
            if state.told < position { state.isTellingLate = true }
            for (key, reader) in state.readers where reader.reader.owes(upTo: position) { state.readers[key]?.isLate = true }
            return state.takeReady()
        }
        for held in ready { held.answer() }
    }

    /// Nobody is waited for any more.
    package func end() {
        let ready = state.withLock { state in
            state.readers = [:]
            readerCount.store(0, ordering: .relaxed)
            return state.takeReady()
        }
        for held in ready { held.answer() }
    }
}

extension Stitching.State {
    fileprivate mutating func takeReady() -> [Stitching.Held] {
        if held.isEmpty { return [] }
        var ready: [Stitching.Held] = []
        var rest: [Stitching.Held] = []
        for each in held {
            if isReady(each.position) { ready.append(each) } else { rest.append(each) }
        }
        held = rest
        return ready
    }

    /// Also notices who has caught up.
    fileprivate mutating func isReady(_ position: Int64) -> Bool {
        if readers.isEmpty { return true }
        if told < position, !isTellingLate { return false }
        for (key, entry) in readers {
            let owes = entry.reader.owes(upTo: entry.isLate ? .max : position)
            if entry.isLate, !owes { readers[key]?.isLate = false }
            if !entry.isLate, owes { return false }
        }
        return true
    }
}

/// Somebody who is told of changes.
package protocol StitchedReader: AnyObject, Sendable {
    /// Whether something of the changes up to this one has been found for it and not been given to it yet.
    func owes(upTo position: Int64) -> Bool
}
