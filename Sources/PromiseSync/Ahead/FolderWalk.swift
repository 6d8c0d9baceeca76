package import PromiseCore

/// Foresees which folders a walk through the tree asks for next, so that they are listed meanwhile.
///
/// Somebody who has a few folders listed for the first time in a short while, one after the other,
/// is taken for a walk, which goes through the folders in a folder in one of a few orders
/// (`WalkOrder`), so the next ones in that order are named. A walk asks only for what is not listed
/// yet, so each time it does it has come as far as was foreseen, and more is; so it is when the
/// walk reads the folder at the mark, half-way, and never has to ask: like a file's read-ahead. Of
/// a walk that goes into what it has listed, the folders in folders listed ahead are listed, too. A
/// pure state machine; the folders in at most
/// `parentCountMax` folders are remembered, and in as many that the walk has not come to.
package struct FolderWalk {
    /// Listings that are under way because of this, at most.
    package static let aheadCount = 16
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

        init(_ folders: [(node: NodeID, name: FileName)]) {
            orders = [WalkOrder(folders), WalkOrder(folders.sorted { $0.name < $1.name })]
        }

        var isHalfUsed: Bool { allowance == length / 2 }

        mutating func walkIsAt(_ folder: NodeID) {
            for index in orders.indices { orders[index].walkIsAt(folder) }
        }

        /// The order that fitted best so far.
        var best: Int { orders[0].surprise <= orders[1].surprise ? 0 : 1 }

        var hasNext: Bool { orders[best].hasNext }

        mutating func next() -> NodeID? {
            guard allowance > 0, let folder = orders[best].next() else { return nil }
            allowance -= 1
            return folder
        }

        /// Only the order in which the walk came so far is known.
        mutating func begin(as other: Window) {
            for (index, order) in other.orders.enumerated() {
                orders[index].begin(isBackward: order.isBackward, isBest: index == other.best)
            }
            allowance = FolderWalk.windowMax
        }
    }

    private var lastListing = Duration.zero
    /// What was asked for last, at most `listingCountMin`.
    private var recent: [Place] = []
    private var windows: [NodeID: Window] = [:]
    /// Of the windows, the one that was asked in last at the end: when nothing is left there, the
    /// walk goes on in one before.
    private var parents: [NodeID] = []
    /// What is listed now because of this, and the folder it is in.
    private var ahead: [NodeID: NodeID] = [:]
    private var marked: Place?
    /// The walk goes into the folders that it has listed.
    private var descends = false
    /// Folders listed ahead, whose own folders are listed ahead: in the order in which the walk
    /// will come to them.
    private var below: [NodeID] = []
    /// How many of these may be listed before the walk asks again.
    private var belowAllowance = 0

    package init() {}

    /// A program waits for the first listing of a folder in `parent`. Returns the folders to be
    /// listed ahead of it; `folders` gives all folders in `parent` with their names, in the order
    /// in which it is read.
    package mutating func asked<Problem>(
        for folder: NodeID, in parent: NodeID, at now: Duration,
        folders: () throws(Problem) -> [(node: NodeID, name: FileName)]
    ) throws(Problem) -> [NodeID] {
        if now - lastListing > FolderWalk.pauseMax { stop() }
        lastListing = now
        // A long listing is waited for page by page.
        guard recent.last?.folder != folder else { return [] }
        recent.append(Place(folder: folder, parent: parent))
        guard recent.count >= FolderWalk.listingCountMin else { return [] }
        recent = recent.suffix(FolderWalk.listingCountMin)
        if recent.contains(where: { $0.folder == parent }) {
            descends = true
        } else if recent.allSatisfy({ $0.parent == parent }) {
            descends = false
        }
        var window: Window
        if let known = windows[parent] {
            window = known
            window.length = min(window.length * 2, FolderWalk.windowMax)
        } else {
            let read = try folders()
            window = Window(read)
            for earlier in recent.dropLast() where earlier.parent == parent {
                window.walkIsAt(earlier.folder)
            }
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
        guard let place = marked, place.folder == folder, var window = windows[place.parent] else {
            return []
        }
        marked = nil
        lastListing = now
        window.allowance = window.length
        remember(window, of: place.parent)
        return next()
    }

    /// A listing has ended; `folders` gives the folders in it, as for `asked`. Returns the folders
    /// to be listed ahead now.
    package mutating func ended<Problem>(
        _ folder: NodeID, folders: () throws(Problem) -> [(node: NodeID, name: FileName)]
    ) throws(Problem) -> [NodeID] {
        guard let parent = ahead.removeValue(forKey: folder) else { return [] }
        if descends, belowAllowance > 0, let above = windows[parent], windows[folder] == nil {
            let read = try folders()
            if !read.isEmpty {
                expect(read, in: folder, as: above, isFirst: !parents.contains(parent))
            }
        }
        return next()
    }

    package mutating func ended(_ folder: NodeID) -> [NodeID] { ended(folder) { [] } }

    /// What is in a folder comes before what is beside it.
    private mutating func expect(
        _ folders: [(node: NodeID, name: FileName)], in folder: NodeID, as above: Window,
        isFirst: Bool
    ) {
        if below.count >= FolderWalk.parentCountMax {
            let done = below.filter { parent in
                windows[parent]?.hasNext != true && !ahead.values.contains(parent)
            }
            for parent in done { windows[parent] = nil }
            below.removeAll { done.contains($0) }
        }
        guard below.count < FolderWalk.parentCountMax else { return }
        var window = Window(folders)
        window.begin(as: above)
        windows[folder] = window
        below.insert(folder, at: isFirst ? 0 : below.endIndex)
    }

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
        below = []
        descends = false
    }

    private mutating func remember(_ window: Window, of parent: NodeID) {
        parents.removeAll { $0 == parent }
        below.removeAll { $0 == parent }
        if parents.count >= FolderWalk.parentCountMax { windows[parents.removeFirst()] = nil }
        parents.append(parent)
        windows[parent] = window
        belowAllowance = FolderWalk.windowMax
    }

    private mutating func next() -> [NodeID] {
        var named: [NodeID] = []
        if let current = parents.last { take(from: current, &named) }
        for parent in below where belowAllowance > 0 {
            let count = named.count
            take(from: parent, &named)
            belowAllowance -= named.count - count
        }
        for parent in parents.dropLast().reversed() { take(from: parent, &named) }
        return named
    }

    private mutating func take(from parent: NodeID, _ named: inout [NodeID]) {
        while ahead.count < FolderWalk.aheadCount, let folder = windows[parent]?.next() {
            ahead[folder] = parent
            if windows[parent]?.isHalfUsed == true, parents.contains(parent) {
                marked = Place(folder: folder, parent: parent)
            }
            named.append(folder)
        }
    }
}
