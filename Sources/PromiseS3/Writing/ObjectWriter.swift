import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Gives a key its content, in one PutObject or in parts, on the condition that what is there is
/// what was expected. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html>
///
/// Throws `.conflict` when something else is there, `.notFound` when what was to be replaced is
/// gone.
struct ObjectWriter: Sendable {
    /// What is smaller goes in one request, which has no half and whose condition more servers
    /// honour.
    static let straightByteCountMax: UInt64 = 16 << 20
    /// A PUT carries no more. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
    private static let requestByteCountMax: UInt64 = 5 << 30
    static let ordinaryType = "application/octet-stream"

    let bucket: S3Bucket
    let folders: BucketFolders
    let hollows: HollowObjects
    let uploads: MultipartUpload
    let items: S3Items
    private var traits: S3Traits { bucket.traits }
    private var client: S3Client { bucket.client }
    private var pool: BlockingPool { bucket.pool }

    /// Of bytes that are no file. Returns the tag.
    func write(
        _ bytes: [UInt8], at path: [FileName], _ expectation: Expectation
    ) async throws(ProviderError) -> String {
        let key = bucket.names.key(path)
        return try await bucket.turns.take(S3Location.encoded(key)) {
            () async throws(ProviderError) in
            let headers: HTTPHeaders = ["Content-Type": ObjectWriter.ordinaryType]
            let written = ObjectWrite(
                key: key, path: path, expectation: expectation, headers: headers)
            return try await writeStraight(.bytes(bytes), written)
        }
    }

    /// Returns the item as it is on the server now. `keepsRights`: with the mode and owners of what
    /// is there.
    func write(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata,
        keepsRights: Bool = false, target: [UInt8]?, parent: ItemIdentifier?
    ) async throws(ProviderError) -> Item {
        let key = bucket.names.key(path)
        return try await bucket.turns.take(S3Location.encoded(key)) {
            () async throws(ProviderError) in
            if expectation == .nothing, try await folders.hasBecomeFolder(path) {
                throw ProviderError.taken(path)
            }
            let kind: NodeKind = target == nil ? .file : .link
            var found: ObjectStatus?
            if expectation != .nothing {
                let what = "\(shown(path)) cannot be looked at"
                found = try await bucket.status(ofKey: key, what)
            }
            var metadata = metadata
            if keepsRights, let found {
                let sent = metadata
                metadata = items.item(found, path, parent: parent).metadata
                metadata.modificationTime = sent.modificationTime
                metadata.mode = Metadata.mode(metadata.mode, passedToContentOf: sent.mode)
            }
            let headers = headers(over: found, metadata, kind)
            let written = ObjectWrite(
                key: key, path: path, expectation: expectation, headers: headers)
            let tag: String
            if case .source(let source) = payload, source.size > ObjectWriter.straightByteCountMax,
                traits.hasMultipart
            {
                tag = try await uploads.write(source, written)
            } else {
                tag = try await writeStraight(payload, written)
            }
            let known =
                traits.keepsMetadata ? ObjectDetails(metadata, target: target) : ObjectDetails()
            let stamp = KnownDetails.Stamp(tag: tag, lastModified: nil)
            bucket.details.note(key, stamp, known, size: payload.size)
            return items.item(
                path, kind: .file, tag: tag, size: payload.size, lastModified: bucket.clock.now(),
                known,
                parent: parent)
        }
    }

    /// What others keep with an object stays with it when its content changes.
    private func headers(
        over found: ObjectStatus?, _ metadata: Metadata, _ kind: NodeKind
    ) -> HTTPHeaders {
        var headers = found?.kept ?? [:]
        if traits.keepsMetadata {
            headers.add(contentsOf: ObjectDetails.headers(metadata, kind: kind))
        }
        if !headers.contains(name: "Content-Type") {
            headers.add(name: "Content-Type", value: ObjectWriter.ordinaryType)
        }
        return headers
    }

    /// One PUT; returns the tag.
    private func writeStraight(_ payload: Payload, _ written: ObjectWrite)
        async throws(ProviderError) -> String
    {
        let what = "\(shown(written.path)) cannot be uploaded"
        let honours = traits.refusesTaken && traits.matchForm != nil
        if !honours { try await bucket.check(written.expectation, at: written.path) }
        var request = S3Request(.PUT, written.key, [], written.headers)
        if honours { request.headers.add(contentsOf: bucket.conditions(written.expectation)) }
        let hash = try await load(payload, into: &request, what)
        var reply = try await client.exchange(request)
        if reply.status == 412, written.expectation == .nothing {
            switch try await hollows.outlast(written.key, what) {
            case .something: break
            case .nobody: reply = try await client.exchange(request)
            case .hollow(let there):
                request.headers.remove(name: "If-None-Match")
                request.headers.add(contentsOf: bucket.conditions(.version(there.version)))
                reply = try await client.exchange(request)
            }
        }
        if reply.status == 412 || reply.status == 409, written.expectation != .nothing {
            // Servers disagree about what it is to replace something that is gone.
            _ = try await bucket.status(of: written.path)
        }
        guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        let tag = EntityTag.opaque(reply.header("ETag") ?? "")
        if !tag.isEmpty { return tag }
        let found = try await bucket.status(of: written.path)
        guard found.size == payload.size, found.tag == hash || !PartDigest.isDigest(found.tag)
        else {
            throw ProviderError(
                .conflict, "\(shown(written.path)) was changed on the server at the same moment")
        }
        return found.tag
    }

    /// What is large is sent as it is read. Returns the tag that servers give to it.
    private func load(
        _ payload: Payload, into request: inout S3Request, _ what: String
    ) async throws(ProviderError) -> String {
        guard payload.size <= ObjectWriter.requestByteCountMax else {
            let lack = "the server takes no uploads in parts, and a request carries up to 5 GiB"
            throw ProviderError(.refused, "\(what): \(lack)")
        }
        let digest: String
        let tag: String
        let limit = ObjectWriter.straightByteCountMax
        switch try await payload.body(inMemoryUpTo: limit, pool: pool) {
        case .file(let file):
            let isSigned = client.signsContent
            let digests = try await pool.run { () throws(ProviderError) in
                try PartDigest.of(file, isSigned: isSigned)
            }
            request.file = (file, digests.hash)
            (digest, tag) = (digests.header, digests.tag)
        case .bytes(let body, let source):
            (request.body, request.source) = (body, source)
            (digest, tag) = await pool.run { PartDigest.of(body) }
        }
        request.headers.add(name: "Content-MD5", value: digest)
        if let body = request.body, traits.verifiesChecksums || client.signsContent {
            let sum = await pool.run {
                body.withUnsafeReadableBytes { Array(SHA256.hash(data: $0)) }
            }
            request.bodyHash = hexadecimalText(sum)
            if traits.verifiesChecksums {
                let text = Data(sum).base64EncodedString()
                request.headers.add(name: ContentDigest.amazonHeader(.sha256), value: text)
            }
        }
        return tag
    }
}
