import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

// Whether the server writes a part into a file: tried on a file of its own, as many servers take the part for the whole. And what
// ownCloud and Nextcloud take with a content.

extension ServerProbe {
    /// A part in the middle, a part that makes the file longer, one that breaks off, and one of a file that is not there. What is
    /// left of the one that broke off is told by `keepsParts`, a moment later.
    func writesParts(_ file: [FileName]) async throws(ProviderError) -> PartWriting {
        for writing in [PartWriting.contentRange, .partialUpdate] {
            _ = try await put("abcdef", file)
            guard try await writes("XY", 2, of: 6, to: file, writing), try await content(file) == "abXYef",
                try await writes("gh", 6, of: 8, to: file, writing), try await content(file) == "abXYefgh"
            else { continue }
            let missing = try await provider.uploads.place()
            if try await writes("gh", 6, of: 8, to: missing, writing) {
                _ = try await exchange(.DELETE, missing)
                continue
            }
            let body = HTTPClientRequest.Body.stream(BrokenBody(), length: .known(Int64(BrokenBody.announcedByteCount)))
            let range = ByteRange(8, 8 + UInt64(BrokenBody.announcedByteCount))
            await client.breakOff(writing.method, location.url(file), body, writing.headers(range, of: range.upper))
            return writing
        }
        return try await joinsChunks(file) ? .chunks : .nothing
    }

    /// Ends with the same content.
    private func joinsChunks(_ file: [FileName]) async throws(ProviderError) -> Bool {
        guard let name = file.last?.display, let folder = location.chunkURL.map({ $0 + name + "/" }) else { return false }
        let parts = [1, 2].map { folder + ChunkFolder.name($0) }
        guard try await isDone(.MKCOL, folder) else { return false }
        for (part, text) in zip(parts, ["abXY", "efgh"]) {
            guard try await isDone(.PUT, part, text), try await chunk(part) == text else { return false }
        }
        let joined = folder + ChunkFolder.joinedName
        let headers = [9, 8].map { ChunkFolder.headers(location.url(file), size: $0) }
        let isDeceived = try await isDone(.MOVE, joined, headers: headers[0])
        let isJoined = try await isDone(.MOVE, joined, headers: headers[1])
        _ = try await isDone(.DELETE, folder)
        guard !isDeceived, isJoined else { return false }
        return try await keepsParts(file)
    }

    /// Over a file that is there, in its version only. Ends with the content of before.
    func joinsOverMatching(_ file: [FileName]) async throws(ProviderError) -> Bool {
        guard let name = try await provider.uploads.place().last?.display, let base = location.chunkURL
        else { return false }
        let folder = base + name + "/"
        let before = try await resources.resource(at: file)
        let number = try await number(file)
        guard try await isDone(.MKCOL, folder),
            try await isDone(.PUT, folder + ChunkFolder.name(1), "two")
        else {
            return false
        }
        var contents: [String] = []
        for version in [ContentVersion("wrong"), before.version] {
            var headers = ChunkFolder.headers(location.url(file), size: 3)
            headers.add(name: "If", value: WriteTurn.condition(location.url(file), has: version))
            _ = try await isDone(.MOVE, folder + ChunkFolder.joinedName, headers: headers)
            contents.append(try await content(file))
        }
        let isSame = try await self.number(file) == number
        _ = try await isDone(.DELETE, folder)
        _ = try await put("one", file)
        return contents == ["one", "two"] && isSame
    }

    private func chunk(_ url: String) async throws(ProviderError) -> String {
        String(decoding: try await client.exchange(.GET, url).body, as: UTF8.self)
    }

    private func isDone(
        _ method: HTTPMethod, _ url: String, _ text: String? = nil, headers: HTTPHeaders = [:]
    ) async throws(ProviderError) -> Bool {
        try isDone(try await client.exchange(method, url, headers, body: text.map { RequestBody($0) }))
    }

    /// Not, and that is an answer; throws when the server has trouble.
    func isDone(_ reply: HTTPReply) throws(ProviderError) -> Bool {
        if reply.isSuccess { return reply.status != 207 }
        // A server that fails at what it does not know has no trouble.
        let error = ProviderError(reply, "the server cannot be tried")
        if error.code != .retry, ServerProbe.isTrouble(error) { throw error }
        return false
    }

    /// Of a picture of one point, which is no 32 points wide.
    func findPreviews(_ file: [FileName]) async throws(ProviderError) -> PreviewSource {
        let point = """
            iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYEgGAABnAGSrVUwdAAAAAElFTkSuQmCC
            """
        guard let content = Data(base64Encoded: point), let name = file.last else { return .nowhere }
        let picture = Array(file.dropLast()) + [FileName(trusted: name.bytes + Array(".png".utf8))]
        guard try await exchange(.PUT, picture, body: .bytes(ByteBuffer(bytes: content))).isSuccess else {
            return .nowhere
        }
        var found = PreviewSource.nowhere
        for source in [PreviewSource.file, .page] where found == .nowhere {
            let preview = try await unlessTrouble { () async throws(ProviderError) in
                try await provider.previews.picture(picture, size: 32, from: source, "a picture cannot be fetched")
            }
            // A server that does not know the question answers with the file.
            if let preview, source == .page || preview != Array(content) { found = source }
        }
        _ = try await exchange(.DELETE, picture)
        return found
    }

    /// Ends with the content of before.
    func takesTimes(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let reply = try await put("one", file, ["X-OC-Mtime": "1234567890"])
        guard reply.header("X-OC-MTime")?.lowercased() == "accepted" else { return false }
        let found = try await resources.resource(at: file).lastModified
        return found.flatMap { HTTPDate.timestamp($0) } == Timestamp(seconds: 1_234_567_890, nanoseconds: 0)
    }

    /// The same.
    func takesChecksums(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let digests = try ["two", "one"].map { text throws(ProviderError) in try ContentDigest.ownCloud(of: RequestBody(text)) }
        let isRefused = try await !isDone(.PUT, location.url(file), "one", headers: ["OC-Checksum": digests[0]])
        return try await put("one", file, ["OC-Checksum": digests[1]]).isSuccess && isRefused
    }

    func keepsParts(_ file: [FileName]) async throws(ProviderError) -> Bool {
        try await content(file).hasPrefix("abXYefgh")
    }

    private func writes(
        _ text: String, _ offset: UInt64, of size: UInt64, to file: [FileName], _ writing: PartWriting
    ) async throws(ProviderError) -> Bool {
        let headers = writing.headers(ByteRange(offset, offset + UInt64(text.utf8.count)), of: size)
        return try isDone(try await client.exchange(writing.method, location.url(file), headers, body: RequestBody(text)))
    }
}
