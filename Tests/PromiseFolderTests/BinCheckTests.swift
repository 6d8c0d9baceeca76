import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What the conformance suite says of what was removed: nothing of a storage that keeps it right, and what is wrong of one that
/// does not.
@Suite struct BinCheckTests {
    private static let listed = "what was removed is listed where it was, and what is there is not"
    private static let back = "what was removed comes back with its bytes to where it was"
    private static let twice = "what is back is not brought back again"
    private static let taken = "bringing back to a taken name is a conflict, and loses neither"
    private static let gone = "bringing back into a folder that is gone is a conflict"
    private static let folder = "an empty folder comes back as one"
    private static let unknown = "what was not removed is not found among it"
    private static let order = "what was removed is listed the newest first, each once"

    @Test func aStorageWithABinPasses() async throws {
        let provider = KeepingProvider(keepingRemoved: .right)
        let report = await provider.report(.removedItems)
        #expect(report.results.count == 8 && report.passedCount == 8, "\(report)")
        #expect(await provider.memory.names() == [])
    }

    /// Of two of one name that are removed in one second it keeps the second one only.
    @Test func aBinThatNamesWhatItKeepsByTheSecondPasses() async throws {
        let report = await KeepingProvider(keepingRemoved: .namesBySecond).report(.removedItems)
        #expect(report.results.count == 8 && report.passedCount == 8, "\(report)")
    }

    @Test(arguments: [
        (BinConduct.listsNothing, listed), (.losesTheFolder, listed), (.losesTheName, listed), (.losesTheSize, listed),
        (.takesFilesForFolders, listed), (.listsWhatIsThere, listed), (.listsTwice, listed),
        (.bringsBackNoBytes, back), (.bringsBackElsewhere, back), (.bringsNothingBack, back), (.keepsWhatIsBack, back),
        (.bringsAllBack, back),
        (.bringsBackAgain, twice), (.waitsForWhatIsBack, twice),
        (.replaces, taken), (.renames, taken), (.forgetsAtAConflict, taken), (.waitsForTheName, taken),
        (.bringsBackToTheRoot, gone), (.makesTheFolder, gone), (.waitsForTheFolder, gone),
        (.bringsAFolderBackAsFile, folder), (.takesFoldersForFiles, folder),
        (.waitsForUnknownItems, unknown), (.makesUnknownItems, unknown), (.saysThatUnknownItemsAreBack, unknown),
        (.listsTheOldestFirst, order), (.tellsTimesBackwards, order), (.listsTwice, order), (.listsTooMany, order),
    ])
    func whatIsWrongWithABinIsFound(conduct: BinConduct, check: String) async throws {
        let report = await KeepingProvider(keepingRemoved: conduct).report(.removedItems)
        #expect(report.failures.contains { $0.name == check }, "\(report)")
    }

    @Test func whatABinCannotDoIsLeftOut() async throws {
        let folders = await KeepingProvider(keepingRemoved: .knowsNoFolders).report(.removedItems)
        #expect(folders.failures.isEmpty && folders.passedCount == 7, "\(folders)")
        #expect(folders.skipped.map(\.name) == [Self.folder])
        // Where nobody may look into it, what it does not have is refused nevertheless.
        let hidden = await KeepingProvider(keepingRemoved: .isNotShown).report(.removedItems)
        #expect(hidden.failures.isEmpty && hidden.passedCount == 1, "\(hidden)")
        #expect(Set(hidden.skipped.map(\.reason)) == ["the storage does not show it"])
    }

    @Test func aStorageWithoutABinIsNotAskedForOne() async throws {
        let root = ItemReference(identifier: MemoryProvider.rootIdentifier, path: [])
        let report = await ConformanceSuite(provider: MemoryProvider(), folder: root).run(needing: .removedItems)
        #expect(report.skipped.count == 8 && report.skipped.allSatisfy { $0.reason == "not declared: removed-items" })
    }
}

/// What a storage does with what was removed.
enum BinConduct: Sendable {
    case right, namesBySecond, knowsNoFolders, isNotShown
    case listsNothing, losesTheFolder, losesTheName, losesTheSize, takesFilesForFolders, listsWhatIsThere
    case bringsBackNoBytes, bringsBackElsewhere, bringsNothingBack, keepsWhatIsBack, bringsAllBack
    case bringsBackAgain, waitsForWhatIsBack
    case replaces, renames, forgetsAtAConflict, waitsForTheName
    case bringsBackToTheRoot, makesTheFolder, waitsForTheFolder
    case bringsAFolderBackAsFile, takesFoldersForFiles
    case waitsForUnknownItems, makesUnknownItems, saysThatUnknownItemsAreBack
    case listsTheOldestFirst, tellsTimesBackwards, listsTwice, listsTooMany
}

/// What was removed from a storage in memory.
final class MemoryBin: ProviderBin {
    private struct Kept {
        var item: BinItem
        var text: String
        /// When it was removed, by the machine's clock.
        let second = SystemClock().now().seconds
        var isBack = false
    }

    private let memory: MemoryProvider
    private let conduct: BinConduct
    /// The oldest first. What is back stays, for those that bring it back again.
    private let kept = Mutex<[Kept]>([])

    init(_ memory: MemoryProvider, _ conduct: BinConduct) { (self.memory, self.conduct) = (memory, conduct) }

    private static func item(
        _ stored: MemoryProvider.Stored, _ identifier: String, _ path: [FileName], at seconds: Int
    ) -> BinItem {
        BinItem(
            identifier: identifier, path: path, kind: stored.item.kind, size: stored.item.size,
            modificationTime: stored.item.metadata.modificationTime, removalTime: Timestamp(seconds: seconds, nanoseconds: 0))
    }

    func keep(_ stored: MemoryProvider.Stored, at path: [FileName]) {
        if conduct == .knowsNoFolders, stored.item.kind == .folder { return }
        kept.withLock { kept in
            let number = kept.count
            let seconds = 1_700_000_000 + (conduct == .tellsTimesBackwards ? -number : number)
            let item = Self.item(stored, "removed-\(number)", path, at: seconds)
            let new = Kept(item: item, text: String(decoding: stored.bytes, as: UTF8.self))
            for index in kept.indices where conduct == .namesBySecond {
                // Gone, and as hidden as what is back.
                if kept[index].second == new.second, kept[index].item.path == path { kept[index].isBack = true }
            }
            kept.append(new)
        }
    }

    // MARK: Listing

    func list() async throws(ProviderError) -> [BinItem] {
        if conduct == .isNotShown { throw ProviderError(.refused, "the storage does not show it") }
        var items = kept.withLock { $0.filter { !$0.isBack || conduct == .keepsWhatIsBack }.map(\.item) }
        items.sort { $0.removalTime > $1.removalTime }
        switch conduct {
        case .listsNothing: items = []
        case .listsTheOldestFirst: items.reverse()
        case .listsTwice: items += items
        case .listsTooMany: items += more(than: items)
        case .listsWhatIsThere: items += await there()
        default: items = items.map { told($0) }
        }
        return items
    }

    private func told(_ item: BinItem) -> BinItem {
        var item = item
        switch (conduct, item.kind) {
        case (.losesTheFolder, _): item.path = item.path.suffix(1)
        case (.losesTheName, _): item.path = item.path.dropLast() + [FileName(trusted: Array("a A".utf8))]
        case (.losesTheSize, _): item.size = 0
        case (.takesFilesForFolders, .file): item.kind = .folder
        case (.takesFoldersForFiles, .folder): item.kind = .file
        default: break
        }
        return item
    }

    private func more(than items: [BinItem]) -> [BinItem] {
        guard let last = items.last else { return [] }
        return (0...10_000).map { number in
            var more = last
            more.identifier = "more-\(number)"
            more.path = [FileName(trusted: Array("more-\(number)".utf8))]
            return more
        }
    }

    /// All that is there, as if it had been removed.
    private func there() async -> [BinItem] {
        let items = await memory.items
        return items.values.compactMap { stored in
            var path: [FileName] = []
            var current: MemoryProvider.Stored? = stored
            while let now = current, let parent = now.item.parent {
                path.insert(now.item.name, at: 0)
                current = items[parent]
            }
            return path.isEmpty ? nil : Self.item(stored, stored.item.identifier.rawValue, path, at: 0)
        }
    }

    // MARK: Bringing back

    func restore(_ item: BinItem) async throws(ProviderError) {
        let found = kept.withLock { $0.first { $0.item.identifier == item.identifier } }
        guard let found, !found.isBack || [.bringsBackAgain, .keepsWhatIsBack].contains(conduct) else {
            return try await restoreUnknown(item, wasThere: found != nil)
        }
        if conduct == .bringsNothingBack { return done(found) }
        var path = found.item.path
        guard let name = path.last else { throw ProviderError(.permanent, "the root cannot have been removed") }
        if conduct == .bringsBackElsewhere { path = path.dropLast() + [FileName(trusted: name.bytes + [0x78])] }
        let parent = try await folder(Array(path.dropLast()))
        if let there = await memory.item(at: path) {
            switch conduct {
            case .replaces: await memory.remove(there.item.identifier)
            case .renames, .bringsBackAgain: path = path.dropLast() + [FileName(trusted: name.bytes + Array(" 2".utf8))]
            case .waitsForTheName: throw ProviderError(.retry, "the storage is busy")
            default:
                if conduct == .forgetsAtAConflict { done(found) }
                throw ProviderError(.conflict, "its name is taken")
            }
        }
        await put(found, path, in: parent)
        done(found)
        if conduct == .bringsAllBack { await bringAllBack() }
    }

    private func restoreUnknown(_ item: BinItem, wasThere: Bool) async throws(ProviderError) {
        switch conduct {
        case .waitsForWhatIsBack where wasThere: throw ProviderError(.retry, "the storage is busy")
        case .waitsForUnknownItems where !wasThere: throw ProviderError(.retry, "the storage is busy")
        case .saysThatUnknownItemsAreBack where !wasThere: return
        case .makesUnknownItems where !wasThere:
            guard let parent = await memory.item(at: item.path.dropLast()), let name = item.path.last else { return }
            await memory.put(name.display, in: parent.item.identifier)
        default: throw ProviderError(.notFound, "it is not kept any more")
        }
    }

    private func folder(_ path: [FileName]) async throws(ProviderError) -> ItemIdentifier {
        if let folder = await memory.item(at: path) { return folder.item.identifier }
        switch conduct {
        case .bringsBackToTheRoot: return MemoryProvider.rootIdentifier
        case .makesTheFolder:
            guard let name = path.last else { return MemoryProvider.rootIdentifier }
            let parent = try await folder(Array(path.dropLast()))
            return await memory.put(name.display, kind: .folder, in: parent)
        case .waitsForTheFolder: throw ProviderError(.retry, "the storage is busy")
        default: throw ProviderError(.conflict, "its folder is gone")
        }
    }

    private func put(_ found: Kept, _ path: [FileName], in parent: ItemIdentifier) async {
        let kind = conduct == .bringsAFolderBackAsFile ? .file : found.item.kind
        let text = conduct == .bringsBackNoBytes ? "" : found.text
        await memory.put(path.last?.display ?? "", text, kind: kind, in: parent)
    }

    private func bringAllBack() async {
        for other in kept.withLock({ $0.filter { !$0.isBack } }) {
            guard let parent = await memory.item(at: other.item.path.dropLast()) else { continue }
            await put(other, other.item.path, in: parent.item.identifier)
            done(other)
        }
    }

    private func done(_ found: Kept) {
        kept.withLock { kept in
            for index in kept.indices where kept[index].item.identifier == found.item.identifier { kept[index].isBack = true }
        }
    }
}
