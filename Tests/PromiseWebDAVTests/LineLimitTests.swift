import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Bytes go no faster than a person has said.
@Suite(.timeLimit(.minutes(5))) struct LineLimitTests {
    @Test func bytesWaitForThoseBeforeThem() {
        var budget = LineBudget()
        let now = Duration.seconds(100)
        // A quarter of a second that nobody used.
        #expect(budget.take(250, at: now, rate: 1000) == .zero)
        #expect(budget.take(500, at: now, rate: 1000) == .zero)
        #expect(budget.take(1, at: now, rate: 1000) == .milliseconds(500))
        #expect(budget.take(1, at: now + .milliseconds(501), rate: 1000) == .zero)
    }

    @Test func whatWasNotUsedForLongIsNotSavedUp() {
        var budget = LineBudget()
        _ = budget.take(1000, at: .seconds(1), rate: 1000)
        _ = budget.take(250, at: .seconds(1000), rate: 1000)
        _ = budget.take(1000, at: .seconds(1000), rate: 1000)
        #expect(budget.take(1, at: .seconds(1000), rate: 1000) == .seconds(1))
    }

    @Test func withoutALimitNothingWaitsAndNothingIsOwedAfterOne() {
        var budget = LineBudget()
        _ = budget.take(1_000_000, at: .seconds(1), rate: 10)
        #expect(budget.take(1 << 40, at: .seconds(1), rate: nil) == .zero)
        #expect(budget.take(1, at: .seconds(1), rate: 10) == .zero)
    }

    /// The lower bounds hold on any machine: what is sent after another piece waits for that.
    @Test func aRequestAndItsReplyTakeTheirTime() async throws {
        let text = String(repeating: "x", count: 100_000)
        let server = ScriptedServer { _ in reply("200 OK", [], text) }
        defer { server.stop() }
        let address = "http://127.0.0.1:\(server.port)"
        let transport = try HTTPTransport(server: address, trust: .system)
        transport.lineLimit.set(LineRates(up: 100_000, down: nil))
        let clock = SystemClock()
        let start = clock.uptime()
        let response = try await transport.send(
            .PUT, address + "/", HTTPHeaders(), body: RequestBody(text), isRepeatable: false, takesLong: false)
        let sent = clock.uptime()
        #expect(sent - start > .milliseconds(500))
        _ = try await transport.whole(response, .GET)

        transport.lineLimit.set(LineRates(up: nil, down: 100_000))
        let limited = try await transport.send(
            .GET, address + "/", HTTPHeaders(), body: nil, isRepeatable: true, takesLong: false)
        let answered = clock.uptime()
        let whole = try await transport.whole(limited, .GET)
        #expect(whole.body.count == 100_000)
        #expect(clock.uptime() - answered > .milliseconds(400))
    }

    /// A checksum that was read first, and what waited for the line, counted as sent: nearly all at once.
    @Test func whatIsSentCountsWhenItGoesAndNotWhenItIsRead() async throws {
        let server = ScriptedServer { _ in reply("200 OK", [], "") }
        defer { server.stop() }
        let address = "http://127.0.0.1:\(server.port)"
        let transport = try HTTPTransport(server: address, trust: .system)
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.stop() }
        let folder = try TemporaryFolder("line")
        let source = try CountedSource(folder.path("content"), size: 100_000)
        let file = FileBody(source: source, pool: pool)
        _ = try ContentDigest.ownCloud(of: .file(file))
        #expect(source.counts == [])

        let part = RequestBody.bytes(try file.read(at: 0, source.size), of: source)
        for (body, rate) in [(RequestBody.file(file), 400_000), (part, 400_000), (part, nil)] as [(RequestBody, UInt64?)] {
            transport.lineLimit.set(LineRates(up: rate, down: nil))
            source.forget()
            _ = try await transport.send(
                .PUT, address + "/", HTTPHeaders(), body: body, isRepeatable: false, takesLong: false)
            #expect(source.counts.reduce(0, +) == 100_000)
            #expect(source.counts.allSatisfy { $0 <= rate.map { $0 / 8 } ?? 100_000 })
        }
    }
}
