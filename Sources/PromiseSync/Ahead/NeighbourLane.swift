package import PromiseCore

/// One of the orders in which programs go through a folder.
package enum NeighbourOrder: Int, CaseIterable, Sendable {
    /// As it is listed: cp -r, grep -r, tar, find.
    case listing
    /// Sorted by name: shells, rsync, git.
    case name
}

/// A name in a folder, as far as a plan of what to fetch ahead has to know it.
package struct Neighbour: Hashable, Sendable {
    package enum Use: Sendable {
        /// A small file whose content is not here.
        case fetched
        /// One that is not small, and not large: fetched for a program that reads such files whole.
        case fetchedForWholeReads
        /// A folder, in which the program may go on.
        case entered
        /// A large file, or content that is here: part of the order and nothing else.
        case passed
    }

    package var entry: EntryID
    package var node: NodeID
    package var name: FileName
    package var size: UInt64
    package var use: Use

    package init(entry: EntryID, node: NodeID, name: FileName, size: UInt64, use: Use) {
        self.entry = entry
        self.node = node
        self.name = name
        self.size = size
        self.use = use
    }
}

/// How a program goes through a folder in one order: what follows, and how much of that was fetched
/// ahead.
struct NeighbourLane {
    /// Names between two opens that still count as in order: programs skip some, and several that
    /// share the work are apart.
    private static let skipMax = 48

    /// What follows the name opened last, as far as it is loaded.
    private(set) var following: [Neighbour] = []
    /// How many of `following` have been given out, and what of them is fetched.
    private(set) var givenCount = 0
    private(set) var fetchedCount = 0
    private(set) var fetchedByteCount: UInt64 = 0
    private(set) var isLoadedToEnd = false
    /// Opens in this order, one after the other.
    private(set) var streak = 1
    /// What was passed lately: several readers of one folder are never quite in order.
    private var passed: [EntryID] = []

    init(streak: Int = 1) { self.streak = streak }

    var isLoaded: Bool { isLoadedToEnd || !following.isEmpty }
    var needsMore: Bool { !isLoadedToEnd && following.count < NeighbourPlan.aheadMax }
    /// Everything to the end of the folder has been given out.
    var isGivenOut: Bool { isLoadedToEnd && givenCount == following.count }

    mutating func load(_ neighbours: [Neighbour]) {
        following += neighbours
        isLoadedToEnd = neighbours.count < NeighbourPlan.loadCount
    }

    /// Goes on to `entry`; false when it is not among the next ones.
    mutating func advance(to entry: EntryID) -> Bool {
        if passed.contains(entry) { return true }
        let next = following.prefix(NeighbourLane.skipMax + 1)
        guard let index = next.firstIndex(where: { $0.entry == entry }) else { return false }
        for neighbour in following[..<min(index + 1, givenCount)] where neighbour.use == .fetched {
            fetchedCount -= 1
            fetchedByteCount -= neighbour.size
        }
        passed = (passed + following[...index].map(\.entry)).suffix(NeighbourLane.skipMax * 2)
        following.removeFirst(index + 1)
        givenCount = max(0, givenCount - index - 1)
        streak += 1
        return true
    }

    /// The next name to be given out; nil when as much is ahead of the program as its streak is
    /// worth.
    var next: Neighbour? {
        let count = min(1 << min(streak, 30), NeighbourPlan.aheadMax, following.count)
        return givenCount < count ? following[givenCount] : nil
    }

    /// Gives out the next one; `isFetched`: it is fetched now.
    mutating func give(isFetched: Bool) {
        defer { givenCount += 1 }
        guard isFetched else { return }
        following[givenCount].use = .fetched
        fetchedCount += 1
        fetchedByteCount = fetchedByteCount.plus(following[givenCount].size)
    }

    /// What was given out and not fetched is to be given out again.
    mutating func beginAnew() {
        givenCount =
            following.prefix(givenCount).firstIndex { $0.use == .fetchedForWholeReads }
            ?? givenCount
        let fetched = following.prefix(givenCount).filter { $0.use == .fetched }
        fetchedCount = fetched.count
        fetchedByteCount = fetched.reduce(0) { $0.plus($1.size) }
    }

    /// The last one given out, a folder, is to be given out again.
    mutating func takeBack() {
        if givenCount > 0 { givenCount -= 1 }
    }
}
