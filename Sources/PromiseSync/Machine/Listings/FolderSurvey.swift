package import PromiseCore
import PromiseIndex
import PromiseProvider

/// Whether a folder that is gone is one of those that appeared: what is known of it, and where that
/// is looked for. A copy holds the same for a while; so all that is known must be there, in the
/// same versions, nothing else, and at least one file with something in it.
package struct FolderSurvey: Sendable {
    package var folder: ItemIdentifier
    var places: [ItemReference]
    /// It was removed here, and what is taken for it is removed as well.
    let isRemoved: Bool
    /// The store keeps the times of files.
    private let comparesTimes: Bool
    /// What it holds, by the path from it; of folders of which that is known.
    private var known: [[FileName]: [Item]]

    /// More is not looked through.
    private static let foldersMax = 32
    private static let itemsMax = 1_000
    /// More files are not asked for one by one.
    private static let askedMax = 64

    /// What one of the places holds.
    package struct Found: Sendable {
        var place: ItemReference
        var items: [[FileName]: [Item]] = [:]
    }

    /// Nil when there is too much in it, or nothing that could be recognised.
    init?(
        of folder: ItemIdentifier, at places: [ItemReference], isRemoved: Bool, _ turn: borrowing Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        (self.folder, self.places, known) = (folder, places, [:])
        (self.isRemoved, comparesTimes) = (isRemoved, turn.facts.keepsTimes)
        var (waiting, count) = ([(folder, [FileName]())][...], 0)
        while let (next, path) = waiting.popFirst() {
            let items = try transaction.remoteChildren(of: next)
            count += items.count
            guard count <= FolderSurvey.itemsMax, known.count < FolderSurvey.foldersMax
            else { return nil }
            known[path] = items
            for item in items where item.kind == .folder {
                // Of one that was removed here all is known.
                if try turn.knownFolder(item.identifier, transaction) == nil,
                    try MovedFolders.removal(of: item.identifier, transaction) == nil
                {
                    continue
                }
                waiting.append((item.identifier, path + [item.name]))
            }
        }
        guard known.values.contains(where: { $0.contains(where: \.saysSomething) })
        else { return nil }
    }

    func matches(_ found: Found) -> Bool {
        known.allSatisfy { path, items in
            found.items[path].map { FolderSurvey.areSame(items, $0) } ?? false
        }
    }

    private static func areSame(_ items: [Item], _ others: [Item]) -> Bool {
        guard items.count == others.count else { return false }
        let named = Dictionary(others.map { ($0.name, $0) }) { first, _ in first }
        return items.allSatisfy { item in
            guard let other = named[item.name] else { return false }
            if item.kind == .folder || other.kind == .folder { return item.kind == other.kind }
            // A listing may show a link as a file.
            return item.version == other.version && (other.isGuess || item.kind == other.kind)
        }
    }

    /// Looks; a place that holds something else is left as soon as that shows.
    func run(_ provider: any Provider) async throws(ProviderError) -> [Found] {
        var result: [Found] = []
        // What is above comes first.
        let paths = known.keys.sorted { $0.count < $1.count }
        next: for place in places {
            var found = Found(place: place)
            for path in paths {
                let items = known[path] ?? []
                guard let others = try await list(place, path, items.count, provider),
                    FolderSurvey.areSame(items, others)
                else { continue next }
                if isRemoved, try await !hasSameTimes(items, others, place, path, provider) {
                    continue next
                }
                found.items[path] = others
            }
            result.append(found)
        }
        return result
    }

    /// A copy that somebody made may have the same versions, as in a bucket, but not the times;
    /// and it is not to go with what it was made of.
    private func hasSameTimes(
        _ items: [Item], _ others: [Item], _ place: ItemReference, _ path: [FileName],
        _ provider: any Provider
    ) async throws(ProviderError) -> Bool {
        guard comparesTimes else { return true }
        let named = Dictionary(others.map { ($0.name, $0) }) { first, _ in first }
        guard others.count(where: { $0.isGuess && $0.kind != .folder }) <= FolderSurvey.askedMax
        else { return false }
        for item in items where item.kind == .file {
            guard var other = named[item.name] else { return false }
            if other.isGuess {
                let reference = ItemReference(
                    identifier: ItemIdentifier("/survey"), path: place.path + path + [item.name])
                do throws(ProviderError) {
                    other = try await provider.item(for: reference)
                } catch where error.code == .notFound {
                    return false
                }
                guard other.version == item.version, other.kind == .file else { return false }
            }
            let time = item.metadata.modificationTime
            guard other.metadata.modificationTime == time else { return false }
        }
        return true
    }

    /// Nil when there are more, or when that cannot be listed.
    private func list(
        _ place: ItemReference, _ path: [FileName], _ countMax: Int, _ provider: any Provider
    ) async throws(ProviderError) -> [Item]? {
        let identifier = path.isEmpty ? place.identifier : ItemIdentifier("/survey")
        let folder = ItemReference(identifier: identifier, path: place.path + path)
        do throws(ProviderError) {
            var page = try await provider.enumerateItems(in: folder, page: nil)
            var items = page.items
            var turns = PageTurns()
            while let next = page.next, items.count <= countMax {
                try turns.take(next, first: page.items.first?.identifier)
                page = try await provider.enumerateItems(in: folder, page: next)
                items += page.items
            }
            return items.count > countMax ? nil : items
        } catch {
            switch error.code {
            case .notFound, .refused, .conflict, .stale, .permanent, .corrupted, .away: return nil
            default: throw error
            }
        }
    }
}

extension Item {
    /// What is equal at two places by chance, or as there are many of its kind, does not.
    fileprivate var saysSomething: Bool { kind == .file && size > 0 }
}
