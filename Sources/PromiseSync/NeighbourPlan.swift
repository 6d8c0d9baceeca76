package import PromiseCore

/// Which small files to fetch before they are asked for: the next ones of a folder whose files a program opens in the order
/// in which the folder lists them. Pure: it is told what was opened and what follows, and knows neither index nor provider.
package struct NeighbourPlan: Sendable {
    /// So many opens in order are no coincidence.
    static let streakMin = 3
    /// Files between two opens that still count as in order: programs skip some, and several that share the work are apart.
    static let skipMax = 48
    /// Opens out of order after which a folder is left alone, and for how many opens.
    static let missesMax = 8
    static let restCount = 256
    static let aheadMax = 64
    static let bytesAheadMax: UInt64 = 16 << 20
    static let foldersMax = 16
    /// How many names are loaded at a time.
    package static let loadCount = 128

    package struct Neighbour: Hashable, Sendable {
        package var node: NodeID
        package var name: FileName
        package var size: UInt64
        /// A folder, a large file, content that is here: part of the order, never fetched.
        package var isWanted: Bool

        package init(node: NodeID, name: FileName, size: UInt64, isWanted: Bool) {
            self.node = node
            self.name = name
            self.size = size
            self.isWanted = isWanted
        }
    }

    fileprivate struct Stream {
        /// What follows the file opened last, as far as it is loaded.
        var following: [Neighbour] = []
        /// How many of `following` have been given out.
        var givenCount = 0
        var isLoadedToEnd = false
        /// What was passed lately: several readers of one folder are never quite in order.
        var passed: [FileName] = []
        var last: FileName
        var streak = 1
        var misses = 0
        var lastUse: Int
        /// Nothing is loaded for it before so many opens have been seen.
        var restsUntil = 0
    }

    private var streams: [NodeID: Stream] = [:]
    private var useCount = 0

    package init() {}

    /// A file was opened. Returns after which name the folder's children have to be loaded, in the order of names, for an
    /// answer; nil when `next` can answer as it is.
    package mutating func opened(_ name: FileName, in folder: NodeID) -> FileName? {
        useCount += 1
        guard var stream = streams[folder] else {
            if streams.count >= NeighbourPlan.foldersMax, let oldest = streams.min(by: { $0.value.lastUse < $1.value.lastUse }) {
                streams[oldest.key] = nil
            }
            streams[folder] = Stream(last: name, lastUse: useCount)
            return nil
        }
        stream.lastUse = useCount
        if stream.following.isEmpty, !stream.isLoadedToEnd {
            if stream.misses > NeighbourPlan.missesMax {
                stream.misses = 0
                stream.restsUntil = useCount + NeighbourPlan.restCount
            }
            if useCount < stream.restsUntil {
                stream.last = name
                streams[folder] = stream
                return nil
            }
            let before = stream.last
            stream.last = name
            streams[folder] = stream
            return before
        }
        stream.advance(to: name)
        streams[folder] = stream
        return stream.needsMore ? stream.following.last?.name ?? stream.last : nil
    }

    /// What follows the name that `opened` returned, in order; fewer than `loadCount` say that the folder ends there.
    package mutating func loaded(_ neighbours: [Neighbour], in folder: NodeID) {
        guard var stream = streams[folder] else { return }
        let isFirst = stream.following.isEmpty
        stream.following += neighbours
        stream.isLoadedToEnd = neighbours.count < NeighbourPlan.loadCount
        if isFirst { stream.advance(to: stream.last) }
        streams[folder] = stream
    }

    /// The files to fetch now; each is given once.
    package mutating func next(in folder: NodeID) -> [NodeID] {
        guard var stream = streams[folder], stream.streak >= NeighbourPlan.streakMin else { return [] }
        let count = min(1 << min(stream.streak, 30), NeighbourPlan.aheadMax, stream.following.count)
        guard count > stream.givenCount else { return [] }
        var result: [NodeID] = []
        var byteCount = stream.following[..<stream.givenCount].reduce(0) { $0 + ($1.isWanted ? $1.size : 0) }
        for neighbour in stream.following[stream.givenCount..<count] {
            if neighbour.isWanted {
                byteCount += neighbour.size
                guard byteCount <= NeighbourPlan.bytesAheadMax else { break }
                result.append(neighbour.node)
            }
            stream.givenCount += 1
        }
        streams[folder] = stream
        return result
    }
}

extension NeighbourPlan.Stream {
    fileprivate var needsMore: Bool { !isLoadedToEnd && following.count < NeighbourPlan.aheadMax }

    /// Goes on to `name`, or begins anew there when it is not among the next ones.
    fileprivate mutating func advance(to name: FileName) {
        if passed.contains(name) { return }
        last = name
        if let index = following.prefix(NeighbourPlan.skipMax + 1).firstIndex(where: { $0.name == name }) {
            passed = (passed + following[...index].map(\.name)).suffix(NeighbourPlan.skipMax * 2)
            following.removeFirst(index + 1)
            givenCount = max(0, givenCount - index - 1)
            streak += 1
            misses = 0
        } else {
            misses += 1
            following = []
            passed = []
            givenCount = 0
            isLoadedToEnd = false
            streak = 1
        }
    }
}
