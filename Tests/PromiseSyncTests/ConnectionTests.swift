import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// A mount that begins before its provider has answered.
@Suite struct ConnectionTests {
    /// Starts an engine whose provider is asked by a call that ends when its gate is opened.
    private func run(
        patience: Duration, root identifier: ItemIdentifier = MemoryProvider.rootIdentifier,
        _ body: (EngineFixture, Monitor<Bool>) async throws -> Void
    ) async throws {
        let (gate, pool) = (Monitor(false), BlockingPool(name: "hanging", threads: 1))
        let memory = MemoryProvider()
        let asking = Attempt.ofProvider { () throws(ProviderError) in
            _ = await pool.run { gate.wait { $0 ? true : nil } }
            var root = try await memory.root()
            root.identifier = identifier
            return root
        }
        let provider = LateProvider(
            SilentProvider(memory: memory), asking: asking, root: MemoryProvider.rootIdentifier)
        let fixture = try EngineFixture(memory, mediator: provider)
        fixture.engine.start(
            observer: fixture.observer, isConnected: false, asking: asking, patience: patience)
        let result: Result<Void, any Error>
        do { result = .success(try await body(fixture, gate)) } catch { result = .failure(error) }
        let clock = SystemClock()
        let start = clock.uptime()
        fixture.engine.stop()
        #expect(clock.uptime() - start < .seconds(60))
        gate.update { $0 = true }
        pool.stop()
        fixture.index.close()
        try result.get()
    }

    @Test(.timeLimit(.minutes(5)))
    func whoWantsSomethingWaitsUntilTheProviderAnswers() async throws {
        try await run(patience: .seconds(60)) { fixture, gate in
            #expect(fixture.engine.connection == .connecting)
            let isListed = Monitor(false)
            fixture.engine.list(.root) { outcome in
                if case .success = outcome { isListed.update { $0 = true } }
            }
            try await Task.sleep(for: .milliseconds(100))
            #expect(!isListed.withLock { $0 }, "it may be another storage")
            gate.update { $0 = true }
            #expect(await fixture.eventually { isListed.withLock { $0 } })
            #expect(await fixture.eventually { fixture.engine.connection == .online })
        }
    }

    /// Until then nobody knows what it can do, or whether a link leads into the right storage.
    @Test(.timeLimit(.minutes(5)), arguments: [MemoryProvider.rootIdentifier, ItemIdentifier("another")])
    func whatAProviderCanDoIsKnownWhenItHasAnswered(root identifier: ItemIdentifier) async throws {
        let (gate, pool, memory) = (Monitor(false), BlockingPool(name: "hanging", threads: 1), MemoryProvider())
        let asking = Attempt.ofProvider { () throws(ProviderError) in
            _ = await pool.run { gate.wait { $0 ? true : nil } }
            var root = try await memory.root()
            root.identifier = identifier
            return root
        }
        let provider = LateProvider(memory, asking: asking, root: MemoryProvider.rootIdentifier)
        let hanging = await #expect(throws: ProviderError.self) {
            try await withDeadline(.milliseconds(100), "it did not answer") { () async throws(ProviderError) in
                try await provider.answered()
            }
        }
        #expect(hanging?.code == .retry)
        gate.update { $0 = true }
        var refusal: ProviderError?
        do throws(ProviderError) { try await provider.answered() } catch { refusal = error }
        #expect(refusal?.code == (identifier == MemoryProvider.rootIdentifier ? nil : .offline))
        pool.stop()
    }

    /// Right after the mount nobody was told since when, and then it seemed to be since the moment that it was given up.
    @Test(.timeLimit(.minutes(5)))
    func aProviderThatHasNeverAnsweredIsAwaySinceTheStart() async throws {
        let before = SystemClock().now()
        try await run(patience: .seconds(3)) { fixture, gate in
            #expect(await fixture.eventually { fixture.engine.connectionTimes.since != nil })
            let since = fixture.engine.connectionTimes.since
            #expect(fixture.engine.connection == .connecting && since.map { $0 >= before } == true)
            #expect(await fixture.eventually { fixture.engine.connectionFailure?.code == .offline })
            #expect(fixture.engine.connectionTimes.since == since)
            gate.update { $0 = true }
            #expect(await fixture.eventually { fixture.engine.connectionTimes.since == nil })
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func aSilentProviderIsOfflineUntilItsAnswerComes() async throws {
        try await run(patience: .milliseconds(50)) { fixture, gate in
            let outcome = Monitor<Failure.Code?>(nil)
            fixture.engine.list(.root) { result in
                if case .failure(let failure) = result { outcome.update { $0 = failure.code } }
            }
            #expect(await fixture.eventually { outcome.withLock { $0 } == .offline })
            #expect(fixture.engine.connectionFailure?.code == .offline)
            gate.update { $0 = true }
            #expect(await fixture.eventually { fixture.engine.connection == .online })
            try await fixture.list()
        }
    }

    /// It would look like everything had been deleted.
    @Test(.timeLimit(.minutes(5)))
    func anotherStorageThatAnswersLateIsRefused() async throws {
        try await run(patience: .seconds(60), root: ItemIdentifier("another")) { fixture, gate in
            gate.update { $0 = true }
            let code: () -> Failure.Code? = { fixture.engine.connectionFailure?.code }
            #expect(await fixture.eventually { code() == .refused })
        }
    }

    /// A daemon that is stopped while its probe hangs does not wait for it.
    @Test(.timeLimit(.minutes(5)))
    func anEngineEndsWhileItsProviderHangs() async throws {
        try await run(patience: .milliseconds(10)) { fixture, _ in
            #expect(await fixture.eventually { fixture.engine.connectionFailure?.code == .offline })
            fixture.engine.lookNow()
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// It was online until a call timed out, after minutes: each call waited to its own end.
    @Test(.timeLimit(.minutes(5)))
    func aProviderThatFallsSilentIsNotOnlineForMinutes() async throws {
        let memory = MemoryProvider()
        let frozen = FrozenProvider(memory: memory)
        let fixture = try EngineFixture(memory, mediator: frozen, watchPatience: .seconds(5))
        let (clock, outcome) = (SystemClock(), Monitor<Failure.Code?>(nil))
        try await fixture.run {
            #expect(await fixture.eventually { fixture.engine.connection == .online })
            try await fixture.list()
            frozen.isFrozen.update { $0 = true }
            let start = clock.uptime()
            fixture.engine.lookNow()
            #expect(await fixture.eventually { fixture.engine.connectionFailure?.code == .offline })
            #expect(clock.uptime() - start < .seconds(60))
            let times = fixture.engine.connectionTimes
            #expect(times.since != nil && times.nextTry != nil)
            // What comes later does not wait.
            fixture.engine.list(.root) { result in
                if case .failure(let failure) = result { outcome.update { $0 = failure.code } }
            }
            #expect(outcome.withLock { $0 } == .offline)
            frozen.isFrozen.update { $0 = false }
            #expect(await fixture.eventually { fixture.engine.connection == .online })
            #expect(fixture.engine.connectionTimes.since == nil)
        }
    }

    /// Which folders to look at the provider said by itself at each poll, without its server: that
    /// was taken for an answer, so that the server was "online" and each call waited to its own end.
    @Test(.timeLimit(.minutes(5)))
    func aGuessAtChangesIsNotTakenForTheServersAnswer() async throws {
        let memory = MemoryProvider()
        let frozen = FrozenProvider(memory: memory, guesses: true)
        let fixture = try EngineFixture(
            memory, mediator: frozen, pollInterval: .milliseconds(200), watchPatience: .seconds(5))
        let clock = SystemClock()
        try await fixture.run {
            #expect(await fixture.eventually { fixture.engine.connection == .online })
            try await fixture.list()
            frozen.isFrozen.update { $0 = true }
            let start = clock.uptime()
            fixture.engine.lookNow()
            #expect(await fixture.eventually { fixture.engine.connectionFailure?.code == .offline })
            #expect(clock.uptime() - start < .seconds(60))
            frozen.isFrozen.update { $0 = false }
            #expect(await fixture.eventually { fixture.engine.connection == .online })
        }
    }

    /// Whoever asks is answered, if late: that is no provider that is away.
    @Test(.timeLimit(.minutes(5)))
    func aProviderThatTakesSecondsIsThere() async throws {
        let memory = MemoryProvider()
        let frozen = FrozenProvider(memory: memory, delay: .seconds(3))
        let fixture = try EngineFixture(memory, mediator: frozen, watchPatience: .seconds(20))
        let wasAway = Monitor(false)
        try await fixture.run {
            let watch = Task {
                while !Task.isCancelled {
                    if fixture.engine.connectionFailure != nil { wasAway.update { $0 = true } }
                    try? await Task.sleep(for: .milliseconds(50))
                }
            }
            try await fixture.list()
            watch.cancel()
            #expect(!wasAway.withLock { $0 })
        }
    }
}

/// Falls silent when told to, without any sign; or answers late.
private struct FrozenProvider: ForwardingProvider {
    let memory: MemoryProvider
    let isFrozen = Monitor(false)
    var delay = Duration.zero
    /// It has no feed, and says which folders are to be looked at without asking anybody.
    var guesses = false

    var capabilities: Capabilities {
        guesses ? memory.capabilities.subtracting([.changePush]) : memory.capabilities
    }

    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        guard guesses else { return try await memory.changes(since: anchor) }
        return ChangePage(
            foldersToList: [MemoryProvider.rootIdentifier], isGuess: true, anchor: anchor)
    }

    private func answer() async throws(ProviderError) {
        if delay > .zero { try? await Task.sleep(for: delay) }
        while isFrozen.withLock({ $0 }) {
            if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    func root() async throws(ProviderError) -> Item {
        try await answer()
        return try await memory.root()
    }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await answer()
        return try await memory.enumerateItems(in: folder, page: page)
    }
}

/// Never says whether it is there.
private struct SilentProvider: ForwardingProvider {
    let memory: MemoryProvider

    func root() async throws(ProviderError) -> Item {
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(1)) }
        throw ProviderError(.cancelled, "the call was cancelled")
    }
}
