import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// An item where it was found: the folder held open, the entry in it, and how it was reached.
struct LocatedItem: Sendable {
    var folder: OpenFolder
    /// `folder` as `text(of:at:)` gives it.
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

extension FolderProvider {
    var displayPath: String { escapedForDisplay(path) }

    func display(_ path: [FileName]) -> String { path.isEmpty ? "/" : path.map(\.display).joined(separator: "/") }

    /// The root, opened anew for every call so that its disk can be unmounted. `.permanent` when it never was there,
    /// `.offline` when it was and now is not: an unmounted disk leaves an empty folder, which must not be taken for a
    /// cloud whose items were all deleted.
    func openRoot() throws(ProviderError) -> OpenFolder {
        let known = shared.withLock { $0.root }
        let folder: OpenFolder
        do throws(SystemError) {
            folder = OpenFolder(try Descriptor.open(path, flags: openPathOnly | O_DIRECTORY, label: "folder.root.open"))
        } catch {
            guard known == nil else {
                shared.withLock { $0.root?.isDoubted = true }
                throw ProviderError(.offline, "the folder '\(displayPath)' is not there now: \(error.reason)")
            }
            throw ProviderError(firstOpening: displayPath, error)
        }
        do throws(SystemError) {
            if let known {
                if try isRoot(folder, as: known) { return folder }
            } else {
                try learnRoot(folder)
                return folder
            }
        } catch {
            if error.errno == FolderRecord.unreadable {
                let file = "\(displayPath)/.promisefs/store.json"
                throw ProviderError(
                    .permanent, "'\(file)' is damaged: restore it, or remove it and mount with another --state-dir")
            }
            throw ProviderError(error, "the folder '\(displayPath)' cannot be used")
        }
        throw ProviderError(.offline, "another folder is at '\(displayPath)' now: is its disk mounted?")
    }

    private func isRoot(_ folder: OpenFolder, as known: Root) throws(SystemError) -> Bool {
        let status = try FileStatus.of(descriptor: folder.number, label: "folder.root.status")
        let unmountCount = watcher.unmountCount
        let isSameMount = status.device == known.device && !known.isDoubted && unmountCount == known.unmountCount
        if isSameMount && known.knowsByPlace { return true }
        if !isSameMount, try !isSameFileSystem(folder, status, as: known) { return false }
        if !known.knowsByPlace, try ownIdentity([], in: folder.number, status: status) != known.own { return false }
        if isSameMount { return true }
        shared.withLock { shared in
            shared.root?.device = status.device
            shared.root?.mount = status.mount
            shared.root?.isDoubted = false
            shared.root?.unmountCount = unmountCount
            shared.deviceTexts = [:]
        }
        mounts.forgetNumbers()
        return true
    }

    /// A disk that was taken out and put back may have another number, and another disk its number; the root of every ext4 has
    /// the same handle, and of file systems without lasting names only our own record tells.
    private func isSameFileSystem(_ folder: OpenFolder, _ status: FileStatus, as known: Root) throws(SystemError) -> Bool {
        if known.knowsByPlace { return try (record(in: folder)?.identity ?? FolderRecord.noIdentity) == known.own }
        if known.fileSystem == 0 { return status.device == known.device }
        return try FileSystemFacts.of(descriptor: folder.number, label: "folder.root.facts").identity == known.fileSystem
    }

    private func learnRoot(_ folder: OpenFolder) throws(SystemError) {
        let status = try FileStatus.of(descriptor: folder.number, label: "folder.root.status")
        let facts = try FileSystemFacts.of(descriptor: folder.number, label: "folder.root.facts")
        if facts.forgetsWhichFileIsWhich { return try learnRootOfPlaces(folder, status, facts) }
        let own = try ownIdentity([], in: folder.number, status: status)
        var hasAttributes = true
        do throws(SystemError) {
            _ = try attribute(IdentityMark.attribute, of: [0x2E], in: folder.number, label: "folder.root.attribute")
        } catch {
            hasAttributes = false
            logger.notice(
                "the folder has no extended attributes: identifiers change when content is replaced",
                metadata: ["provider": "\(name)", "errno": "\(error.errno)"])
        }
        watcher.begin(root: ItemIdentifier(own), isShared: facts.isShared)
        let root = Root(
            own: own, device: status.device, mount: status.mount, fileSystem: facts.identity,
            hasAttributes: hasAttributes, isShared: facts.isShared)
        shared.withLock { if $0.root == nil { $0.root = root } }
    }

    private func learnRootOfPlaces(
        _ folder: OpenFolder, _ status: FileStatus, _ facts: FileSystemFacts
    ) throws(SystemError) {
        let record = try knownOrNewRecord(folder, type: facts.type)
        let root = Root(
            own: record?.identity ?? FolderRecord.noIdentity, device: status.device, fileSystem: facts.identity,
            hasAttributes: false, isShared: facts.isShared, knowsByPlace: true,
            traits: record?.traits(of: facts.type) ?? FolderTraits())
        watcher.begin(root: root.identifier, isShared: facts.isShared)
        let isFirst = shared.withLock { shared in
            defer { if shared.root == nil { shared.root = root } }
            return shared.root == nil
        }
        guard isFirst else { return }
        let escaped = root.traits.escapes.map { $0.names.joined(separator: ", ") }
        logger.notice(
            "the folder's file system has no lasting names for files: an item is what is at its place",
            metadata: ["provider": "\(name)", "escaped": "\(escaped ?? "nothing")"])
    }

    /// What the file system keeps of what is put into it.
    var kept: FolderTraits.Kept { shared.withLock { $0.root?.traits.kept ?? .all } }

    var knowsByPlace: Bool { shared.withLock { $0.root?.knowsByPlace ?? false } }

    /// Known once `openRoot` has returned.
    var rootFacts: Root {
        guard let root = shared.withLock({ $0.root }) else { preconditionFailure("the root is opened before it is asked about") }
        return root
    }

    func locatedRoot() throws(ProviderError) -> LocatedItem {
        let root = try openRoot()
        let facts = rootFacts
        let found = try mapped("the folder '\(displayPath)' cannot be read") { () throws(SystemError) in
            try entry([0x2E], in: root.number, parent: facts.text, readsMarks: false)
        }
        guard var found else { throw ProviderError(.offline, "the folder '\(displayPath)' is not there now") }
        found.identifier = facts.identifier
        return LocatedItem(folder: root, folderText: facts.text, parent: nil, entry: found, path: [])
    }

    /// Where the item is now. The path is only where it is looked for first; what is returned has the identifier asked for.
    /// `.notFound` is never said because a folder above it was being moved by another call of ours.
    func locate(_ reference: ItemReference) throws(ProviderError) -> LocatedItem {
        while true {
            let (begun, ended) = shared.withLock { ($0.movesBegun, $0.movesEnded) }
            do throws(ProviderError) {
                return try locateOnce(reference)
            } catch {
                guard case .notFound = error.code else { throw error }
                let isCertain = shared.withLock { begun == ended && $0.movesBegun == begun }
                if isCertain {
                    places.withLock { $0.forget(reference.identifier) }
                    throw error
                }
                // A move takes microseconds; a sleep lets it end.
                usleep(200)
            }
        }
    }

    private func locateOnce(_ reference: ItemReference) throws(ProviderError) -> LocatedItem {
        let root = try openRoot()
        let facts = rootFacts
        if facts.knowsByPlace { return try locateByPlace(reference, root: root) }
        if reference.identifier == facts.identifier { return try locatedRoot() }
        if let found = try item(at: reference.path, root: root), found.entry.identifier == reference.identifier { return found }
        let remembered = places.withLock { $0.path(of: reference.identifier, root: facts.identifier) }
        // The path may have been made before a folder on it was moved by another call of ours.
        let moved = shared.withLock { $0.moved }
        for path in [remembered].compactMap({ $0 }) + moved.successors(of: reference.path) where path != reference.path {
            if let found = try item(at: path, root: root), found.entry.identifier == reference.identifier { return found }
        }
        // Renamed behind our back inside its folder: its folder is looked through.
        for folderPath in [reference.path.dropLast(), remembered?.dropLast()].compactMap({ $0.map(Array.init) }) {
            let search = FolderSearch(provider: self, root: root)
            if let found = try search.run(for: reference.identifier, in: folderPath) { return found }
        }
        try FolderSight(provider: self).checkMounts(above: [reference.path, remembered ?? []], root: root)
        throw ProviderError(.notFound, "'\(display(reference.path))' is not in the folder any more")
    }

    private func locateByPlace(_ reference: ItemReference, root: OpenFolder) throws(ProviderError) -> LocatedItem {
        if reference.path.isEmpty { return try locatedRoot() }
        if let found = try item(at: reference.path, root: root) { return found }
        throw ProviderError(.notFound, "'\(display(reference.path))' is not in the folder any more")
    }

    /// As `locate`, and not what has the name in other case only: who asks wants to know whether the item was renamed.
    func locatedExactly(_ reference: ItemReference) throws(ProviderError) -> LocatedItem {
        let located = try locate(reference)
        guard rootFacts.traits.ignoresCase else { return located }
        let root = try openRoot()
        for (index, step) in located.path.enumerated() {
            let isThere = try mapped("'\(display(located.path))' cannot be looked for") { () throws(SystemError) in
                let folder = try walk(located.path[..<index], from: root)
                let (names, twins) = try lookForTwins(in: folder, try text(of: folder, at: located.path[..<index]))
                return twins[step] != nil || names.contains(stored(step))
            }
            guard isThere else {
                throw ProviderError(.notFound, "'\(display(reference.path))' is not in the folder any more")
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
        return try mapped("the folder '\(display(located.path))' cannot be opened") { () throws(SystemError) in
            let folder = located.parent == nil ? located.folder : try located.folder.open(located.entry.name)
            let status = try FileStatus.of(descriptor: folder.number, label: "folder.locate.status")
            // Replaced by another folder since it was looked at.
            guard try ownIdentity([], in: folder.number, status: status) == located.entry.identity.own else {
                throw SystemError(errno: ENOENT, label: "folder.locate.status")
            }
            let isPlace = !located.entry.identity.isLasting
            let text = located.parent == nil ? located.folderText : located.entry.identifier.rawValue
            return LocatedFolder(
                folder: folder, text: isPlace ? text : located.entry.identity.own, device: status.device, mount: status.mount,
                // Of a place, the one that it is asked for by: changes in it are told under that.
                identifier: isPlace ? reference.identifier : located.entry.identifier, path: located.path)
        }
    }

    /// What is at a path, whoever it is; nil when nothing is. Steps over no link and into nothing hidden.
    func item(at path: [FileName], root: OpenFolder, depth: Int = 0) throws(ProviderError) -> LocatedItem? {
        guard let last = path.last, path.first?.bytes != ReservedName.folder else { return nil }
        guard !ReservedName.contains(last.bytes, inRoot: path.count == 1) else { return nil }
        let marks = readsMarks(root)
        do throws(SystemError) {
            let folder = try walk(path.dropLast(), from: root)
            let text = try text(of: folder, at: path.dropLast())
            let form = try stored(last, in: folder, text)
            guard let seen = try entry(form, in: folder.number, parent: text, readsMarks: marks) else { return nil }
            let parent = path.count == 1 ? rootFacts.identifier : ItemIdentifier(text)
            let sight = FolderSight(provider: self, depth: depth)
            let found = sight.shown(seen, at: path, in: parent, root: root) { () throws(SystemError) in
                try FileStatus.of(descriptor: folder.number, label: "folder.item.mount").mount
            }
            if depth == 0 { places.withLock { $0.learn(found.identifier, parent: parent, name: last) } }
            return LocatedItem(folder: folder, folderText: text, parent: parent, entry: found, path: path)
        } catch {
            if [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(error.errno) { return nil }
            throw ProviderError(error, "'\(display(path))' cannot be looked at")
        }
    }

    func walk(_ path: ArraySlice<FileName>, from root: OpenFolder) throws(SystemError) -> OpenFolder {
        var folder = root
        for (index, step) in zip(path.indices, path) {
            let text = knowsByPlace ? try text(of: folder, at: path[..<index]) : ""
            folder = try folder.open(try stored(step, in: folder, text))
        }
        return folder
    }

    /// What tells a folder from others: its handle, or where that does not last its path from the root.
    func text(of folder: OpenFolder, at path: ArraySlice<FileName>) throws(SystemError) -> String {
        if knowsByPlace { return path.map { "/" + $0.display }.joined() }
        let status = try FileStatus.of(descriptor: folder.number, label: "folder.own.status")
        return try ownIdentity([], in: folder.number, status: status)
    }

    /// Only a store that something was uploaded to has marks; asking each file for one costs a call.
    func readsMarks(_ root: OpenFolder) -> Bool {
        let (hasAttributes, hasStore) = shared.withLock { ($0.root?.hasAttributes ?? false, $0.hasStore) }
        guard hasAttributes else { return false }
        if hasStore { return true }
        // A missing folder is the ordinary answer here and any error comes again at the files themselves.
        guard (try? FileStatus.of(ReservedName.folder, in: root.number, label: "folder.store.status")) != nil else {
            return false
        }
        shared.withLock { $0.hasStore = true }
        return true
    }
}
