import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseTestSupport
import Testing

@Suite struct LimitingTests {
    private func setLimits(_ engine: SyncEngine, _ change: (inout LimitsChange) -> Void) async throws {
        var wanted = LimitsChange()
        change(&wanted)
        let result: Result<Void, Failure> = await withCheckedContinuation { [wanted] continuation in
            engine.setLimits(wanted) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    @Test func whatIsNotNamedStays() async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            let engine = fixture.engine
            let configured = engine.cacheLimit
            try await setLimits(engine) { $0.cache = .bytes(5000) }
            try await setLimits(engine) { $0.up = .some(70_000) }
            #expect(engine.cacheLimit == 5000)
            #expect(engine.limits.line == LineRates(up: 70_000))
            try await setLimits(engine) {
                $0.cache = .asConfigured
                $0.up = .some(nil)
            }
            #expect(engine.cacheLimit == configured)
            #expect(engine.limits == Limits())
        }
    }

    @Test func theNextEngineKeepsTheLimits() async throws {
        let fixture = try EngineFixture()
        try fixture.index.write { transaction throws(Failure) in
            try transaction.setSetting("limit.cache", "4096")
            try transaction.setSetting("limit.download", "90000")
        }
        try await fixture.run {
            #expect(await fixture.eventually { fixture.engine.cacheLimit == 4096 })
            #expect(fixture.engine.limits.line == LineRates(down: 90_000))
        }
    }

    /// A setting that was damaged is none.
    @Test func whatIsNoNumberLimitsNothing() async throws {
        let fixture = try EngineFixture()
        try fixture.index.write { transaction throws(Failure) in
            try transaction.setSetting("limit.cache", "much")
            try transaction.setSetting("limit.upload", "-1")
        }
        try await fixture.run {
            try await fixture.list()
            #expect(fixture.engine.limits == Limits())
        }
    }
}
