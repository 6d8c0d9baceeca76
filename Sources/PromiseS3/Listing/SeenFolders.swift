import Synchronization

/// Which folders there were in a folder when it was listed last, so that not every new file costs a look whether its name is a
/// folder's. What is told for sure is only what was not there a moment ago: who makes a folder of a file's name meanwhile could
/// as well make it a moment later.
///
/// Bounded: a folder of many folders, and what many others followed, is not remembered.
package final class SeenFolders: Sendable {
    private struct Seen {
        /// Keys of folders.
        var folders: Set<[UInt8]>
        /// Uptime when the listing began.
        var time: Duration
        var isWhole: Bool
    }

    package static let lifetime = Duration.seconds(60)
    private static let namesMax = 1000
    private static let foldersMax = 1000

    private let seen = Mutex<[[UInt8]: Seen]>([:])

    package init() {}

    /// A page of a folder's listing that was asked for at `time`.
    package func listed(_ folders: [[UInt8]], in folder: [UInt8], isFirst: Bool, isLast: Bool, at time: Duration) {
        seen.withLock { seen in
            if isFirst {
                if seen.count >= SeenFolders.foldersMax, seen[folder] == nil { seen = [:] }
                seen[folder] = Seen(folders: [], time: time, isWhole: false)
            }
            guard var known = seen[folder] else { return }
            known.folders.formUnion(folders)
            known.isWhole = isLast
            seen[folder] = known.folders.count <= SeenFolders.namesMax ? known : nil
        }
    }

    /// We made a folder, of nothing.
    package func made(_ key: [UInt8], in folder: [UInt8], at time: Duration) {
        listed([], in: key, isFirst: true, isLast: true, at: time)
        added(key, in: folder)
    }

    /// A folder is there now.
    package func added(_ key: [UInt8], in folder: [UInt8]) {
        seen.withLock { seen in _ = seen[folder]?.folders.insert(key) }
    }

    /// False also when it is not known.
    package func isMissing(_ key: [UInt8], in folder: [UInt8], at time: Duration) -> Bool {
        seen.withLock { seen in
            guard let known = seen[folder], known.isWhole, time - known.time < SeenFolders.lifetime else { return false }
            return !known.folders.contains(key)
        }
    }
}
