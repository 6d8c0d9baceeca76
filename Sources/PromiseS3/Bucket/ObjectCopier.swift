import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Copies that the server makes: for moves, and to change what is kept with an object. CopyObject,
/// and UploadPartCopy for what that does not take.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html>,
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html>
///
/// Throws `.notFound` when the source is gone, and `.conflict` when a condition is not met: the
/// source has another tag, or there is something at the target.
struct ObjectCopier: Sendable {
    /// CopyObject takes no more; what is larger is copied in parts.
    static let byteCountMax: UInt64 = 5 << 30
    private static let partByteCount: UInt64 = 512 << 20

    let bucket: S3Bucket
    let hollows: HollowObjects
    private var traits: S3Traits { bucket.traits }

    /// With other metadata, or as it is. Returns the copy's tag.
    func copy(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ metadata: Metadata?,
        _ what: String
    ) async throws(ProviderError) -> String {
        var headers: HTTPHeaders = [:]
        if let metadata, traits.keepsMetadata {
            headers = found.kept
            let kind: NodeKind =
                source.last == KeyNames.slash ? .folder : found.details.isLink ? .link : .file
            headers.add(contentsOf: ObjectDetails.headers(metadata, kind: kind))
        }
        guard found.size <= ObjectCopier.byteCountMax else {
            return try await copyInParts(source, found, to: target, headers, what)
        }
        if !headers.isEmpty { headers.add(name: "X-Amz-Metadata-Directive", value: "REPLACE") }
        headers.add(contentsOf: copySource(source, found.tag))
        if traits.copyRefusesTaken, source != target {
            headers.add(name: "If-None-Match", value: "*")
        }
        var request = S3Request(.PUT, target, [], headers)
        request.isRepeatable = !(traits.copyRefusesTaken && source != target)
        let document = try await answer(request, what)
        let tag = EntityTag.opaque(document.values["ETag"] ?? "")
        if !tag.isEmpty { return tag }
        return try await bucket.status(ofKey: target, what)?.tag ?? found.tag
    }

    /// Never over something else, as far as the server lets that be: where its copies honour no
    /// condition a hollow object takes the place first.
    func copyWhereNothingIs(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ metadata: Metadata?,
        _ what: String
    ) async throws(ProviderError) -> String {
        // The end of a copy in parts has a condition of its own, which a hollow object would not
        // meet.
        let isConditional = found.size > ObjectCopier.byteCountMax && traits.completionRefusesTaken
        guard traits.copiesIntoHollows, !isConditional else {
            return try await copy(source, found, to: target, metadata, what)
        }
        let mark = HollowObject.mark(source)
        try await takePlace(target, mark, what)
        do throws(ProviderError) {
            return try await copy(source, found, to: target, metadata, what)
        } catch {
            // Whoever ends the move looks.
            if !error.code.leavesInDoubt { _ = try? await hollows.remove(target, what) }
            throw error
        }
    }

    private func takePlace(
        _ target: [UInt8], _ mark: String, _ what: String
    ) async throws(ProviderError) {
        var reply = try await hollows.put(target, .nothing, mark)
        if reply.status == 412 {
            switch try await hollows.outlast(target, mark: mark, what) {
            case .hollow(let there):
                // A fresh one: whoever removes what is forsaken looked at the other one, and its
                // deletion, on no condition, would take the copy.
                reply = try await hollows.put(target, .version(there.version), mark)
                if reply.status == 404 { reply = try await hollows.put(target, .nothing, mark) }
            case .nobody: reply = try await hollows.put(target, .nothing, mark)
            case .something: break
            }
        }
        guard reply.isSuccess else { throw bucket.client.refusal(reply).error(what) }
    }

    private func copySource(_ key: [UInt8], _ tag: String?) -> HTTPHeaders {
        let written = S3Location.encoded(bucket.client.written(key))
        var headers: HTTPHeaders = ["X-Amz-Copy-Source": "/\(bucket.location.bucket)/\(written)"]
        if let tag, traits.copyMatchesSource {
            headers.add(name: "X-Amz-Copy-Source-If-Match", value: "\"\(tag)\"")
        }
        return headers
    }

    /// A server that works long on a request says that it succeeds before it knows.
    private func answer(_ request: S3Request, _ what: String) async throws(ProviderError)
        -> S3Document
    {
        let reply = try await bucket.client.succeed(request, what)
        guard let document = S3Document.parse(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        if document.name == "Error" {
            throw S3Refusal(status: 500, code: document.values["Code"]).error(what)
        }
        return document
    }

    // MARK: In parts

    private func copyInParts(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ headers: HTTPHeaders,
        _ what: String
    ) async throws(ProviderError) -> String {
        let kept = headers.isEmpty ? keptHeaders(found) : headers
        let began = try await answer(S3Request(.POST, target, [QueryItem("uploads")], kept), what)
        guard let upload = began.values["UploadId"] else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        do throws(ProviderError) {
            let tags = try await copyParts(source, found, to: target, upload, what)
            // The parts may be of two contents, or what was written meanwhile would be copied over.
            guard try await bucket.status(ofKey: source, what)?.tag == found.tag else {
                throw ProviderError(.conflict, "\(what): it was changed on the server meanwhile")
            }
            try await checkPlace(source, target, what)
            var request = S3Request(.POST, target, [QueryItem("uploadId", upload)])
            if source == target, traits.completionMatches {
                request.headers.add(contentsOf: bucket.conditions(.version(found.version)))
            } else if source != target, traits.completionRefusesTaken {
                request.headers.add(contentsOf: bucket.conditions(.nothing))
            }
            request.body = await bucket.pool.run { MultipartUpload.completion(tags) }
            _ = try await answer(request, what)
            guard let made = try await bucket.status(ofKey: target, what), made.size == found.size
            else {
                throw ProviderError(.retry, "\(what): the copy is not there")
            }
            return made.tag
        } catch {
            await abort(upload, of: target)
            throw error
        }
    }

    /// Copying the parts may take longer than a hollow object is respected, and their end goes over
    /// whatever is there unless the server honours a condition for it. So right before it the place
    /// is looked at, or taken once more: who lists the folder may have removed our hollow object as
    /// one that was forsaken.
    private func checkPlace(
        _ source: [UInt8], _ target: [UInt8], _ what: String
    ) async throws(ProviderError) {
        guard source != target, !traits.completionRefusesTaken else { return }
        if traits.copiesIntoHollows {
            return try await takePlace(target, HollowObject.mark(source), what)
        }
        guard try await bucket.anyStatus(ofKey: target, what) == nil else {
            throw ProviderError(
                .conflict, "\(what): something was made there on the server meanwhile")
        }
    }

    /// What was copied of it would be kept, and paid for, until somebody removes it.
    private func abort(_ upload: String, of target: [UInt8]) async {
        await withCancellationShield { [client = bucket.client] in
            _ = try? await client.exchange(
                S3Request(.DELETE, target, [QueryItem("uploadId", upload)]))
        }
    }

    /// CreateMultipartUpload begins with nothing, so what is kept with the source is said again.
    private func keptHeaders(_ found: ObjectStatus) -> HTTPHeaders {
        var headers = found.kept
        guard found.details != ObjectDetails() else { return headers }
        let metadata = found.details.metadata(
            kind: .file, lastModified: found.lastModified ?? bucket.clock.now(), owner: 0, group: 0)
        headers.add(contentsOf: ObjectDetails.headers(metadata, kind: .file))
        return headers
    }

    /// Returns the parts' tags, in order.
    private func copyParts(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ upload: String,
        _ what: String
    ) async throws(ProviderError) -> [String] {
        let plan = PartPlan(size: found.size, partByteCount: ObjectCopier.partByteCount)
        let parts = try await concurrently(Array(1...plan.count), width: 4) {
            (number) async throws(ProviderError) -> (Int, String)? in
            let range = plan.range(number)
            var headers = copySource(source, found.tag)
            headers.add(
                name: "X-Amz-Copy-Source-Range", value: "bytes=\(range.lower)-\(range.upper - 1)")
            var request = S3Request(
                .PUT, target,
                [QueryItem("partNumber", "\(number)"), QueryItem("uploadId", upload)], headers)
            request.isRepeatable = true
            return (number, EntityTag.opaque(try await answer(request, what).values["ETag"] ?? ""))
        }
        return parts.sorted { $0.0 < $1.0 }.map(\.1)
    }
}
