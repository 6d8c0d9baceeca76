import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A server that gives a file another tag at each request was asked for it a thousand times a second, and nobody could
/// ever read it.
struct UnsteadyTagTests {
    private static let long = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let now = "Sun, 06 Nov 1994 09:00:00 GMT"

    private final class Server: Sendable {
        let count = Mutex(0)
        let headers: @Sendable (Int) -> [String]
        let content: @Sendable (Int) -> String

        init(
            _ headers: @escaping @Sendable (Int) -> [String], content: @escaping @Sendable (Int) -> String
        ) {
            (self.headers, self.content) = (headers, content)
        }

        func answer(_ request: ScriptedServer.Request) -> String {
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): return rows(("/", collection))
            default: break
            }
            let number = count.withLock { count in count += 1; return count }
            let text = content(number)
            if request.method == "PROPFIND" { return listing("/file", tag: "\"\(number)\"", size: text.utf8.count) }
            return reply("200 OK", ["ETag: \"\(number)\""] + headers(number), text)
        }
    }

    /// Asks for the file and for what it is called now, as the engine does; nil after five contents that were refused.
    private func read(
        _ headers: @escaping @Sendable (Int) -> [String] = { _ in [] },
        content: @escaping @Sendable (Int) -> String = { _ in "text" }, range: ByteRange? = nil, size: UInt64 = 4
    ) async throws -> (tries: Int, text: String)? {
        let fake = Server(headers, content: content)
        let server = ScriptedServer { fake.answer($0) }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["putIsWhole", "moveKeepsTag", "hasRanges"])
        let reference = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
        for tries in 1...5 {
            let version = try await provider.item(for: reference).version
            let sink = KnowingSink(size: size)
            do throws(ProviderError) {
                try await provider.fetchContents(of: reference, version: version, range: range, into: sink)
                return (tries, String(decoding: sink.wrapped.bytes, as: UTF8.self))
            } catch {
                guard error.code == .stale else { throw error }
            }
        }
        return nil
    }

    @Test func aFileWhoseTimeAndSizeStayIsReadAtTheSecondTry() async throws {
        let dates = ["Last-Modified: \(Self.long)", "Date: \(Self.now)"]
        #expect(try await read({ _ in dates })?.tries == 2)
        #expect(try await read({ _ in dates }, range: ByteRange(0, 4))?.text == "text")
    }

    @Test func aWholeReplyIsReadAtTheThirdTry() async throws {
        let found = try #require(try await read(content: { "te\($0 % 10)t" }))
        #expect(found.tries == 3 && found.text.hasPrefix("te") && found.text.utf8.count == 4, "\(found)")
    }

    /// Of each of these what is asked for may really be gone.
    @Test func aReplyThatMayBePartOfAnotherContentIsNot() async throws {
        #expect(try await read(size: 5) == nil, "another size than was listed")
        let young: @Sendable (Int) -> [String] = { _ in ["Last-Modified: \(Self.now)", "Date: \(Self.now)"] }
        #expect(try await read(young, size: 5) == nil, "it may be written twice within a second")
        let other: @Sendable (Int) -> [String] = {
            ["Last-Modified: Sun, 06 Nov 1994 08:49:\(10 + $0) GMT", "Date: \(Self.now)"]
        }
        #expect(try await read(other, size: 5) == nil, "it is written all the time")
    }
}

private struct KnowingSink: ContentSink {
    let wrapped = ConformanceSink()
    let size: UInt64?

    init(size: UInt64) { self.size = size }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        try wrapped.write(bytes, at: offset)
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        try wrapped.copy(from: descriptor, at: sourceOffset, to: offset, count: count)
    }
}
