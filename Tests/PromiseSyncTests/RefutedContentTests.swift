import Glibc
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// Bytes that a fetch has brought and that its end says are of another version, or not what the provider has.
@Suite(.timeLimit(.minutes(2))) struct RefutedContentTests {
    /// A write that the index was being told of said that they are here, and nobody told it otherwise: the next
    /// reader was given a part of another version. What was corrupted counted as here in any file that was edited,
    /// and was sent with the edit.
    @Test(arguments: [ProviderError.Code.stale, .corrupted])
    func theyDoNotCountAsHereInAFileThatIsWrittenTo(code: ProviderError.Code) async throws {
        let other = OtherVersion(memory: MemoryProvider(), code: code)
        let fixture = try EngineFixture(other.memory, mediator: other)
        await fixture.provider.put("a", String(repeating: "x", count: 8 << 20))
        try await fixture.run {
            defer { other.gate.open() }
            let node = try await fixture.listed("a").id
            let hydrator = fixture.engine.hydrator
            _ = hydrator.read(node, ByteRange(0, 4096)) { _ in }
            #expect(await fixture.eventually { other.landed.withLock { $0 } != nil })
            let landed = try #require(other.landed.withLock { $0 })
            // As a write does it.
            let written = ByteRange(offset: 7 << 20, count: 4096)
            let claim = try #require(try hydrator.claim(written, of: node))
            try fixture.index.write { transaction throws(Failure) in
                guard var now = try transaction.node(node) else { return }
                // Of a file that nobody writes to all is dropped that was corrupted.
                now.isOpenForWriting = true
                try transaction.update(now)
                try transaction.setRanges(of: node, to: claim.ranges(after: .written(written), of: now))
            }
            #expect(landed.count > 0)
            #expect(try ranges(of: node, fixture) == ByteRangeSet([written]))
            other.gate.open()
            usleep(200_000)
            claim.confirm(.written(written))
            let isLeft = try await fixture.eventually {
                try !hydrator.isBusy(node) && ranges(of: node, fixture) == ByteRangeSet([written])
            }
            #expect(isLeft)
        }
    }

    /// Its content file goes with the fetch that broke off. What that had brought counted as here in the next one, which read
    /// as zeros, and was kept.
    @Test func whatABrokenFetchBroughtOfAPlaceholderOfTwoNamesIsFetchedAgain() async throws {
        let breaking = BreakingOff(memory: MemoryProvider())
        let fixture = try EngineFixture(breaking.memory, mediator: breaking)
        await fixture.provider.put("a", String(repeating: "x", count: 100_000))
        try await fixture.run {
            let node = try await fixture.listed("a").id
            try fixture.index.write { transaction throws(Failure) in
                guard var row = try transaction.node(node) else { return }
                _ = try transaction.insertEntry(in: .root, named: FileName("b")!, node: node, identifier: nil)
                row.linkCount = 2
                try transaction.update(row)
            }
            for isRight in [false, true] {
                let outcome = Monitor<Bool?>(nil)
                _ = fixture.engine.hydrator.hydrate(node) { result in outcome.update { $0 = (try? result.get()) != nil } }
                #expect(await fixture.eventually { outcome.withLock { $0 } != nil })
                #expect(outcome.withLock { $0 } == isRight)
            }
            #expect(try fixture.text("a") == String(repeating: "x", count: 100_000))
        }
    }

    private func ranges(of node: NodeID, _ fixture: EngineFixture) throws -> ByteRangeSet {
        try fixture.index.read { transaction throws(Failure) in try transaction.ranges(of: node) }
    }
}

/// Brings bytes of another version, and says so at the end.
private struct OtherVersion: ForwardingProvider {
    let memory: MemoryProvider
    let code: ProviderError.Code
    let gate = Gate()
    let landed = Monitor<ByteRange?>(nil)

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let range = range ?? ByteRange(0, 8 << 20)
        if range.lower == 0 {
            let bytes = [UInt8](repeating: UInt8(ascii: "y"), count: Int(range.count))
            let result: Result<Void, ProviderError> = bytes.withUnsafeBytes { bytes in
                do throws(ProviderError) { return .success(try sink.write(bytes, at: 0)) } catch { return .failure(error) }
            }
            try result.get()
            landed.update { $0 = range }
        }
        await gate.pass()
        throw ProviderError(code, "it is something else")
    }
}

/// Brings a half the first time, and fails then.
private struct BreakingOff: ForwardingProvider {
    let memory: MemoryProvider
    let hasFailed = Monitor(false)

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let isFirst = hasFailed.update { hasFailed in
            defer { hasFailed = true }
            return !hasFailed
        }
        guard isFirst else {
            return try await memory.fetchContents(of: reference, version: version, range: range, into: sink)
        }
        let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
        let result: Result<Void, ProviderError> = bytes.withUnsafeBytes { bytes in
            do throws(ProviderError) { return .success(try sink.write(bytes, at: 0)) } catch { return .failure(error) }
        }
        try result.get()
        throw ProviderError(.refused, "it is not given")
    }
}
