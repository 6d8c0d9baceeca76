import NIOHTTP1
import PromiseCore
package import PromiseProvider
import PromiseWire
import Synchronization

// What folders hold, and that folders are not in themselves.

extension ExtensionProvider {
    /// Warnings about one page; an extension that is wrong throughout fills no log.
    private static let warningsMax = 5
    /// Folders above one another, when it is asked for them one by one: more than any path has that the kernel takes (PATH_MAX).
    private static let depthMax = 4096
    private static let parentsMax = 1 << 20

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        let (number, token) = try listing(page)
        shared.withLock { _ = $0.listed.insert(folder.identifier) }
        do throws(ProviderError) {
            let query = token.map { "?page=" + PercentText.encoded($0) } ?? ""
            let document = try await client.exchange(
                .GET, path(folder) + "/children" + query, as: ExtensionPageDocument.self)
            if document.unreadableCount > 0 { warn(client.lie(ItemReading.unreadable(document.unreadableCount))) }
            let items = try await acceptable(document.items, in: folder, number)
            guard let next = document.next else {
                shared.withLock { $0.listings.end(number) }
                return ItemPage(items: items)
            }
            guard ItemReading.isPlain(next),
                shared.withLock({ $0.listings.turn(to: next, after: document.items.count, in: number) })
            else { throw client.lie("lists a folder in pages that do not end") }
            return ItemPage(items: items, next: PageToken(rawValue: "\(number):\(next)"))
        } catch {
            shared.withLock { shared in
                shared.listings.end(number)
                if error.code == .notFound { shared.listed.remove(folder.identifier) }
            }
            throw error
        }
    }

    /// The hash values of the identifiers of all that a folder holds, also of what is not shown.
    func identifiers(in folder: ItemReference) async throws(ProviderError) -> Set<Int> {
        var result: Set<Int> = []
        var query = ""
        var record = ListingRecord()
        let number = record.begin()
        while true {
            let document = try await client.exchange(
                .GET, path(folder) + "/children" + query, as: ExtensionPageDocument.self)
            for described in document.items {
                if namesPlaces {
                    if let item = try? item(described, in: folder) { result.insert(item.identifier.hashValue) }
                } else if let identifier = described.identifier {
                    result.insert(ItemIdentifier(identifier).hashValue)
                }
            }
            guard let next = document.next else { return result }
            guard ItemReading.isPlain(next), record.turn(to: next, after: document.items.count, in: number) else {
                throw client.lie("lists a folder in pages that do not end")
            }
            query = "?page=" + PercentText.encoded(next)
        }
    }

    /// The number of a listing, and the extension's own word for the page.
    private func listing(_ page: PageToken?) throws(ProviderError) -> (number: Int, token: String?) {
        guard let page else { return (shared.withLock { $0.listings.begin() }, nil) }
        let parts = page.rawValue.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1)
        guard parts.count == 2, let number = Int(String(parts[0]) ?? ""), shared.withLock({ $0.listings.isKnown(number) }) else {
            throw ProviderError(.retry, "\(client.title): a listing was put off for too long")
        }
        return (number, String(parts[1]))
    }

    private func acceptable(
        _ documents: [ExtensionItemDocument], in folder: ItemReference, _ number: Int
    ) async throws(ProviderError) -> [Item] {
        var items: [Item] = []
        var wrongCount = 0
        for document in documents {
            do throws(ProviderError) {
                let item = try item(document, in: folder)
                switch shared.withLock({ $0.listings.note(item, in: number) }) {
                case .new: break
                case .nameTaken: throw client.lie("lists two items called '\(item.name.display)' in one folder; one is shown")
                case .itemTaken: throw client.lie("lists '\(item.name.display)' under two names; one is shown")
                }
                try await checkPlace(of: item)
                items.append(item)
            } catch where error.isPassing {
                throw error
            } catch {
                wrongCount += 1
                if wrongCount <= ExtensionProvider.warningsMax { warn(error) }
            }
        }
        return items
    }

    /// Throws for a folder that would be in itself, and for anything that would be the root. What was shown before may have moved
    /// meanwhile, so on suspicion the extension is asked anew, folder by folder up to the root.
    func checkPlace(of item: Item) async throws(ProviderError) {
        // A path leads into no folder twice.
        guard !namesPlaces, let parent = item.parent else { return }
        if item.identifier == shared.withLock({ $0.root }) {
            throw client.lie("shows its root as '\(item.name.display)' inside of a folder")
        }
        guard item.kind == .folder else { return }
        let suspicion = suspicion(of: item.identifier, in: parent)
        if suspicion != nil {
            let circle = client.lie("shows the folder '\(item.name.display)' inside of itself")
            // To ask of each would be no end, either.
            if suspicion == .depth { throw circle }
            var visited: Set<ItemIdentifier> = [item.identifier]
            var above = parent
            while above != shared.withLock({ $0.root }) {
                guard visited.insert(above).inserted, visited.count <= ExtensionProvider.depthMax else { throw circle }
                let found = try await self.item(for: ItemReference(identifier: above, path: []))
                guard let next = found.parent else { throw circle }
                shared.withLock { $0.parents[above] = next }
                above = next
            }
        }
        shared.withLock { shared in
            // Without them circles are not found, and memory is not filled either.
            if shared.parents.count >= ExtensionProvider.parentsMax { shared.parents = [:] }
            shared.parents[item.identifier] = parent
            shared.tooDeep.remove(item.identifier)
        }
    }

    private enum Suspicion {
        case circle
        /// In what is too deep, or in more folders than any path has.
        case depth
    }

    /// By what was shown before. Below what is too deep nothing is walked through again: a page of
    /// a feed may be one chain of folders.
    private func suspicion(of folder: ItemIdentifier, in parent: ItemIdentifier) -> Suspicion? {
        shared.withLock { shared in
            var visited: Set<ItemIdentifier> = [folder]
            var above: ItemIdentifier? = parent
            var isTooDeep = shared.tooDeep.contains(parent)
            while !isTooDeep, let here = above {
                guard visited.insert(here).inserted else { return .circle }
                isTooDeep = visited.count > ExtensionProvider.depthMax + 1
                above = shared.parents[here]
            }
            guard isTooDeep else { return nil }
            if shared.tooDeep.count >= ExtensionProvider.parentsMax { shared.tooDeep = [] }
            shared.tooDeep.insert(folder)
            return .depth
        }
    }
}

extension ProviderError {
    /// True when it says nothing about what was asked for: the same question may be answered in a while.
    var isPassing: Bool {
        switch code {
        case .retry, .retryAfter, .offline, .authenticate, .cancelled: true
        default: false
        }
    }
}
