import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseWire
import Synchronization

// Changes on their way to the extension. What it says afterwards must be what it was told.

extension ExtensionProvider {
    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        var query = Query()
        query.add("name", item.name.bytes)
        query.add("kind", ItemReading.word(item.kind))
        query.add(item.metadata)
        if let target = item.target { query.add("target", target) }
        let before = shared.withLock { $0.isCreationDoubtful } ? try await identifiers(in: folder) : nil
        let body = contents.map { FileBody(source: $0, pool: pool) }
        let document = try await client.exchange(
            .POST, "\(path(folder))/children?\(query.text)", as: ExtensionItemDocument.self, body: body)
        let made = try namesPlaces ? self.item(document, in: folder) : self.item(document)
        if let wrong = difference(of: made, from: item, in: folder, size: contents?.size) {
            shared.withLock { $0.isCreationDoubtful = true }
            if let before, !before.contains(made.identifier.hashValue) { await discard(made, in: folder) }
            throw client.lie("made \(wrong) when it was told to make '\(item.name.display)'", .refused)
        }
        if made.kind == .folder, !namesPlaces { shared.withLock { $0.parents[made.identifier] = folder.identifier } }
        return made
    }

    /// What it made, in words, when that is not what it was told to make.
    private func difference(of made: Item, from told: NewItem, in folder: ItemReference, size: UInt64?) -> String? {
        if made.name != told.name { return "'\(made.name.display)'" }
        if made.kind != told.kind { return "a \(ItemReading.word(made.kind))" }
        if made.identifier == shared.withLock({ $0.root }) { return "its root" }
        if made.parent != folder.identifier { return "something in another folder" }
        if made.target != told.target { return "a link to something else" }
        if let size, made.size != size { return "a file of \(made.size) bytes instead of \(size)" }
        return nil
    }

    /// Takes back, as far as that works, what would be made again with every attempt. The caller knows that it was not in the
    /// folder before: what an extension names as made may as well be older, which nobody told us to delete, so the first time
    /// it stays. What is not where it was to be made is left alone, too.
    private func discard(_ made: Item, in folder: ItemReference) async {
        let isKnown = shared.withLock { shared in
            made.identifier == shared.root || shared.parents[made.identifier] != nil || shared.listed.contains(made.identifier)
        }
        guard !isKnown, made.parent == folder.identifier else { return }
        do throws(ProviderError) {
            let reference = ItemReference(identifier: made.identifier, path: folder.path + [made.name])
            try await delete(reference, baseVersion: made.kind == .folder ? nil : made.version)
        } catch {
            warn(error)
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        var query = Query()
        if let baseVersion { query.add("version", baseVersion.rawValue) }
        if let place = changes.place {
            query.add("parent", word(place.parent))
            query.add("name", place.name.bytes)
        }
        if let metadata = changes.metadata { query.add(metadata, keepsRights: changes.keepsRights) }
        if let target = changes.target { query.add("target", target) }
        let body = contents.map { FileBody(source: $0, pool: pool) }
        let place = contents == nil ? path(reference) : "\(path(reference))/content"
        let document = try await client.exchange(
            contents == nil ? .PATCH : .PUT, "\(place)?\(query.text)", as: ExtensionItemDocument.self, body: body)
        let item = try item(document, of: reference, at: changes.place)
        // Its version may be the same as before: the same bytes may have the same name.
        if let contents, item.size != contents.size {
            throw client.lie("says of '\(item.name.display)' that it has not what was stored")
        }
        if let place = changes.place {
            guard item.name == place.name, item.parent == place.parent.identifier else {
                throw client.lie("says that '\(place.name.display)' is not where it was moved to")
            }
            if item.kind == .folder, !namesPlaces {
                shared.withLock { $0.parents[item.identifier] = place.parent.identifier }
            }
        }
        return item
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        var query = Query()
        if let baseVersion { query.add("version", baseVersion.rawValue) }
        do throws(ProviderError) {
            try await client.send(.DELETE, "\(path(reference))?\(query.text)")
        } catch {
            // What is gone already is done.
            guard error.code == .notFound else { throw error }
        }
        shared.withLock { shared in
            shared.parents.removeValue(forKey: reference.identifier)
            shared.listed.remove(reference.identifier)
        }
    }
}

/// The part of an address after `?`.
private struct Query {
    private(set) var text = ""

    mutating func add(_ key: String, _ bytes: [UInt8]) {
        if !text.isEmpty { text += "&" }
        text += "\(key)=\(PercentText.encoded(bytes))"
    }

    mutating func add(_ key: String, _ value: String) { add(key, Array(value.utf8)) }

    /// What is not named stays as it is.
    mutating func add(_ metadata: Metadata, keepsRights: Bool = false) {
        if !keepsRights {
            add("mode", "\(metadata.mode)")
            add("owner", "\(metadata.owner)")
            add("group", "\(metadata.group)")
        }
        add("modified", "\(metadata.modificationTime.rawValue)")
    }
}
