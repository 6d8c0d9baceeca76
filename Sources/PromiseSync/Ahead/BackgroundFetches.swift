package import PromiseCore

/// Which files are fetched that no program waits for, a few at a time: those that somebody has
/// asked for, and then those that are pinned, which the index names (a pin is kept, so whatever
/// keeps a fetch from ending, it is made up for). A pure state machine.
package struct BackgroundFetches {
    /// Fetches at a time: enough for small files of a server that is far away.
    package static let runningMax = 32
    /// Pinned files that could not be fetched are tried again after this, and each time after twice
    /// as long.
    package static let pauseMin = Duration.seconds(30)
    package static let pauseMax = Duration.seconds(3600)

    private var asked: [NodeID] = []
    /// Of `asked`, how many have begun.
    private var begun = 0
    package private(set) var running: Set<NodeID> = []
    /// Those of `running` that nothing but their pins names, and those of which the pin was taken away
    /// since.
    private var forPins: Set<NodeID> = []
    private var unpinned: Set<NodeID> = []
    /// The last pinned file that this pass has come to; nil: no pass is under way.
    private var cursor: NodeID?
    private var hasFailed = false
    private var pause = BackgroundFetches.pauseMin
    /// When the next pass begins by itself.
    package private(set) var nextPass: Duration?

    package init() {}

    /// The first of what was asked for and has not begun.
    package func waiting(limit: Int) -> [NodeID] { Array(asked[begun...].prefix(limit)) }

    package mutating func ask(for nodes: [NodeID]) { asked += nodes }

    /// Pinned files may be missing: all are looked at again.
    package mutating func lookForPinned() {
        cursor = NodeID(rawValue: 0)
        hasFailed = false
        pause = BackgroundFetches.pauseMin
        nextPass = nil
    }

    /// The files to fetch now. `pinned` gives at most so many pinned files that are not here, by
    /// their numbers, after one.
    package mutating func next<Problem>(
        at now: Duration, pinned: (_ after: NodeID, _ limit: Int) throws(Problem) -> [NodeID]
    ) throws(Problem) -> [NodeID] {
        if let due = nextPass, due <= now {
            nextPass = nil
            cursor = NodeID(rawValue: 0)
        }
        var named: [NodeID] = []
        while running.count < BackgroundFetches.runningMax, begun < asked.count {
            if begin(asked[begun]) { named.append(asked[begun]) }
            forPins.remove(asked[begun])
            begun += 1
        }
        if begun == asked.count { (asked, begun) = ([], 0) }
        while running.count < BackgroundFetches.runningMax, let after = cursor {
            let found = try pinned(after, BackgroundFetches.runningMax - running.count)
            for node in found where begin(node) {
                named.append(node)
                forPins.insert(node)
            }
            cursor = found.last
            if found.isEmpty { passEnded(at: now) }
        }
        return named
    }

    /// False when it is under way. One that is about to be ended begins again then.
    private mutating func begin(_ node: NodeID) -> Bool {
        unpinned.remove(node)
        return running.insert(node).inserted
    }

    /// It is pinned no longer. True when its fetch is to end, as nothing else names it.
    package mutating func unpin(_ node: NodeID) -> Bool {
        guard forPins.remove(node) != nil else { return false }
        unpinned.insert(node)
        return true
    }

    package enum End { case done, failed, interrupted }

    package mutating func ended(_ node: NodeID, _ end: End, at now: Duration) {
        running.remove(node)
        forPins.remove(node)
        let isUnpinned = unpinned.remove(node) != nil
        switch end {
        case .done: break
        case .interrupted: if !isUnpinned { asked.append(node) }
        case .failed:
            hasFailed = true
            if cursor == nil { passEnded(at: now) }
        }
    }

    /// The provider cannot be reached; when it is back all that is pinned is looked at again.
    package mutating func interrupt() { (cursor, nextPass) = (nil, nil) }

    private mutating func passEnded(at now: Duration) {
        guard hasFailed, nextPass == nil else { return }
        hasFailed = false
        nextPass = now + pause
        pause = min(pause * 2, BackgroundFetches.pauseMax)
    }
}
