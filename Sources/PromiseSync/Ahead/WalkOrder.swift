import PromiseCore

/// An order in which a walk may go through the folders in a folder, forwards or backwards, and how
/// well it fits what the walk asked for: programs that walk with a stack come backwards, and some
/// sort what they read by name.
struct WalkOrder {
    private let folders: [NodeID]
    /// Where the walk is.
    private var position: Int?
    private(set) var isBackward = false
    /// The next one to be named.
    private var cursor = 0
    /// How far in this order what the walk asked for was from what was to come; the last times
    /// count most.
    private(set) var surprise = 0

    init(_ folders: [(node: NodeID, name: FileName)]) { self.folders = folders.map(\.node) }

    /// The walk will come from this end.
    mutating func begin(isBackward: Bool, isBest: Bool) {
        self.isBackward = isBackward
        surprise = isBest ? 0 : 1
        cursor = isBackward ? folders.count - 1 : 0
    }

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

    var hasNext: Bool { folders.indices.contains(cursor) }

    mutating func next() -> NodeID? {
        guard hasNext else { return nil }
        defer { cursor += isBackward ? -1 : 1 }
        return folders[cursor]
    }
}
