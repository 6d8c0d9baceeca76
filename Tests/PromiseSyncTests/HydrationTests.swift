import Glibc
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct HydrationTests {
    /// A provider has a file, `a`, and no content comes before the gate is open.
    private func held() async throws -> (EngineFixture, Gate) {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        let gate = Gate()
        await fixture.provider.holdFetches(at: gate)
        return (fixture, gate)
    }

    @Test func listingMakesPlaceholders() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        await fixture.provider.put("folder", kind: .folder)
        try await fixture.run {
            try await fixture.list()
            #expect(try fixture.names() == ["a", "folder"])
            let file = try #require(try fixture.node("a"))
            #expect(file.content == .absent && file.size == 5 && file.version != nil && file.localBytes == 0)
            #expect(try fixture.node("folder")?.isPopulated == false)
            #expect(try fixture.node("folder")?.kind == .folder)
            #expect(await fixture.provider.fetches.isEmpty)
        }
    }

    @Test func twentyWaitersCauseOneFetch() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let replies = Monitor([Bool]())
            for _ in 0..<20 {
                let id = fixture.engine.hydrator.hydrate(node) { result in
                    replies.update { $0.append((try? result.get()) != nil) }
                }
                #expect(id != nil)
            }
            #expect(replies.withLock { $0.isEmpty })
            gate.open()
            #expect(await fixture.eventually { replies.withLock { $0.count } == 20 })
            #expect(replies.withLock { $0.allSatisfy { $0 } })
            #expect(try fixture.text("a") == "hello")
            #expect(await fixture.provider.fetches.count == 1)
            #expect(fixture.engine.hydrator.bytesFetched == 5)
        }
    }

    /// What is left of the call is the provider's own affair, and so is an error of it.
    @Test func whoWaitsIsAnsweredWhenTheProviderSaysThatAllIsThere() async throws {
        let slow = SlowlyReturning(memory: MemoryProvider())
        let fixture = try EngineFixture(slow.memory, mediator: slow)
        await fixture.provider.put("a", "hello")
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let outcome = Monitor<Bool?>(nil)
            _ = fixture.engine.hydrator.hydrate(node) { result in outcome.update { $0 = (try? result.get()) != nil } }
            #expect(await fixture.eventually { outcome.withLock { $0 } != nil })
            #expect(outcome.withLock { $0 } == true)
            #expect(try fixture.text("a") == "hello")
            slow.gate.open()
            #expect(await fixture.eventually { slow.isOver.withLock { $0 } })
            #expect(fixture.engine.hydrator.runningNodes == [])
            #expect(fixture.engine.hydrator.problem(of: node) == nil)
            #expect(try fixture.node("a")?.content == .whole)
            #expect(await fixture.provider.fetches.count == 1)
        }
    }

    /// All of it had landed, so the next reader would have found the file whole.
    @Test func contentThatWasFoundCorruptedIsNotKept() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        await fixture.provider.failFetches([ProviderError(.corrupted, "its checksum is another")])
        try await fixture.run {
            let node = try await fixture.listed("a").id
            for isRight in [false, true] {
                let outcome = Monitor<Bool?>(nil)
                _ = fixture.engine.hydrator.hydrate(node) { result in
                    outcome.update { $0 = (try? result.get()) != nil }
                }
                #expect(await fixture.eventually { outcome.withLock { $0 } != nil })
                #expect(outcome.withLock { $0 } == isRight)
            }
            #expect(try fixture.text("a") == "hello")
            #expect(await fixture.provider.fetches.count == 2)
        }
    }

    /// They joined the fetch for what had gone, whose end failed them with it.
    @Test func whoComesBetweenAnEvictionAndTheEndOfItsFetchWaitsForWhatIsThereNow() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a")
            let hydrator = fixture.engine.hydrator
            let outcomes = Monitor([Bool]())
            let note: @Sendable (Result<Void, Failure>) -> Void = { result in
                outcomes.update { $0.append((try? result.get()) != nil) }
            }
            #expect(hydrator.hydrate(node.id, reply: note) != nil)
            // As an eviction does it.
            try fixture.index.write { transaction throws(Failure) in
                guard var node = try transaction.node(node.id) else { return }
                node.generation = node.generation.next
                try transaction.update(node)
            }
            #expect(hydrator.hydrate(node.id, reply: note) != nil)
            hydrator.startAgain(node.id, node.generation)
            gate.open()
            #expect(await fixture.eventually { outcomes.withLock { $0.count } == 2 })
            #expect(outcomes.withLock { $0 } == [true, true])
            #expect(try fixture.node("a")?.generation == node.generation.next)
            #expect(try fixture.text("a") == "hello")
        }
    }

    /// `fetch` failed, and said that the provider has another version.
    @Test func whoWaitsForContentThatIsEvictedMeanwhileGetsIt() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a")
            let hydrator = fixture.engine.hydrator
            // From here on the index knows that it is on its way.
            try #require(try hydrator.claim(ByteRange(0, 1), of: node.id)).withdraw()
            let outcome = Monitor<Bool?>(nil)
            let waiter = hydrator.hydrate(node.id) { result in
                outcome.update { $0 = (try? result.get()) != nil }
            }
            #expect(waiter != nil)
            guard case .evicted = try fixture.engine.evict(node.id) else {
                throw Failure(.busy, "the file was kept")
            }
            #expect(outcome.withLock { $0 } == nil)
            gate.open()
            #expect(await fixture.eventually { outcome.withLock { $0 } != nil })
            #expect(outcome.withLock { $0 } == true)
            #expect(try fixture.text("a") == "hello")
        }
    }

    /// The notice of a change ended the fetch of what was there after it, which began anew.
    @Test func whoComesBetweenAChangeAndItsNoticeIsNotSentOnByThat() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a")
            let hydrator = fixture.engine.hydrator
            try fixture.index.write { transaction throws(Failure) in
                guard var node = try transaction.node(node.id) else { return }
                node.generation = node.generation.next
                try transaction.update(node)
            }
            let outcome = Monitor<Bool?>(nil)
            let waiter = hydrator.hydrate(node.id) { result in
                outcome.update { $0 = (try? result.get()) != nil }
            }
            #expect(waiter != nil)
            hydrator.startAgain(node.id, node.generation)
            hydrator.answerWaiters(of: node.id, node.generation)
            #expect(outcome.withLock { $0 } == nil)
            gate.open()
            #expect(await fixture.eventually { outcome.withLock { $0 } != nil })
            #expect(outcome.withLock { $0 } == true)
            #expect(try fixture.text("a") == "hello")
            #expect(await fixture.provider.fetches.count == 1)
        }
    }

    @Test func aReaderWhoGoesAwayTakesNoBackgroundFetchWithHim() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let hydrator = fixture.engine.hydrator
            hydrator.hydrateInBackground(node)
            let waiter = try #require(hydrator.hydrate(node) { _ in })
            hydrator.detach(waiter, from: node)
            gate.open()
            #expect(await fixture.eventually { (try? fixture.node("a"))??.content == .whole })
        }
    }

    /// It waited until its deadline.
    @Test func aReaderWhoComesWhileACallIsGivenUpIsServed() async throws {
        let deaf = DeafProvider(memory: MemoryProvider())
        let fixture = try EngineFixture(deaf.memory, mediator: deaf)
        await fixture.provider.put("a", "hello")
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let first = fixture.engine.hydrator.hydrate(node) { _ in }
            #expect(await fixture.eventually { deaf.calls.withLock { $0.begun } })
            fixture.engine.hydrator.detach(try #require(first), from: node)
            let isServed = Monitor(false)
            _ = fixture.engine.hydrator.hydrate(node) { result in
                if case .success = result { isServed.update { $0 = true } }
            }
            deaf.calls.update { $0.mayEnd = true }
            #expect(await fixture.eventually { isServed.withLock { $0 } })
            #expect(try fixture.text("a") == "hello")
        }
    }

    /// Until it is whole the index need not know of it, and whoever looks for rubbish leaves it alone.
    @Test func contentOnItsWayIsNotTakenForRubbish() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a")
            let hydrator = fixture.engine.hydrator
            hydrator.hydrateInBackground(node.id)
            #expect(await fixture.eventually { (try? fixture.content.status(node.id, node.generation)) != nil })
            #expect(try fixture.node("a")?.content == .absent)
            let orphans = ContentOrphans(index: fixture.index, content: fixture.content)
            #expect(try orphans.find(isOpen: { _ in false }).map(\.node) == [node.id])
            #expect(try orphans.find(isOpen: hydrator.isBusy).isEmpty)
            gate.open()
            #expect(await fixture.eventually { (try? fixture.text("a")) == "hello" })
            #expect(try orphans.find(isOpen: { _ in false }).isEmpty)
        }
    }

    @Test(arguments: [ProviderError.Code.refused, .corrupted]) func contentThatDidNotComeLeavesNoFile(
        code: ProviderError.Code
    ) async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        await fixture.provider.failFetches([ProviderError(code, "not today")])
        try await fixture.run {
            let node = try await fixture.listed("a")
            await #expect(throws: Failure.self) { try await fixture.hydrate(node.id) }
            #expect(await fixture.eventually { (try? fixture.content.status(node.id, node.generation)) == nil })
            try await fixture.hydrate(node.id)
            #expect(try fixture.text("a") == "hello")
        }
    }

    @Test func whatIsEditedWhileItIsFetchedKeepsTheEdit() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let hydrator = fixture.engine.hydrator
            hydrator.hydrateInBackground(node)
            let claim = try #require(try hydrator.claim(ByteRange(0, 1), of: node))
            #expect(try fixture.node("a")?.content == .partial)
            let file = try #require(try hydrator.file(of: node))
            try writeFully(file.number, Array("j".utf8), at: 0, label: "test.edit")
            claim.confirm(.written(ByteRange(0, 1)))
            gate.open()
            #expect(await fixture.eventually { (try? fixture.text("a")) == "jello" })
        }
    }

    /// It was never fetched again, so that what the disk had not taken was content.
    @Test func whereAnEditFailedTheFileIsFetched() async throws {
        let (fixture, gate) = try await held()
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let hydrator = fixture.engine.hydrator
            hydrator.hydrateInBackground(node)
            let claim = try #require(try hydrator.claim(ByteRange(0, 1), of: node))
            let file = try #require(try hydrator.file(of: node))
            try writeFully(file.number, Array("j".utf8), at: 0, label: "test.edit")
            claim.withdraw()
            gate.open()
            #expect(await fixture.eventually { (try? fixture.text("a")) == "hello" })
        }
    }

    /// Whoever waited for all of it, an upload too, waited for a fetch that nobody had to make.
    @Test func aFileWhoseLastGapWasWrittenHereIsWhole() async throws {
        let fixture = try EngineFixture()
        let size = 2 << 20
        await fixture.provider.put("a", String(repeating: "x", count: size))
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let range = ByteRange(0, UInt64(size))
            try #require(try fixture.engine.hydrator.claim(range, of: node)).confirm(
                .written(range))
            try await fixture.hydrate(node)
            #expect(try fixture.node("a")?.content == .whole)
            #expect(await fixture.provider.fetches.isEmpty)
        }
    }

    /// The fetch of the rest asked for the item's whole content, and took what was too much for another version.
    @Test(arguments: [100_000, 3 << 20, 9 << 20]) func theRestOfAFileThatWasCutOrGrownHereIsFetched(size: Int) async throws {
        for newSize in [size / 3, size * 2] {
            let fixture = try EngineFixture()
            await fixture.provider.put("a", String(repeating: "x", count: size))
            try await fixture.run {
                let node = try await fixture.listed("a").id
                let claim = try #require(
                    try fixture.engine.hydrator.claimSize(UInt64(newSize), of: node))
                let file = try #require(try fixture.engine.hydrator.file(of: node))
                try truncate(file.number, to: UInt64(newSize), label: "test.cut")
                claim.confirm(.resized(to: UInt64(newSize)))
                try await fixture.hydrate(node)
                #expect(try fixture.node("a")?.content == .whole)
                #expect(fixture.engine.hydrator.bytesFetched == UInt64(min(size, newSize)))
                let status = try FileStatus.of(descriptor: file.number, label: "test.size")
                #expect(status.size == UInt64(newSize))
            }
        }
    }

    private static let largeSize: UInt64 = 4 << 20

    /// A large file of which nothing comes, and what has become of reading one of its ranges: nil, nothing yet.
    private func whileReading(
        _ ranges: [ByteRange],
        _ body: (EngineFixture, NodeID, ([Bool?]) -> Bool) async throws -> Void
    ) async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", String(repeating: "x", count: Int(Self.largeSize)))
        let gate = Gate()
        await fixture.provider.holdFetches(at: gate)
        try await fixture.run {
            defer { gate.open() }
            let node = try await fixture.listed("a").id
            let outcomes = Monitor([Bool?](repeating: nil, count: ranges.count))
            for (number, range) in ranges.enumerated() {
                let waiter = fixture.engine.hydrator.read(node, range) { result in
                    outcomes.update { $0[number] = (try? result.get()) != nil }
                }
                #expect(waiter != nil)
            }
            try await body(fixture, node) { expected in outcomes.withLock { $0 == expected } }
            gate.open()
            let all = [Bool?](repeating: true, count: ranges.count)
            #expect(await fixture.eventually { outcomes.withLock { $0 == all } })
        }
    }

    /// They waited until the fetch of what was cut off had ended.
    @Test func whoWaitsForBytesThatAreCutOffIsAnsweredAtOnce() async throws {
        let (here, beyond) = (ByteRange(0, 4096), ByteRange(offset: 3 << 20, count: 4096))
        try await whileReading([here, beyond]) { fixture, node, isSo in
            let hydrator = fixture.engine.hydrator
            let claim = try #require(try hydrator.claimSize(1 << 20, of: node))
            let file = try #require(try hydrator.file(of: node))
            try truncate(file.number, to: 1 << 20, label: "test.cut.read")
            #expect(isSo([nil, nil]))
            claim.confirm(.resized(to: 1 << 20))
            #expect(isSo([nil, true]))
        }
    }

    @Test func whoWaitsForBytesThatAreWrittenHereIsAnsweredByTheWrite() async throws {
        let (here, there) = (ByteRange(0, 4096), ByteRange(offset: 3 << 20, count: 4096))
        try await whileReading([here, there]) { fixture, node, isSo in
            try #require(try fixture.engine.hydrator.claim(there, of: node)).confirm(.written(there))
            #expect(isSo([nil, true]))
        }
    }

    /// Whoever waited for all of it waited until what was cut off had come.
    @Test func aFileOfWhichNothingIsMissingAfterACutIsWholeAtOnce() async throws {
        try await whileReading([ByteRange(offset: 2 << 20, count: 4096)]) { fixture, node, isSo in
            let hydrator = fixture.engine.hydrator
            let whole = Monitor(false)
            let waiter = hydrator.hydrate(node) { result in
                if case .success = result { whole.update { $0 = true } }
            }
            #expect(waiter != nil)
            let rest = ByteRange(0, 1 << 20)
            try #require(try hydrator.claim(rest, of: node)).confirm(.written(rest))
            let claim = try #require(try hydrator.claimSize(rest.upper, of: node))
            let file = try #require(try hydrator.file(of: node))
            try truncate(file.number, to: rest.upper, label: "test.cut.whole")
            claim.confirm(.resized(to: rest.upper))
            #expect(isSo([true]))
            hydrator.resized(node)
            #expect(whole.withLock { $0 })
            #expect(try fixture.node("a")?.content == .whole)
        }
    }

    @Test func emptyFileIsWholeWithoutAFetch() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("empty")
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("empty")).id)
            #expect(try fixture.text("empty") == "")
            #expect(await fixture.provider.fetches.isEmpty)
        }
    }

    @Test func passingTroubleIsTriedAgain() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        await fixture.provider.failFetches([ProviderError(.retry, "busy"), ProviderError(.retryAfter(.milliseconds(5)), "busy")])
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            #expect(try fixture.text("a") == "hello")
            #expect(await fixture.provider.fetches.count == 3)
        }
    }

    @Test func unreachableProviderAnswersOfflineAndComesBack() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        try await fixture.run {
            let node = try await fixture.listed("a").id
            await fixture.provider.fail(ProviderError(.offline, "the cable is out"))
            let failure = await #expect(throws: Failure.self) { try await fixture.hydrate(node) }
            #expect(failure?.code == .offline)
            #expect(await fixture.eventually { fixture.engine.connectionFailure?.code == .offline })
            let listing = await #expect(throws: Failure.self) { try await fixture.list() }
            #expect(listing?.code == .offline)
            await fixture.provider.fail(nil)
            #expect(await fixture.eventually { fixture.engine.connection == .online })
            try await fixture.hydrate(node)
            #expect(try fixture.text("a") == "hello")
        }
    }

    @Test func refusedFetchFailsAtOnce() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        await fixture.provider.failFetches([ProviderError(.refused, "not yours")])
        try await fixture.run {
            let node = try await fixture.listed("a")
            let failure = await #expect(throws: Failure.self) { try await fixture.hydrate(node.id) }
            #expect(failure?.code == .refused)
            #expect(fixture.engine.connection == .online)
        }
    }

    @Test func onlyWhatIsReadOfALargeFileComesHere() async throws {
        let fixture = try EngineFixture()
        let text = String(repeating: "0123456789abcdef", count: 1 << 19)
        await fixture.provider.put("large", text)
        try await fixture.run {
            let node = try await fixture.listed("large").id
            let range = ByteRange(offset: 5 << 20, count: 4096)
            let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
                _ = fixture.engine.hydrator.read(node, range) { continuation.resume(returning: $0) }
            }
            try result.get()
            let file = try #require(try fixture.engine.hydrator.file(of: node))
            var bytes = [UInt8](repeating: 0, count: 16)
            _ = try bytes.withUnsafeMutableBytes { try readFully(file.number, into: $0, at: 5 << 20, label: "test.read") }
            #expect(String(decoding: bytes, as: UTF8.self) == "0123456789abcdef")
            #expect(await fixture.eventually { fixture.engine.hydrator.runningCount == 0 })
            #expect(fixture.engine.hydrator.bytesFetched < 4 << 20)
            try await fixture.hydrate(node)
            #expect(try fixture.text("large") == text)
            #expect(fixture.engine.hydrator.bytesFetched == UInt64(text.utf8.count))
        }
    }

    /// It read zeros: the file was punched for want of room while it was being read, and the kernel kept them.
    @Test func whatIsBeingReadStaysUntilThenWhenAFetchFailsOnAFullDisk() async throws {
        let fixture = try EngineFixture()
        let text = String(repeating: "x", count: 8 << 20)
        await fixture.provider.put("a", text)
        try await fixture.run {
            let node = try await fixture.listed("a")
            let hydrator = fixture.engine.hydrator
            let range = ByteRange(offset: 5 << 20, count: 4096)
            let first: Result<Void, Failure> = await withCheckedContinuation { continuation in
                _ = hydrator.read(node.id, range) { continuation.resume(returning: $0) }
            }
            try first.get()
            // Nothing is fetched ahead any more.
            #expect(await fixture.eventually { !hydrator.isBusy(node.id) })
            let file = SharedDescriptor(try fixture.content.open(node.id, node.generation, writable: false))
            let problem = ProviderError(.localDiskFull, "there is no room")
            await fixture.provider.failFetches(Array(repeating: problem, count: 50))
            let reader = Monitor((isReading: false, bytes: [UInt8]?.none))
            let thread = OwnedThread(name: "reader") {
                _ = hydrator.read(node.id, range) { _ in
                    reader.update { $0.isReading = true }
                    for _ in 0..<6_000 where hydrator.problem(of: node.id) == nil { usleep(5_000) }
                    // It has time to go.
                    usleep(300_000)
                    var bytes = [UInt8](repeating: 0, count: 16)
                    _ = try? bytes.withUnsafeMutableBytes {
                        try readFully(file.number, into: $0, at: range.lower, label: "test.read")
                    }
                    reader.update { [bytes] in $0.bytes = bytes }
                }
            }
            #expect(await fixture.eventually { reader.withLock { $0.isReading } })
            await #expect(throws: Failure.self) { try await fixture.hydrate(node.id) }
            #expect(await fixture.eventually { reader.withLock { $0.bytes != nil } })
            thread.join()
            #expect(reader.withLock { $0.bytes } == Array(repeating: UInt8(ascii: "x"), count: 16))
            await fixture.provider.failFetches([])
            try await fixture.hydrate(node.id)
            #expect(try fixture.text("a") == text)
        }
    }

    @Test func evictionGivesContentBackAndKeepsEdits() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        try await fixture.run {
            let node = try await fixture.listed("a")
            try await fixture.hydrate(node.id)
            fixture.observer.setOpen(node.id, true)
            guard case .kept = try fixture.engine.evict(node.id) else { throw Failure(.busy, "an open file was evicted") }
            fixture.observer.setOpen(node.id, false)
            guard case .evicted = try fixture.engine.evict(node.id) else { throw Failure(.busy, "the file was kept") }
            #expect(try fixture.node("a")?.content == .absent)
            fixture.engine.remover.flush()
            #expect(try fixture.content.status(node.id, node.generation) == nil)
            try await fixture.hydrate(node.id)
            await fixture.provider.fail(ProviderError(.retry, "busy"))
            try fixture.edit("a", "mine")
            guard case .kept = try fixture.engine.evict(node.id) else { throw Failure(.busy, "an edit was evicted") }
            #expect(try fixture.text("a") == "mine")
            await fixture.provider.fail(nil)
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(await fixture.provider.names() == ["a=mine"])
        }
    }
}

/// Says that all is there, and takes its time to return, with an error.
private struct SlowlyReturning: ForwardingProvider {
    let memory: MemoryProvider
    let gate = Gate()
    let isOver = Monitor(false)

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await memory.fetchContents(of: reference, version: version, range: range, into: sink)
        sink.finish()
        await gate.pass()
        isOver.update { $0 = true }
        throw ProviderError(.retry, "the answer was cut off")
    }
}

/// Its first fetch hears late that nobody wants it, and brings nothing.
private final class DeafProvider: ForwardingProvider {
    let memory: MemoryProvider
    let calls = Monitor((begun: false, mayEnd: false))
    private let pool = BlockingPool(name: "deaf", threads: 1)

    init(memory: MemoryProvider) { self.memory = memory }

    deinit { pool.stop() }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        let isFirst = calls.update { calls in
            defer { calls.begun = true }
            return !calls.begun
        }
        guard isFirst else {
            return try await memory.fetchContents(
                of: reference, version: version, range: range, into: sink)
        }
        _ = await pool.run { [calls] in calls.wait { $0.mayEnd ? true : nil } }
        throw ProviderError(.cancelled, "the call was cancelled")
    }
}
