import AsyncHTTPClient
import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

// Whether the server writes a part into a file: tried on a file of its own, as many servers take the part for the whole.

extension ServerProbe {
    /// A part in the middle, a part that makes the file longer, one that breaks off, and one of a file that is not there. What is
    /// left of the one that broke off is told by `keepsParts`, a moment later.
    func writesParts(_ file: [FileName]) async throws(ProviderError) -> PartWriting {
        for writing in [PartWriting.contentRange, .partialUpdate] {
            _ = try await put("abcdef", file)
            guard try await writes("XY", 2, of: 6, to: file, writing), try await content(file) == "abXYef",
                try await writes("gh", 6, of: 8, to: file, writing), try await content(file) == "abXYefgh"
            else { continue }
            let missing = try await provider.uploadPlace()
            if try await writes("gh", 6, of: 8, to: missing, writing) {
                _ = try await exchange(.DELETE, missing)
                continue
            }
            let body = HTTPClientRequest.Body.stream(BrokenBody(), length: .known(Int64(BrokenBody.announcedByteCount)))
            let range = ByteRange(8, 8 + UInt64(BrokenBody.announcedByteCount))
            await client.breakOff(writing.method, location.url(file), body, writing.headers(range, of: range.upper))
            return writing
        }
        return .nothing
    }

    func keepsParts(_ file: [FileName]) async throws(ProviderError) -> Bool {
        try await content(file).hasPrefix("abXYefgh")
    }

    private func writes(
        _ text: String, _ offset: UInt64, of size: UInt64, to file: [FileName], _ writing: PartWriting
    ) async throws(ProviderError) -> Bool {
        let headers = writing.headers(ByteRange(offset, offset + UInt64(text.utf8.count)), of: size)
        let reply = try await client.exchange(writing.method, location.url(file), headers, body: RequestBody(text))
        if reply.isSuccess { return reply.status != 207 }
        // A server that fails at what it does not know has no trouble.
        let error = ProviderError(reply, "the server cannot be tried with a part of a file")
        if error.code != .retry, ServerProbe.isTrouble(error) { throw error }
        return false
    }
}
