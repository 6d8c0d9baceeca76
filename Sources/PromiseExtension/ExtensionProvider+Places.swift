import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseWire
import Synchronization

// Storages that know an item by its place only. Such an extension declares `place-identifiers`: what it is asked for is a path,
// and what it says of items needs neither identifier nor parent, as both are what it was asked for.

extension ExtensionProvider {
    var namesPlaces: Bool { capabilities.contains(.placeIdentifiers) }

    /// What the extension calls an item; of places `/`, or its names percent-encoded, each after a slash: they need not be UTF-8.
    func word(_ reference: ItemReference) -> String {
        guard namesPlaces else { return reference.identifier.rawValue }
        return reference.path.isEmpty ? "/" : placeWord(reference.path)
    }

    private func placeWord(_ path: some Collection<FileName>) -> String {
        path.map { "/" + PercentText.encoded($0.bytes) }.joined()
    }

    func path(_ reference: ItemReference) -> String { "items/\(PercentText.encoded(word(reference)))" }

    /// The root of an extension of places needs no identifier: it is known by the extension's own name, so that a state folder is
    /// not taken for that of another folder or program.
    func root(_ document: ExtensionItemDocument) throws(ProviderError) -> Item {
        var document = document
        document.identifier = document.identifier ?? name
        return try believed { () throws(ItemReading.Nonsense) in
            try ItemReading.item(document, now: clock.now(), isRoot: true)
        }
    }

    /// What the item of a place is called here, until the engine has a name for it.
    private func identifier(_ path: some Collection<FileName>) -> ItemIdentifier {
        guard !path.isEmpty else { return shared.withLock { $0.root } ?? ItemIdentifier(name) }
        return ItemIdentifier(placeWord(path))
    }

    /// Of an extension that has identifiers.
    func item(_ document: ExtensionItemDocument) throws(ProviderError) -> Item {
        try believed { () throws(ItemReading.Nonsense) in
            try ItemReading.item(document, now: clock.now())
        }
    }

    /// What the extension says of something in a folder.
    func item(_ document: ExtensionItemDocument, in folder: ItemReference) throws(ProviderError) -> Item {
        guard namesPlaces else {
            let item = try self.item(document)
            guard item.parent == folder.identifier else {
                throw client.lie("says that '\(item.name.display)' is in another folder than it was asked about")
            }
            return item
        }
        return try believed { () throws(ItemReading.Nonsense) in
            let name = try ItemReading.name(document)
            let place = (identifier(folder.path + [name]), folder.identifier)
            return try ItemReading.item(document, now: clock.now(), as: place)
        }
    }

    /// What it says of an item that was asked for, or that it was told to change; `place`: where it was told to put it.
    func item(
        _ document: ExtensionItemDocument, of reference: ItemReference, at place: (parent: ItemReference, name: FileName)? = nil
    ) throws(ProviderError) -> Item {
        let root = shared.withLock { $0.root }
        let isRoot = reference.identifier == root
        guard namesPlaces, !isRoot else {
            let item = try isRoot ? self.root(document) : self.item(document)
            guard item.identifier == reference.identifier else {
                throw client.lie("answers about another item than it was asked for")
            }
            return item
        }
        let path = place.map { $0.parent.path + [$0.name] } ?? reference.path
        let item = try believed { () throws(ItemReading.Nonsense) in
            let parent = place?.parent.identifier ?? identifier(path.dropLast())
            return try ItemReading.item(
                document, now: clock.now(), as: (identifier(path), parent))
        }
        guard item.name == path.last else { throw client.lie("answers about another item than it was asked for") }
        return item
    }
}
