import PromiseAccess
import PromiseContent
import PromiseCore
import PromiseMigration
import PromiseProvider
import Synchronization

/// Pictures of documents at the provider, so that other machines have them without the content.
///
/// A provider that declares `thumbnails` keeps them itself; with another one they are private
/// objects (`PictureRecord`). Of those that were put there or read, it is noted here, so that they are
/// removed when the document has gone, and put to the document's new place when that was moved.
///
/// **Threads.** Any; `listing` is a leaf.
final class PictureShelf: Sendable {
    /// What an object was called, and in which version it was written.
    struct Note: Hashable, Sendable {
        var name: PrivateName
        var version: ContentVersion

        init(name: PrivateName, version: ContentVersion) {
            (self.name, self.version) = (name, version)
        }

        init?(_ text: String) {
            let words = text.split(separator: " ", maxSplits: 1)
            guard words.count == 2, let name = PrivateName(.pictures, String(words[0])) else { return nil }
            self.init(name: name, version: ContentVersion(String(words[1])))
        }

        var text: String { "\(name.name) \(version.rawValue)" }
    }

    private struct Listing {
        var names: Set<PrivateName>
        var end: ContinuousClock.Instant
    }

    private let provider: any Provider
    /// Many documents without a picture cost one request; one that others save is seen so much later.
    private let listingAge: Duration
    private let listing = Mutex<Listing?>(nil)

    init(_ provider: any Provider, pollInterval: Duration) {
        self.provider = provider
        listingAge = min(pollInterval, .seconds(5))
    }

    var keepsPictures: Bool { provider.capabilities.contains(.thumbnails) || objects != nil }

    /// Nil where the provider has a way of its own, or none at all.
    private var objects: (any PrivateObjects)? {
        provider.capabilities.contains(.thumbnails) ? nil : provider.privateObjects
    }

    private func record(_ reference: ItemReference, _ version: ContentVersion) -> PictureRecord {
        PictureRecord(of: reference, version, at: provider)
    }

    private func name(_ record: PictureRecord) throws(ProviderError) -> PrivateName {
        guard let name = PrivateName(.pictures, record.name) else {
            throw ProviderError(.refused, "a picture has no name at the provider")
        }
        return name
    }

    /// Where the picture of an item is; nil where that is the provider's affair.
    func name(of reference: ItemReference) -> PrivateName? {
        guard objects != nil else { return nil }
        return try? name(record(reference, ContentVersion("")))
    }

    // MARK: One picture

    /// Nil when there is none of that version. With it comes what is to be noted of it.
    func picture(
        of reference: ItemReference, _ version: ContentVersion
    ) async throws(ProviderError) -> (bytes: [UInt8], note: Note?)? {
        guard let objects else {
            return try await provider.fetchThumbnail(of: reference, version: version, size: Thumbnails.sizeMax)
                .map { ($0, nil) }
        }
        let record = record(reference, version)
        let name = try name(record)
        guard try await names(objects).contains(name), let found = try await objects.read(name) else { return nil }
        return record.picture(in: found.bytes).map { ($0, Note(name: name, version: found.version)) }
    }

    private func names(_ objects: any PrivateObjects) async throws(ProviderError) -> Set<PrivateName> {
        let now = ContinuousClock.now
        if let known = listing.withLock({ $0 }), known.end > now { return known.names }
        let names = Set(try await objects.list(.pictures))
        listing.withLock { $0 = Listing(names: names, end: now + listingAge) }
        return names
    }

    /// Throws `.conflict` when the item has another version. Returns what is to be noted of it.
    func keep(
        _ picture: [UInt8], of reference: ItemReference, _ version: ContentVersion
    ) async throws(ProviderError) -> Note? {
        guard let objects else {
            try await provider.saveThumbnail(picture, of: reference, version: version)
            return nil
        }
        guard try await provider.item(for: reference).version == version else {
            throw ProviderError(.conflict, "the document has another version meanwhile")
        }
        let record = record(reference, version)
        let (name, bytes) = (try name(record), record.bytes(of: picture))
        let found = try await objects.read(name)
        if let found, found.bytes == bytes { return Note(name: name, version: found.version) }
        let written = try await objects.write(bytes, to: name, base: found?.version)
        listing.withLock { _ = $0?.names.insert(name) }
        return Note(name: name, version: written)
    }

    /// What somebody else has written there since stays.
    func remove(_ note: Note) async throws(ProviderError) {
        guard let objects else { return }
        do throws(ProviderError) {
            try await objects.delete(note.name, base: note.version)
        } catch {
            guard error.code == .conflict || error.code == .notFound else { throw error }
        }
    }
}
