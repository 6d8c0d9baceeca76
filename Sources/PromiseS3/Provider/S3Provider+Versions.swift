package import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem

// What an object was before, in a bucket that keeps versions: ListObjectVersions, and GET with a `versionId`.

extension S3Provider {
    /// More of one object are not shown.
    private static let versionsMax = 10_000

    package func earlierVersions(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion] {
        try await finishMoves(at: reference.path)
        let key = names.key(reference.path)
        let what = "the versions of \(shown(reference.path)) cannot be listed"
        var result: [EarlierVersion] = []
        var from: S3Versions.Next?
        repeat {
            var query = [QueryItem("versions", ""), QueryItem("encoding-type", "url"), QueryItem("prefix", key: key)]
            if let from {
                query += [QueryItem("key-marker", key: from.key), QueryItem("version-id-marker", from.identifier)]
            }
            let reply = try await client.succeed(S3Request(.GET, nil, query), what)
            guard let page = await pool.run({ S3Versions.parse(reply.body) }) else {
                throw ProviderError(.retry, "\(what): the server's answer is not whole")
            }
            result += page.versions.filter { $0.key == key && !$0.isLatest }.map(\.version)
            // Keys come in order: behind the object's own nothing is its.
            from = page.next.flatMap { $0.key == key && $0 != from ? $0 : nil }
        } while from != nil && result.count < S3Provider.versionsMax
        return result.sorted { $0.modificationTime > $1.modificationTime }
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        let read = ReadVersion(key: names.key(reference.path), tag: earlier.version.rawValue)
        try await fetch(read, number: earlier.identifier, nil, into: sink, "a version of \(shown(reference.path))")
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
        guard let document = S3Document.parse(data), document.name == "ListVersionsResult" else { return nil }
        let isEncoded = document.values["EncodingType"] == "url"
        func key(_ text: String?) -> [UInt8]? { text.flatMap { S3Listing.key($0, isEncoded) } }
        var result = S3Versions()
        for row in document.rows where row.name == "Version" {
            guard let key = key(row.values["Key"]), let identifier = row.values["VersionId"], let tag = row.values["ETag"],
                let size = row.values["Size"].flatMap({ ItemSize.read($0) })
            else { return nil }
            let version = EarlierVersion(
                identifier: identifier, version: ContentVersion(EntityTag.opaque(tag)), size: size,
                modificationTime: row.values["LastModified"].flatMap { S3Listing.timestamp($0) } ?? .zero)
            result.versions.append(Row(key: key, isLatest: row.values["IsLatest"] == "true", version: version))
        }
        if document.values["IsTruncated"] == "true" {
            guard let key = key(document.values["NextKeyMarker"]) else { return nil }
            result.next = Next(key: key, identifier: document.values["NextVersionIdMarker"] ?? "")
        }
        return result
    }
}
