import AsyncHTTPClient
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// Sends the content of an object, in the version that is asked for.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>
///
/// In a bucket that keeps versions, whoever has begun to read one goes on with it when the object
/// has another one or is gone. Who begins to read hears of that: `.stale`, or `.notFound`.
final class ObjectFetcher: Sendable {
    /// A content that somebody has begun to read.
    private struct Read: Hashable {
        var key: [UInt8]
        var tag: String
    }

    /// More readers than that at once do not go on.
    private static let numbersMax = 10_000

    private let bucket: S3Bucket
    private let finder: DetailsFinder
    /// How the server calls the versions that were fetched, in a bucket that keeps several.
    private let numbers = Mutex<[Read: String]>([:])

    init(bucket: S3Bucket, finder: DetailsFinder) {
        self.bucket = bucket
        self.finder = finder
    }

    func fetch(
        _ path: [FileName], version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let read = Read(key: bucket.names.key(path), tag: version.rawValue)
        do throws(ProviderError) {
            try await fetch(read, number: nil, range, into: sink, shown(path))
        } catch {
            guard error.code == .stale || error.code == .notFound,
                let number = numbers.withLock({ $0[read] })
            else { throw error }
            try await fetch(read, number: number, range, into: sink, shown(path))
        }
    }

    func fetch(
        _ path: [FileName], earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        let read = Read(key: bucket.names.key(path), tag: earlier.version.rawValue)
        let what = "a version of \(shown(path))"
        try await fetch(
            read, number: earlier.identifier, nil, into: sink, what, size: earlier.size)
    }

    /// `number`: how the server calls the version; nil: the one that it has now. `size`: where it
    /// is known.
    private func fetch(
        _ read: Read, number: String?, _ range: ByteRange?, into sink: any ContentSink,
        _ shown: String, size: UInt64? = nil
    ) async throws(ProviderError) {
        let (client, what) = (bucket.client, "\(shown) cannot be fetched")
        var request = S3Request(.GET, read.key, number.map { [QueryItem("versionId", $0)] } ?? [])
        if let range {
            request.headers.add(name: "Range", value: "bytes=\(range.lower)-\(range.upper - 1)")
        } else {
            request.headers.add(name: "x-amz-checksum-mode", value: "ENABLED")
        }
        let response = try await client.open(request)
        guard response.status.code == 200 || response.status.code == 206 else {
            throw client.refusal(try await client.transport.whole(response, .GET)).error(what)
        }
        // Every reply names what it sends, which no server gets wrong as some do conditions.
        guard EntityTag.opaque(response.headers.first(name: "ETag") ?? "") == read.tag else {
            throw ProviderError(.stale, "\(shown) has another version on the server")
        }
        if number == nil {
            learn(read.key, from: response.headers)
            note(read, response.headers.first(name: "x-amz-version-id"))
        }
        let size = size ?? ReplyContent.wholeSize(response)
        let content = ReplyContent(response: response, range: range, size: size, what: what)
        let digest = response.status.code == 200 ? ContentDigest(amazon: response.headers) : nil
        try await content.write(
            into: sink, verifiedBy: range == nil ? digest : nil, pool: bucket.pool,
            server: bucket.location.endpoint)
    }

    /// A fetch tells of an object what a look at it would, except where a link points.
    private func learn(_ key: [UInt8], from headers: HTTPHeaders) {
        let found = ObjectStatus(headers)
        guard bucket.traits.keepsMetadata, !found.details.isLink else { return }
        bucket.details.note(key, bucket.stamp(found), found.details)
        finder.isFound(key)
    }

    private func note(_ read: Read, _ number: String?) {
        // What was written before the bucket kept versions is called that, and goes when it is
        // replaced.
        guard let number, number != "null" else { return }
        numbers.withLock { numbers in
            if numbers.count >= ObjectFetcher.numbersMax { numbers = [:] }
            numbers[read] = number
        }
    }
}
