import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Each fault of the text file does what it says, and stops doing it when the file says otherwise.
struct FaultyProviderTests {
    private struct Faulty {
        let fixture: FolderFixture
        let provider: FaultyProvider

        init(_ name: String) async throws {
            fixture = try await FolderFixture(name)
            try fixture.folder.makeFolder("cloud")
            provider = FaultyProvider(fixture.provider, file: fixture.folder.path("faults"))
        }

        func set(_ text: String) throws {
            // By rename, as a person's editor does: the provider never reads half of it.
            try fixture.folder.write(text, to: "faults.new")
            try rename(fixture.folder, "faults.new", "faults")
        }
    }

    private func measure(_ body: () async throws -> Void) async rethrows -> Duration {
        let clock = ContinuousClock()
        let start = clock.now
        try await body()
        return clock.now - start
    }

    @Test func withoutAFileNothingIsDifferent() async throws {
        let faulty = try await Faulty("none")
        let (_, reference) = try await faulty.fixture.item("cloud")
        let report = await ConformanceSuite(provider: faulty.provider, folder: reference).run()
        #expect(report.failures.map { "\($0.name): \($0.sentence)" } == [])
        #expect(faulty.provider.callCounts[.create, default: 0] > 100)
    }

    @Test func offlineThrowsAtOnceAndEnds() async throws {
        let faulty = try await Faulty("offline")
        try faulty.set("offline=true\n")
        #expect(await code { _ = try await faulty.provider.root() } == .offline)
        #expect(await code { try await faulty.provider.waitForChanges(since: Anchor(rawValue: "x")) } == .offline)
        try faulty.set("offline=false\n")
        _ = try await faulty.provider.root()
        #expect(faulty.provider.callCounts == [.root: 2, .waitForChanges: 1])
    }

    @Test func delayHoldsEachCallAndCancellationEndsIt() async throws {
        let faulty = try await Faulty("delay")
        try faulty.set("delay=300ms")
        #expect(try await measure { _ = try await faulty.provider.root() } >= .milliseconds(300))
        try faulty.set("delay=60s")
        let call = Task { try await faulty.provider.root() }
        let duration = await measure {
            try? await Task.sleep(for: .milliseconds(50))
            call.cancel()
            #expect(await code { _ = try await call.value } == .cancelled)
        }
        #expect(duration < .seconds(50))
    }

    @Test func hangLastsUntilTheFileChanges() async throws {
        let faulty = try await Faulty("hang")
        try faulty.set("hang=true")
        let call = Task { try await faulty.provider.root() }
        try await Task.sleep(for: .milliseconds(300))
        try faulty.set("")
        _ = try await call.value
    }

    @Test func everyNthCallFails() async throws {
        let faulty = try await Faulty("fail")
        try faulty.set("fail=3")
        var codes: [Bool] = []
        for _ in 0..<9 { codes.append(await code { _ = try await faulty.provider.root() } == .retry) }
        #expect(codes == [false, false, true, false, false, true, false, false, true])
    }

    @Test func aShortFetchSaysThatItIsWholeAndAStaleOneBringsNothing() async throws {
        let faulty = try await Faulty("short")
        try faulty.fixture.folder.write([UInt8](repeating: 1, count: 1000), to: "file")
        let (item, reference) = try await faulty.fixture.item("file")
        for (fault, count, expected) in [("short", UInt64(500), nil), ("stale", 0, ProviderError.Code.stale)] {
            try faulty.set("\(fault)=true")
            let sink = MemorySink()
            let found = await code {
                try await faulty.provider.fetchContents(of: reference, version: item.version, range: nil, into: sink)
            }
            #expect(found == expected && sink.takenByteCount == count)
        }
    }

    @Test func onlyRestrictsFaultsToTheCallsNamed() async throws {
        let faulty = try await Faulty("only")
        try faulty.set("offline=true\nonly=enumerateItems, fetchContents")
        let root = ItemReference(identifier: try await faulty.provider.root().identifier, path: [])
        #expect(await code { _ = try await faulty.provider.enumerateItems(in: root, page: nil) } == .offline)
    }

    @Test func bandwidthLimitsFetchesAndUploads() async throws {
        let faulty = try await Faulty("bandwidth")
        try faulty.fixture.folder.write([UInt8](repeating: 1, count: 200_000), to: "file")
        let (item, reference) = try await faulty.fixture.item("file")
        try faulty.set("bandwidth=400000")
        let sink = MemorySink()
        let down = try await measure {
            try await faulty.provider.fetchContents(of: reference, version: item.version, range: nil, into: sink)
        }
        #expect(sink.takenByteCount == 200_000)
        #expect(down >= .milliseconds(450))
        let up = try await measure {
            _ = try await faulty.provider.modify(
                reference, changes: ItemChanges(), contents: try MemorySource([UInt8](repeating: 2, count: 200_000)),
                baseVersion: item.version)
        }
        #expect(up >= .milliseconds(450))
    }

    @Test func aSlowFetchIsCancelledAtOnceAndGoesOfflineInTheMiddle() async throws {
        let faulty = try await Faulty("slow")
        try faulty.fixture.folder.write([UInt8](repeating: 1, count: 200_000), to: "file")
        let (item, reference) = try await faulty.fixture.item("file")
        try faulty.set("bandwidth=2500")
        let provider = faulty.provider
        let first = Task {
            try await provider.fetchContents(of: reference, version: item.version, range: nil, into: MemorySink())
        }
        let second = Task {
            try await provider.fetchContents(of: reference, version: item.version, range: nil, into: MemorySink())
        }
        try await Task.sleep(for: .milliseconds(100))
        first.cancel()
        let duration = await measure {
            let outcome = await code { try await first.value }
            #expect(outcome == .cancelled)
        }
        #expect(duration < .seconds(60))
        try faulty.set("offline=true")
        #expect(await code { try await second.value } == .offline)
    }

    @Test func aWaitEndsWhenTheProviderGoesOffline() async throws {
        let faulty = try await Faulty("wait")
        _ = try await faulty.fixture.list()
        let provider = faulty.provider
        try await Task.sleep(for: .milliseconds(100))
        let anchor = try await provider.currentAnchor()
        // The file is outside of the folder that is watched in real use; here its own event could end the wait.
        let elsewhere = try TemporaryFolder("faults")
        let other = FaultyProvider(faulty.fixture.provider, file: elsewhere.path("faults"))
        let wait = Task { try await other.waitForChanges(since: anchor) }
        try await Task.sleep(for: .milliseconds(50))
        try elsewhere.write("offline=true", to: "faults")
        #expect(await code { try await wait.value } == .offline)
    }
}
