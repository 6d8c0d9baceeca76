package import PromiseCore

/// Foresees which folders a walk through the tree asks for next, so that they are listed meanwhile.
///
/// Somebody who has a few folders listed for the first time in a short while, one after the other, is taken for a walk, which
/// goes through the folders in a folder in one of a few orders (`WalkOrder`), so the next ones in that order are named. A walk
/// asks only for what is not listed yet, so each time it does it has come as far as was foreseen, and more is; so it is when the
/// walk reads the folder at the mark, half-way, and never has to ask: like a file's read-ahead. A pure state machine; the
/// folders in at most `parentCountMax` folders are remembered.
package struct FolderWalk {
    /// Listings that are under way because of this, at most.
    package static let aheadCount = 8
    /// Folders in one folder that are listed before the walk asks again: at first, and at most.
    package static let windowMin = 4
    package static let windowMax = 64
    /// Folders in one folder that are looked at, at most.
    package static let folderCountMax = 65_536
    private static let pauseMax = Duration.seconds(2)
    private static let listingCountMin = 3
    private static let parentCountMax = 32

    /// A folder, and the one it is in.
    private struct Place {
        var folder: NodeID
        var parent: NodeID
    }

    /// What is foreseen in one folder.
    private struct Window {
        var orders: [WalkOrder]
        var length = FolderWalk.windowMin
        /// How many may be listed before the walk asks again.
        var allowance = 0

        var isHalfUsed: Bool { allowance == length / 2 }

        mutating func walkIsAt(_ folder: NodeID) {
            for index in orders.indices { orders[index].walkIsAt(folder) }
        }

        /// The next one in the order that fitted best so far.
        mutating func next() -> NodeID? {
            guard allowance > 0, let best = orders.indices.min(by: { orders[$0].surprise < orders[$1].surprise }),
                let folder = orders[best].next()
            else { return nil }
            allowance -= 1
            return folder
        }
    }

    private var lastListing = Duration.zero
    /// What was asked for last, at most `listingCountMin`.
    private var recent: [Place] = []
    private var windows: [NodeID: Window] = [:]
    /// Of the windows, the one that was asked in last at the end: when nothing is left there, the walk goes on in one before.
    private var parents: [NodeID] = []
    /// What is listed now because of this, and the folder it is in.
    private var ahead: [NodeID: NodeID] = [:]
    private var marked: Place?

    package init() {}

    /// A program waits for the first listing of a folder in `parent`. Returns the folders to be listed ahead of it; `folders`
    /// gives all folders in `parent` with their names, in the order in which it is read.
    package mutating func asked<Problem>(
        for folder: NodeID, in parent: NodeID, at now: Duration, folders: () throws(Problem) -> [(node: NodeID, name: FileName)]
    ) throws(Problem) -> [NodeID] {
        if now - lastListing > FolderWalk.pauseMax { stop() }
        lastListing = now
        // A long listing is waited for page by page.
        guard recent.last?.folder != folder else { return [] }
        recent.append(Place(folder: folder, parent: parent))
        guard recent.count >= FolderWalk.listingCountMin else { return [] }
        recent = recent.suffix(FolderWalk.listingCountMin)
        var window: Window
        if let known = windows[parent] {
            window = known
            window.length = min(window.length * 2, FolderWalk.windowMax)
        } else {
            let read = try folders()
            window = Window(orders: [WalkOrder(read), WalkOrder(read.sorted { $0.name < $1.name })])
            for earlier in recent.dropLast() where earlier.parent == parent { window.walkIsAt(earlier.folder) }
        }
        window.walkIsAt(folder)
        window.allowance = window.length
        remember(window, of: parent)
        return next()
    }

    /// Of the folder at which more is foreseen.
    package var mark: NodeID? { marked?.folder }

    /// A program reads this folder, which is listed. Returns the folders to be listed ahead now.
    package mutating func reached(_ folder: NodeID, at now: Duration) -> [NodeID] {
        guard let place = marked, place.folder == folder, var window = windows[place.parent] else { return [] }
        marked = nil
        lastListing = now
        window.allowance = window.length
        remember(window, of: place.parent)
        return next()
    }

    /// A listing has ended. Returns the folders to be listed ahead now.
    package mutating func ended(_ folder: NodeID) -> [NodeID] { ahead.removeValue(forKey: folder) == nil ? [] : next() }

    /// A folder that was named is not to be listed. Returns the folders to be listed ahead now.
    package mutating func skipped(_ folder: NodeID) -> [NodeID] {
        guard let parent = ahead.removeValue(forKey: folder) else { return [] }
        windows[parent]?.allowance += 1
        return next()
    }

    /// Nothing more is listed ahead of a walk that is not heard of again.
    package mutating func stop() {
        recent = []
        windows = [:]
        parents = []
        marked = nil
    }

    private mutating func remember(_ window: Window, of parent: NodeID) {
        parents.removeAll { $0 == parent }
        if parents.count >= FolderWalk.parentCountMax { windows[parents.removeFirst()] = nil }
        parents.append(parent)
        windows[parent] = window
    }

    private mutating func next() -> [NodeID] {
        var named: [NodeID] = []
        for parent in parents.reversed() {
            while ahead.count < FolderWalk.aheadCount, let folder = windows[parent]?.next() {
                ahead[folder] = parent
                if windows[parent]?.isHalfUsed == true { marked = Place(folder: folder, parent: parent) }
                named.append(folder)
            }
        }
        return named
    }
}

/// An order in which a walk may go through the folders in a folder, forwards or backwards, and how well it fits what the walk
/// asked for: programs that walk with a stack come backwards, and some sort what they read by name.
private struct WalkOrder {
    private let folders: [NodeID]
    /// Where the walk is.
    private var position: Int?
    private var isBackward = false
    /// The next one to be named.
    private var cursor = 0
    /// How far in this order what the walk asked for was from what was to come; the last times count most.
    private(set) var surprise = 0

    init(_ folders: [(node: NodeID, name: FileName)]) { self.folders = folders.map(\.node) }

    mutating func walkIsAt(_ folder: NodeID) {
        guard let found = folders.firstIndex(of: folder), found != position else { return }
        let wasBackward = isBackward
        if let position {
            surprise = surprise / 2 + abs(found - cursor)
            isBackward = found < position
        } else {
            isBackward = found > 0 && found == folders.count - 1
        }
        position = found
        if isBackward {
            cursor = wasBackward ? min(cursor, found - 1) : found - 1
        } else {
            cursor = wasBackward ? found + 1 : max(cursor, found + 1)
        }
    }

    mutating func next() -> NodeID? {
        guard folders.indices.contains(cursor) else { return nil }
        defer { cursor += isBackward ? -1 : 1 }
        return folders[cursor]
    }
}
