import Glibc
import PromiseCore
import PromiseSystem
import Synchronization

/// Time as the simulation says.
final class VirtualClock: TimeSource {
    private let elapsed = Mutex(Duration.zero)
    /// The wall clock may be wrong, and is set right while work goes on.
    private let error = Mutex(Duration.zero)
    private static let begin = Timestamp(seconds: 1_800_000_000, nanoseconds: 0)

    func uptime() -> Duration { elapsed.withLock { $0 } }
    func now() -> Timestamp {
        VirtualClock.begin.advanced(by: uptime()).advanced(by: error.withLock { $0 })
    }

    func advance(to time: Duration) { elapsed.withLock { $0 = max($0, time) } }
    func jump(by time: Duration) { error.withLock { $0 += time } }
}

/// One seed, one thread, one order: whatever happens, happens here, one step after the other.
///
/// Unchecked, as only the simulation's thread touches it; `check` traps elsewhere.
final class Simulation: @unchecked Sendable {
    private struct Timer {
        var due: Duration
        var number: Int
        var body: () -> Void
    }

    let clock = VirtualClock()
    /// What tasks and pools have to do.
    let tasks = BlockingPool(manual: "tasks")
    private(set) var random: SeededRandom
    private var timers: [Timer] = []
    private var timerCount = 0
    private var machines: [SimulatedMachine] = []
    /// Also those that were killed.
    private var entered: [SimulatedMachine] = []
    private var isOver = false
    private var writeCount = 0
    private(set) var stepCount = 0
    /// How often nothing more could be done at one time.
    private(set) var instantCount = 0
    private(set) var trace: Trace
    private let thread = pthread_self()

    /// Whoever waits until then waits for something that will not come.
    static let forEver = Duration.seconds(1_000_000)

    /// Time passes also where nobody has anything to do.
    var isResting = false

    init(seed: UInt64, printsTrace: Bool) {
        random = SeededRandom(seed: seed)
        trace = Trace(isPrinted: printsTrace)
    }

    func check() {
        precondition(pthread_equal(thread, pthread_self()) != 0, "a step ran on another thread")
    }

    func pick(_ count: Int) -> Int {
        check()
        return Int(random.next() % UInt64(count))
    }

    /// With a probability in percent.
    func chance(_ percent: Int) -> Bool { pick(100) < percent }

    func note(_ text: @autoclosure () -> String) {
        check()
        guard !isOver else { return }
        trace.add("\(clock.uptime().milliseconds) \(text())")
    }

    /// What is decided and why: only printed, so that a printed trace has the number of one that is not.
    func explain(_ text: String) {
        if trace.isPrinted { say("    \(clock.uptime().milliseconds) \(text)") }
    }

    // MARK: Time

    func after(_ time: Duration, _ body: @escaping () -> Void) {
        check()
        timerCount += 1
        timers.append(Timer(due: clock.uptime() + time, number: timerCount, body: body))
    }

    /// No two writes are in the same nanosecond, on whichever machines.
    func timeOfWrite() -> Timestamp {
        writeCount += 1
        return clock.now().advanced(by: .nanoseconds(writeCount % 1_000_000))
    }

    func sleep(_ time: Duration) async {
        await withUnsafeContinuation { continuation in
            after(time) { continuation.resume() }
        }
    }

    func enter(_ machine: SimulatedMachine) {
        machines.append(machine)
        entered.append(machine)
    }
    func leave(_ machine: SimulatedMachine) { machines.removeAll { $0 === machine } }

    // MARK: Steps

    private enum Step {
        case task
        case pool(BlockingPool)
        case pump(SimulatedMachine)
        case look(Lookout)
        case timer(Int)
    }

    /// Does one thing that can be done now, or lets time pass until there is one. False when nothing will ever
    /// be to be done.
    func step() -> Bool {
        stepCount += 1
        if stepCount % Watchdog.steps == 1 { Watchdog.goOn() }
        var ready: [Step] = []
        if tasks.hasJobs { ready.append(.task) }
        let now = clock.uptime()
        for machine in machines {
            for pool in machine.pools where pool.hasJobs { ready.append(.pool(pool)) }
            if machine.isPumpDue(at: now) { ready.append(.pump(machine)) }
            for lookout in machine.lookouts where lookout.due.map({ $0 <= now }) ?? false {
                ready.append(.look(lookout))
            }
        }
        for (index, timer) in timers.enumerated() where timer.due <= now {
            ready.append(.timer(index))
        }
        guard !ready.isEmpty else { return letTimePass() }
        switch ready[pick(ready.count)] {
        case .task: _ = tasks.runNext()
        case .pool(let pool): _ = pool.runNext()
        case .pump(let machine): machine.pump()
        case .look(let lookout): lookout.lookNow()
        case .timer(let index): timers.remove(at: index).body()
        }
        return true
    }

    private func letTimePass() -> Bool {
        instantCount += 1
        let looks = machines.flatMap { $0.lookouts.compactMap(\.due) }
        let dues =
            timers.map(\.due) + machines.compactMap(\.nextPump)
            + looks.filter { $0 < Simulation.forEver }
        guard let next = dues.min() else {
            if isResting { clock.advance(to: clock.uptime() + .seconds(1)) }
            return isResting
        }
        clock.advance(to: isResting ? min(next, clock.uptime() + .seconds(1)) : next)
        return true
    }

    /// When the schedule is over and its machines are killed: lets go of what waits, and of what that holds.
    func end() {
        isOver = true
        for machine in entered { machine.giveUpCalls() }
        entered = []
        for _ in 0..<100_000 where !tasks.runNext() {
            guard let timer = timers.popLast() else { return }
            timer.body()
        }
    }

    /// Until `isDone`; false when that does not come within so many steps.
    func run(atMost count: Int, until isDone: () -> Bool) -> Bool {
        for _ in 0..<count {
            if isDone() { return true }
            if !step() { return isDone() }
        }
        return isDone()
    }
}

extension Duration {
    var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}

/// Ends the process when a step does not come to its end: it waits for another one, and there is one thread only.
enum Watchdog {
    /// So many are taken in much less than the limit, also where others use the processors.
    static let steps = 1_000
    private static let seconds: UInt32 = 120
    // Unsafe, as the signal's handler reads it; one thread writes it.
    nonisolated(unsafe) private static var seed: UInt64 = 0

    static func begin(_ seed: UInt64) {
        self.seed = seed
        signal(SIGALRM) { _ in
            say("seed \(Watchdog.seed):\n  a step waits for ever")
            _exit(1)
        }
        goOn()
    }

    static func goOn() { alarm(seconds) }
}

/// SplitMix64, as the tests have it.
struct SeededRandom {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// What happened, a line for each thing; and a number that tells two traces apart (FNV-1a).
struct Trace {
    let isPrinted: Bool
    private(set) var number: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count = 0

    init(isPrinted: Bool) { self.isPrinted = isPrinted }

    mutating func add(_ line: String) {
        count += 1
        for byte in line.utf8 { number = (number ^ UInt64(byte)) &* 0x100_0000_01b3 }
        if isPrinted { say(line) }
    }
}

/// A line at once, also into a pipe, so that a run that is stopped has said what it found.
func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}
