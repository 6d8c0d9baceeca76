package import PromiseCore

/// Which files to fetch before they are asked for: the next small ones in a folder whose files a
/// program opens in the order of the listing, or of the names, and those that are not small while
/// it reads such files whole; and when it goes from folder to folder in that order, those in the
/// next folders. A folder counts as opened with the first file in it. Pure: it is told what was
/// opened and what follows, and knows neither index nor provider.
package struct NeighbourPlan: Sendable {
    /// So many opens in order are no coincidence.
    static let streakMin = 3
    /// Opens out of order after which a folder is left alone, and for how many opens.
    private static let missesMax = 8
    private static let restCount = 256
    static let aheadMax = 64
    private static let bytesAheadMax: UInt64 = 16 << 20
    /// Of one file.
    package static let sizeMax: UInt64 = 8 << 20
    private static let foldersMax = 64
    /// Opens after which what was fetched for a folder that nobody opens files in is no longer
    /// waited for.
    private static let patience = 256
    /// How many names are loaded at a time.
    package static let loadCount = 128

    /// Where a program is in a folder.
    package struct Place: Hashable, Sendable {
        package var entry: EntryID
        package var name: FileName

        package init(entry: EntryID, name: FileName) {
            self.entry = entry
            self.name = name
        }
    }

    /// What has to be loaded: the names in a folder that follow in an order; from the beginning,
    /// where nothing is before.
    package struct Load: Hashable, Sendable {
        package var folder: NodeID
        package var order: NeighbourOrder
        package var after: Place?
    }

    package enum Next: Equatable, Sendable {
        case load(Load)
        /// Each is given once.
        case fetch(NodeID, size: UInt64)
    }

    private struct Stream {
        var lanes = NeighbourOrder.allCases.map { _ in NeighbourLane() }
        /// The order in which the program goes, when that is known.
        var order: NeighbourOrder?
        /// Nil: nothing has been opened yet, as only the folders before were.
        var last: Place?
        var above: NodeID?
        var openCount = 0
        var misses = 0
        var lastUse: Int
        /// Nothing is loaded for it before so many opens have been seen.
        var restsUntil = 0

        var lane: NeighbourLane? {
            get { order.map { lanes[$0.rawValue] } }
            set { if let order, let newValue { lanes[order.rawValue] = newValue } }
        }

        /// In the order in which the program goes. In place: by `lane` all that follows would be
        /// copied.
        mutating func advance(to entry: EntryID) -> Bool {
            guard let order else { return false }
            return lanes[order.rawValue].advance(to: entry)
        }

        mutating func lose() {
            order = nil
            lanes = NeighbourOrder.allCases.map { _ in NeighbourLane() }
            misses += 1
        }
    }

    private var streams: [NodeID: Stream] = [:]
    /// Folders gone ahead into whose files have not all been given out, the first one first.
    private var entered: [NodeID] = []
    private var useCount = 0
    /// The folder in which a program reads files whole that are not small.
    private var wholeReads: NodeID?
    /// Found not to be listed since the last open.
    private var notListed: NodeID?

    package init() {}

    /// Whether the folder's own place has to be told of as opened, before what is opened in it.
    package func isNew(_ folder: NodeID) -> Bool { streams[folder]?.last == nil }

    /// A file was opened, or the first file in a folder, `isFolder`. `above` is the folder that
    /// `folder` is in. Returns what has to be loaded before `next` can answer.
    package mutating func opened(_ place: Place, isFolder: Bool, in folder: NodeID, above: NodeID?)
        -> [Load]
    {
        useCount += 1
        notListed = nil
        var stream = streams.removeValue(forKey: folder) ?? makeStream(above: above)
        defer {
            streams[folder] = stream
            touch(folder)
        }
        let before = stream.last
        stream.last = place
        stream.openCount += 1
        if isFolder, stream.order != nil, isLeavingMuch(in: folder) {
            stream.lose()
            stream.restsUntil = useCount + NeighbourPlan.restCount
        }
        if let order = stream.order {
            if !stream.lanes[order.rawValue].isLoaded {
                return [Load(folder: folder, order: order, after: place)]
            }
            if stream.advance(to: place.entry) { stream.misses = 0 } else { stream.lose() }
            return []
        }
        guard let before else { return [] }
        if stream.misses > NeighbourPlan.missesMax {
            stream.misses = 0
            stream.restsUntil = useCount + NeighbourPlan.restCount
        }
        guard useCount >= stream.restsUntil else { return [] }
        return search(&stream, folder, from: before, to: place)
    }

    /// What was to be loaded, in order; fewer than `loadCount` say that the folder ends there.
    package mutating func loaded(_ neighbours: [Neighbour], for load: Load) {
        guard var stream = streams[load.folder] else { return }
        let isSearched = stream.order == nil
        stream.lanes[load.order.rawValue].load(neighbours)
        if isSearched, let last = stream.last {
            if stream.lanes[load.order.rawValue].advance(to: last.entry) {
                chooseOrder(of: &stream)
            } else {
                stream.lanes[load.order.rawValue] = NeighbourLane()
                if load.order == NeighbourOrder.allCases.last,
                    !stream.lanes.contains(where: \.isLoaded)
                {
                    stream.misses += 1
                }
            }
        }
        streams[load.folder] = stream
    }

    /// What was to be loaded cannot be, as the folder is not listed yet; it is entered when it is.
    package mutating func isNotListed(_ load: Load) {
        guard let stream = streams.removeValue(forKey: load.folder) else { return }
        entered.removeAll { $0 == load.folder }
        if let above = stream.above { streams[above]?.lane?.takeBack() }
        notListed = load.folder
    }

    /// Files of this folder that are not small are read whole; nil: of no folder.
    package mutating func readsWhole(in folder: NodeID?) {
        guard folder != wholeReads else { return }
        wholeReads = folder
        if let folder { streams[folder]?.lane?.beginAnew() }
    }

    /// What to do now, after a file in `folder` was opened; to be asked until it is nil.
    package mutating func next(after folder: NodeID) -> Next? {
        var candidates = [folder] + entered
        var above = streams[folder]?.above
        while let folder = above, candidates.count < NeighbourPlan.foldersMax {
            candidates.append(folder)
            above = streams[folder]?.above
        }
        for candidate in candidates {
            guard let stream = streams[candidate], let order = stream.order, let lane = stream.lane,
                lane.streak >= NeighbourPlan.streakMin
            else { continue }
            if lane.needsMore {
                let last = lane.following.last.map { Place(entry: $0.entry, name: $0.name) }
                return .load(Load(folder: candidate, order: order, after: last ?? stream.last))
            }
            if let step = step(in: candidate, lane) { return step }
            // What comes after this folder comes after what is left of it.
            guard streams[candidate]?.lane?.isGivenOut == true else { return nil }
            entered.removeAll { $0 == candidate }
        }
        return nil
    }

    /// Gives out the next name in a folder that is one to be fetched or entered.
    private mutating func step(in folder: NodeID, _ lane: NeighbourLane) -> Next? {
        var lane = lane
        defer { streams[folder]?.lane = lane }
        while let neighbour = lane.next {
            switch neighbour.use {
            case .passed: break
            case .fetchedForWholeReads where folder != wholeReads: break
            case .fetched, .fetchedForWholeReads:
                guard hasRoom(for: neighbour) else { return nil }
                lane.give(isFetched: true)
                return .fetch(neighbour.node, size: neighbour.size)
            case .entered:
                guard neighbour.node != notListed, hasRoom(for: nil) else { return nil }
                if streams[neighbour.node] != nil { break }
                lane.give(isFetched: false)
                return enter(neighbour.node, from: folder, lane)
            }
            lane.give(isFetched: false)
        }
        return nil
    }

    /// The program goes from folder to folder: this one will be next.
    private mutating func enter(_ folder: NodeID, from above: NodeID, _ lane: NeighbourLane)
        -> Next?
    {
        guard let order = streams[above]?.order else { return nil }
        var stream = makeStream(above: above)
        stream.order = order
        stream.lane = NeighbourLane(streak: lane.streak)
        streams[folder] = stream
        entered.append(folder)
        return .load(Load(folder: folder, order: order, after: nil))
    }

    private func hasRoom(for neighbour: Neighbour?) -> Bool {
        var count = 0
        var byteCount = neighbour?.size ?? 0
        for stream in streams.values where stream.lastUse > useCount - NeighbourPlan.patience {
            guard let lane = stream.lane else { continue }
            count += lane.fetchedCount
            byteCount = byteCount.plus(lane.fetchedByteCount)
        }
        return count < NeighbourPlan.aheadMax && byteCount <= NeighbourPlan.bytesAheadMax
    }

    /// The program went on to another folder in this one and left most of what was fetched for it
    /// in the one before: it opens a file here and there.
    private func isLeavingMuch(in folder: NodeID) -> Bool {
        let before = streams.values.filter { $0.above == folder && $0.last != nil }.max {
            $0.lastUse < $1.lastUse
        }
        guard let before, let left = before.lane?.fetchedCount else { return false }
        return left > 2 * before.openCount
    }

    /// Looks which of the orders leads from one place to the next.
    private func search(
        _ stream: inout Stream, _ folder: NodeID, from before: Place, to place: Place
    ) -> [Load] {
        var loads: [Load] = []
        for order in NeighbourOrder.allCases {
            if !stream.lanes[order.rawValue].isLoaded {
                loads.append(Load(folder: folder, order: order, after: before))
            } else if !stream.lanes[order.rawValue].advance(to: place.entry) {
                stream.lanes[order.rawValue] = NeighbourLane()
            }
        }
        chooseOrder(of: &stream)
        if stream.order != nil { return [] }
        if loads.isEmpty, !stream.lanes.contains(where: \.isLoaded) { stream.misses += 1 }
        return loads
    }

    /// One order has been gone in long enough: the other is forgotten.
    private func chooseOrder(of stream: inout Stream) {
        guard
            let order = NeighbourOrder.allCases.first(where: {
                stream.lanes[$0.rawValue].streak >= NeighbourPlan.streakMin
            })
        else { return }
        stream.order = order
        stream.misses = 0
    }

    /// Where the program went through the folders before in an order, it is expected to go through
    /// this one in the same.
    private mutating func makeStream(above: NodeID?) -> Stream {
        if streams.count >= NeighbourPlan.foldersMax,
            let oldest = streams.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            streams[oldest.key] = nil
            entered.removeAll { $0 == oldest.key }
        }
        var stream = Stream(above: above, lastUse: useCount)
        if let above, let lane = streams[above]?.lane, lane.streak >= NeighbourPlan.streakMin {
            stream.order = streams[above]?.order
            stream.lane = NeighbourLane(streak: lane.streak)
        }
        return stream
    }

    /// A folder is used as long as one in it is.
    private mutating func touch(_ folder: NodeID) {
        var folder: NodeID? = folder
        for _ in 0..<NeighbourPlan.foldersMax {
            guard let used = folder, streams[used] != nil else { return }
            streams[used]?.lastUse = useCount
            folder = streams[used]?.above
        }
    }
}
