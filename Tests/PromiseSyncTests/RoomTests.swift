import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// What goes when there is more content here than the limit says.
@Suite(.timeLimit(.minutes(3))) struct RoomTests {
    private static let limit: UInt64 = 1 << 20

    private func limit(_ engine: SyncEngine) async throws {
        var wanted = LimitsChange()
        wanted.cache = .bytes(RoomTests.limit)
        let result: Result<Void, Failure> = await withCheckedContinuation { [wanted] continuation in
            engine.setLimits(wanted) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// They took more than the limit, so whatever else was read went at the next look.
    @Test(arguments: ["pinned", "ignored"]) func whatStaysWhateverTheLimitIsMakesNothingElseGo(how: String) async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("large", String(repeating: "x", count: 512 << 10))
        await fixture.provider.put("small", "text")
        if how == "pinned" { await fixture.provider.put("stays", String(repeating: "y", count: 2 << 20)) }
        try await fixture.run {
            try await fixture.list()
            if how == "pinned" { try await fixture.pin("stays") } else { try fixture.ignore(["stays"], byteCount: 2 << 20) }
            for name in ["large", "small"] { try await fixture.hydrate(try #require(try fixture.node(name)).id) }
            try await limit(fixture.engine)
            #expect(await fixture.eventually { (try? fixture.node("large"))??.content == .absent })
            // Both went at once.
            try await Task.sleep(for: .milliseconds(500))
            #expect(try fixture.text("small") == "text")
            #expect(try fixture.node("stays")?.content == .whole)
        }
    }

    /// A look went through the 4,096 that nobody had used for the longest time, and so did the next one.
    @Test func manyOldFilesThatStayAreNotAllThatIsLookedAt() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("large", String(repeating: "x", count: 512 << 10))
        try await fixture.run {
            try fixture.ignore((0..<4_200).map { "old \($0)" }, byteCount: 4096)
            try await fixture.hydrate(try await fixture.listed("large").id)
            try await limit(fixture.engine)
            #expect(await fixture.eventually { (try? fixture.node("large"))??.content == .absent })
        }
    }
}

extension EngineFixture {
    fileprivate func pin(_ name: String) async throws {
        let id = try #require(try node(name)).id
        try await hydrate(id)
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(id) else { return }
            node.pin = .pinned
            try transaction.update(node)
        }
    }

    /// Files that are on this machine alone, used longer ago than all others.
    fileprivate func ignore(_ names: [String], byteCount: UInt64) throws {
        try index.write { transaction throws(Failure) in
            for name in names {
                var node = Node(
                    id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: byteCount,
                    time: Timestamp(seconds: 1_000_000, nanoseconds: 0), content: .whole)
                node.localBytes = byteCount
                let made = try transaction.insert(node)
                _ = try transaction.insertEntry(
                    in: .root, named: FileName(name)!, node: made.id, identifier: nil, isExcluded: true)
            }
        }
    }
}
