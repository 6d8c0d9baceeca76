import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization
import Testing

/// Which answers wait for which live queries, and until when.
@Suite struct StitchingTests {
    /// A reader to whom something of a change is owed, or nothing.
    private final class Reader: StitchedReader {
        let from = Mutex<Int64?>(nil)
        func owes(upTo position: Int64) -> Bool { from.withLock { $0.map { $0 <= position } ?? false } }
        func owe(from position: Int64?) { from.withLock { $0 = position } }
    }

    private final class Clock: TimeSource {
        let time = Mutex(Duration.zero)
        func now() -> Timestamp { .zero }
        func uptime() -> Duration { time.withLock { $0 } }
        func advance(_ time: Duration) { self.time.withLock { $0 += time } }
    }

    private final class Answers: Sendable {
        let given = Mutex<[Int64]>([])
        var all: [Int64] { given.withLock { $0 } }
    }

    private let clock = Clock()
    private let answers = Answers()

    @discardableResult private func hold(_ stitching: Stitching, _ position: Int64) -> Bool {
        stitching.hold(until: position) { [answers] in answers.given.withLock { $0.append(position) } }
    }

    @Test func withoutReadersNothingWaits() {
        let stitching = Stitching(clock: clock)
        #expect(!stitching.isWanted && !hold(stitching, 5))
        #expect(answers.all == [5])
    }

    @Test func anAnswerWaitsUntilReadersHaveWhatTheyAreOwed() {
        let stitching = Stitching(clock: clock)
        let reader = Reader()
        stitching.enter(reader)
        hold(stitching, 5)
        hold(stitching, 6)
        #expect(stitching.isWanted && answers.all.isEmpty, "nobody has looked at the changes")
        reader.owe(from: 6)
        stitching.told(upTo: 6)
        #expect(answers.all == [5], "what is owed is about a later change")
        reader.owe(from: nil)
        stitching.delivered()
        #expect(answers.all == [5, 6])
        hold(stitching, 6)
        #expect(answers.all == [5, 6, 6], "everything was told before")
    }

    @Test func whoLeavesIsNotWaitedFor() {
        let stitching = Stitching(clock: clock)
        let (reader, other) = (Reader(), Reader())
        for each in [reader, other] {
            each.owe(from: 1)
            stitching.enter(each)
        }
        hold(stitching, 1)
        stitching.told(upTo: 1)
        stitching.leave(reader)
        #expect(answers.all.isEmpty)
        stitching.leave(other)
        #expect(answers.all == [1] && !stitching.isWanted)
    }

    @Test func aSlowReaderIsWaitedForOnceUntilItHasCaughtUp() {
        let stitching = Stitching(clock: clock)
        let reader = Reader()
        stitching.enter(reader)
        reader.owe(from: 1)
        stitching.told(upTo: 1)
        hold(stitching, 1)
        #expect(stitching.timeUntilDeadline() == Stitching.limit)
        clock.advance(Stitching.limit - .milliseconds(1))
        stitching.giveUpLate()
        #expect(answers.all.isEmpty)
        clock.advance(.milliseconds(1))
        stitching.giveUpLate()
        #expect(answers.all == [1])
        stitching.told(upTo: 2)
        hold(stitching, 2)
        #expect(answers.all == [1, 2], "it is late already")
        reader.owe(from: nil)
        stitching.delivered()
        hold(stitching, 2)
        reader.owe(from: 3)
        stitching.told(upTo: 3)
        hold(stitching, 3)
        #expect(answers.all == [1, 2, 2], "it has caught up, so it is waited for again")
        stitching.end()
        #expect(answers.all == [1, 2, 2, 3])
    }

    /// As while everything below a folder that was renamed is looked at.
    @Test func whoTellsLateIsWaitedForOnce() {
        let stitching = Stitching(clock: clock)
        stitching.enter(Reader())
        hold(stitching, 1)
        clock.advance(Stitching.limit)
        stitching.giveUpLate()
        hold(stitching, 2)
        #expect(answers.all == [1, 2])
        stitching.told(upTo: 2)
        hold(stitching, 3)
        #expect(answers.all == [1, 2])
        stitching.told(upTo: 3)
        #expect(answers.all == [1, 2, 3])
    }

    @Test func whoSleepsIsWokenForADeadlineOnly() {
        let stitching = Stitching(clock: clock)
        let reader = Reader()
        stitching.enter(reader)
        #expect(stitching.timeUntilDeadline() == nil)
        #expect(!hold(stitching, 1), "it will be woken by the change")
        reader.owe(from: 1)
        stitching.told(upTo: 1)
        stitching.giveUpLate()
        #expect(stitching.timeUntilDeadline() == Stitching.limit)
        #expect(!hold(stitching, 1), "it looks at deadlines")
        stitching.giveUpLate()
        reader.owe(from: nil)
        stitching.delivered()
        #expect(answers.all == [1, 1] && stitching.timeUntilDeadline() == nil)
        reader.owe(from: 1)
        #expect(hold(stitching, 1))
    }
}
