import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Providers without a feed are asked again and again for all that is known.
@Suite(.timeLimit(.minutes(2))) struct PollTests {
    /// Listing all folders takes longer than the poll interval: between two rounds there is a moment in which nothing is looked
    /// at, and what others do is seen.
    @Test func aLookThatTakesLongerThanThePollIntervalEnds() async throws {
        let memory = MemoryProvider(MemoryProvider.capabilities.subtracting([.changeFeed, .changePush]))
        for number in 0..<12 { await memory.put("folder\(number)", kind: .folder) }
        let fixture = try EngineFixture(memory, mediator: SlowProvider(memory: memory), pollInterval: .milliseconds(200))
        try await fixture.run {
            try await fixture.list()
            for number in 0..<12 {
                let folder = try #require(try fixture.node("folder\(number)"))
                try await fixture.list(folder.id)
            }
            for round in 0..<2 {
                fixture.engine.lookNow()
                #expect(await fixture.eventually { (try? fixture.isQuiet()) == true })
                await memory.put("new\(round)", "text")
                #expect(await fixture.eventually { (try? fixture.node("new\(round)")) != nil })
            }
        }
    }

    /// A provider that has no feed names what was listed, and nobody lists what was made here.
    @Test func whatOthersPutIntoAFolderMadeHereIsSeen() async throws {
        let memory = MemoryProvider(MemoryProvider.capabilities.subtracting([.changeFeed, .changePush]))
        let fixture = try EngineFixture(memory, mediator: ListedProvider(memory: memory), pollInterval: .milliseconds(50))
        try await fixture.run {
            try await fixture.list()
            let folder = try fixture.create("made here", "", kind: .folder)
            let inner = try fixture.create("inner", "", kind: .folder, in: folder)
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            for (node, name) in [(folder, "first"), (inner, "second")] {
                let identifier = try fixture.index.read { transaction throws(Failure) in
                    try transaction.entries(of: node).first?.identifier
                }
                await memory.put(name, "text", in: try #require(identifier))
            }
            #expect(await fixture.eventually { (try? fixture.node("first", in: folder)) != nil })
            #expect(await fixture.eventually { (try? fixture.node("second", in: inner)) != nil })
        }
    }

    /// Also one whose making was answered by nobody.
    @Test func whatOthersPutIntoAFolderWhoseMakingWasNotAnsweredIsSeen() async throws {
        let memory = MemoryProvider(MemoryProvider.capabilities.subtracting([.changeFeed, .changePush]))
        let fixture = try EngineFixture(memory, mediator: ListedProvider(memory: memory), pollInterval: .milliseconds(50))
        try await fixture.run {
            try await fixture.list()
            await memory.loseAcknowledgements(1)
            let folder = try fixture.create("made here", "", kind: .folder)
            #expect(try await fixture.eventually { try fixture.entry("made here")?.identifier != nil && fixture.isQuiet() })
            await memory.put("first", "text", in: try #require(try fixture.entry("made here")?.identifier))
            #expect(await fixture.eventually { (try? fixture.node("first", in: folder)) != nil })
        }
    }

    /// Many folders that are made in one go are listed one by one, once each, and nobody waits for it.
    @Test func foldersMadeHereAreListedOnce() async throws {
        let memory = MemoryProvider(MemoryProvider.capabilities.subtracting([.changeFeed, .changePush]))
        let listed = ListedProvider(memory: memory)
        let fixture = try EngineFixture(memory, mediator: listed)
        try await fixture.run {
            try await fixture.list()
            for number in 0..<40 { try fixture.create("folder\(number)", "", kind: .folder) }
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(await fixture.eventually { listed.listings.withLock { $0.count } > 40 })
            try await Task.sleep(for: .milliseconds(100))
            let listings = listed.listings.withLock { $0 }
            for number in 0..<40 {
                let identifier = try #require(try fixture.entry("folder\(number)")?.identifier)
                #expect(listings.filter { $0 == identifier }.count == 1)
            }
        }
    }
}

/// Of a store of places, which takes its time to move folders.
@Suite(.timeLimit(.minutes(2))) struct MotionTests {
    /// Its provider has `folder` with eight folders, of which one is listed here; the move waits when `body` runs. (The folder
    /// and two in it would be a walk, of which others are listed ahead.)
    private func whileMoving(
        _ body: (EngineFixture, SlowMoves, _ inner: [NodeID], _ identifiers: [ItemIdentifier]) async throws -> Void
    ) async throws {
        let memory = MemoryProvider(MemoryProvider.capabilities.union(.placeIdentifiers))
        let slow = SlowMoves(memory: memory)
        let fixture = try EngineFixture(memory, mediator: slow)
        let folder = await memory.put("folder", kind: .folder)
        var identifiers: [ItemIdentifier] = []
        for number in 0..<8 { identifiers.append(await memory.put("inner\(number)", kind: .folder, in: folder)) }
        try await fixture.run {
            let node = try await fixture.listed("folder").id
            try await fixture.list(node)
            let inner = try (0..<8).map { try #require(try fixture.node("inner\($0)", in: node)).id }
            try await fixture.list(inner[0])
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            try fixture.rename("folder", to: "elsewhere")
            #expect(await fixture.eventually { slow.isMoving.load(ordering: .relaxed) })
            slow.listings.withLock { $0 = [] }
            try await body(fixture, slow, inner, identifiers)
        }
    }

    /// They were listed again and again until it was done, for minutes where there is much in them (S3).
    @Test func foldersInAFolderThatMovesAreListedWhenItHasMoved() async throws {
        try await whileMoving { fixture, slow, _, identifiers in
            fixture.engine.lookNow()
            try await Task.sleep(for: .milliseconds(500))
            #expect(slow.listings.withLock { $0.filter { identifiers.contains($0) } } == [])
            slow.gate.open()
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(slow.listings.withLock { $0.contains(identifiers[0]) })
        }
    }

    /// And so was one that a program waits for.
    @Test func aFolderInAFolderThatMovesIsListedForItsReaderWhenItHasMoved() async throws {
        try await whileMoving { fixture, slow, inner, identifiers in
            async let isListed: Void = fixture.list(inner[7])
            #expect(await fixture.eventually { slow.listings.withLock { $0.contains(identifiers[7]) } })
            try await Task.sleep(for: .milliseconds(500))
            #expect(slow.listings.withLock { $0.count { $0 == identifiers[7] } } == 1)
            slow.gate.open()
            try await isListed
            #expect(slow.listings.withLock { $0.count { $0 == identifiers[7] } } == 2)
        }
    }
}

/// Moves wait at a gate.
private final class SlowMoves: ForwardingProvider {
    let memory: MemoryProvider
    let gate = Gate()
    let isMoving = Atomic(false)
    let hasMoved = Atomic(false)
    let listings = Mutex<[ItemIdentifier]>([])

    init(memory: MemoryProvider) { self.memory = memory }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        listings.withLock { $0.append(folder.identifier) }
        if folder.path.first == FileName(hasMoved.load(ordering: .relaxed) ? "folder" : "elsewhere") {
            throw ProviderError(.notFound, "there is no such place")
        }
        return try await memory.enumerateItems(in: folder, page: page)
    }

    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        if changes.place != nil {
            isMoving.store(true, ordering: .relaxed)
            await gate.pass()
            hasMoved.store(true, ordering: .relaxed)
        }
        return try await memory.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }
}

/// Names what was listed, as often as it is asked.
private final class ListedProvider: ForwardingProvider {
    let memory: MemoryProvider
    let listings = Mutex<[ItemIdentifier]>([])

    init(memory: MemoryProvider) { self.memory = memory }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        listings.withLock { $0.append(folder.identifier) }
        return try await memory.enumerateItems(in: folder, page: page)
    }

    func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        ChangePage(foldersToList: Set(listings.withLock { $0 }), anchor: anchor)
    }

    func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "there is no feed")
    }
}

/// Each listing takes a while, and every folder counts as changed.
private struct SlowProvider: ForwardingProvider {
    let memory: MemoryProvider

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try? await Task.sleep(for: .milliseconds(100))
        return try await memory.enumerateItems(in: folder, page: page)
    }

    func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        let root = MemoryProvider.rootIdentifier
        let page = try await memory.enumerateItems(in: ItemReference(identifier: root, path: []), page: nil)
        let folders = page.items.filter { $0.kind == .folder }.map(\.identifier)
        return ChangePage(foldersToList: Set(folders + [root]), anchor: anchor)
    }

    func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "there is no feed")
    }
}
