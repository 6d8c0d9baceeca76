package import PromiseCore
package import PromiseSystem
import Synchronization

/// A provider that has not answered yet when its mount begins: whoever calls it waits until it has.
/// Before that nobody knows whether it is the storage that the mount is of, nor what it can do.
package final class LateProvider: Provider {
    private let wrapped: any Provider
    private let asking: Attempt<Result<Item, ProviderError>>
    private let rootIdentifier: ItemIdentifier
    private let isThere = Atomic<Bool>(false)

    /// `asking`: of the call that connects `provider`, which is to have this root.
    package init(
        _ provider: any Provider, asking: Attempt<Result<Item, ProviderError>>, root: ItemIdentifier
    ) {
        wrapped = provider
        self.asking = asking
        rootIdentifier = root
    }

    package var name: String { wrapped.name }
    package var capabilities: Capabilities { wrapped.capabilities }
    package var limitations: [String] { wrapped.limitations }
    package var executor: (any TaskExecutor)? { wrapped.executor }
    package var faultLine: FaultLine? { wrapped.faultLine }
    package var lineLimit: LineLimit? { wrapped.lineLimit }
    package var sharingLinks: (any SharingLinks)? { wrapped.sharingLinks }
    package var bin: (any ProviderBin)? { wrapped.bin }
    package var privateObjects: (any PrivateObjects)? {
        wrapped.privateObjects.map { objects in
            GatedObjects(wrapped: objects) { (_) async throws(ProviderError) in try await self.wait() }
        }
    }

    /// When it has not answered at the start, a root that comes later says that it is there.
    private func wait() async throws(ProviderError) {
        if isThere.load(ordering: .relaxed) { return }
        guard let answer = await asking.outcome() else {
            throw ProviderError(.cancelled, "the call was cancelled")
        }
        if isThere.load(ordering: .relaxed) { return }
        do throws(ProviderError) {
            try check(try answer.get())
        } catch {
            throw ProviderError(.offline, error.message)
        }
    }

    private func check(_ root: Item) throws(ProviderError) {
        guard root.identifier == rootIdentifier else {
            throw ProviderError(.refused, "'\(name)' is another storage than it was")
        }
        isThere.store(true, ordering: .relaxed)
    }

    // MARK: The calls

    package func letGo() async { await wrapped.letGo() }
    package func answered() async throws(ProviderError) { try await wait() }
    package func connect() async throws(ProviderError) { try await wrapped.connect() }
    package func greet() async throws(ProviderError) { try await wrapped.greet() }

    package func root() async throws(ProviderError) -> Item {
        let root = try await wrapped.root()
        // Whoever asked sees what is wrong with it.
        try? check(root)
        return root
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await wait()
        return try await wrapped.item(for: reference)
    }

    package func enumerateItems(
        in folder: ItemReference, page: PageToken?
    ) async throws(ProviderError) -> ItemPage {
        try await wait()
        return try await wrapped.enumerateItems(in: folder, page: page)
    }

    package func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item] {
        try await wait()
        return try await wrapped.enumerateAllItems(in: folder, handOn: handOn)
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor {
        try await wait()
        return try await wrapped.currentAnchor()
    }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await wait()
        return try await wrapped.changes(since: anchor)
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await wait()
        try await wrapped.waitForChanges(since: anchor)
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        try await wait()
        try await wrapped.fetchContents(of: reference, version: version, range: range, into: sink)
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await wait()
        return try await wrapped.create(item, in: folder, contents: contents)
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await wait()
        return try await wrapped.modify(
            reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }

    package func delete(
        _ reference: ItemReference, baseVersion: ContentVersion?
    ) async throws(ProviderError) {
        try await wait()
        try await wrapped.delete(reference, baseVersion: baseVersion)
    }

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await wait()
        return try await wrapped.fetchThumbnail(of: reference, version: version, size: size)
    }

    package func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await wait()
        try await wrapped.saveThumbnail(picture, of: reference, version: version)
    }

    package func quota() async throws(ProviderError) -> Quota? {
        try await wait()
        return try await wrapped.quota()
    }

    package func pickerPage(mode: String) async throws(ProviderError) -> [UInt8]? {
        try await wait()
        return try await wrapped.pickerPage(mode: mode)
    }

    package func contentsReleased(
        of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await wait()
        try await wrapped.contentsReleased(of: reference, version: version)
    }

    package func persistentIdentifier(
        of reference: ItemReference
    ) async throws(ProviderError) -> String? {
        try await wait()
        return try await wrapped.persistentIdentifier(of: reference)
    }

    package func identifier(
        ofPersistent persistent: String
    ) async throws(ProviderError) -> ItemIdentifier? {
        try await wait()
        return try await wrapped.identifier(ofPersistent: persistent)
    }

    package func earlierVersions(
        of reference: ItemReference
    ) async throws(ProviderError) -> [EarlierVersion] {
        try await wait()
        return try await wrapped.earlierVersions(of: reference)
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await wait()
        try await wrapped.fetchContents(of: reference, earlier: earlier, into: sink)
    }
}
