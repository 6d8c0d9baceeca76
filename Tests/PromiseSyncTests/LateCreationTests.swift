import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Synchronization
import Testing

/// A call that makes something comes to the store when nobody waits for it any more, as when its
/// daemon was killed.
@Suite(.timeLimit(.minutes(2))) struct LateCreationTests {
    private func withFolder(
        atPlaces isByPlace: Bool = false, _ body: (EngineFixture, LateProvider) async throws -> Void
    ) async throws {
        let provider = isByPlace ? LateProvider(places: PlaceProvider()) : LateProvider(MemoryProvider())
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        try await fixture.run {
            try await fixture.list()
            try fixture.create("made", "", kind: .folder)
            try await settle(fixture)
            #expect(await provider.memory.names() == ["made/"])
            #expect(provider.hasLate)
            try await body(fixture, provider)
        }
    }

    private func settle(_ fixture: EngineFixture) async throws {
        for _ in 0..<2 {
            fixture.engine.lookNow()
            let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
            let remainder = try fixture.engine.remainder()
            #expect(isQuiet, "\(remainder)")
        }
    }

    @Test func aFolderThatWasRemovedDoesNotComeBackByALateCall() async throws {
        try await withFolder { fixture, provider in
            try fixture.remove("made")
            try await settle(fixture)
            #expect(await provider.memory.names() == [])
            try await provider.arrive()
            try await settle(fixture)
            #expect(await provider.memory.names() == [])
            #expect(try fixture.names() == [])
        }
    }

    @Test(arguments: [false, true])
    func aFolderThatWasRenamedIsNotThereTwiceByALateCall(atPlaces: Bool) async throws {
        try await withFolder(atPlaces: atPlaces) { fixture, provider in
            try fixture.rename("made", to: "other")
            try await settle(fixture)
            try await provider.arrive()
            try await settle(fixture)
            #expect(await provider.memory.names() == ["other/"])
            #expect(try fixture.names() == ["other"])
        }
    }

    /// At a store that knows items by their places it looks like what the late call would have made: it was
    /// removed, and with it the only copy.
    @Test func whatOthersMoveBackToItsFirstNameIsTheirs() async throws {
        try await withFolder(atPlaces: true) { fixture, provider in
            try fixture.rename("made", to: "other")
            try await settle(fixture)
            let moved = try #require(await provider.memory.item(at: [FileName("other")!]))
            await provider.memory.move(moved.item.identifier, name: "made")
            try await settle(fixture)
            #expect(await provider.memory.names() == ["made/"])
            #expect(try await fixture.eventually { try fixture.names() == ["made"] })
        }
    }

    /// Whoever has put something into it wants it.
    @Test func whatOthersUseStays() async throws {
        try await withFolder { fixture, provider in
            try fixture.remove("made")
            try await settle(fixture)
            try await provider.arrive(with: "theirs")
            try await settle(fixture)
            #expect(await provider.memory.names() == ["made/", "unlisted/"])
            #expect(try await fixture.eventually { try fixture.names().contains("made") })
            let made = try #require(await provider.memory.item(at: [FileName("made")!]))
            #expect(await provider.memory.names(in: made.item.identifier) == ["theirs=text"])
        }
    }

    /// It was made under its first name, which nobody heard of, and was being compared when it was
    /// made under its second one: what there was to compare with was forgotten, and it stayed.
    @Test func anEmptyFileIsNotLeftUnderTheNameThatItHadWhenItsAnswerWasLost() async throws {
        let provider = PlaceProvider(guesses: true)
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        let memory = provider.memory
        let (answers, fetches) = (Gate(), Gate())
        await memory.holdAnswers(at: answers)
        await memory.holdFetches(at: fetches)
        try await fixture.run {
            try await fixture.list()
            try fixture.create("first", "")
            #expect(await fixture.eventually { await memory.names() == ["first="] })
            try fixture.rename("first", to: "second")
            try fixture.edit("second", "text")
            await memory.loseAcknowledgements(1)
            await memory.holdAnswers(at: nil)
            answers.open()
            // On a busy machine it may be compared first, and then waits for what is held here.
            for _ in 0..<100 where await !memory.names().contains("second=text") {
                try await Task.sleep(for: .milliseconds(50))
            }
            await memory.holdFetches(at: nil)
            fetches.open()
            try await settle(fixture)
            #expect(await memory.names() == ["second=text"])
            #expect(try fixture.names() == ["second"])
        }
    }

    @Test func whatOthersMakeUnderTheNameIsTheirs() async throws {
        try await withFolder { fixture, provider in
            try fixture.remove("made")
            try await settle(fixture)
            await provider.memory.put("made", "a file")
            try await settle(fixture)
            #expect(await provider.memory.names() == ["made=a file"])
            #expect(try fixture.names() == ["made"])
        }
    }
}

/// The first call that makes something gets no answer, and arrives later.
private final class LateProvider: ForwardingProvider {
    let memory: MemoryProvider
    let target: any Provider
    private let late = Mutex<(item: NewItem, folder: ItemReference)?>(nil)

    init(_ memory: MemoryProvider) { (self.memory, target) = (memory, memory) }

    init(places: PlaceProvider) { (memory, target) = (places.memory, places) }

    var hasLate: Bool { late.withLock { $0 != nil } }

    func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        let isFirst = late.withLock { late in
            if late != nil { return false }
            late = (item, folder)
            return true
        }
        if isFirst { throw ProviderError(.retry, "no answer came") }
        return try await target.create(item, in: folder, contents: contents)
    }

    func arrive() async throws {
        let (item, folder) = try #require(late.withLock { $0 })
        _ = try await target.create(item, in: folder, contents: nil)
    }

    /// Others have put something into it before anybody looks.
    func arrive(with name: String) async throws {
        let (item, folder) = try #require(late.withLock { $0 })
        let unlisted = await memory.put("unlisted", kind: .folder)
        let made = await memory.put("made", kind: .folder, in: unlisted)
        await memory.put(name, "text", in: made)
        await memory.move(made, to: folder.identifier, name: item.name.display)
    }
}
