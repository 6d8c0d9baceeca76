import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem

// Content on its way here.

extension ExtensionProvider {
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
    func write(
        _ body: HTTPClientResponse.Body, from start: UInt64, wanted: ByteRange?, _ expected: UInt64?, into sink: any ContentSink
    ) async throws(ProviderError) -> UInt64 {
        var position = start
        let writer = PieceWriter(into: sink, pool: pool)
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
                    let taken = ByteRange(lower, upper)
                    try await add(ContentPiece(buffer: part, skipped: Int(lower - here.lower), range: taken), to: writer)
                }
                if let wanted, expected == nil, position >= wanted.upper { break }
            }
            try await believing { () async throws(ProviderError) in try await writer.finish() }
        } catch {
            await writer.stop()
            throw client.meaning(of: error)
        }
        return position - start
    }

    private func add(_ piece: ContentPiece, to writer: PieceWriter) async throws(ProviderError) {
        try await believing { () async throws(ProviderError) in try await writer.add(piece) }
    }

    /// The sink does not know who sent more than the item has.
    private func believing(_ body: () async throws(ProviderError) -> Void) async throws(ProviderError) {
        do throws(ProviderError) {
            try await body()
        } catch {
            throw error.code == .corrupted ? client.lie("is not believed: \(error.message)", .corrupted) : error
        }
    }
}
