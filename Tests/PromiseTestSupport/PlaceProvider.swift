package import PromiseCore
package import PromiseProvider
import Synchronization

/// A store that knows items by their places only, as WebDAV servers do: whatever identifier it is asked with, the path decides.
package struct PlaceProvider: Provider {
    package let memory: MemoryProvider
    /// Holds up whoever asks for a single item.
    package let gate: Gate?
    /// Listings do not tell modes and times, as in a bucket.
    package var guesses = false
    /// Tells of each item what the memory calls it, wherever it is.
    package var numbers = false
    /// Names that have the number of another item.
    package var copies: [String: String] = [:]
    /// Takes names that differ in case only for one.
    package var foldsNames = false
    /// Tells of changes only that every folder that was listed is to be listed again.
    private let listed: ListedFolders?

    /// Keeps no modes and times unless `keepsMetadata`.
    package init(
        keepsMetadata: Bool = true, guesses: Bool = false, numbers: Bool = false, isPolled: Bool = false, gate: Gate? = nil
    ) {
        listed = isPolled ? ListedFolders() : nil
        self.gate = gate
        self.numbers = numbers
        self.guesses = guesses
        var capabilities = MemoryProvider.capabilities.subtracting(.stableIdentifiers).union(.placeIdentifiers)
        if !keepsMetadata { capabilities.remove(.metadata) }
        if isPolled { capabilities.subtract([.changeFeed, .changePush]) }
        memory = MemoryProvider(capabilities)
    }

    package var name: String { "place:" }
    package var capabilities: Capabilities { memory.capabilities }

    package func connect() async throws(ProviderError) { try await memory.connect() }
    package func root() async throws(ProviderError) -> Item { try await memory.root() }

    /// What the memory calls it.
    private func resolved(_ reference: ItemReference) async throws(ProviderError) -> ItemReference {
        guard let stored = await memory.item(at: reference.path, folding: foldsNames) else {
            throw ProviderError(.notFound, "there is nothing there")
        }
        return ItemReference(identifier: stored.item.identifier, path: reference.path)
    }

    private func told(_ item: Item, at path: [FileName], parent: ItemIdentifier?) -> Item {
        var item = item
        let number = copies[item.name.display] ?? item.identifier.rawValue
        item.identifier = ItemIdentifier("/" + path.map(\.display).joined(separator: "/"))
        if numbers && !path.isEmpty { item.identifier = ItemIdentifier(number: number) }
        item.parent = parent ?? ItemIdentifier("/" + path.dropLast().map(\.display).joined(separator: "/"))
        if !capabilities.contains(.metadata) { item.metadata = MemoryProvider.metadata(item.kind == .folder ? 0o755 : 0o644) }
        return item
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        await gate?.pass()
        return told(try await memory.item(for: resolved(reference)), at: reference.path, parent: nil)
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        listed?.add(folder.identifier)
        var page = try await memory.enumerateItems(in: resolved(folder), page: page)
        page.items = page.items.map { told($0, at: folder.path + [$0.name], parent: folder.identifier) }
        if guesses { page.items = page.items.map(guessed) }
        return page
    }

    private func guessed(_ item: Item) -> Item {
        var item = item
        item.metadata = MemoryProvider.metadata(0o600)
        item.metadata.modificationTime = Timestamp(seconds: 7, nanoseconds: 0)
        item.isGuess = true
        // A link looks like a file.
        if item.kind == .link { (item.kind, item.target) = (.file, nil) }
        return item
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { try await memory.currentAnchor() }

    /// Names the root, whatever happened: what else is known here has other identifiers.
    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        var page = try await memory.changes(since: anchor)
        if let listed {
            page.foldersToList = listed.all
        } else if numbers {
            page.foldersToList = Set(
                page.foldersToList.map { $0 == MemoryProvider.rootIdentifier ? $0 : ItemIdentifier(number: $0.rawValue) })
        } else if !page.foldersToList.isEmpty {
            page.foldersToList = [MemoryProvider.rootIdentifier]
        }
        return page
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await memory.waitForChanges(since: anchor)
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await memory.fetchContents(of: resolved(reference), version: version, range: range, into: sink)
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await checkTwins(folder.path + [item.name])
        let made = try await memory.create(item, in: resolved(folder), contents: contents)
        return told(made, at: folder.path + [item.name], parent: folder.identifier)
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        var inner = changes
        var path = reference.path
        if let place = changes.place {
            inner.place = (try await resolved(place.parent), place.name)
            path = place.parent.path + [place.name]
            try await checkTwins(path)
        }
        let changed = try await memory.modify(
            resolved(reference), changes: inner, contents: contents, baseVersion: baseVersion)
        return told(changed, at: path, parent: changes.place?.parent.identifier)
    }

    private func checkTwins(_ path: [FileName]) async throws(ProviderError) {
        guard foldsNames, await memory.item(at: path, folding: true) != nil else { return }
        throw ProviderError(.conflict, "the name is taken")
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        guard let stored = await memory.item(at: reference.path, folding: foldsNames) else {
            let above = Array(reference.path.dropLast())
            if above.isEmpty { return }
            _ = try await resolved(ItemReference(identifier: reference.identifier, path: above))
            return
        }
        let inner = ItemReference(identifier: stored.item.identifier, path: reference.path)
        try await memory.delete(inner, baseVersion: baseVersion)
    }
}

private final class ListedFolders: Sendable {
    private let folders = Mutex<Set<ItemIdentifier>>([])

    var all: Set<ItemIdentifier> { folders.withLock { $0 } }
    func add(_ folder: ItemIdentifier) { folders.withLock { _ = $0.insert(folder) } }
}
