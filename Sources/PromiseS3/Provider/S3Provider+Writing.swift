import Crypto
import Foundation
import NIOCore
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

// Creating, changing and removing. Nothing takes effect under a key whose content was not what the caller expected.

/// What must be at a key for a write to happen.
enum Expectation: Equatable, Sendable {
    case nothing
    case version(ContentVersion)
    case anything
}

/// What an object is to hold.
enum Payload: Sendable {
    case source(any ContentSource)
    /// A link's target, or nothing.
    case bytes([UInt8])

    var size: UInt64 {
        switch self {
        case .source(let source): source.size
        case .bytes(let bytes): UInt64(bytes.count)
        }
    }
}

extension S3Provider {
    /// A PUT carries no more. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
    private static let requestByteCountMax: UInt64 = 5 << 30
    static let keyByteCountMax = 1024
    static let ordinaryType = "application/octet-stream"

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await acquaintance.complete()
        let path = folder.path + [item.name]
        try await finishMoves(at: path)
        try checkName(path)
        try await checkBeside(path, item.kind)
        switch item.kind {
        case .folder:
            return try await makeFolder(path, item.metadata, parent: folder.identifier)
        case .link:
            guard traits.keepsMetadata, let target = item.target else {
                throw ProviderError(.refused, "\(shown(path)) stays on this machine: the server cannot keep symbolic links")
            }
            return try await write(.bytes(target), at: path, .nothing, item.metadata, target: target, parent: folder.identifier)
        default:
            let payload = contents.map { Payload.source($0) } ?? .bytes([])
            return try await write(payload, at: path, .nothing, item.metadata, target: nil, parent: folder.identifier)
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await acquaintance.complete()
        var ended = try await finishMoves(at: reference.path, containing: true)
        if let place = changes.place {
            let target = place.parent.path + [place.name]
            ended += try await finishMoves(at: target, containing: true)
            if contents == nil, changes.target == nil, ended.contains(where: { isMove($0, reference.path, target) }) {
                var moved = try await item(for: ItemReference(identifier: identifier(target), path: target))
                if let metadata = changes.metadata { moved = try await store(metadata, at: target, moved.version) }
                moved.parent = place.parent.identifier
                return moved
            }
        }
        let payload = contents.map { Payload.source($0) } ?? changes.target.map { .bytes($0) }
        var result: Item?
        if let payload {
            let expectation = baseVersion.map { Expectation.version($0) } ?? .anything
            let metadata: Metadata
            if let changed = changes.metadata {
                metadata = changed
            } else {
                metadata = try await self.metadata(of: reference.path)
            }
            result = try await write(payload, at: reference.path, expectation, metadata, target: changes.target, parent: nil)
        }
        let base = result?.version ?? baseVersion
        if let place = changes.place {
            let target = place.parent.path + [place.name]
            try checkName(target)
            try await checkBeside(target, base == S3Provider.folderVersion ? .folder : .file)
            let metadata = payload == nil ? changes.metadata : nil
            var moved = try await move(reference.path, to: target, base, metadata)
            moved.parent = place.parent.identifier
            return moved
        }
        if let result { return result }
        if let metadata = changes.metadata { return try await store(metadata, at: reference.path, base) }
        return try await item(for: reference)
    }

    /// An attempt of before that broke off may have been at just this.
    private func isMove(_ record: MoveJournal.Record, _ path: [FileName], _ target: [FileName]) -> Bool {
        let files = (names.key(path), names.key(target))
        let folders = (names.folderKey(path), names.folderKey(target))
        let ends = record.tag == nil ? folders : files
        return record.source == S3Location.encoded(ends.0) && record.target == S3Location.encoded(ends.1)
    }

    private func checkName(_ path: [FileName]) throws(ProviderError) {
        guard path.first != ReservedName.folder, traits.keepsMarkers || path.last != ReservedName.keeper else {
            throw ProviderError(.refused, "\(shown(path)) is a name that PromiseFS keeps for itself on the server")
        }
        // <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>; a folder's has a slash more.
        guard names.key(path).count < S3Provider.keyByteCountMax else {
            throw ProviderError(.refused, "\(shown(path)) stays on this machine: its key is longer than 1024 bytes")
        }
    }

    // MARK: Content

    /// Returns the tag.
    func writeObject(
        _ bytes: [UInt8], at path: [FileName], _ expectation: Expectation
    ) async throws(ProviderError) -> String {
        let key = names.key(path)
        return try await turns.take(S3Location.encoded(key)) { () async throws(ProviderError) in
            let headers: HTTPHeaders = ["Content-Type": S3Provider.ordinaryType]
            let written = Written(key: key, path: path, expectation: expectation, headers: headers)
            return try await writeStraight(.bytes(bytes), written)
        }
    }

    /// Returns the item as it is on the server now.
    private func write(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata, target: [UInt8]?,
        parent: ItemIdentifier?
    ) async throws(ProviderError) -> Item {
        let key = names.key(path)
        return try await turns.take(S3Location.encoded(key)) { () async throws(ProviderError) in
            if expectation == .nothing, try await hasBecomeFolder(path) { throw S3Provider.taken(shown(path)) }
            if payload.size > S3Provider.straightByteCountMax { await tryAgain() }
            let kind: NodeKind = target == nil ? .file : .link
            // What others keep with an object stays with it when its content changes.
            var headers: HTTPHeaders = [:]
            if expectation != .nothing, let found = try await status(ofKey: key, "\(shown(path)) cannot be looked at") {
                headers = found.kept
            }
            if traits.keepsMetadata { headers.add(contentsOf: ObjectDetails.headers(metadata, kind: kind)) }
            if !headers.contains(name: "Content-Type") {
                headers.add(name: "Content-Type", value: S3Provider.ordinaryType)
            }
            let written = Written(key: key, path: path, expectation: expectation, headers: headers)
            let tag: String
            if case .source(let source) = payload, source.size > S3Provider.straightByteCountMax, traits.hasMultipart {
                tag = try await writeInParts(source, written)
            } else {
                tag = try await writeStraight(payload, written)
            }
            let known = traits.keepsMetadata ? ObjectDetails(metadata, target: target) : ObjectDetails()
            details.note(key, KnownDetails.Stamp(tag: tag, lastModified: nil), known, size: payload.size)
            return item(path, kind: .file, tag: tag, size: payload.size, lastModified: clock.now(), known, parent: parent)
        }
    }

    /// A write under way.
    struct Written: Sendable {
        var key: [UInt8]
        var path: [FileName]
        var expectation: Expectation
        /// What is kept with the content.
        var headers: HTTPHeaders
    }

    /// One PUT; returns the tag.
    private func writeStraight(_ payload: Payload, _ written: Written) async throws(ProviderError) -> String {
        let what = "\(shown(written.path)) cannot be uploaded"
        let honours = traits.refusesTaken && traits.matchForm != nil
        if !honours { try await check(written.expectation, at: written.path) }
        var request = S3Request(.PUT, written.key, [], written.headers)
        if honours { request.headers.add(contentsOf: conditions(written.expectation)) }
        let hash = try await load(payload, into: &request, what)
        var reply = try await client.exchange(request)
        if reply.status == 412, written.expectation == .nothing, let there = try await forsakenHollow(written.key, what) {
            request.headers.remove(name: "If-None-Match")
            request.headers.add(contentsOf: conditions(.version(there.version)))
            reply = try await client.exchange(request)
        }
        if reply.status == 412 || reply.status == 409, written.expectation != .nothing {
            // Servers disagree about what it is to replace something that is gone.
            _ = try await status(of: written.path)
        }
        guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        let tag = EntityTag.opaque(reply.header("ETag") ?? "")
        if !tag.isEmpty { return tag }
        let found = try await status(of: written.path)
        guard found.size == payload.size, found.tag == hash || !PartDigest.isDigest(found.tag) else {
            throw ProviderError(.conflict, "\(shown(written.path)) was changed on the server at the same moment")
        }
        return found.tag
    }

    /// What is large is sent as it is read. Returns the tag that servers give to it.
    private func load(
        _ payload: Payload, into request: inout S3Request, _ what: String
    ) async throws(ProviderError) -> String {
        guard payload.size <= S3Provider.requestByteCountMax else {
            throw ProviderError(.refused, "\(what): the server takes no uploads in parts, and a request carries up to 5 GiB")
        }
        let digest: String
        let tag: String
        if case .source(let source) = payload, source.size > S3Provider.straightByteCountMax {
            let file = FileBody(source: source, pool: pool)
            let isSigned = client.signsContent
            let digests = try await pool.run { () throws(ProviderError) in try PartDigest.of(file, isSigned: isSigned) }
            request.file = (file, digests.hash)
            (digest, tag) = (digests.header, digests.tag)
        } else {
            let body = try await bytes(of: payload)
            request.body = body
            (digest, tag) = await pool.run { PartDigest.of(body) }
        }
        request.headers.add(name: "Content-MD5", value: digest)
        if let body = request.body, traits.verifiesChecksums || client.signsContent {
            let sum = await pool.run { body.withUnsafeReadableBytes { Array(SHA256.hash(data: $0)) } }
            request.bodyHash = hexadecimalText(sum)
            if traits.verifiesChecksums {
                request.headers.add(name: ContentDigest.amazonHeader(.sha256), value: Data(sum).base64EncodedString())
            }
        }
        return tag
    }

    private func bytes(of payload: Payload) async throws(ProviderError) -> ByteBuffer {
        switch payload {
        case .bytes(let bytes): return ByteBuffer(bytes: bytes)
        case .source(let source):
            if source.size == 0 {
                try source.validate()
                return ByteBuffer()
            }
            let file = FileBody(source: source, pool: pool)
            return try await pool.run { () throws(ProviderError) in try file.read(at: 0, source.size) }
        }
    }

    func conditions(_ expectation: Expectation) -> HTTPHeaders {
        switch expectation {
        case .nothing: ["If-None-Match": "*"]
        case .version(let version): ["If-Match": traits.tagText(version.rawValue)]
        case .anything: [:]
        }
    }

    func check(_ expectation: Expectation, at path: [FileName]) async throws(ProviderError) {
        let what = "\(shown(path)) cannot be looked at"
        switch expectation {
        case .anything: return
        case .nothing:
            if try await status(ofKey: names.key(path), what) != nil { throw S3Provider.taken(shown(path)) }
        case .version(let version):
            guard try await status(of: path).version == version else { throw S3Provider.taken(shown(path)) }
        }
    }

    static func taken(_ shown: String) -> ProviderError {
        ProviderError(.conflict, "\(shown) was changed or made on the server meanwhile")
    }

    // MARK: Removing

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await acquaintance.complete()
        let path = reference.path
        try await finishMoves(at: path, containing: true)
        // A file is looked at anyway; the one look more is for what nothing is known of, or what is gone.
        let isFile = baseVersion != nil && baseVersion != S3Provider.folderVersion
        if isFile, try await deleteFile(path, baseVersion) { return }
        let isFolder = try await isFolder(path)
        if isFile, isFolder { throw ProviderError(.conflict, "\(shown(path)) is a folder on the server now") }
        // Removing what is gone already is done.
        if isFolder { return try await deleteFolder(path) }
        if baseVersion == S3Provider.folderVersion {
            guard try await status(ofKey: names.key(path), "\(shown(path)) cannot be looked at") == nil else {
                throw ProviderError(.conflict, "\(shown(path)) is a file on the server now")
            }
        } else if baseVersion == nil {
            _ = try await deleteFile(path, nil)
        } else if path.count > 1, try await !self.isFolder(Array(path.dropLast())) {
            // Others may have moved the folder: that is no removal.
            throw ProviderError(.notFound, "the folder of \(shown(path)) is not on the server")
        }
    }

    /// False when there is no such file.
    private func deleteFile(_ path: [FileName], _ version: ContentVersion?) async throws(ProviderError) -> Bool {
        try await turns.take(S3Location.encoded(names.key(path))) { () async throws(ProviderError) in
            // Where the condition is not met it is looked at what is there: servers call what is gone a conflict, too.
            let (key, what) = (names.key(path), "\(shown(path)) cannot be deleted")
            if let version, isFolderKept(of: path), try await removeAtOnce(key, of: version.rawValue) { return true }
            guard let found = try await status(ofKey: key, "\(shown(path)) cannot be looked at") else {
                // A deletion that broke off may have left something that stands for nothing.
                return try await removeHollow(key, what)
            }
            guard version == nil || found.version == version else { throw S3Provider.taken(shown(path)) }
            try await keepFolder(of: path)
            guard try await remove(key, of: found.tag, what) else { throw S3Provider.taken(shown(path)) }
            return true
        }
    }

    // MARK: Metadata

    /// Of what is there, when only its content changes.
    private func metadata(of path: [FileName]) async throws(ProviderError) -> Metadata {
        item(try await status(of: path), path, parent: nil).metadata
    }

    private func store(
        _ metadata: Metadata, at path: [FileName], _ base: ContentVersion?
    ) async throws(ProviderError) -> Item {
        if try await isFolder(path) {
            guard base == nil || base == S3Provider.folderVersion else {
                throw ProviderError(.conflict, "\(shown(path)) is a folder on the server now")
            }
            if path.isEmpty && location.prefix.isEmpty { return try await root() }
            let known = try await storeOfFolder(metadata, at: path)
            return item(path, kind: .folder, tag: "", size: 0, lastModified: .zero, known, parent: nil)
        }
        let key = names.key(path)
        return try await turns.take(S3Location.encoded(key)) { () async throws(ProviderError) in
            let found = try await status(of: path)
            guard base == nil || found.version == base else { throw S3Provider.taken(shown(path)) }
            guard traits.keepsMetadata else { return item(found, path, parent: nil) }
            let what = "the mode and time of \(shown(path)) cannot be stored"
            let tag = try await copy(key, found, to: key, metadata, what)
            var changed = found
            changed.details = ObjectDetails(metadata, target: found.details.target)
            // Another tag may be that of another content, where the server copies whatever is there: it is news then.
            if tag == found.tag || traits.copyMatchesSource {
                changed.tag = tag
                details.note(key, KnownDetails.Stamp(tag: tag, lastModified: nil), changed.details, size: found.size)
            }
            return item(changed, path, parent: nil)
        }
    }
}
