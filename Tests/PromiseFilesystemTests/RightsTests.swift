import PromiseCore
import PromiseFilesystem
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Modes that were given on one side while the other one did something else with the same file.
@Suite struct RightsTests {
    private let time = Timestamp(seconds: 1_234_567, nanoseconds: 0)

    /// Runs `here` and `there` without either side hearing of the other; expects the mode on both in the end.
    private func apart(
        here: (SimulatedDomain) async throws -> Void, there: (MemoryProvider, ItemIdentifier) async -> Void,
        mode: UInt32, result: [String] = ["secret=first"], then: (SimulatedDomain) async throws -> Void = { _ in }
    ) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["secret"])
            try await domain.expectBothSidesTheSame("before")
            let item = try #require(await domain.provider.stored(at: ["secret"])).identifier
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await here(domain)
            await there(domain.provider, item)
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == result)
            #expect(await domain.provider.items[item]?.item.metadata.mode == mode)
            #expect(try await domain.node(at: ["secret"]).permissions == mode)
            try await then(domain)
        }
    }

    /// What others wrote was agreed on with the old mode, and the new one forgotten.
    @Test func aModeGivenHereStaysWhenOthersEditTheContent() async throws {
        try await apart(
            here: { try await $0.setMode(0o600, of: ["secret"]) },
            there: { await $0.change($1, text: "second") }, mode: 0o600, result: ["secret=second"])
    }

    /// The name gets a new node then.
    @Test func aModeGivenHereToWhatIsOpenStaysWhenOthersEditTheContent() async throws {
        try await apart(
            here: { domain in
                _ = try await domain.open(["secret"])
                try await domain.setMode(0o600, of: ["secret"])
            },
            there: { await $0.change($1, text: "second") }, mode: 0o600, result: ["secret=second"])
    }

    @Test func aModeGivenHereStaysWhenOthersGiveATime() async throws {
        try await apart(
            here: { try await $0.setMode(0o600, of: ["secret"]) },
            there: { await $0.change($1, time: 1_234_567) }, mode: 0o600)
    }

    @Test func aTimeGivenHereStaysWhenOthersGiveAMode() async throws {
        try await apart(
            here: { try await $0.setTime(time, of: ["secret"]) },
            there: { await $0.change($1, mode: 0o600) }, mode: 0o600
        ) { domain in
            let stored = try #require(await domain.provider.stored(at: ["secret"]))
            #expect(stored.metadata.modificationTime == time)
        }
    }

    /// They told the provider first.
    @Test func ofTwoModesTheOthersStays() async throws {
        try await apart(
            here: { try await $0.setMode(0o600, of: ["secret"]) },
            there: { await $0.change($1, text: "second", mode: 0o640) }, mode: 0o640, result: ["secret=second"])
    }

    /// As a chmod shows where it makes another version: what is here was not changed by it, and told over it.
    @Test func aModeThatOthersGaveStaysWhenTheSameContentIsWrittenHere() async throws {
        try await apart(
            here: { try await $0.write("first", to: ["secret"]) },
            there: { await $0.change($1, text: "first", mode: 0o600) }, mode: 0o600)
    }

    @Test func aModeThatOthersGaveStaysWhenTheContentIsEditedHere() async throws {
        try await apart(
            here: { try await $0.write("other", to: ["secret"]) },
            there: { await $0.change($1, text: "first", mode: 0o600) }, mode: 0o600, result: ["secret=other"])
    }

    /// The content went with the mode that was known here, and undid it. `isLost`: the answer is.
    @Test(arguments: [false, true]) func aModeThatOthersGaveStaysWhenNewContentIsSent(isLost: Bool) async throws {
        try await unseen(isLost: isLost, result: "secret=second") { try await $0.write("second", to: ["secret"]) }
    }

    @Test(arguments: [false, true]) func aModeThatOthersGaveStaysWhenATimeIsSent(isLost: Bool) async throws {
        try await unseen(isLost: isLost, result: "secret=first") { domain in
            try await domain.setTime(time, of: ["secret"])
        }
    }

    /// Others give a mode, of which nothing is seen before `here` was sent.
    private func unseen(
        isLost: Bool, result: String, here: (SimulatedDomain) async throws -> Void
    ) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["secret"])
            try await domain.expectBothSidesTheSame("before")
            let item = try #require(await domain.provider.stored(at: ["secret"])).identifier
            let gate = Gate()
            await domain.provider.holdListings(at: gate)
            await domain.provider.change(item, mode: 0o600)
            let before = await domain.provider.items[item]?.item.metadata.modificationTime
            if isLost { await domain.provider.loseAcknowledgements(1) }
            try await here(domain)
            while await domain.provider.items[item]?.item.metadata.modificationTime == before {
                try await Task.sleep(for: .milliseconds(1))
            }
            await domain.provider.holdListings(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == [result])
            #expect(await domain.provider.items[item]?.item.metadata.mode == 0o600)
            #expect(try await domain.node(at: ["secret"]).permissions == 0o600)
        }
    }

    /// The move's answer was taken for agreed on, and the time that was known here told after it.
    @Test(arguments: [false, true]) func aTimeThatOthersGaveStaysWhenTheFileIsMovedHere(isLost: Bool) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            let item = try #require(await domain.provider.stored(at: ["file"])).identifier
            let gate = Gate()
            await domain.provider.holdListings(at: gate)
            await domain.provider.change(item, time: 1_234_567)
            if isLost { await domain.provider.loseAcknowledgements(1) }
            try await domain.rename(["file"], to: ["moved"])
            while await domain.provider.stored(at: ["moved"]) == nil { try await Task.sleep(for: .milliseconds(1)) }
            await domain.provider.holdListings(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["moved=first"])
            #expect(await domain.provider.items[item]?.item.metadata.modificationTime == time)
            #expect(try await domain.node(at: ["moved"]).modificationTime == time)
        }
    }

    /// The document has what was given to it here, and the version beside it no more than that.
    @Test func aModeGivenHereStaysWhenBothEditTheContent() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["secret"])
            try await domain.expectBothSidesTheSame("before")
            let item = try #require(await domain.provider.stored(at: ["secret"])).identifier
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await domain.setMode(0o600, of: ["secret"])
            try await domain.write("what is here", to: ["secret"])
            await domain.provider.change(item, text: "second")
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            let modes = await domain.provider.items.values.filter { $0.item.kind == .file }.map(\.item.metadata.mode)
            #expect(modes == [0o600, 0o600])
            #expect(try await domain.node(at: ["secret"]).permissions == 0o600)
        }
    }
}
