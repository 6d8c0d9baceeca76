import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

// Copies that the server makes: for moves, and to change what is kept with an object.

extension S3Provider {
    /// CopyObject takes no more; what is larger is copied in parts.
    static let copyByteCountMax: UInt64 = 5 << 30
    private static let copiedPartByteCount: UInt64 = 512 << 20

    /// With other metadata, or as it is. Returns the copy's tag.
    func copy(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ metadata: Metadata?, _ what: String
    ) async throws(ProviderError) -> String {
        var headers: HTTPHeaders = [:]
        if let metadata, traits.keepsMetadata {
            headers = found.kept
            let kind: NodeKind = source.last == KeyNames.slash ? .folder : found.details.isLink ? .link : .file
            headers.add(contentsOf: ObjectDetails.headers(metadata, kind: kind))
        }
        guard found.size <= S3Provider.copyByteCountMax else {
            return try await copyInParts(source, found, to: target, headers, what)
        }
        if !headers.isEmpty { headers.add(name: "X-Amz-Metadata-Directive", value: "REPLACE") }
        headers.add(contentsOf: copySource(source, found.tag))
        if traits.copyRefusesTaken, source != target { headers.add(name: "If-None-Match", value: "*") }
        var request = S3Request(.PUT, target, [], headers)
        request.isRepeatable = !(traits.copyRefusesTaken && source != target)
        let document = try await answer(request, what)
        let tag = EntityTag.opaque(document.values["ETag"] ?? "")
        if !tag.isEmpty { return tag }
        return try await status(ofKey: target, what)?.tag ?? found.tag
    }

    private func copySource(_ key: [UInt8], _ tag: String?) -> HTTPHeaders {
        var headers: HTTPHeaders = ["X-Amz-Copy-Source": "/\(location.bucket)/\(S3Location.encoded(client.written(key)))"]
        if let tag, traits.copyMatchesSource { headers.add(name: "X-Amz-Copy-Source-If-Match", value: "\"\(tag)\"") }
        return headers
    }

    /// A server that works long on a request says that it succeeds before it knows.
    private func answer(_ request: S3Request, _ what: String) async throws(ProviderError) -> S3Document {
        let reply = try await client.succeed(request, what)
        guard let document = S3Document.parse(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        if document.name == "Error" { throw S3Refusal(status: 500, code: document.values["Code"]).error(what) }
        return document
    }

    private func copyInParts(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ headers: HTTPHeaders, _ what: String
    ) async throws(ProviderError) -> String {
        var all = headers
        if all.isEmpty {
            all = found.kept
            let metadata = found.details.metadata(kind: .file, lastModified: found.lastModified, owner: 0, group: 0)
            if found.details != ObjectDetails() { all.add(contentsOf: ObjectDetails.headers(metadata, kind: .file)) }
        }
        let began = try await answer(S3Request(.POST, target, [QueryItem("uploads")], all), what)
        guard let upload = began.values["UploadId"] else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        do throws(ProviderError) {
            let plan = PartPlan(size: found.size, partByteCount: S3Provider.copiedPartByteCount)
            let tags = try await concurrently(Array(1...plan.count), width: 4) {
                [self] (number) async throws(ProviderError) -> (Int, String)? in
                let range = plan.range(number)
                var headers = copySource(source, found.tag)
                headers.add(name: "X-Amz-Copy-Source-Range", value: "bytes=\(range.lower)-\(range.upper - 1)")
                var request = S3Request(
                    .PUT, target, [QueryItem("partNumber", "\(number)"), QueryItem("uploadId", upload)], headers)
                request.isRepeatable = true
                return (number, EntityTag.opaque(try await answer(request, what).values["ETag"] ?? ""))
            }.sorted { $0.0 < $1.0 }
            let rows = tags.map { "<Part><PartNumber>\($0.0)</PartNumber><ETag>&quot;\($0.1)&quot;</ETag></Part>" }
            // The parts may be of two contents, or what was written meanwhile would be copied over.
            guard try await status(ofKey: source, what)?.tag == found.tag else {
                throw ProviderError(.conflict, "\(what): it was changed on the server meanwhile")
            }
            var request = S3Request(.POST, target, [QueryItem("uploadId", upload)])
            if source == target, traits.completionMatches {
                request.headers.add(contentsOf: conditions(.version(found.version)))
            } else if source != target, traits.completionRefusesTaken {
                request.headers.add(contentsOf: conditions(.nothing))
            }
            request.body = ByteBuffer(string: "<CompleteMultipartUpload>\(rows.joined())</CompleteMultipartUpload>")
            _ = try await answer(request, what)
            guard let made = try await status(ofKey: target, what), made.size == found.size else {
                throw ProviderError(.retry, "\(what): the copy is not there")
            }
            return made.tag
        } catch {
            _ = try? await client.exchange(S3Request(.DELETE, target, [QueryItem("uploadId", upload)]))
            throw error
        }
    }
}
