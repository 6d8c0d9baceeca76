package import PromiseCore

/// Which folders a poll looks at, where the provider cannot tell what has changed: what somebody uses or watches
/// at every poll, what nobody has used for ten minutes ever more rarely, and once a day at least. Pure.
///
/// Each folder waits for between a quarter and a half of the time for which it has been left alone, so that many
/// folders are not looked at in the same moment.
package struct QuietFolders {
    package static let patience = Duration.seconds(600)
    static let longestPause = Duration.seconds(86_400)

    private struct Times {
        var used: Duration
        var looked: Duration
        /// 0 to 255.
        var share: Int
    }

    package init() {}

    private var times: [ItemIdentifier: Times] = [:]

    /// Those of `folders` that a poll looks at.
    package func due(of folders: Set<ItemIdentifier>, at now: Duration) -> Set<ItemIdentifier> {
        folders.filter { folder in
            guard let times = times[folder], isQuiet(times, at: now) else { return true }
            let pause = (now - times.used) * (256 + times.share) / 1024
            return now - times.looked >= min(pause, QuietFolders.longestPause)
        }
    }

    package func isQuiet(_ folder: ItemIdentifier, at now: Duration) -> Bool {
        times[folder].map { isQuiet($0, at: now) } ?? false
    }

    private func isQuiet(_ times: Times, at now: Duration) -> Bool {
        now - times.used >= QuietFolders.patience
    }

    /// A poll looks at some of all that are known.
    package mutating func looked(at folders: Set<ItemIdentifier>, of all: Set<ItemIdentifier>, at now: Duration) {
        if times.count > all.count { times = times.filter { all.contains($0.key) } }
        for folder in folders {
            let share = folder.rawValue.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFF }
            times[folder, default: Times(used: now, looked: now, share: share)].looked = now
        }
    }

    package mutating func used(_ folder: ItemIdentifier, at now: Duration) { times[folder]?.used = now }

    package mutating func usedAll(at now: Duration) {
        for folder in times.keys { times[folder]?.used = now }
    }
}
