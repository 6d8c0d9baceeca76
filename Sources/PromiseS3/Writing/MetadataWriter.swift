import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Changes what is kept with an object, and not its content: a copy of the object onto itself that
/// has other metadata. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>
struct MetadataWriter: Sendable {
    let bucket: S3Bucket
    let folders: BucketFolders
    let copier: ObjectCopier
    let items: S3Items

    /// Returns the item as it is then. Throws `.conflict` when it has not the version `base` or is
    /// of another kind, `.notFound` when it is gone.
    func store(_ metadata: Metadata, at path: [FileName], _ base: ContentVersion?)
        async throws(ProviderError) -> Item
    {
        if try await bucket.isFolder(path) {
            guard base == nil || base == S3Items.folderVersion else {
                throw ProviderError.becameFolder(path)
            }
            return try await store(metadata, ofFolder: path)
        }
        let key = bucket.names.key(path)
        return try await bucket.turns.take(S3Location.encoded(key)) {
            () async throws(ProviderError) in
            try await store(metadata, ofFile: path, key, base)
        }
    }

    func store(_ metadata: Metadata, ofFolder path: [FileName]) async throws(ProviderError) -> Item
    {
        items.folder(path, try await folders.store(metadata, at: path), parent: nil)
    }

    private func store(
        _ metadata: Metadata, ofFile path: [FileName], _ key: [UInt8], _ base: ContentVersion?
    ) async throws(ProviderError) -> Item {
        let found = try await bucket.status(of: path)
        guard base == nil || found.version == base else { throw ProviderError.taken(path) }
        guard bucket.traits.keepsMetadata else { return items.item(found, path, parent: nil) }
        let what = "the mode and time of \(shown(path)) cannot be stored"
        let tag = try await copier.copy(key, found, to: key, metadata, what)
        var changed = found
        changed.details = ObjectDetails(metadata, target: found.details.target)
        // Another tag may be that of another content, where the server copies whatever is there: it
        // is news then.
        if tag == found.tag || bucket.traits.copyMatchesSource {
            changed.tag = tag
            let stamp = KnownDetails.Stamp(tag: tag, lastModified: nil)
            bucket.details.note(key, stamp, changed.details, size: found.size)
        }
        return items.item(changed, path, parent: nil)
    }
}
