package import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem

/// What an object was before, in a bucket that keeps versions; in any other nothing.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html>
struct ObjectVersions: Sendable {
    /// More of one object are not shown.
    private static let countMax = 10_000

    let bucket: S3Bucket

    /// The latest one first, without the one that it has now. Throws `.retry` when an answer is not
    /// whole.
    func list(of path: [FileName]) async throws(ProviderError) -> [EarlierVersion] {
        let key = bucket.names.key(path)
        let what = "the versions of \(shown(path)) cannot be listed"
        var result: [EarlierVersion] = []
        var from: S3Versions.Next?
        var turns = PageTurns()
        repeat {
            var query = [
                QueryItem("versions", ""), QueryItem("encoding-type", "url"),
                QueryItem("prefix", key: key),
            ]
            if let from {
                query += [
                    QueryItem("key-marker", key: from.key),
                    QueryItem("version-id-marker", from.identifier),
                ]
            }
            let reply = try await bucket.client.succeed(S3Request(.GET, nil, query), what)
            guard let page = await bucket.pool.run({ S3Versions.parse(reply.body) }) else {
                throw ProviderError(.retry, "\(what): the server's answer is not whole")
            }
            let found = page.versions.filter { $0.key == key && !$0.isLatest }.map(\.version)
            result += found
            // Keys come in order: behind the object's own nothing is its.
            from = page.next.flatMap { $0.key == key && $0 != from ? $0 : nil }
            // A server may name ever new pages with nothing on them.
            if let from {
                let token = PageToken(rawValue: from.identifier)
                try turns.take(token, first: found.first?.identifier)
            }
        } while from != nil && result.count < ObjectVersions.countMax
        result.sort { $0.modificationTime > $1.modificationTime }
        return Array(result.prefix(ObjectVersions.countMax))
    }
}

/// One page of what ListObjectVersions says.
package struct S3Versions: Sendable {
    package struct Row: Sendable, Hashable {
        package var key: [UInt8]
        package var isLatest: Bool
        package var version: EarlierVersion
    }

    package struct Next: Sendable, Hashable {
        var key: [UInt8]
        var identifier: String
    }

    package var versions: [Row] = []
    package var next: Next?

    /// Nil when the answer is cut off or something else. Blocking. What was deleted is no version.
    package static func parse(_ data: Data) -> S3Versions? {
        guard let document = S3Document.parse(data), document.name == "ListVersionsResult" else {
            return nil
        }
        let isEncoded = document.values["EncodingType"] == "url"
        func key(_ text: String?) -> [UInt8]? { text.flatMap { S3Listing.key($0, isEncoded) } }
        var result = S3Versions()
        for row in document.rows where row.name == "Version" {
            guard let key = key(row.values["Key"]), let identifier = row.values["VersionId"],
                let tag = row.values["ETag"],
                let size = row.values["Size"].flatMap({ ItemSize.read($0) }),
                let time = row.values["LastModified"].flatMap({ S3Listing.timestamp($0) })
            else { return nil }
            let version = EarlierVersion(
                identifier: identifier, version: ContentVersion(EntityTag.opaque(tag)), size: size,
                modificationTime: time)
            result.versions.append(
                Row(key: key, isLatest: row.values["IsLatest"] == "true", version: version))
        }
        if document.values["IsTruncated"] == "true" {
            guard let key = key(document.values["NextKeyMarker"]) else { return nil }
            result.next = Next(key: key, identifier: document.values["NextVersionIdMarker"] ?? "")
        }
        return result
    }
}
