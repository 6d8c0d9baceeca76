import NIOHTTP1
package import PromiseCore
package import PromiseProvider
import PromiseWire

// What an extension calls its items for good, both ways.

extension ExtensionProvider {
    package func persistentIdentifier(
        of reference: ItemReference
    ) async throws(ProviderError) -> String? {
        let document = try await ask(
            path(reference) + "/persistent-identifier", ExtensionPersistentDocument.self)
        return try document.map { document throws(ProviderError) in
            try word(document.persistentIdentifier)
        }
    }

    package func identifier(
        ofPersistent persistent: String
    ) async throws(ProviderError) -> ItemIdentifier? {
        let document = try await ask(
            "persistent-identifiers/" + PercentText.encoded(persistent),
            ExtensionIdentifierDocument.self)
        return try document.map { document throws(ProviderError) in
            ItemIdentifier(try word(document.identifier))
        }
    }

    /// Nil where there is none.
    private func ask<Document: Decodable & Sendable>(
        _ path: String, _ type: Document.Type
    ) async throws(ProviderError) -> Document? {
        guard capabilities.contains(.persistentIdentifiers) else { return nil }
        do throws(ProviderError) {
            return try await client.exchange(.GET, path, as: type)
        } catch where error.code == .notFound {
            return nil
        }
    }

    private func word(_ text: String) throws(ProviderError) -> String {
        guard ItemReading.isPlain(text) else {
            throw client.lie("gives an item a name that cannot be one")
        }
        return text
    }
}
