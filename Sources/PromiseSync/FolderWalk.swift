package import PromiseCore

/// Foresees which folders a walk through the tree asks for next, so that they are listed meanwhile.
///
/// Somebody who has a few folders listed for the first time in a short while, one after the other, is taken for a walk.
/// Walks go through the folders in a folder in the order in which it is read, so the next ones in that order are named. A
/// walk asks only for what was not listed ahead, so each time it does it has come further than was foreseen, and more is:
/// like a file's read-ahead. A pure state machine; at most `parentCountMax` folders are remembered.
package struct FolderWalk {
    /// Listings that are under way because of this, at most.
    package static let aheadCount = 8
    /// Folders in one folder that are listed before the walk asks again: at first, and at most.
    package static let windowMin = 4
    package static let windowMax = 64
    private static let pauseMax = Duration.seconds(2)
    private static let listingCountMin = 3
    private static let parentCountMax = 32

    /// What is foreseen in one folder.
    private struct Window {
        /// The folders in it that were not listed, in order, from a moment before.
        var waiting: ArraySlice<NodeID>
        var length = FolderWalk.windowMin
        /// How many of them may be listed before the walk asks again.
        var allowance = 0
    }

    private var lastListing = Duration.zero
    private var listingCount = 0
    private var windows: [NodeID: Window] = [:]
    /// The folder a walk asked in last, which is gone on with.
    private var current: NodeID?
    private var ahead: Set<NodeID> = []

    package init() {}

    /// A program asks for the first listing of a folder in `parent`. Returns the folders to be listed ahead of it; `unlisted`
    /// gives the unlisted folders in `parent` in the order in which it is read.
    package mutating func asked<Problem>(
        for folder: NodeID, in parent: NodeID, at now: Duration, unlisted: () throws(Problem) -> [NodeID]
    ) throws(Problem) -> [NodeID] {
        if now - lastListing > FolderWalk.pauseMax {
            listingCount = 0
            windows = [:]
        }
        lastListing = now
        listingCount += 1
        guard listingCount >= FolderWalk.listingCountMin else { return [] }
        if windows[parent] == nil, windows.count >= FolderWalk.parentCountMax { windows = [:] }
        var window: Window
        if let known = windows[parent] {
            window = known
            window.length = min(window.length * 2, FolderWalk.windowMax)
        } else {
            window = Window(waiting: try unlisted()[...])
        }
        if let position = window.waiting.firstIndex(of: folder) { window.waiting = window.waiting[(position + 1)...] }
        window.allowance = window.length
        windows[parent] = window
        current = parent
        return next()
    }

    /// A listing has ended, or was not begun. Returns the folders to be listed ahead now.
    package mutating func ended(_ folder: NodeID) -> [NodeID] { ahead.remove(folder) == nil ? [] : next() }

    /// Nothing more is listed ahead of a walk that is not heard of again.
    package mutating func stop() { current = nil }

    private mutating func next() -> [NodeID] {
        guard let current, var window = windows[current] else { return [] }
        let count = min(window.allowance, window.waiting.count, max(0, FolderWalk.aheadCount - ahead.count))
        let next = Array(window.waiting.prefix(count))
        window.waiting = window.waiting.dropFirst(count)
        window.allowance -= count
        windows[current] = window
        ahead.formUnion(next)
        return next
    }
}
