import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization
import Testing

/// Collects how requests were answered.
private final class Answers: Sendable {
    let failures = Monitor([Failure.Code]())
    let abandoned = Atomic<Int>(0)
    let claimed = Atomic<Int>(0)

    func add(_ failure: Failure) { failures.update { $0.append(failure.code) } }
    var codes: [Failure.Code] { failures.withLock { $0 } }

    /// The answers once there are `count`, or what there is after twenty seconds.
    func wait(for count: Int) -> [Failure.Code] {
        failures.wait(timeout: .seconds(60)) { $0.count >= count ? $0 : nil } ?? codes
    }
}

@Suite struct ParkingTests {
    @Test func deadlineAnswersTimedOut() {
        let parking = Parking(clock: SystemClock(), limit: .milliseconds(40))
        defer { parking.end() }
        let answers = Answers()
        let start = SystemClock().uptime()
        let request = parking.enter { answers.add($0) }
        parking.onAbandon(request) { answers.abandoned.add(1, ordering: .relaxed) }
        #expect(answers.wait(for: 1) == [.timedOut])
        #expect(SystemClock().uptime() - start >= .milliseconds(40))
        #expect(answers.abandoned.load(ordering: .relaxed) == 1)
        #expect(!parking.claim(request) && parking.count == 0)
    }

    @Test func deadlinesKeepTheirOrderForLaterRequests() {
        let parking = Parking(clock: SystemClock(), limit: .milliseconds(60))
        defer { parking.end() }
        let answers = Answers()
        for round in 1...3 {
            _ = parking.enter { answers.add($0) }
            #expect(answers.wait(for: round).count == round)
        }
        #expect(answers.codes == [.timedOut, .timedOut, .timedOut])
    }

    @Test func claimedRequestIsAnsweredByItsClaimerOnly() {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        let answers = Answers()
        let request = parking.enter { answers.add($0) }
        #expect(parking.count == 1)
        #expect(parking.claim(request))
        #expect(!parking.claim(request))
        parking.interrupt(request)
        parking.end()
        #expect(answers.codes.isEmpty)
    }

    @Test func anInterruptReachesARequestThatWasParkedAgain() {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        defer { parking.end() }
        let answers = Answers()
        for isEarly in [false, true] {
            let first = parking.enter { answers.add($0) }
            #expect(parking.claimToGoOn(first))
            let second = parking.enter { answers.add($0) }
            if isEarly { parking.interrupt(first) }
            parking.follow(first, second)
            if !isEarly { parking.interrupt(first) }
        }
        #expect(answers.codes == [.interrupted, .interrupted] && parking.count == 0)
    }

    /// It was lost, and the request went on waiting.
    @Test func anInterruptReachesARequestThatIsLookedAtAndPutBack() throws {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        defer { parking.end() }
        let answers = Answers()
        let request = parking.enter { answers.add($0) }
        let first = try #require(parking.take(request))
        try parking.putBack(request, first)
        #expect(parking.count == 1, "nobody has interrupted it")
        let second = try #require(parking.take(request))
        parking.interrupt(request)
        #expect(answers.codes.isEmpty, "whoever looks at it answers")
        let failure = #expect(throws: Failure.self) { try parking.putBack(request, second) }
        #expect(failure?.code == .interrupted && parking.count == 0)
        // Answered before the interrupt: nothing is left of it.
        let other = parking.enter { answers.add($0) }
        _ = try #require(parking.take(other))
        parking.answered(other)
        parking.interrupt(other)
        #expect(answers.codes.isEmpty)
    }

    /// Nobody looked at deadlines any more, so it was never answered.
    @Test func nothingIsParkedAfterTheEnd() throws {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        let answers = Answers()
        let request = parking.enter { answers.add($0) }
        let parked = try #require(parking.take(request))
        parking.end()
        let failure = #expect(throws: Failure.self) { try parking.putBack(request, parked) }
        #expect(failure?.code == .interrupted)
        _ = parking.enter { answers.add($0) }
        #expect(answers.codes == [.interrupted] && parking.count == 0)
    }

    @Test func interruptAnswersAndAbandons() {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        defer { parking.end() }
        let answers = Answers()
        let request = parking.enter { answers.add($0) }
        parking.onAbandon(request) { answers.abandoned.add(1, ordering: .relaxed) }
        parking.interrupt(request)
        parking.interrupt(request)
        #expect(answers.codes == [.interrupted])
        #expect(answers.abandoned.load(ordering: .relaxed) == 1)
    }

    @Test func whatIsAbandonedTooEarlyIsToldAtOnce() {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        defer { parking.end() }
        let answers = Answers()
        let request = parking.enter { answers.add($0) }
        parking.interrupt(request)
        parking.onAbandon(request) { answers.abandoned.add(1, ordering: .relaxed) }
        #expect(answers.abandoned.load(ordering: .relaxed) == 1)
    }

    @Test func endAnswersInterrupted() {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        let answers = Answers()
        for _ in 0..<20 { _ = parking.enter { answers.add($0) } }
        parking.end()
        #expect(answers.codes == Array(repeating: .interrupted, count: 20))
        #expect(parking.count == 0)
    }

    @Test func everyRequestIsAnsweredOnceWhoeverComesFirst() {
        let parking = Parking(clock: SystemClock(), limit: .milliseconds(3))
        let answers = Answers()
        let count = 400
        let requests = Monitor([ParkedRequest]())
        // Two race with the deadline and with each other over each request.
        let racers = [true, false].map { isClaimer in
            OwnedThread(name: isClaimer ? "claimer" : "interrupter") {
                var position = 0
                while position < count {
                    let request = requests.wait(timeout: .seconds(60)) { $0.count > position ? $0[position] : nil }
                    guard let request else { return }
                    position += 1
                    if isClaimer {
                        if parking.claim(request) { answers.claimed.add(1, ordering: .relaxed) }
                    } else {
                        parking.interrupt(request)
                    }
                }
            }
        }
        for number in 0..<count {
            let request = parking.enter { answers.add($0) }
            parking.onAbandon(request) { answers.abandoned.add(1, ordering: .relaxed) }
            requests.update { $0.append(request) }
            if number % 40 == 0 { _ = requests.wait(timeout: .milliseconds(3)) { _ in nil as Bool? } }
        }
        racers.forEach { $0.join() }
        parking.end()
        let claimed = answers.claimed.load(ordering: .relaxed)
        #expect(claimed + answers.codes.count == count)
        #expect(answers.codes.allSatisfy { $0 == .interrupted || $0 == .timedOut })
        #expect(answers.abandoned.load(ordering: .relaxed) <= answers.codes.count)
        #expect(parking.count == 0)
    }

    /// A claim was granted at once, so that its request was being carried out already when it was said what to do if it is given
    /// up: that was done, and the claim was let go in the middle.
    @Test func whatIsBeingCarriedOutIsNotGivenUp() {
        let parking = Parking(clock: SystemClock(), limit: .seconds(600))
        defer { parking.end() }
        let abandoned = Atomic<Int>(0)
        let request = parking.enter { _ in }
        #expect(parking.claimToGoOn(request))
        parking.onAbandon(request) { abandoned.add(1, ordering: .relaxed) }
        let early = abandoned.load(ordering: .relaxed)
        #expect(early == 0)
        parking.follow(request, nil)
        parking.onAbandon(request) { abandoned.add(1, ordering: .relaxed) }
        let late = abandoned.load(ordering: .relaxed)
        #expect(late == 1, "nobody works for it any more")
    }
}
