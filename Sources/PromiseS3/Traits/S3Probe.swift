import Crypto
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Finds out what a server really does, by doing it once with keys of its own below `.promisefs`. About 45 requests; a mount
/// waits for them, so what does not depend on one another is asked at once.
struct S3Probe: Sendable {
    /// What is found out with keys of its own.
    fileprivate enum Question { case details, conditions, checksums, copies, controls, folders, parts, deletion, completion }

    /// The last two need what the second finds: how a tag is written.
    private static let rounds: [[Question]] = [
        [.details, .conditions, .checksums, .copies, .controls, .folders, .parts], [.deletion, .completion],
    ]

    let bucket: S3Bucket
    private let folder: [UInt8]
    private var client: S3Client { bucket.client }

    init(_ bucket: S3Bucket) {
        self.bucket = bucket
        let unique =
            String(bucket.clock.now().rawValue, radix: 36) + "-"
            + String(UInt32.random(in: 0 ... .max), radix: 36)
        folder = bucket.location.prefix + ReservedName.folder.bytes + Array("/probe-\(unique)/".utf8)
    }

    private func key(_ name: String) -> [UInt8] { folder + Array(name.utf8) }

    /// Traits of a server where nothing may be written are a guess. Throws when the call was cancelled, and when the server had
    /// trouble: what it does not do now it may do later.
    func run() async throws(ProviderError) -> S3Traits {
        do throws(ProviderError) {
            let traits = try await tryEverything()
            await removeEverything()
            return traits
        } catch {
            await removeEverything()
            guard error.code == .refused || error.code == .notFound else { throw error }
            // Who refuses everything refuses for another reason than that nothing may be written.
            _ = try await bucket.firstLook()
            return S3Probe.guess
        }
    }

    /// What is taken for true where nothing could be tried.
    static var guess: S3Traits {
        var traits = S3Traits()
        // Every server that is one has it, and without it a large content would have to go in one request.
        traits.hasMultipart = true
        return traits
    }

    /// Whether it takes and gives an object, so that trouble is of something else.
    func isWell() async -> Bool {
        let file = key("well")
        do throws(ProviderError) {
            guard try await put(file, "one").isSuccess else { return false }
            try await expectContent(file)
            return try await exchange(S3Request(.DELETE, file)).isSuccess
        } catch {
            return false
        }
    }

    private func tryEverything() async throws(ProviderError) -> S3Traits {
        let file = key("file")
        let first = try await put(file, "one", ["X-Amz-Meta-Mtime": "1.5"])
        guard first.isSuccess else { throw S3Refusal(first).error("an object to try the server with cannot be made") }
        try await expectContent(file)
        let tag = EntityTag.opaque(try await exchange(S3Request(.HEAD, file)).header("ETag") ?? "")
        var traits = S3Traits()
        traits.isGuess = false
        for round in S3Probe.rounds {
            let known = traits
            let answers = try await concurrently(round) { (question) async throws(ProviderError) in
                (question, try await answer(question, file, tag, known))
            }
            for (question, answer) in answers { traits.take(answer, to: question) }
        }
        try await expectContent(file)
        return traits
    }

    /// A login page takes everything and gives itself.
    private func expectContent(_ file: [UInt8]) async throws(ProviderError) {
        guard try await content(file) == "one" else {
            throw ProviderError(.retry, "an object to try the server with is not what was sent: somebody else answers")
        }
    }

    /// What is `known`, and what belongs to the question. `tag` is what `one` has everywhere.
    private func answer(
        _ question: Question, _ file: [UInt8], _ tag: String, _ known: S3Traits
    ) async throws(ProviderError) -> S3Traits {
        var traits = known
        switch question {
        case .details:
            let found = try await exchange(S3Request(.HEAD, file))
            traits.keepsMetadata = found.header("X-Amz-Meta-Mtime") == "1.5"
            let listed = try await bucket.first(1, file, "an object to try the server with cannot be listed").first
            traits.listsTrueTimes = listed?.lastModified == ObjectStatus(found.headers).lastModified
            traits.hasRanges = try await sendsRange(file)
        case .conditions: try await tryConditions(key("put"), tag, &traits)
        case .checksums: traits.verifiesChecksums = try await refusesWrongChecksum(key("checksum"))
        case .copies: try await tryCopy(file, tag, &traits)
        case .controls: traits.keepsControls = try await put(key("control\ncharacter\u{1}"), "one").isSuccess
        case .folders: traits.keepsMarkers = try await keepsMarker(key("folder"))
        case .parts: try await tryParts(key("parts"), &traits)
        case .deletion: traits.deletionMatches = try await refusesDeletion(key("put"), tag, traits)
        case .completion where traits.hasMultipart:
            traits.completionMatches = try await refusesCompletion(key("parts"), tag, traits)
        case .completion: break
        }
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
        return reply.isSuccess && reply.header("Content-Range") != nil && reply.body == Data("n".utf8)
    }

    private func refusesWrongChecksum(_ file: [UInt8]) async throws(ProviderError) -> Bool {
        let name = ContentDigest.amazonHeader(.sha256)
        let sum = { (text: String) in Data(SHA256.hash(data: Array(text.utf8))).base64EncodedString() }
        guard try await !put(file, "one", [name: sum("two")]).isSuccess else { return false }
        return try await put(file, "one", [name: sum("one")]).header(name) == sum("one")
    }

    /// Ends with `one` in it.
    private func tryConditions(_ file: [UInt8], _ tag: String, _ traits: inout S3Traits) async throws(ProviderError) {
        _ = try await put(file, "one")
        let taken = try await put(file, "two", ["If-None-Match": "*"])
        let free = try await put(key("free"), "two", ["If-None-Match": "*"])
        let isKept = try await content(file) == "one"
        traits.refusesTaken = !taken.isSuccess && isKept && free.isSuccess
        if !isKept { _ = try await put(file, "one") }
        // Of the right length, as a form that the server cannot read may be refused for that.
        let wrong = String(repeating: "0", count: max(tag.count, 1))
        for form in [S3Traits.TagForm.quoted, .bare] {
            traits.matchForm = form
            let refused = try await put(file, "one", ["If-Match": traits.tagText(wrong)]).status == 412
            let accepted = try await put(file, "one", ["If-Match": traits.tagText(tag)]).isSuccess
            if refused && accepted { return }
        }
        traits.matchForm = nil
    }

    private func tryCopy(_ file: [UInt8], _ tag: String, _ traits: inout S3Traits) async throws(ProviderError) {
        let source = "/\(bucket.location.bucket)/\(S3Location.encoded(file))"
        let other = key("copied")
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

    /// A gateway to files makes a file of a key that ends with a slash, or nothing (`rclone serve s3`).
    private func keepsMarker(_ file: [UInt8]) async throws(ProviderError) -> Bool {
        let folder = file + [KeyNames.slash]
        guard try await put(folder, "").isSuccess, try await !exchange(S3Request(.HEAD, file)).isSuccess else { return false }
        return try await bucket.first(1, folder, "a folder to try the server with cannot be listed").map(\.key) == [folder]
    }

    private func tryParts(_ file: [UInt8], _ traits: inout S3Traits) async throws(ProviderError) {
        guard let plain = try await complete(file, [:]) else { return }
        traits.hasMultipart = plain.isSuccess
        guard traits.hasMultipart else { return }
        let told = S3Document.parse(plain.body)?.values["ETag"].map(EntityTag.opaque) ?? ""
        let tag = EntityTag.opaque(try await exchange(S3Request(.HEAD, file)).header("ETag") ?? "")
        traits.completionTellsTag = told.isEmpty || told == tag
        traits.completionRefusesTaken = try await complete(file, ["If-None-Match": "*"])?.status == 412
    }

    /// `tag` is that of another object.
    private func refusesCompletion(_ file: [UInt8], _ tag: String, _ traits: S3Traits) async throws(ProviderError) -> Bool {
        let now = EntityTag.opaque(try await exchange(S3Request(.HEAD, file)).header("ETag") ?? "")
        let wrong = try await complete(file, ["If-Match": traits.tagText(tag)])
        let right = try await complete(file, ["If-Match": traits.tagText(now)])
        return wrong?.status == 412 && right?.isSuccess == true
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

    private func removeEverything() async {
        await withCancellationShield { [client, folder] in
            let names = [
                "file", "put", "free", "checksum", "copied", "copy", "control\ncharacter\u{1}", "folder/",
                "folder", "parts",
            ]
            _ = try? await concurrently(names) { (name) async throws(ProviderError) in
                try? await client.exchange(S3Request(.DELETE, folder + Array(name.utf8)))
            }
        }
    }
}

extension S3Traits {
    /// Takes over what was found out for one question.
    fileprivate mutating func take(_ answer: S3Traits, to question: S3Probe.Question) {
        switch question {
        case .details:
            (keepsMetadata, listsTrueTimes) = (answer.keepsMetadata, answer.listsTrueTimes)
            hasRanges = answer.hasRanges
        case .conditions: (refusesTaken, matchForm) = (answer.refusesTaken, answer.matchForm)
        case .checksums: verifiesChecksums = answer.verifiesChecksums
        case .copies: (copyRefusesTaken, copyMatchesSource) = (answer.copyRefusesTaken, answer.copyMatchesSource)
        case .controls: keepsControls = answer.keepsControls
        case .folders: keepsMarkers = answer.keepsMarkers
        case .parts:
            (hasMultipart, completionTellsTag) = (answer.hasMultipart, answer.completionTellsTag)
            completionRefusesTaken = answer.completionRefusesTaken
        case .deletion: deletionMatches = answer.deletionMatches
        case .completion: completionMatches = answer.completionMatches
        }
    }
}
