import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Testing

/// When temporary access keys are renewed, and what those get who want one meanwhile.
struct KeyRenewalTests {
    private let trouble = ProviderError(.offline, "the service is away")

    private static func key(_ number: Int) -> AccessKey {
        AccessKey(identifier: "key \(number)", secret: Secret("secret \(number)"), sessionToken: Secret("token \(number)"))
    }

    /// What came of events, by asker; `begun` counts renewals.
    private struct Run {
        var renewal = KeyRenewal()
        var begun = 0
        var given: [KeyRenewal.Asker: AccessKey?] = [:]
        var refused: [KeyRenewal.Asker: ProviderError] = [:]

        mutating func at(_ seconds: Double, _ event: KeyRenewal.Event, jitter: Double = 0) {
            for action in renewal.handle(event, at: .seconds(seconds), jitter: jitter) {
                switch action {
                case .renew: begun += 1
                case .give(let asker, let key): given[asker] = .some(key)
                case .refuse(let asker, let error): refused[asker] = error
                }
            }
        }

        /// With a key that ends after so many seconds.
        static func with(_ number: Int, until end: Double) -> Run {
            var run = Run()
            run.at(0, .wanted(1))
            run.at(0, .renewed(KeyRenewal.Lease(key: key(number), end: .seconds(end))))
            return run
        }
    }

    @Test func theFirstRequestsWaitForOneRenewal() {
        var run = Run()
        run.at(0, .wanted(1))
        run.at(1, .wanted(2))
        #expect(run.begun == 1 && run.given.isEmpty)
        run.at(2, .renewed(KeyRenewal.Lease(key: Self.key(1), end: .seconds(3600))))
        #expect(run.given == [1: Self.key(1), 2: Self.key(1)])
        #expect(run.renewal.key(at: .seconds(3)) == Self.key(1) && run.renewal.wake == nil)
    }

    @Test func aKeyIsRenewedSomeMinutesBeforeItEndsAndUsedMeanwhile() {
        var run = Run.with(1, until: 3600)
        #expect(run.renewal.key(at: .seconds(3299)) == Self.key(1))
        #expect(run.renewal.key(at: .seconds(3301)) == nil)
        run.at(3301, .wanted(2))
        run.at(3302, .wanted(3))
        #expect(run.begun == 2 && run.given[2] == Self.key(1) && run.given[3] == Self.key(1))
        run.at(3303, .renewed(KeyRenewal.Lease(key: Self.key(2), end: .seconds(7200))))
        run.at(3304, .wanted(4))
        #expect(run.begun == 2 && run.given[4] == Self.key(2))
    }

    @Test func aKeyIsUsedAsLongAsItIsValidWhenTheServiceFails() {
        var run = Run.with(1, until: 3600)
        run.at(3400, .wanted(2))
        run.at(3401, .failed(trouble, isFinal: true))
        run.at(3401.1, .wanted(3))
        #expect(run.begun == 2 && run.given[3] == Self.key(1), "nobody is asked during the pause")
        run.at(3599, .wanted(4))
        #expect(run.begun == 3 && run.given[4] == Self.key(1))
        run.at(3599.5, .failed(trouble, isFinal: false))
        run.at(3601, .wanted(5))
        #expect(run.given[5] == nil && run.refused.isEmpty, "it waits")
    }

    @Test func whatTheServerCallsEndedIsRenewedAtOnce() {
        var run = Run.with(1, until: 3600)
        run.at(5, .refused(2, Self.key(1), .ended))
        run.at(5, .refused(3, Self.key(1), .ended))
        run.at(5, .wanted(4))
        #expect(run.begun == 2 && run.given.count == 1)
        run.at(6, .renewed(KeyRenewal.Lease(key: Self.key(2), end: .seconds(3600))))
        #expect([2, 3, 4].allSatisfy { run.given[$0] == Self.key(2) })
        run.at(7, .refused(5, Self.key(1), .ended))
        #expect(run.begun == 2 && run.given[5] == Self.key(2), "it was signed before the renewal")
    }

    @Test func aServiceThatGivesWhatTheServerRefusesIsNotAskedAllTheTime() {
        var run = Run.with(1, until: 3600)
        var time = 0.0
        var isAsked = false
        while time < 600 {
            time += 0.1
            let before = run.begun
            run.at(time, .timePassed)
            if isAsked { run.at(time, .renewed(KeyRenewal.Lease(key: Self.key(1), end: .seconds(3600)))) }
            if run.renewal.key(at: .seconds(time)) != nil { run.at(time, .refused(UInt64(time * 10), Self.key(1), .ended)) }
            isAsked = run.begun > before
        }
        #expect(run.begun > 5 && run.begun < 25, "\(run.begun) renewals in ten minutes")
    }

    @Test func pausesDoubleUntilTheServiceIsBackAndRequestsWaitWithALimit() throws {
        var run = Run()
        run.at(0, .wanted(1))
        run.at(0, .failed(trouble, isFinal: false), jitter: 0.999)
        #expect(run.refused.isEmpty)
        var time = 0.0
        var began: [Double] = []
        while time < 3600 {
            time += 0.25
            let before = run.begun
            if time.truncatingRemainder(dividingBy: 5) == 0 { run.at(time, .wanted(UInt64(time * 4))) }
            run.at(time, .timePassed)
            guard run.begun > before else { continue }
            began.append(time)
            run.at(time, .failed(trouble, isFinal: false), jitter: 0.5)
        }
        #expect(run.refused[1]?.code == .offline && run.given.isEmpty)
        #expect(began.count > 12 && began.count < 30, "\(began)")
        #expect(zip(began.dropFirst(), began).allSatisfy { $0 - $1 <= 301 })
    }

    @Test func aRefusalOfTheServiceIsToldAtOnce() {
        var run = Run()
        run.at(0, .wanted(1))
        run.at(1, .failed(ProviderError(.authenticate, "no such role"), isFinal: true))
        run.at(1.1, .wanted(2))
        #expect(run.refused[1]?.code == .authenticate && run.refused[2]?.code == .authenticate && run.begun == 1)
        run.at(10, .wanted(3))
        #expect(run.begun == 2, "the role may be there now")
    }

    @Test func whereThereIsNoServiceRequestsAreNotSigned() {
        var run = Run()
        run.at(0, .wanted(1))
        run.at(1, .absent)
        run.at(2, .wanted(2))
        #expect(run.given[1] == .some(nil) && run.given[2] == .some(nil) && run.begun == 1)
        // The server wants a signature: once more, but not for each refusal.
        run.at(70, .refused(3, nil, .possible))
        #expect(run.begun == 2)
        run.at(71, .absent)
        run.at(72, .refused(4, nil, .possible))
        #expect(run.begun == 2 && run.given[3] == .some(nil) && run.given[4] == .some(nil))
    }

    @Test func aServiceThatIsGoneLaterIsTroubleAndNoReasonToSignNothing() {
        var run = Run.with(1, until: 3600)
        run.at(3601, .wanted(2))
        run.at(3602, .absent)
        #expect(run.given[2] == nil)
        run.at(3632, .timePassed)
        #expect(run.refused[2]?.code == .offline)
    }

    @Test func aKeyThatHasEndedWhenItComesIsNone() {
        var run = Run()
        run.at(10, .wanted(1))
        run.at(11, .renewed(KeyRenewal.Lease(key: Self.key(1), end: .seconds(5))))
        run.at(41, .timePassed)
        #expect(run.given.isEmpty && run.refused[1]?.message.contains("clock") == true)
    }

    @Test func whoLeavesIsNotAnswered() {
        var run = Run()
        run.at(0, .wanted(1))
        run.at(0, .left(1))
        run.at(1, .renewed(KeyRenewal.Lease(key: Self.key(1), end: nil)))
        #expect(run.given.isEmpty && run.renewal.key(at: .seconds(1 << 40)) == Self.key(1))
    }

    // MARK: Anything at any time

    /// Requests, outages of the service, and keys that the server takes back, for a simulated day.
    @Test(arguments: 0..<20) func whateverHappensNobodyIsForgottenAndNoEndedKeyIsGiven(round: Int) {
        var world = KeyWorld(SeededGenerator(for: "KeyRenewalTests"), round)
        while world.time < .seconds(86_400) { world.step() }
        #expect(world.problems.isEmpty, "\(world.problems.prefix(5))")
        #expect(world.answers > 500)
    }
}

/// A service that gives keys, a server that takes them, and requests.
private struct KeyWorld {
    private var generator: SeededGenerator
    private var renewal = KeyRenewal()
    private(set) var time = Duration.zero
    private(set) var problems: [String] = []
    private(set) var answers = 0
    private var renewedAt: Duration?
    private var isUp = true
    private var changes = Duration.zero
    private var current: KeyRenewal.Lease?
    private var count = 0
    private var revoked: Set<String> = []
    private var asked: [KeyRenewal.Asker: Duration] = [:]
    private var next: KeyRenewal.Asker = 0

    init(_ generator: SeededGenerator, _ round: Int) {
        self.generator = SeededGenerator(seed: generator.seed &+ UInt64(round))
    }

    private mutating func random(_ range: ClosedRange<Double>) -> Duration {
        .seconds(Double.random(in: range, using: &generator))
    }

    /// The next thing that happens: a request, the end of a renewal, a timer, or the service that goes or comes.
    mutating func step() {
        var next = time + random(0.1...120)
        next = min(next, renewedAt ?? next, max(time, renewal.wake ?? next))
        time = next
        if changes <= time {
            isUp.toggle()
            changes = time + (isUp ? random(60...7200) : random(1...1500))
        }
        if let due = renewedAt, due <= time { return endRenewal() }
        if let wake = renewal.wake, wake <= time { return tell(.timePassed) }
        self.next += 1
        asked[self.next] = time
        tell(.wanted(self.next))
        for (asker, since) in asked where time - since > KeyRenewal.patience { problems.append("\(asker) waits too long") }
    }

    private mutating func endRenewal() {
        renewedAt = nil
        guard isUp else {
            let isFinal = Bool.random(using: &generator)
            return tell(.failed(ProviderError(isFinal ? .authenticate : .offline, "away"), isFinal: isFinal))
        }
        // Machines give the same key until shortly before its end.
        if let current, let end = current.end, end - time > .seconds(310), !revoked.contains(current.key.identifier) {
            return tell(.renewed(current))
        }
        count += 1
        let key = AccessKey(identifier: "key \(count)", secret: Secret("s"))
        let fresh = KeyRenewal.Lease(key: key, end: time + random(10...5000))
        current = fresh
        tell(.renewed(fresh))
    }

    private mutating func tell(_ event: KeyRenewal.Event) {
        let jitter = Double.random(in: 0..<1, using: &generator)
        for action in renewal.handle(event, at: time, jitter: jitter) {
            switch action {
            case .renew:
                if renewedAt != nil { problems.append("two renewals at once") }
                renewedAt = time + random(0...20)
            case .give(let asker, let key): given(asker, key)
            case .refuse(let asker, _):
                if asked.removeValue(forKey: asker) == nil { problems.append("\(asker) is answered twice") }
                if let current, let end = current.end, end > time, !revoked.contains(current.key.identifier) {
                    problems.append("\(asker) is refused while there is a key")
                }
                answers += 1
            }
        }
    }

    private mutating func given(_ asker: KeyRenewal.Asker, _ key: AccessKey?) {
        if asked.removeValue(forKey: asker) == nil { problems.append("\(asker) is answered twice") }
        answers += 1
        guard let key else { return problems.append("\(asker) is to sign nothing") }
        guard let current, current.key == key, current.end.map({ time < $0 }) ?? true else {
            return problems.append("\(asker) has a key that ended")
        }
        // The server takes one back now and then, and whoever signed with it is told, once.
        if Int.random(in: 0..<40, using: &generator) == 0 { revoked.insert(key.identifier) }
        guard revoked.contains(key.identifier) else { return }
        next += 1
        asked[next] = time
        tell(.refused(next, key, .ended))
    }
}
