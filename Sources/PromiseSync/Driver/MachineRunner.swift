import DequeModule
import HeapModule
import Logging
import PromiseCore
import PromiseIndex

/// Whoever carries out the machine's actions.
protocol ActionPerformer: AnyObject {
    func perform(_ action: Action)
    /// The last look found too little room on the disk.
    var isShortOfRoom: Bool { get }
}

/// Runs a machine: takes an event, runs the transaction, commits, remembers, performs the actions.
/// Owned by one thread, or by a simulation.
struct MachineRunner {
    private struct Timer: Comparable {
        var due: Duration
        /// Those that are due at the same time keep the order in which they came.
        var number: Int
        var event: Event

        static func < (left: Timer, right: Timer) -> Bool {
            (left.due, left.number) < (right.due, right.number)
        }

        static func == (left: Timer, right: Timer) -> Bool { left.number == right.number }
    }

    /// How long until what the index could not take is tried again.
    private static let troublePause = Duration.seconds(5)

    private(set) var machine: Machine
    private let index: Index
    private let performer: any ActionPerformer
    private let now: () -> Moment
    private var timers = Heap<Timer>()
    private var timerCount = 0
    /// The index or the disk fails the engine itself; nil when its last look went well.
    private(set) var trouble: Failure?

    init(
        _ machine: Machine, index: Index, performer: any ActionPerformer,
        now: @escaping () -> Moment
    ) {
        self.machine = machine
        self.index = index
        self.performer = performer
        self.now = now
    }

    mutating func setCapabilities(_ facts: (inout Facts) -> Void) { facts(&machine.facts) }

    // MARK: Events

    /// One event with all that follows from it.
    mutating func run(_ event: Event) {
        do throws(Failure) {
            try handle(event)
        } catch {
            meet(error, in: event)
        }
    }

    /// Throws what the index says; then the event has changed nothing.
    private mutating func handle(_ event: Event) throws(Failure) {
        var events: Deque<Event> = [event]
        while let next = events.popFirst() {
            let moment = now()
            let actions: [Action]
            do throws(Failure) {
                let index = index
                actions = try index.write { transaction throws(Failure) in
                    try machine.handle(next, at: moment, reading: transaction)
                }
            } catch {
                guard let instead = MachineRunner.instead(of: next, error) else {
                    // What would have followed is still to come.
                    if events.isEmpty { throw error }
                    meet(error, in: next)
                    continue
                }
                events.prepend(instead)
                continue
            }
            events.prepend(contentsOf: carryOut(actions, at: moment))
        }
    }

    /// Returns the events that follow at once.
    private mutating func carryOut(_ actions: [Action], at moment: Moment) -> [Event] {
        var events: [Event] = []
        for action in actions {
            switch action {
            case .remember(let change): machine.remember(change)
            case .go(let event): events.append(event)
            case .wait(let time, let event): schedule(event, at: moment.uptime + time)
            default: performer.perform(action)
            }
        }
        return events
    }

    private mutating func schedule(_ event: Event, at due: Duration) {
        timerCount += 1
        timers.insert(Timer(due: due, number: timerCount, event: event))
    }

    /// What is done about an event that could not be stored; nil: it is tried again.
    private static func instead(of event: Event, _ failure: Failure) -> Event? {
        switch event {
        case .listed(let part): .listingLost(number: part.number, failure)
        case .listingComplete(let number, _): .listingLost(number: number, failure)
        case .tell(let pending): .tellingFailed(pending, failure)
        case .step(let waiter, let waiting): .stepFailed(waiter, waiting, failure)
        default: nil
        }
    }

    private mutating func meet(_ failure: Failure, in event: Event) {
        trouble = failure
        performer.perform(.log(.error, "sync could not go on", reason: failure.message))
        switch event {
        case .listingWanted(_, _, let waiter), .stepWanted(let waiter), .step(let waiter, _),
            .stepFailed(let waiter, _, _), .pauseWanted(_, let waiter),
            .limitsWanted(_, let waiter), .revertWanted(_, _, let waiter):
            performer.perform(.reply(waiter, .failure(failure)))
        // The next look finds what is due.
        case .followDue, .follow, .followed, .listingDue, .madeDue, .askingDue, .fetchingDue,
            .tellingDue,
            .tell, .tellingFailed, .roomDue:
            break
        default: schedule(event, at: now().uptime + MachineRunner.troublePause)
        }
    }

    // MARK: What is due

    /// Events whose time has come, and all other work that is due. Returns how long until there is
    /// more; nil: until somebody calls.
    mutating func look() -> Duration? {
        while let timer = timers.min, timer.due <= now().uptime {
            timers.removeMin()
            run(timer.event)
        }
        do throws(Failure) {
            try lookForWork()
            trouble = nil
            return try nextDue()
        } catch {
            meet(error, in: .askingDue)
            return MachineRunner.troublePause
        }
    }

    private mutating func lookForWork() throws(Failure) {
        if machine.isRoomDue(at: now()) { try handle(.roomDue) }
        if machine.memory.hasDivergences { try handle(.followDue(after: 0)) }
        guard machine.memory.connection.isOnline else { return }
        while let folder = machine.nextListing(at: now()) {
            do throws(Failure) {
                try handle(.listingDue(folder))
            } catch {
                machine.putBack(folder, at: now())
                throw error
            }
        }
        if machine.isAskingDue(at: now()) { try handle(.askingDue) }
        try handle(.fetchingDue)
        while let folder = machine.nextMade(at: now()) { try handle(.madeDue(folder)) }
        if machine.mayTell { try handle(.tellingDue) }
    }

    private mutating func nextDue() throws(Failure) -> Duration? {
        if machine.memory.hasDivergences { return .zero }
        let (index, moment, isShort) = (index, now(), performer.isShortOfRoom)
        var next = try index.read { transaction throws(Failure) in
            try machine.nextDue(at: moment, isShortOfRoom: isShort, transaction)
        }
        if let timer = timers.min {
            next = min(next ?? .seconds(3600), max(timer.due - moment.uptime, .zero))
        }
        return next
    }
}
