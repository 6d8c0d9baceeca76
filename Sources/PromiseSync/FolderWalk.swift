package import PromiseCore

/// Foresees which folders a walk through the tree asks for next, so that they are listed meanwhile.
///
/// Somebody who has a few folders listed for the first time in a short while, one after the other, is taken for a walk.
/// Walks go through the folders in a folder in the order in which it is read, so the next ones in that order are named.
/// A pure state machine; at most `parentCountMax` folders are remembered.
package struct FolderWalk {
    /// Listings that are under way because of this, at most.
    package static let aheadCount = 4
    private static let pauseMax = Duration.seconds(2)
    private static let listingCountMin = 3
    private static let parentCountMax = 32

    private var lastListing = Duration.zero
    private var listingCount = 0
    /// Of some folders: those in them that were not listed, in order, from a moment before.
    private var waiting: [NodeID: ArraySlice<NodeID>] = [:]
    private var ahead: Set<NodeID> = []

    package init() {}

    /// A program asks for the first listing of a folder in `parent`. Returns the folders to be listed ahead of it; `unlisted`
    /// gives the unlisted folders in `parent` in the order in which it is read.
    package mutating func asked<Problem>(
        for folder: NodeID, in parent: NodeID, at now: Duration, unlisted: () throws(Problem) -> [NodeID]
    ) throws(Problem) -> [NodeID] {
        if now - lastListing > FolderWalk.pauseMax {
            listingCount = 0
            waiting = [:]
        }
        lastListing = now
        listingCount += 1
        guard listingCount >= FolderWalk.listingCountMin else { return [] }
        if waiting[parent] == nil {
            if waiting.count >= FolderWalk.parentCountMax { waiting = [:] }
            waiting[parent] = try unlisted()[...]
        }
        guard var rest = waiting[parent] else { return [] }
        if let position = rest.firstIndex(of: folder) { rest = rest[(position + 1)...] }
        let count = min(rest.count, max(0, FolderWalk.aheadCount - ahead.count))
        let next = Array(rest.prefix(count))
        waiting[parent] = rest.dropFirst(count)
        ahead.formUnion(next)
        return next
    }

    /// A listing has ended, or was not begun.
    package mutating func ended(_ folder: NodeID) { ahead.remove(folder) }
}
