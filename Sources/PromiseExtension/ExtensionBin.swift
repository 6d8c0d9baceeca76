import NIOHTTP1
import PromiseCore
package import PromiseProvider
import PromiseSystem
import PromiseWire

/// What an extension that has declared `removed-items` keeps of what was removed from it.
struct ExtensionBin: ProviderBin {
    /// Older ones are not shown.
    private static let countMax = 10_000

    let provider: ExtensionProvider

    private var client: ExtensionClient { provider.client }

    func list() async throws(ProviderError) -> [BinItem] {
        let document = try await client.exchange(.GET, "removed", as: ExtensionBinDocument.self)
        var items: [BinItem] = []
        var seen: Set<String> = []
        var wrong: ProviderError?
        for document in document.items {
            do throws(ProviderError) {
                let item = try item(document)
                if seen.insert(item.identifier).inserted { items.append(item) }
            } catch {
                wrong = error
            }
        }
        if let wrong { provider.warn(wrong) }
        items.sort { $0.removalTime > $1.removalTime }
        return Array(items.prefix(ExtensionBin.countMax))
    }

    private func item(_ document: ExtensionBinItemDocument) throws(ProviderError) -> BinItem {
        guard StorageWords.isWord(document.identifier) else {
            throw client.lie("calls what was removed by what cannot be a name")
        }
        guard let path = StorageWords.path(document.path), !path.isEmpty else {
            throw client.lie("does not say where '\(document.identifier)' was that was removed")
        }
        guard let kind = ItemReading.kind(document.kind) else {
            throw client.lie("gives '\(document.identifier)' a kind that there is not")
        }
        guard let size = UInt64(exactly: document.size ?? 0), size <= ItemSize.max else {
            throw client.lie("says no size of '\(document.identifier)' that can be")
        }
        return BinItem(
            identifier: document.identifier, path: path, kind: kind,
            size: kind == .file ? size : 0,
            modificationTime: document.modified.map { Timestamp(nanoseconds: $0) },
            removalTime: Timestamp(nanoseconds: document.removed))
    }

    func restore(_ item: BinItem) async throws(ProviderError) {
        try await client.send(.POST, "removed/\(PercentText.encoded(item.identifier))/restore")
    }
}

extension ExtensionProvider {
    package var bin: (any ProviderBin)? {
        capabilities.contains(.removedItems) ? ExtensionBin(provider: self) : nil
    }
}
