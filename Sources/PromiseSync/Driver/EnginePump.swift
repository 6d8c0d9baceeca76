import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

/// The engine's own thread: it owns the machine, is handed what others have posted, and does what is due.
package final class EnginePump {
    private let engine: SyncEngine
    private let observer: any LocalTreeObserver
    private let dispatcher: Dispatcher
    private var runner: MachineRunner
    private var sleepers = Sleepers()

    init(_ engine: SyncEngine, _ observer: any LocalTreeObserver) {
        self.engine = engine
        self.observer = observer
        dispatcher = Dispatcher(engine, observer)
        let clock = engine.clock
        runner = MachineRunner(
            EnginePump.makeMachine(engine, observer), index: engine.index, performer: dispatcher
        ) { Moment(time: clock.now(), uptime: clock.uptime()) }
    }

    /// Handles what has been posted, without waiting for it. Returns how long until there is more to do; nil:
    /// until somebody posts.
    package func step() -> Duration? { step(engine.mailbox.take(timeout: .zero) ?? []) }

    /// Something has been posted that was not handled yet.
    package var hasMessages: Bool { engine.mailbox.hasMessages }

    func step(_ messages: [Mailbox.Message]) -> Duration? {
        let (provider, clock) = (engine.provider, engine.clock)
        runner.setCapabilities { $0.capabilities = provider.capabilities }
        for message in messages { take(message) }
        // Until the look is over nobody can rely on it to see what is being added.
        engine.nextLook.store(.max, ordering: .sequentiallyConsistent)
        let next = runner.look()
        observer.remoteChangesFollowed()
        publish()
        let timeout = sleepers.resume(at: clock.uptime(), orWait: next)
        let due = timeout.map { (clock.uptime() + $0).nanoseconds } ?? .max
        engine.nextLook.store(due, ordering: .sequentiallyConsistent)
        return timeout
    }

    /// Nothing is posted any more.
    package func end() {
        sleepers.resumeAll()
        engine.storeOrLog(observer.takeRecentUses())
    }

    private func take(_ message: Mailbox.Message) {
        switch message {
        case .event(let event, let then):
            dispatcher.noteEnd(of: event)
            runner.run(event)
            if case .lookWanted = event { engine.published.withLock { $0.looksWanted -= 1 } }
            noteWalk()
            then?()
        case .wake(let time, let resume): sleepers.add(resume, at: engine.clock.uptime() + time)
        case .hold(let body): body()
        }
    }

    private static func makeMachine(
        _ engine: SyncEngine, _ observer: any LocalTreeObserver
    ) -> Machine {
        var facts = Facts(
            configuration: engine.configuration, rootIdentifier: engine.rootIdentifier,
            providerName: engine.provider.name,
            capabilities: engine.provider.capabilities)
        facts.isTracing = engine.logger.logLevel <= .trace
        let hydrator = engine.hydrator
        let world = World(
            observer: observer, content: engine.content,
            fetchProblem: { hydrator.problem(of: $0) },
            lastChange: { .nanoseconds(engine.lastChange.load(ordering: .relaxed)) },
            silence: { [answers = engine.answers] in answers.silence() },
            lastGood: { [answers = engine.answers] in answers.lastGood() })
        return Machine(facts, world)
    }

    private func noteWalk() {
        let mark = runner.machine.memory.listings.walk.mark?.rawValue ?? 0
        if engine.walkMark.load(ordering: .relaxed) != mark {
            engine.walkMark.store(mark, ordering: .relaxed)
        }
    }

    private func publish() {
        let memory = runner.machine.memory
        noteWalk()
        let looks = Looks(memory, at: engine.clock.uptime())
        let running = memory.operations.running
        let trouble = runner.trouble
        let uploading = Set(running.values.compactMap(\.node))
        // Whoever watches is told what begins and what has ended, when it can be seen.
        var changed = Set<NodeID>()
        defer { if !changed.isEmpty { engine.index.touch(changed) } }
        engine.published.withLock { published in
            published.connection = memory.connection.state
            published.connectionSince = memory.connection.since
            published.nextTry = memory.connection.nextTry
            published.runningSubjects = Set(running.keys)
            changed = published.uploading.symmetricDifference(uploading)
            published.uploading = uploading
            published.looks = looks
            published.probeCount = memory.connection.askedCount
            published.askedFetches = memory.fetches.waiting(limit: EnginePump.shownFetchesMax)
            published.trouble = trouble
            published.folderTroubles = memory.listings.troubles
        }
    }

    /// Of the fetches that were asked for, so many are shown to people.
    private static let shownFetchesMax = 1_000
}
