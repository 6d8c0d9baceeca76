package import PromiseCore
import Synchronization

/// Stands in for a provider that cannot be made, as something that it needs is missing or cannot be
/// read: a credentials file, a certificate, a keyring that is locked. What is known of the storage
/// can be shown meanwhile. Whenever somebody asks for the root it is tried again to make it.
package final class BelatedProvider: Provider {
    package typealias Making = @Sendable () async throws(ProviderError) -> any Provider

    package let name: String
    private let make: Making
    /// A leaf: nothing is called while it is held.
    private let made = Mutex<(any Provider)?>(nil)

    /// What is set before there is a line.
    private let wanted = LineLimit()

    /// `make` throws a sentence as long as it cannot be.
    package init(name: String, make: @escaping Making) {
        self.name = name
        self.make = make
    }

    private var there: (any Provider)? { made.withLock { $0 } }

    /// What no store that is known by places only can do without.
    package var capabilities: Capabilities { there?.capabilities ?? [.placeIdentifiers] }
    package var limitations: [String] { there?.limitations ?? [] }
    package var executor: (any TaskExecutor)? { there?.executor }
    package var faultLine: FaultLine? { there?.faultLine }
    package var lineLimit: LineLimit? { there.map { $0.lineLimit } ?? wanted }
    package var privateObjects: (any PrivateObjects)? { there?.privateObjects }
    package var sharingLinks: (any SharingLinks)? { there?.sharingLinks }
    package var bin: (any ProviderBin)? { there?.bin }

    private func provider() throws(ProviderError) -> any Provider {
        guard let there else { throw ProviderError(.offline, "the provider is not there yet") }
        return there
    }

    package func letGo() async { await there?.letGo() }

    package func connect() async throws(ProviderError) {
        if let there { return try await there.connect() }
        let new: any Provider
        do throws(ProviderError) {
            new = try await make()
        } catch {
            // It counts as one that lets nobody in, which is tried again.
            throw ProviderError(.authenticate, error.message)
        }
        new.lineLimit?.set(wanted.rates)
        try await new.connect()
        made.withLock { $0 = $0 ?? new }
    }

    package func root() async throws(ProviderError) -> Item {
        if there == nil { try await connect() }
        return try await provider().root()
    }

    // MARK: The calls

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await provider().item(for: reference)
    }

    package func enumerateItems(
        in folder: ItemReference, page: PageToken?
    ) async throws(ProviderError) -> ItemPage {
        try await provider().enumerateItems(in: folder, page: page)
    }

    package func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item] {
        try await provider().enumerateAllItems(in: folder, handOn: handOn)
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor {
        try await provider().currentAnchor()
    }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await provider().changes(since: anchor)
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await provider().waitForChanges(since: anchor)
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        try await provider().fetchContents(of: reference, version: version, range: range, into: sink)
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await provider().create(item, in: folder, contents: contents)
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await provider().modify(
            reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }

    package func delete(
        _ reference: ItemReference, baseVersion: ContentVersion?
    ) async throws(ProviderError) {
        try await provider().delete(reference, baseVersion: baseVersion)
    }

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await provider().fetchThumbnail(of: reference, version: version, size: size)
    }

    package func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await provider().saveThumbnail(picture, of: reference, version: version)
    }

    package func quota() async throws(ProviderError) -> Quota? { try await provider().quota() }

    package func pickerPage(mode: String) async throws(ProviderError) -> [UInt8]? {
        try await provider().pickerPage(mode: mode)
    }

    package func contentsReleased(
        of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await provider().contentsReleased(of: reference, version: version)
    }

    package func persistentIdentifier(
        of reference: ItemReference
    ) async throws(ProviderError) -> String? {
        try await provider().persistentIdentifier(of: reference)
    }

    package func identifier(
        ofPersistent persistent: String
    ) async throws(ProviderError) -> ItemIdentifier? {
        try await provider().identifier(ofPersistent: persistent)
    }

    package func earlierVersions(
        of reference: ItemReference
    ) async throws(ProviderError) -> [EarlierVersion] {
        try await provider().earlierVersions(of: reference)
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await provider().fetchContents(of: reference, earlier: earlier, into: sink)
    }
}
