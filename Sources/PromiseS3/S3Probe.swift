import Crypto
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Finds out what a server really does, by doing it once with keys of its own below `.promisefs`. About 35 requests.
struct S3Probe: Sendable {
    let provider: S3Provider
    private let folder: [UInt8]
    private var client: S3Client { provider.client }

    init(provider: S3Provider) {
        self.provider = provider
        let unique = String(provider.clock.now().rawValue, radix: 36) + "-" + String(UInt32.random(in: 0 ... .max), radix: 36)
        folder = provider.location.prefix + ReservedName.folder.bytes + Array("/probe-\(unique)/".utf8)
    }

    private func key(_ name: String) -> [UInt8] { folder + Array(name.utf8) }

    /// Traits of a server where nothing may be written are a guess, and those of one that has passing trouble meanwhile: what
    /// it does not do now it may do later. Throws when the call was cancelled.
    func run() async throws(ProviderError) -> S3Traits {
        do throws(ProviderError) {
            let traits = try await tryEverything()
            await removeEverything()
            return traits
        } catch {
            await removeEverything()
            var traits = S3Traits()
            // Every server that is one has it, and without it a large content would have to go in one request.
            traits.hasMultipart = true
            switch error.code {
            case .cancelled: throw error
            case .refused, .notFound: break
            default:
                traits.brokeOff = true
                provider.logger.warning(
                    "it could not be tried what the server does", metadata: ["reason": "\(error.description)"])
            }
            return traits
        }
    }

    private func tryEverything() async throws(ProviderError) -> S3Traits {
        var traits = S3Traits()
        let file = key("file")
        let first = try await put(file, "one", ["X-Amz-Meta-Mtime": "1.5"])
        guard first.isSuccess else { throw S3Refusal(first).error("an object to try the server with cannot be made") }
        traits.isGuess = false
        let head = try await exchange(S3Request(.HEAD, file))
        let tag = EntityTag.opaque(head.header("ETag") ?? "")
        traits.keepsMetadata = head.header("X-Amz-Meta-Mtime") == "1.5"
        traits.hasRanges = try await sendsRange(file)
        try await tryPut(file, tag, &traits)
        traits.verifiesChecksums = try await refusesWrongChecksum()
        try await tryCopy(file, tag, &traits)
        let control = try await put(key("control\ncharacter\u{1}"), "one")
        traits.keepsControls = control.isSuccess
        try await tryParts(file, tag, &traits)
        // Last, as it may remove the object.
        traits.deletionMatches = try await refusesDeletion(file, tag, traits)
        return traits
    }

    // MARK: Requests

    /// A reply that tells what the server does; throws what tells only that it has trouble now.
    private func exchange(_ request: S3Request) async throws(ProviderError) -> HTTPReply {
        let reply = try await client.exchange(request)
        if reply.isSuccess { return reply }
        let refusal = S3Refusal(reply)
        // Some servers answer what they do not know with a failure of their own.
        if refusal.isPassing, reply.status != 500, reply.status != 409 {
            throw refusal.error("the server cannot be tried with \(request.method)")
        }
        return reply
    }

    private func put(_ key: [UInt8], _ text: String, _ headers: HTTPHeaders = [:]) async throws(ProviderError) -> HTTPReply {
        var request = S3Request(.PUT, key, [], headers)
        request.body = ByteBuffer(string: text)
        return try await exchange(request)
    }

    private func content(_ key: [UInt8]) async throws(ProviderError) -> String {
        String(decoding: try await exchange(S3Request(.GET, key)).body, as: UTF8.self)
    }

    // MARK: Questions

    private func sendsRange(_ file: [UInt8]) async throws(ProviderError) -> Bool {
        let reply = try await exchange(S3Request(.GET, file, [], ["Range": "bytes=1-1"]))
        return reply.status == 206 && reply.body == Data("n".utf8)
    }

    private func refusesWrongChecksum() async throws(ProviderError) -> Bool {
        let name = ContentDigest.amazonHeader(.sha256)
        let sum = { (text: String) in Data(SHA256.hash(data: Array(text.utf8))).base64EncodedString() }
        guard try await !put(key("free"), "one", [name: sum("two")]).isSuccess else { return false }
        return try await put(key("free"), "one", [name: sum("one")]).header(name) == sum("one")
    }

    /// Ends with the content of before.
    private func tryPut(_ file: [UInt8], _ tag: String, _ traits: inout S3Traits) async throws(ProviderError) {
        let taken = try await put(file, "two", ["If-None-Match": "*"])
        let free = try await put(key("free"), "two", ["If-None-Match": "*"])
        let isKept = try await content(file) == "one"
        traits.refusesTaken = !taken.isSuccess && isKept && free.isSuccess
        if !isKept { _ = try await put(file, "one", ["X-Amz-Meta-Mtime": "1.5"]) }
        // Of the right length, as a form that the server cannot read may be refused for that.
        let wrong = String(repeating: "0", count: max(tag.count, 1))
        for form in [S3Traits.TagForm.quoted, .bare] {
            traits.matchForm = form
            let refused = try await put(file, "one", ["If-Match": traits.tagText(wrong)]).status == 412
            let accepted = try await put(file, "one", ["If-Match": traits.tagText(tag), "X-Amz-Meta-Mtime": "1.5"]).isSuccess
            if refused && accepted { return }
        }
        traits.matchForm = nil
    }

    private func tryCopy(_ file: [UInt8], _ tag: String, _ traits: inout S3Traits) async throws(ProviderError) {
        let source = "/\(provider.location.bucket)/\(S3Location.encoded(file))"
        let other = key("free")
        _ = try await put(other, "two")
        let taken = try await exchange(
            S3Request(.PUT, other, [], ["X-Amz-Copy-Source": source, "If-None-Match": "*"]))
        let isKept = try await content(other) == "two"
        let free = try await exchange(
            S3Request(.PUT, key("copy"), [], ["X-Amz-Copy-Source": source, "If-None-Match": "*"]))
        // Other refusals tell that the server does not know the condition, and would refuse every copy.
        traits.copyRefusesTaken = taken.status == 412 && isKept && free.isSuccess
        let wrong = String(repeating: "0", count: max(tag.count, 1))
        let changed = try await exchange(
            S3Request(.PUT, other, [], ["X-Amz-Copy-Source": source, "X-Amz-Copy-Source-If-Match": "\"\(wrong)\""]))
        let right = try await exchange(
            S3Request(.PUT, other, [], ["X-Amz-Copy-Source": source, "X-Amz-Copy-Source-If-Match": "\"\(tag)\""]))
        traits.copyMatchesSource = changed.status == 412 && right.isSuccess
    }

    private func tryParts(_ file: [UInt8], _ tag: String, _ traits: inout S3Traits) async throws(ProviderError) {
        guard let plain = try await complete(key("parts"), [:]) else { return }
        traits.hasMultipart = plain.isSuccess
        guard traits.hasMultipart else { return }
        let taken = try await complete(key("parts"), ["If-None-Match": "*"])
        traits.completionRefusesTaken = taken?.status == 412
        let now = EntityTag.opaque(try await exchange(S3Request(.HEAD, key("parts"))).header("ETag") ?? "")
        let wrong = try await complete(key("parts"), ["If-Match": traits.tagText(tag)])
        let right = try await complete(key("parts"), ["If-Match": traits.tagText(now)])
        traits.completionMatches = wrong?.status == 412 && right?.isSuccess == true
    }

    /// Uploads one part; nil where the server knows no uploads in parts.
    private func complete(_ key: [UInt8], _ headers: HTTPHeaders) async throws(ProviderError) -> HTTPReply? {
        let began = try await exchange(S3Request(.POST, key, [QueryItem("uploads")]))
        guard began.isSuccess, let upload = S3Document.parse(began.body)?.values["UploadId"] else { return nil }
        var part = S3Request(.PUT, key, [QueryItem("partNumber", "1"), QueryItem("uploadId", upload)])
        part.body = ByteBuffer(string: "part")
        let sent = try await exchange(part)
        let tag = EntityTag.opaque(sent.header("ETag") ?? "")
        var request = S3Request(.POST, key, [QueryItem("uploadId", upload)], headers)
        request.body = ByteBuffer(
            string: "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber>"
                + "<ETag>&quot;\(tag)&quot;</ETag></Part></CompleteMultipartUpload>")
        let reply = try await exchange(request)
        if !reply.isSuccess { _ = try await exchange(S3Request(.DELETE, key, [QueryItem("uploadId", upload)])) }
        return reply
    }

    private func refusesDeletion(_ file: [UInt8], _ tag: String, _ traits: S3Traits) async throws(ProviderError) -> Bool {
        let wrong = String(repeating: "0", count: max(tag.count, 1))
        let refused = try await exchange(S3Request(.DELETE, file, [], ["If-Match": traits.tagText(wrong)]))
        guard refused.status == 412, try await exchange(S3Request(.HEAD, file)).isSuccess else { return false }
        return try await exchange(S3Request(.DELETE, file, [], ["If-Match": traits.tagText(tag)])).isSuccess
    }

    /// Also when the caller was cancelled.
    private func removeEverything() async {
        let request = Task { [client, folder] in
            for name in ["file", "free", "copy", "control\ncharacter\u{1}", "parts"] {
                _ = try? await client.exchange(S3Request(.DELETE, folder + Array(name.utf8)))
            }
        }
        await request.value
    }
}
