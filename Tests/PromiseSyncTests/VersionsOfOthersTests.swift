import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseTestSupport
import Testing

/// Conflict versions that another machine has left at the provider.
@Suite(.timeLimit(.minutes(4))) struct VersionsOfOthersTests {
    private let version = "a (conflict, other, 2026-11-21)"

    private func withRoot(
        _ provider: MemoryProvider = MemoryProvider(), _ body: (EngineFixture) async throws -> Void
    ) async throws {
        let fixture = try EngineFixture(provider)
        try await fixture.run {
            try await fixture.list()
            try await body(fixture)
        }
    }

    /// What a name here is the unresolved version of, as soon as it is that of `document`.
    private func expect(
        _ name: String, isOf document: String?, _ fixture: EngineFixture, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let isSo = try await fixture.eventually {
            guard let entry = try fixture.entry(name), try fixture.isQuiet() else { return false }
            let wanted = try document.flatMap { try fixture.entry($0)?.identifier }
            return entry.conflictsWith == wanted && (document == nil || wanted != nil)
        }
        let entry = try fixture.entry(name)
        #expect(isSo, "\(String(describing: entry))", sourceLocation: location)
    }

    /// Another machine saw a file like any other.
    @Test(arguments: [["a", "version"], ["version", "a"]])
    func aVersionIsOfTheDocumentBesideItWhicheverCameFirst(order: [String]) async throws {
        try await withRoot { fixture in
            for name in order {
                let name = name == "a" ? name : version
                await fixture.provider.put(name, "text")
                #expect(try await fixture.eventually { try fixture.entry(name) != nil && fixture.isQuiet() })
            }
            try await expect(version, isOf: "a", fixture)
            let counts = try fixture.index.read { transaction throws(Failure) in try transaction.countsApart() }
            #expect(counts.conflicts == 1)
        }
    }

    @Test func aFirstListingTellsOfVersions() async throws {
        let provider = MemoryProvider()
        let long = String(repeating: "l", count: 240)
        let cut = conflictName(of: FileName(long)!, host: "other", date: "2026-11-21", attempt: 1).display
        for name in [version, "a", "folder (conflict, other, 2026-11-21)", "b (conflict, other, 2026-11-21).txt", long, cut] {
            await provider.put(name, "text")
        }
        await provider.put("folder", kind: .folder)
        try await withRoot(provider) { fixture in
            try await expect(version, isOf: "a", fixture)
            try await expect(cut, isOf: long, fixture)
            // A folder has no versions, and where there is no document there is no version of it.
            try await expect("folder (conflict, other, 2026-11-21)", isOf: nil, fixture)
            try await expect("b (conflict, other, 2026-11-21).txt", isOf: nil, fixture)
        }
    }

    /// A version's name that a program of this machine gives is its own business.
    @Test func whatWasMadeHereIsNoVersionForItsName() async throws {
        try await withRoot { fixture in
            try fixture.create("a", "text")
            try fixture.create(version, "mine")
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            try await fixture.list()
            try await expect(version, isOf: nil, fixture)
        }
    }

    /// It was listed for ever where it was not made.
    @Test func whoRenamesOrRemovesAVersionElsewhereHasDealtWithIt() async throws {
        let provider = MemoryProvider()
        await provider.put("a", "text")
        let other = "a (conflict, other, 2026-11-21 2)"
        let (one, two) = (await provider.put(version, "mine"), await provider.put(other, "mine"))
        let folder = await provider.put("folder", kind: .folder)
        try await withRoot(provider) { fixture in
            try await expect(version, isOf: "a", fixture)
            let kept = try #require(try fixture.entry("folder"))
            try await fixture.list(kept.node)
            await provider.change(one, name: "kept")
            try await expect("kept", isOf: nil, fixture)
            await provider.move(two, to: folder, name: other)
            #expect(try await fixture.eventually { try fixture.entry(other, in: kept.node) != nil && fixture.isQuiet() })
            #expect(try fixture.entry(other, in: kept.node)?.conflictsWith == nil)
        }
    }

    /// It was the version of a document that was gone.
    @Test func aDocumentThatOthersSaveByRenamingKeepsItsVersions() async throws {
        let provider = MemoryProvider()
        let document = await provider.put("a", "text")
        await provider.put(version, "mine")
        try await withRoot(provider) { fixture in
            try await expect(version, isOf: "a", fixture)
            await provider.remove(document)
            let new = await provider.put("a", "saved")
            #expect(try await fixture.eventually { try fixture.entry("a")?.identifier == new && fixture.isQuiet() })
            try await expect(version, isOf: "a", fixture)
        }
    }

    /// Where the provider tells no modes, a version came with those of any file.
    @Test func aVersionHasNoMoreRightsThanItsDocumentOnOtherMachines() async throws {
        let provider = MemoryProvider()
        let document = await provider.put("a", "text")
        await provider.change(document, mode: 0o600)
        try await withRoot(provider) { fixture in
            await provider.put(version, "mine")
            try await expect(version, isOf: "a", fixture)
            #expect(try fixture.node(version)?.mode == 0o600)
        }
    }
}
