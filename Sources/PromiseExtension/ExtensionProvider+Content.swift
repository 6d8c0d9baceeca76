import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem

// Content on its way here.

extension ExtensionProvider {
    private static let batchByteCount: UInt64 = 512 << 10

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        if let range, range.isEmpty { return }
        try await client.transfers.run { () async throws(ProviderError) in
            try await transfer(reference, version, range, into: sink)
        }
    }

    private func transfer(
        _ reference: ItemReference, _ version: ContentVersion, _ range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        var headers = HTTPHeaders()
        if let range { headers.add(name: "Range", value: "bytes=\(range.lower)-\(range.upper - 1)") }
        let response = try await client.open(
            .GET, "\(path(reference))/content?version=\(PercentText.encoded(version.rawValue))", headers)
        let isPart = response.status.code == 206
        if isPart {
            let said = response.headers.first(name: "content-range")
            guard let range, said?.hasPrefix("bytes \(range.lower)-\(range.upper - 1)/") == true else {
                throw client.lie("sends another part of a content than it was asked for", .corrupted)
            }
        }
        let length = response.headers.first(name: "content-length").flatMap { UInt64($0) }
        let expected = isPart ? range?.count : length
        guard length == nil || length == expected, length.map({ $0 >= range?.upper ?? 0 || isPart }) ?? true else {
            throw client.lie("sends \(length ?? 0) bytes of a content where \(range?.count ?? 0) were asked for", .corrupted)
        }
        let count = try await write(response.body, from: isPart ? range?.lower ?? 0 : 0, wanted: range, expected, into: sink)
        guard count >= (isPart ? range?.count ?? 0 : range?.upper ?? expected ?? 0) else {
            throw client.lie("sent \(count) bytes of a content and no more", .corrupted)
        }
        client.contentCame()
    }

    /// Puts what is wanted of a body that starts at `start` into the sink; returns how many bytes came.
    private func write(
        _ body: HTTPClientResponse.Body, from start: UInt64, wanted: ByteRange?, _ expected: UInt64?, into sink: any ContentSink
    ) async throws(ProviderError) -> UInt64 {
        var position = start
        // The first bytes at once, as somebody waits for them; the rest many at a time, as each hop to the pool costs.
        var gathered: [ContentPiece] = []
        var gatheredCount: UInt64 = 0
        var batch: UInt64 = 1
        do {
            for try await part in body {
                let here = ByteRange(offset: position, count: UInt64(part.readableBytes))
                position = here.upper
                if let expected, position - start > expected {
                    throw client.lie("sends more than the \(expected) bytes of a content", .corrupted)
                }
                // An extension without ranges sends everything.
                let lower = max(here.lower, wanted?.lower ?? 0)
                let upper = min(here.upper, wanted?.upper ?? .max)
                if lower < upper {
                    gathered.append(ContentPiece(buffer: part, skipped: Int(lower - here.lower), range: ByteRange(lower, upper)))
                    gatheredCount += upper - lower
                }
                if gatheredCount >= batch {
                    try await store(gathered, into: sink)
                    (gathered, gatheredCount, batch) = ([], 0, ExtensionProvider.batchByteCount)
                }
                if let wanted, expected == nil, position >= wanted.upper { break }
            }
            try await store(gathered, into: sink)
        } catch {
            throw client.meaning(of: error)
        }
        return position - start
    }

    private func store(_ pieces: [ContentPiece], into sink: any ContentSink) async throws(ProviderError) {
        do throws(ProviderError) {
            try await pool.run { () throws(ProviderError) in for piece in pieces { try piece.write(into: sink) } }
        } catch {
            // The sink does not know who sent more than the item has.
            throw error.code == .corrupted ? client.lie("is not believed: \(error.message)", .corrupted) : error
        }
    }
}
