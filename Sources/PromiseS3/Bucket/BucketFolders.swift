import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// The folders of a bucket. They are what keys have in common up to a slash; what we make has a
/// marker: an empty object whose key ends with a slash, as AWS's own console makes it. So a folder
/// without one lasts for as long as there is a key in it.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-folders.html>
final class BucketFolders: Sendable {
    private static let type = "application/x-directory"

    private let bucket: S3Bucket
    private let copier: ObjectCopier
    /// Keys of markers that are there.
    private let markers = Mutex<Set<[UInt8]>>([])
    private let seen = SeenFolders()

    init(bucket: S3Bucket, copier: ObjectCopier) {
        self.bucket = bucket
        self.copier = copier
    }

    private var names: KeyNames { bucket.names }

    // MARK: Looking

    /// Of a marker; what is said of a folder without one is nothing.
    func details(_ key: [UInt8]) async throws(ProviderError) -> ObjectDetails {
        if let known = bucket.details.known(key, .folder) { return known }
        let found = try await bucket.status(ofKey: key, "a folder's marker cannot be looked at")
        if found != nil { hasMarker(key) }
        var result = found?.details ?? ObjectDetails()
        if let found, result.modificationTime == nil {
            result.modificationTime = found.lastModified
        }
        bucket.details.note(key, .folder, result)
        return result
    }

    /// Also of the root, where nothing is known of that.
    func details(of path: [FileName]) async throws(ProviderError) -> ObjectDetails {
        path.isEmpty && bucket.location.prefix.isEmpty
            ? ObjectDetails() : try await details(names.folderKey(path))
    }

    /// Whether a name that is free as far as we know is a folder's: a moment ago is soon enough.
    func hasBecomeFolder(_ path: [FileName]) async throws(ProviderError) -> Bool {
        let (key, folder) = (names.folderKey(path), names.folderKey(path.dropLast()))
        if seen.isMissing(key, in: folder, at: bucket.clock.uptime()) { return false }
        return try await bucket.isFolder(path)
    }

    // MARK: What is heard of them

    func hasMarker(_ key: [UInt8]) { _ = markers.withLock { $0.insert(key) } }

    /// Its objects have another key now, and so has its marker if it had one.
    func moved(_ source: [UInt8], to target: [UInt8], hadMarker: Bool) {
        guard hadMarker else { return }
        markers.withLock { $0 = $0.union([target]).subtracting([source]) }
    }

    func isMarked(_ key: [UInt8]) -> Bool { markers.withLock { $0.contains(key) } }

    /// A folder is there now.
    func added(_ path: [FileName]) {
        seen.added(names.folderKey(path), in: names.folderKey(path.dropLast()))
    }

    /// A page of a folder's listing that was asked for at `time`.
    func listed(_ page: S3Listing, in key: [UInt8], isFirst: Bool, at time: Duration) {
        seen.listed(page.prefixes, in: key, isFirst: isFirst, isLast: page.next == nil, at: time)
    }

    // MARK: Making, keeping, removing

    /// Throws `.conflict` when the name is taken.
    func make(_ path: [FileName], _ metadata: Metadata) async throws(ProviderError) -> ObjectDetails
    {
        let key = names.folderKey(path)
        return try await bucket.turns.take(S3Location.encoded(names.key(path))) {
            () async throws(ProviderError) in
            try await bucket.check(.nothing, at: path)
            if try await bucket.isFolder(path) { throw ProviderError.taken(path) }
            let what = "the folder \(shown(path)) cannot be made"
            let known = try await putMarker(key, metadata, isNew: true, what)
            seen.made(key, in: names.folderKey(path.dropLast()), at: bucket.clock.uptime())
            return known
        }
    }

    private func putMarker(
        _ key: [UInt8], _ metadata: Metadata?, isNew: Bool, _ what: String
    ) async throws(ProviderError) -> ObjectDetails {
        let traits = bucket.traits
        var headers: HTTPHeaders = [:]
        if let metadata, traits.keepsMetadata {
            headers = ObjectDetails.headers(metadata, kind: .folder)
        }
        headers.add(name: "Content-Type", value: BucketFolders.type)
        if isNew, traits.refusesTaken { headers.add(name: "If-None-Match", value: "*") }
        _ = try await bucket.client.succeed(S3Request(.PUT, key, [], headers), what)
        hasMarker(key)
        let known = metadata.map { ObjectDetails($0) } ?? ObjectDetails()
        bucket.details.note(key, .folder, known)
        return known
    }

    /// Whether it is known that the folder of a path stays when all in it goes.
    func isKept(of path: [FileName]) -> Bool {
        let folder = path.dropLast()
        return folder.isEmpty || isMarked(names.folderKey(folder))
    }

    /// A folder that is nothing but the beginning of its only key would go with it.
    func keep(of path: [FileName]) async throws(ProviderError) {
        if isKept(of: path) { return }
        let key = names.folderKey(path.dropLast())
        let what = "the folder \(shown(path.dropLast())) cannot be kept"
        if try await bucket.status(ofKey: key, what) == nil {
            do throws(ProviderError) {
                _ = try await putMarker(key, nil, isNew: true, what)
            } catch {
                // Somebody was faster.
                if error.code != .conflict { throw error }
            }
        }
        hasMarker(key)
    }

    /// Throws `.conflict` when there is something in it.
    func delete(_ path: [FileName]) async throws(ProviderError) {
        let key = names.folderKey(path)
        let objects = try await bucket.first(2, key, "\(shown(path)) cannot be looked at")
        guard objects.allSatisfy({ $0.key == key }) else {
            throw ProviderError(.conflict, "the folder \(shown(path)) is not empty on the server")
        }
        guard objects.allSatisfy({ $0.size == 0 }) else {
            throw ProviderError(
                .conflict, "the folder \(shown(path)) is an object with content on the server")
        }
        try await keep(of: path)
        let what = "the folder \(shown(path)) cannot be deleted"
        _ = try await bucket.client.succeed(S3Request(.DELETE, key), what)
        bucket.details.forget(key)
        markers.withLock { _ = $0.remove(key) }
    }

    // MARK: Metadata

    /// With the marker, which is made where there is none.
    func store(_ metadata: Metadata, at path: [FileName]) async throws(ProviderError)
        -> ObjectDetails
    {
        let key = names.folderKey(path)
        let what = "the mode and time of \(shown(path)) cannot be stored"
        // What somebody else keeps under a folder's key is not written over.
        guard let found = try await bucket.status(ofKey: key, what), found.size > 0 else {
            return try await putMarker(key, metadata, isNew: false, what)
        }
        guard bucket.traits.keepsMetadata else { return ObjectDetails() }
        _ = try await copier.copy(key, found, to: key, metadata, what)
        let known = ObjectDetails(metadata)
        bucket.details.note(key, .folder, known)
        return known
    }
}
