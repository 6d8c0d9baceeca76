import NIOHTTP1
package import PromiseCore
package import PromiseProvider
import PromiseWire

// What an extension calls its items for good, both ways.

extension ExtensionProvider {
    package func persistentIdentifier(
        of reference: ItemReference
    ) async throws(ProviderError) -> String? {
        guard capabilities.contains(.persistentIdentifiers) else { return nil }
        let document: ExtensionPersistentDocument
        do throws(ProviderError) {
            document = try await client.exchange(
                .GET, path(reference) + "/persistent-identifier",
                as: ExtensionPersistentDocument.self)
        } catch where error.code == .notFound {
            return nil
        }
        return try word(document.persistentIdentifier)
    }

    package func identifier(
        ofPersistent persistent: String
    ) async throws(ProviderError) -> ItemIdentifier? {
        guard capabilities.contains(.persistentIdentifiers) else { return nil }
        let document: ExtensionIdentifierDocument
        do throws(ProviderError) {
            document = try await client.exchange(
                .GET, "persistent-identifiers/" + PercentText.encoded(persistent),
                as: ExtensionIdentifierDocument.self)
        } catch where error.code == .notFound {
            return nil
        }
        return ItemIdentifier(try word(document.identifier))
    }

    private func word(_ text: String) throws(ProviderError) -> String {
        guard ItemReading.isPlain(text) else {
            throw client.lie("gives an item a name that cannot be one")
        }
        return text
    }
}
