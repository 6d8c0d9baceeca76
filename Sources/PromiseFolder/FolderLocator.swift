import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// An item where it was found: the folder held open, the entry in it, and how it was reached.
struct LocatedItem: Sendable {
    var folder: OpenFolder
    /// `folder` as `FolderLocator.text(of:at:)` gives it.
    var folderText: String
    /// Nil for the root, whose name is `.` in itself.
    var parent: ItemIdentifier?
    var entry: FolderEntry
    var path: [FileName]

    var item: Item { entry.item(parent: parent) }
}

/// A folder that something is put into or looked for in.
struct LocatedFolder: Sendable {
    var folder: OpenFolder
    var text: String
    var device: UInt64
    var mount: UInt64
    var identifier: ItemIdentifier
    var path: [FileName]

    var isRoot: Bool { path.isEmpty }
}

/// A path for people.
func display(_ path: [FileName]) -> String {
    path.isEmpty ? "/" : path.map(\.display).joined(separator: "/")
}

extension ProviderError {
    /// Something else is there than whoever asks has seen.
    static func changed(_ located: LocatedItem) -> ProviderError {
        ProviderError(.conflict, "'\(display(located.path))' was changed in the folder")
    }
}

/// Finds items: at the path where they were last seen, where this provider has moved them, or by
/// all names of their folder. Every walk starts at the root and follows no link.
///
/// `places` and `moves` are leaves: no system call is made under them.
final class FolderLocator: Sendable {
    private struct Moves {
        /// Moves of ours that have begun, and that are known in `places`: while they differ, no
        /// path can be relied on.
        var begun: UInt64 = 0
        var ended: UInt64 = 0
        /// Noted before a move has ended.
        var moved = MovedPaths()
    }

    let root: FolderRoot
    let names: FolderNames
    let entries: FolderEntries
    let knownPlaces: KnownPlaces
    let searches: FolderSearches
    /// By itself, as a listing learns many at a time.
    let places = Mutex(PlaceMap())
    private let moves = Mutex(Moves())

    init(
        root: FolderRoot, names: FolderNames, entries: FolderEntries, knownPlaces: KnownPlaces,
        searches: FolderSearches
    ) {
        self.root = root
        self.names = names
        self.entries = entries
        self.knownPlaces = knownPlaces
        self.searches = searches
    }

    /// Runs a move of ours, which nobody takes for a removal.
    func moving<Value>(_ body: () throws(ProviderError) -> Value) throws(ProviderError) -> Value {
        moves.withLock { $0.begun += 1 }
        defer { moves.withLock { $0.ended += 1 } }
        return try body()
    }

    /// Before the move has ended.
    func noteMove(from old: [FileName], to new: [FileName]) {
        moves.withLock { $0.moved.note(from: old, to: new) }
    }

    func learn(_ located: LocatedItem) {
        guard let parent = located.parent else { return }
        let (identifier, name) = (located.entry.identifier, located.entry.shownName)
        places.withLock { $0.learn(identifier, parent: parent, name: name) }
    }

    func locatedRoot() throws(ProviderError) -> LocatedItem {
        let top = try root.open()
        let facts = root.facts
        let found = try mapped("the folder '\(root.displayPath)' cannot be read") {
            () throws(SystemError) in
            try entries.entry([0x2E], in: top.number, parent: facts.text, readsMarks: false)
        }
        guard var found else {
            throw ProviderError(.offline, "the folder '\(root.displayPath)' is not there now")
        }
        found.identifier = facts.identifier
        return LocatedItem(folder: top, folderText: facts.text, parent: nil, entry: found, path: [])
    }

    /// Where the item is now. The path is only where it is looked for first; what is returned has
    /// the identifier asked for. `.notFound` is never said because a folder above it was being
    /// moved by another call of ours.
    func locate(_ reference: ItemReference) throws(ProviderError) -> LocatedItem {
        for _ in 0..<FolderLocator.movesWaitedFor {
            let (begun, ended) = moves.withLock { ($0.begun, $0.ended) }
            do throws(ProviderError) {
                return try locateOnce(reference)
            } catch {
                guard case .notFound = error.code else { throw error }
                let isCertain = moves.withLock { begun == ended && $0.begun == begun }
                if isCertain {
                    places.withLock { $0.forget(reference.identifier) }
                    throw error
                }
                // A move takes microseconds; a sleep lets it end.
                usleep(200)
            }
        }
        // One on a file system that hangs would be waited for without an end.
        throw ProviderError(.retry, "it cannot be looked for while a move does not end")
    }

    private static let movesWaitedFor = 2_000

    private func locateOnce(_ reference: ItemReference) throws(ProviderError) -> LocatedItem {
        let top = try root.open()
        let facts = root.facts
        if facts.knowsByPlace { return try locateByPlace(reference, root: top) }
        if reference.identifier == facts.identifier { return try locatedRoot() }
        if let found = try item(at: reference.path, root: top),
            found.entry.identifier == reference.identifier
        {
            return found
        }
        let remembered = places.withLock {
            $0.path(of: reference.identifier, root: facts.identifier)
        }
        // The path may have been made before a folder on it was moved by another call of ours.
        let moved = moves.withLock { $0.moved }
        for path in [remembered].compactMap({ $0 }) + moved.successors(of: reference.path)
        where path != reference.path {
            if let found = try item(at: path, root: top),
                found.entry.identifier == reference.identifier
            {
                return found
            }
        }
        // Renamed behind our back inside its folder: its folder is looked through.
        for folderPath in [reference.path.dropLast(), remembered?.dropLast()].compactMap({
            $0.map(Array.init)
        }) {
            let search = FolderSearch(locator: self, root: top)
            if let found = try search.run(for: reference.identifier, in: folderPath) {
                return found
            }
        }
        try FolderSight(locator: self).checkMounts(
            above: [reference.path, remembered ?? []], root: top)
        throw ProviderError(.notFound, "'\(display(reference.path))' is not in the folder any more")
    }

    private func locateByPlace(_ reference: ItemReference, root top: OpenFolder)
        throws(ProviderError) -> LocatedItem
    {
        if reference.path.isEmpty { return try locatedRoot() }
        if let found = try item(at: reference.path, root: top) { return found }
        throw ProviderError(.notFound, "'\(display(reference.path))' is not in the folder any more")
    }

    /// As `locate`; what has the name in other case only is told under the name that it has: who
    /// asks wants to know whether the item was renamed.
    func locatedExactly(_ reference: ItemReference) throws(ProviderError) -> LocatedItem {
        var located = try locate(reference)
        guard root.facts.traits.ignoresCase else { return located }
        let top = try root.open()
        for (index, step) in located.path.enumerated() {
            let what = "'\(display(located.path))' cannot be looked for"
            let found = try mapped(what) { () throws(SystemError) -> FileName? in
                let folder = try walk(located.path[..<index], from: top)
                let (taken, twins) = try names.lookForTwins(
                    in: folder, try text(of: folder, at: located.path[..<index]))
                if twins[step] != nil || taken.contains(names.stored(step)) { return step }
                return taken.compactMap { names.shown($0) }
                    .first { $0.isTwin(of: step) && twins[$0] == nil }
            }
            // A folder above that was renamed is asked for by itself.
            guard let found, found == step || index == located.path.count - 1 else {
                throw ProviderError(
                    .notFound, "'\(display(reference.path))' is not in the folder any more")
            }
            if found != step {
                (located.entry.name, located.entry.shownName) = (names.stored(found), found)
            }
        }
        return located
    }

    /// The folder a reference names, opened. `.notFound` when something else has its place.
    func locateFolder(_ reference: ItemReference) throws(ProviderError) -> LocatedFolder {
        let located = try locate(reference)
        guard located.entry.status.kind == .folder else {
            throw ProviderError(.notFound, "'\(display(located.path))' is no folder any more")
        }
        if located.entry.isAway { throw ProviderError(notMounted: display(located.path)) }
        return try mapped("the folder '\(display(located.path))' cannot be opened") {
            () throws(SystemError) in
            let folder =
                located.parent == nil ? located.folder : try located.folder.open(located.entry.name)
            let status = try FileStatus.of(descriptor: folder.number, label: "folder.locate.status")
            // Replaced by another folder since it was looked at.
            guard
                try root.ownIdentity([], in: folder.number, status: status)
                    == located.entry.identity.own
            else {
                throw SystemError(errno: ENOENT, label: "folder.locate.status")
            }
            let isPlace = !located.entry.identity.isLasting
            let text =
                located.parent == nil ? located.folderText : located.entry.identifier.rawValue
            return LocatedFolder(
                folder: folder, text: isPlace ? text : located.entry.identity.own,
                device: status.device, mount: status.mount,
                // Of a place, the one that it is asked for by: changes in it are told under that.
                identifier: isPlace ? reference.identifier : located.entry.identifier,
                path: located.path)
        }
    }

    /// What is at a path, whoever it is; nil when nothing is. Steps over no link and into nothing
    /// hidden.
    func item(at path: [FileName], root top: OpenFolder, depth: Int = 0) throws(ProviderError)
        -> LocatedItem?
    {
        guard let last = path.last, path.first?.bytes != ReservedName.folder else { return nil }
        guard !ReservedName.contains(last.bytes, inRoot: path.count == 1) else { return nil }
        let marks = root.readsMarks(top)
        do throws(SystemError) {
            let folder = try walk(path.dropLast(), from: top)
            let text = try text(of: folder, at: path.dropLast())
            let form = try names.stored(last, in: folder, text)
            guard
                let seen = try entries.entry(
                    form, in: folder.number, parent: text, readsMarks: marks)
            else { return nil }
            let parent = path.count == 1 ? root.facts.identifier : ItemIdentifier(text)
            let sight = FolderSight(locator: self, depth: depth)
            let found = sight.shown(seen, at: path, in: parent, root: top) {
                () throws(SystemError) in
                try FileStatus.of(descriptor: folder.number, label: "folder.item.mount").mount
            }
            if depth == 0 {
                places.withLock { $0.learn(found.identifier, parent: parent, name: last) }
            }
            return LocatedItem(
                folder: folder, folderText: text, parent: parent, entry: found, path: path)
        } catch {
            if [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(error.errno) { return nil }
            throw problem(error, "'\(display(path))' cannot be looked at", top)
        }
    }

    /// A program that served something inside the folder has died, or its server is gone: that is
    /// away, and all else is there.
    func problem(_ error: SystemError, _ what: String, _ top: OpenFolder) -> ProviderError {
        guard [ENOTCONN, ESTALE, EHOSTDOWN].contains(error.errno),
            (try? FileStatus.of([0x2E], in: top.number, label: "folder.item.root")) != nil
        else { return ProviderError(error, what) }
        return ProviderError(.away, "\(what): \(error.reason)")
    }

    func walk(_ path: ArraySlice<FileName>, from top: OpenFolder) throws(SystemError) -> OpenFolder
    {
        var folder = top
        for (index, step) in zip(path.indices, path) {
            let text = root.knowsByPlace ? try text(of: folder, at: path[..<index]) : ""
            folder = try folder.open(try names.stored(step, in: folder, text))
        }
        return folder
    }

    /// What tells a folder from others: its handle, or where that does not last its path from the
    /// root.
    func text(of folder: OpenFolder, at path: ArraySlice<FileName>) throws(SystemError) -> String {
        if root.knowsByPlace { return path.map { "/" + $0.display }.joined() }
        let status = try FileStatus.of(descriptor: folder.number, label: "folder.own.status")
        return try root.ownIdentity([], in: folder.number, status: status)
    }
}
