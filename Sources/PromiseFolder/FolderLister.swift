import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// Lists folders. A small one is one page in the order of the disk; a large one comes in pages, in
/// the order of names.
final class FolderLister: Sendable {
    /// Larger folders are listed in pages of this many names: who reads the folder sees the first
    /// while the others are made.
    private static let pageSize = 2_048
    /// The first page is shorter, as somebody waits for it.
    private static let firstPageSize = 256
    /// Unfinished listings of large folders that are remembered; a forgotten one is read again.
    private static let listingCountMax = 16

    private let locator: FolderLocator
    /// Sorted names of large folders whose listing is under way.
    private let listings = Mutex<[ItemIdentifier: [[UInt8]]]>([:])

    private let hidden: HiddenFolder

    init(locator: FolderLocator, hidden: HiddenFolder) {
        (self.locator, self.hidden) = (locator, hidden)
    }

    private var root: FolderRoot { locator.root }
    private var names: FolderNames { locator.names }
    private var entries: FolderEntries { locator.entries }

    func list(_ reference: ItemReference, page: PageToken?) throws(ProviderError) -> ItemPage {
        // What the root shows decides about everything: without watches nobody says that the file
        // system is another one.
        if reference.path.isEmpty && page == nil { root.doubt() }
        let folder: LocatedFolder
        do throws(ProviderError) {
            folder = try locator.locateFolder(reference)
        } catch {
            if case .notFound = error.code { root.watcher.unwatch(reference.identifier) }
            throw error
        }
        // Before the names are read, so that whatever happens after is told.
        if page == nil { root.watcher.watch(folder.identifier, descriptor: folder.folder.number) }
        let (names, next) = try self.page(page, of: folder)
        let marks = readsMarks(folder.folder, isRoot: folder.isRoot)
        let hasEscapes = root.facts.traits.escapes != nil
        let twins = try mapped("'\(display(folder.path))' cannot be listed") {
            () throws(SystemError) in
            root.facts.traits.ignoresCase
                ? try self.names.lookForTwins(in: folder.folder, folder.text).twins : [:]
        }
        let (top, sight) = (try root.open(), FolderSight(locator: locator))
        let items = try mapped("'\(display(folder.path))' cannot be listed") {
            () throws(SystemError) in
            var items: [Item] = []
            items.reserveCapacity(names.count)
            for name in names {
                if hasEscapes, !isShown(name, twins) {
                    root.logger.warning(
                        "a name is no item's and is not shown",
                        metadata: ["name": "\(escapedForDisplay(name))"])
                    continue
                }
                guard
                    let found = try entries.listed(
                        name, in: folder.folder.number, parent: folder.text, readsMarks: marks)
                else {
                    continue
                }
                let path = folder.path + [found.shownName]
                let shown = sight.shown(found, at: path, in: folder.identifier, root: top) {
                    folder.mount
                }
                items.append(shown.item(parent: folder.identifier))
            }
            return items
        }
        locator.places.withLock { places in
            for item in items {
                places.learn(item.identifier, parent: folder.identifier, name: item.name)
            }
        }
        return ItemPage(items: items, next: next)
    }

    /// Of two of one name, the plain one is.
    private func isShown(_ name: [UInt8], _ twins: [FileName: [UInt8]]) -> Bool {
        guard let shown = names.shown(name) else { return false }
        return names.stored(shown) == name || twins[shown] == name
    }

    private func readsMarks(_ folder: OpenFolder, isRoot: Bool) -> Bool {
        isRoot ? root.readsMarks(folder) : root.mayHaveMarks
    }

    /// On a disk inside the source, where uploads are beside their items, nobody else meets them.
    private func removeOldUploads(_ names: [[UInt8]], in folder: LocatedFolder) {
        guard names.contains(where: { $0.starts(with: ReservedName.uploadPrefix) }) else { return }
        try? hidden.removeOldUploads(beside: folder.folder)
    }

    /// The names of one page. A small folder is one page in the order of the disk. The pages of a
    /// large one go by the order of names, and the token is the last name of the page before:
    /// nothing is lost when the listing was forgotten.
    private func page(_ page: PageToken?, of folder: LocatedFolder) throws(ProviderError) -> (
        names: [[UInt8]], next: PageToken?
    ) {
        var all: [[UInt8]]
        if page != nil, let remembered = listings.withLock({ $0[folder.identifier] }) {
            all = remembered
        } else {
            all = try mapped("'\(display(folder.path))' cannot be listed") {
                () throws(SystemError) in
                try listFolder(try folder.folder.openForReading(), label: "folder.list.read").map(
                    \.name)
            }
            removeOldUploads(all, in: folder)
            all.removeAll { ReservedName.contains($0, inRoot: folder.isRoot) }
            if page == nil, all.count <= FolderLister.pageSize { return (all, nil) }
            all.sort { $0.lexicographicallyPrecedes($1) }
            listings.withLock { [all] listings in
                if listings.count >= FolderLister.listingCountMax { listings.removeAll() }
                listings[folder.identifier] = all
            }
        }
        var start = 0
        if let page {
            guard let last = bytes(hexadecimal: page.rawValue) else {
                throw ProviderError(.refused, "'\(page.rawValue)' is no page of a listing")
            }
            start = firstIndex(after: last, in: all)
        }
        let end = min(
            start + (page == nil ? FolderLister.firstPageSize : FolderLister.pageSize), all.count)
        guard end < all.count else {
            listings.withLock { $0[folder.identifier] = nil }
            return (Array(all[start..<end]), nil)
        }
        return (Array(all[start..<end]), PageToken(rawValue: hexadecimalText(all[end - 1])))
    }
}

private func firstIndex(after name: [UInt8], in sorted: [[UInt8]]) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
        let middle = (low + high) / 2
        if name.lexicographicallyPrecedes(sorted[middle]) {
            high = middle
        } else {
            low = middle + 1
        }
    }
    return low
}
