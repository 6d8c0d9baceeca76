import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// What is shown of an entry that was found: not all that a file says of itself is believed, and a
/// folder on which something was mounted is shown as that.
///
/// Whoever may write a file may write a mark on it, also that of a file which is not theirs. An
/// item is where it was as long as it is there: no mark elsewhere takes it away.
struct FolderSight {
    let locator: FolderLocator
    private var top: FolderRoot { locator.root }
    /// How many files have led to this one by what they say: of several that say to be one item
    /// each leads to another.
    var depth = 0

    /// An entry as it is shown. `mount`: of the folder that it is in.
    func shown(
        _ entry: FolderEntry, at path: [FileName], in parent: ItemIdentifier, root: OpenFolder,
        mount: () throws(SystemError) -> UInt64
    ) -> FolderEntry {
        mounted(believed(entry, at: path, in: parent, root: root), at: path, in: mount)
    }

    // MARK: Marks

    /// An entry as it is believed: one that says to be an item that is somewhere else is itself.
    private func believed(
        _ entry: FolderEntry, at path: [FileName], in parent: ItemIdentifier, root: OpenFolder
    ) -> FolderEntry {
        guard depth < 2, entry.identity.base != entry.identity.own, entry.identity.isLasting,
            entry.status.kind == .file
        else { return entry }
        if entry.identity.base == top.facts.own { return refuted(entry, parent: parent) }
        let home = top.facts.identifier
        let known = locator.knownPlaces.path(
            of: entry.identifier, unlessIn: parent, as: entry.shownName)
        // Where it was seen last counts where nothing is known: never against what a file was led
        // from.
        let seen =
            depth > 0 ? nil : locator.places.withLock { $0.path(of: entry.identifier, root: home) }
        guard let place = known ?? seen, place != path,
            let other = try? locator.item(at: place, root: root, depth: depth + 1),
            other.entry.identifier == entry.identifier,
            other.entry.identity.own != entry.identity.own
        else { return entry }
        top.logger.warning(
            "a file says to be another one, and is not believed",
            metadata: ["file": "\(display(path))", "other": "\(display(place))"])
        return refuted(entry, parent: parent)
    }

    private func refuted(_ entry: FolderEntry, parent: ItemIdentifier) -> FolderEntry {
        var result = entry
        result.identity.base = entry.identity.own
        let text = parent == top.facts.identifier ? top.facts.text : parent.rawValue
        result.identifier = result.identity.identifier(parent: text, name: entry.shownName)
        return result
    }

    // MARK: Mounts

    /// An entry as it is shown: a folder on which something was mounted, and is not now, as the
    /// folder that was seen there. `mount`: of the folder that it is in.
    private func mounted(
        _ entry: FolderEntry, at path: [FileName], in mount: () throws(SystemError) -> UInt64
    ) -> FolderEntry {
        guard entry.status.kind == .folder, entry.identity.isLasting, entry.status.mount != 0 else {
            return entry
        }
        let known = top.mounts.place(at: path)
        // Nearly always both are the root's.
        if known == nil, entry.status.mount == top.facts.mount { return entry }
        guard let above = try? mount() else { return entry }
        if entry.status.mount != above {
            top.mounts.learn(path, entry.status, entry.identity.own)
            return entry
        }
        guard let known else { return entry }
        return awayFolder(entry, known)
    }

    private func awayFolder(_ entry: FolderEntry, _ place: FolderMounts.Place) -> FolderEntry {
        var result = entry
        result.isAway = true
        result.identity.own = place.identity
        result.identity.base = place.identity
        result.identifier = ItemIdentifier(place.identity)
        result.status.permissions = place.permissions
        result.status.owner = place.owner
        result.status.group = place.group
        result.status.modificationTime = Timestamp(nanoseconds: place.modificationTime)
        return result
    }

    /// What was not found may be on a file system that is not mounted now.
    func checkMounts(above paths: [[FileName]], root: OpenFolder) throws(ProviderError) {
        for path in paths {
            for place in top.mounts.places(above: path) where place.count < path.count {
                guard let found = try locator.item(at: place, root: root) else {
                    // Whoever removes the folder says that it will not come back.
                    top.mounts.forget(place)
                    continue
                }
                if found.entry.isAway { throw ProviderError(notMounted: display(place)) }
            }
        }
    }
}
