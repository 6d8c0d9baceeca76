import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// What is in folders that were looked through for items which are not where they were.
///
/// When many files of a large folder are removed at once each of them is asked for, and to look
/// through all of the folder for each took minutes, with every thread of the pool. So whoever comes
/// while others look waits and is told by the look that began after that, and as long as the folder
/// itself has not changed one look is enough for all.
package final class FolderSearches: Sendable {
    private struct Look {
        /// Uptime.
        var began: Duration
        /// Of the folder before the look: nothing came to it or got another name while that is so.
        var changeTime: Timestamp
        /// That tells: the change before it was not at the same tick of the disk's clock.
        var isSettled: Bool
        /// Numbers of all identifiers. Two of one number cost a look more.
        var identifiers: Set<Int>
    }

    private final class Folder: Sendable {
        let last = Mutex<Look?>(nil)
    }

    /// There are file systems that tell whole seconds.
    private static let tick = Duration.seconds(2)
    private static let foldersMax = 4
    private static let identifiersMax = 150_000

    private let folders = Mutex<[String: Folder]>([:])
    private let looks = Mutex(0)

    /// How many times a folder was looked through.
    package var lookCount: Int { looks.withLock { $0 } }

    /// Waits for others who look through the same folder. False when the item is not there.
    /// `mayLast`: the folder's own time tells whatever is changed in it. `look` hands on the
    /// identifier of all that is there, and returns why something was left out that may be the
    /// item: that is thrown where nothing else is.
    func mayHold(
        _ identifier: ItemIdentifier, _ folder: OpenFolder, _ text: String, mayLast: Bool,
        _ clock: any TimeSource,
        _ look: ((ItemIdentifier) -> Void) throws(SystemError) -> SystemError?
    ) throws(SystemError) -> Bool {
        let (came, number) = (clock.uptime(), identifier.hashValue)
        let known = folders.withLock { folders in
            if folders.count >= FolderSearches.foldersMax, folders[text] == nil { folders = [:] }
            let found = folders[text] ?? Folder()
            folders[text] = found
            return found
        }
        return try known.last.withLock { (last) throws(SystemError) in
            let changeTime = try FileStatus.of(
                descriptor: folder.number, label: "folder.search.status"
            ).changeTime
            if let last,
                last.began >= came || (mayLast && last.isSettled && last.changeTime == changeTime)
            {
                return last.identifiers.contains(number)
            }
            last = nil
            looks.withLock { $0 += 1 }
            var new = Look(
                began: clock.uptime(), changeTime: changeTime,
                isSettled: changeTime.advanced(by: FolderSearches.tick) < clock.now(),
                identifiers: [])
            let trouble = try look { new.identifiers.insert($0.hashValue) }
            let isThere = new.identifiers.contains(number)
            if let trouble {
                if !isThere { throw trouble }
            } else if new.identifiers.count <= FolderSearches.identifiersMax {
                last = new
            }
            return isThere
        }
    }
}

/// Looks for an item by all names of a folder.
struct FolderSearch {
    let locator: FolderLocator
    let root: OpenFolder

    func run(for identifier: ItemIdentifier, in path: [FileName]) throws(ProviderError)
        -> LocatedItem?
    {
        let marks = locator.root.readsMarks(root)
        var trouble: SystemError?
        do throws(SystemError) {
            let folder = try locator.walk(path[...], from: root)
            let own = try locator.text(of: folder, at: path[...])
            var result: FolderEntry?
            func look(_ seen: (ItemIdentifier) -> Void) throws(SystemError) -> SystemError? {
                trouble = nil
                for (name, _) in try listFolder(
                    try folder.openForReading(), label: "folder.search.list")
                {
                    guard !ReservedName.contains(name, inRoot: path.isEmpty) else { continue }
                    let entry = try locator.entries.listed(
                        name, in: folder.number, parent: own, readsMarks: marks
                    ) {
                        // What is mounted is no item by another name, and may be dead for weeks.
                        if !FolderMounts.isMounted(name, in: folder.number) { trouble = $0 }
                    }
                    guard let entry else { continue }
                    seen(entry.identifier)
                    if entry.identifier == identifier { result = result ?? entry }
                }
                return trouble
            }
            let key = marks ? own + " marked" : own
            let mayHold = try locator.searches.mayHold(
                identifier, folder, key, mayLast: tellsChanges, locator.root.clock, look)
            guard mayHold else { return nil }
            // Another one's look has found it.
            if result == nil, let trouble = try look({ _ in }), result == nil { throw trouble }
            guard let found = result else { return nil }
            let place = found.shownName
            locator.places.withLock {
                $0.learn(identifier, parent: ItemIdentifier(own), name: place)
            }
            return LocatedItem(
                folder: folder, folderText: own, parent: ItemIdentifier(own), entry: found,
                path: path + [place])
        } catch {
            if trouble != nil { throw leftOut(error, path) }
            if [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES].contains(error.errno) { return nil }
            throw ProviderError(error, "'\(display(path))' cannot be looked through")
        }
    }

    /// It may be the item under another name. What is refused here says nothing of the item.
    private func leftOut(_ error: SystemError, _ path: [FileName]) -> ProviderError {
        let what = "not all in '\(display(path))' can be looked at"
        guard [EACCES, EPERM].contains(error.errno) else {
            return locator.problem(error, what, root)
        }
        return ProviderError(.retry, "\(what): \(error.reason)")
    }

    /// What is mounted inside, and what other machines have, may be another thing without its
    /// folder having changed.
    private var tellsChanges: Bool {
        locator.root.mounts.isEmpty && locator.root.knownFacts?.isShared == false
    }
}
