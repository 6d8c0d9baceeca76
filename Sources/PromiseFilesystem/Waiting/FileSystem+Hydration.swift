import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// Who may cause content to be fetched: asked only when an open or a read would have to wait for the provider.

extension FileSystem {
    /// The caller's program, for the ledger. Throws `.hydrationRefused` when the rules are against it.
    /// `opening`: how the file is being opened, where it is.
    func admit(_ caller: Caller, to id: NodeID, opening: OpenRequest? = nil) throws(Failure) -> String {
        let now = clock.uptime()
        var facts = callers.facts(of: caller.process, at: now)
        facts.sparesAccessTime = opening?.sparesAccessTime ?? false
        let program = facts.program.isEmpty ? HydrationLedger.unknown : escapedForDisplay(facts.programName)
        switch configuration.hydrationRules.decision(on: facts) {
        case .allow: if !callers.refusedHelpers.hasStarted(caller.process, id, at: now) { return program }
        case .budget(let budget): if engine.hydrator.isWithin(budget, program: program) { return program }
        case .refuse: callers.refusedHelpers.note(caller.process, id, at: now)
        }
        engine.hydrator.noteRefusal(of: program)
        throw Failure(.hydrationRefused, "'\(program)' may not cause content to be fetched")
    }
}

/// What was found out about processes a moment ago: a program that opens one file after the other is looked at ten times a
/// second and not each time. One that gives way to another program meanwhile (execve(2)) is taken for what it was.
///
/// Thread-safe.
final class KnownCallers: Sendable {
    private static let lifetime = Duration.milliseconds(100)
    private static let countMax = 256
    let refusedHelpers = RefusedHelpers()
    private let known = Mutex<[Int32: (facts: CallerFacts, end: Duration)]>([:])

    func facts(of process: Int32, at now: Duration) -> CallerFacts {
        if let found = known.withLock({ $0[process] }), now < found.end { return found.facts }
        let facts = CallerFacts.of(process: process)
        known.withLock { known in
            if known.count >= KnownCallers.countMax { known = [:] }
            known[process] = (facts, now + KnownCallers.lifetime)
        }
        return facts
    }
}
