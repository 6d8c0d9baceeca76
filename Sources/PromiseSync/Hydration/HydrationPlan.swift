package import PromiseCore
import PromiseProvider

/// Which bytes of one file to fetch next. Pure: it is given what is here, on its way and wanted, and knows no provider.
package struct HydrationPlan: Sendable {
    /// So many fetches run at a time, so that a provider far away is kept busy by a reader that goes on and on.
    package static let fetchesMax = 16
    /// Of a provider that is near, where fetches side by side only take each other's disk.
    package static let nearFetchesMax = 2

    package private(set) var size: UInt64
    package private(set) var present: ByteRangeSet
    package private(set) var inFlight: [ByteRange] = []
    /// Of what is present: brought by fetches that have not ended, or not well. At its end a provider
    /// looks whether it still has the version that was asked for.
    private(set) var unproven = ByteRangeSet()
    /// What fetches that were broken off had left when another one began: a version that is gone does
    /// not come back, so the good end of that one is theirs, too.
    private var leftBefore: [ByteRange: ByteRangeSet] = [:]
    /// Everything is wanted, not only what is read.
    package var wantsWhole = false

    /// Where the reader that reads in order would read next, and how much it has read in order so far.
    private var expectedOffset: UInt64 = 0
    private var sequentialByteCount: UInt64 = 0
    private var readAhead: ByteRange?
    /// Less where there is no room for all of the file.
    private var aheadMost = UInt64.max
    /// A request takes long to begin: a few large ones are better than many.
    package var isSlow = false
    /// The provider sends all of a file for each piece that is asked for.
    package var fetchesWhole = false

    private let sizes: FetchSizes

    /// `unproven`: what is here beside `present`, or of it.
    package init(
        size: UInt64, present: ByteRangeSet, unproven: ByteRangeSet = ByteRangeSet(), sizes: FetchSizes = .usual
    ) {
        self.sizes = sizes
        self.size = size
        self.present = present
        self.unproven = unproven
        for range in unproven.ranges { self.present.insert(range) }
    }

    /// It is fetched in one piece.
    package var isSmall: Bool { size <= sizes.smallFileMax }
    private var isOneFetch: Bool { fetchesWhole || isSmall }
    private var inFlightByteCount: UInt64 { inFlight.reduce(0) { $0 + $1.count } }
    package var isComplete: Bool { unproven.isEmpty && present.contains(ByteRange(0, size)) }
    package var presentByteCount: UInt64 { present.byteCount }
    /// What may be kept, or sent, as a part of a file that was edited here.
    package var proven: ByteRangeSet { present.without(unproven) }

    package func isPresent(_ range: ByteRange) -> Bool { present.contains(range.clamped(to: size)) }

    /// A program reads `range`. Reading on where the last read ended widens what is fetched ahead.
    package mutating func read(_ range: ByteRange) {
        if range.lower == expectedOffset, range.lower > 0 || sequentialByteCount == 0 {
            sequentialByteCount += range.count
        } else {
            sequentialByteCount = range.count
        }
        expectedOffset = range.upper
        // Whoever has read on and on and has to wait all the same is faster than what is fetched ahead.
        let isLate = sequentialByteCount >= sizes.pieceMax && !isPresent(range)
        let most = min(aheadMost, isSlow ? sizes.slowReadAheadMax : sizes.readAheadMax)
        let ahead = min(max(sequentialByteCount * (isLate ? 16 : 4), sizes.readAheadMin), most)
        // In steps of whole pieces, so that a reader who goes on does not cause a small fetch at every read.
        let step = min(ahead, sizes.pieceMax)
        let end = (range.lower + ahead + step - 1) / step * step
        readAhead = ByteRange(range.lower, end).clamped(to: size)
    }

    // MARK: Streaming

    /// There is room for so much of it at a time.
    package mutating func stream(within room: UInt64) {
        aheadMost = min(aheadMost, max(room / 4, 2 * sizes.block))
        guard let ahead = readAhead else { return }
        readAhead = ByteRange(ahead.lower, min(ahead.upper, ahead.lower + aheadMost))
    }

    /// What of it may go, about so many bytes in whole blocks: first what lies behind the reader, from the beginning on, then
    /// what is far ahead, then what is near ahead, each from its end on.
    package func expendable(_ byteCount: UInt64, besides kept: [ByteRange]) -> [ByteRange] {
        var rest = present
        for range in kept + inFlight { rest.remove(range.aligned(to: sizes.block)) }
        let here = expectedOffset - min(expectedOffset, sizes.block)
        let behind = rest.ranges.filter { $0.lower < here }.map { ByteRange($0.lower, min($0.upper, here)) }
        let ahead = rest.ranges.filter { $0.upper > here }.map { ByteRange(max($0.lower, here), $0.upper) }
        var result: [ByteRange] = []
        var count: UInt64 = 0
        for range in behind where count < byteCount {
            guard let whole = blocks(in: range) else { continue }
            let wanted = ByteRange(0, byteCount - count).aligned(to: sizes.block).count
            result.append(ByteRange(whole.lower, min(whole.upper, whole.lower + wanted)))
            count += result[result.count - 1].count
        }
        for range in ahead.reversed() where count < byteCount {
            guard let whole = blocks(in: range) else { continue }
            let wanted = ByteRange(0, byteCount - count).aligned(to: sizes.block).count
            result.append(ByteRange(whole.upper - min(whole.count, wanted), whole.upper))
            count += result[result.count - 1].count
        }
        return result
    }

    /// The whole blocks in a range; nil: there are none.
    private func blocks(in range: ByteRange) -> ByteRange? {
        let block = sizes.block
        let first = (range.lower + block - 1) / block * block
        let last = range.upper / block * block
        return first < last ? ByteRange(first, last) : nil
    }

    package mutating func dropped(_ range: ByteRange) {
        present.remove(range)
        unproven.remove(range)
        leftBefore = [:]
    }

    /// It was to go and is here.
    package mutating func stayed(_ range: ByteRange) { present.insert(range) }

    /// The fetches to start now, most wanted first. They count as in flight from here on. `aheadMax`: bytes that may be under way
    /// when another fetch begins that nobody waits for, but for one.
    package mutating func next(
        waiting: [ByteRange], atOnce countMax: Int = HydrationPlan.fetchesMax, aheadMax: UInt64 = .max
    ) -> [ByteRange] {
        // Of what nobody can say any more what it is, it is asked for again.
        let isInDoubt = wantsWhole && inFlight.isEmpty && !isComplete && !isOneFetch
        if isInDoubt, present.contains(ByteRange(0, size)) { refuteUnproven() }
        var left = unproven
        for range in inFlight { left.remove(range) }
        let result = choose(waiting, atOnce: countMax, aheadMax: aheadMax)
        if !left.isEmpty { for range in result { leftBefore[range] = left } }
        return result
    }

    private mutating func choose(
        _ waiting: [ByteRange], atOnce countMax: Int, aheadMax: UInt64
    ) -> [ByteRange] {
        var result: [ByteRange] = []
        if isOneFetch {
            guard inFlight.isEmpty, !isComplete, wantsWhole || !waiting.isEmpty else { return [] }
            inFlight = [ByteRange(0, size)]
            return inFlight
        }
        var wanted = waiting.map { $0.aligned(to: sizes.block).clamped(to: size) }
        // Near by, a look at a file's beginning is no reason to send a megabyte, and the sooner answered without.
        let isNear = countMax <= HydrationPlan.nearFetchesMax
        let isGlance = isNear && sequentialByteCount <= sizes.glanceMax && !waiting.isEmpty && !wantsWhole
        let readAhead = isGlance ? nil : readAhead
        if let readAhead { wanted.append(readAhead) }
        if wantsWhole { wanted.append(ByteRange(0, size)) }
        var covered = present
        for range in inFlight { covered.insert(range) }
        // Near by, who has just begun to read gets what it waits for before anything else is asked for.
        if isNear, sequentialByteCount <= sizes.readAheadMin, !waiting.isEmpty,
            waiting.allSatisfy({ covered.contains($0.clamped(to: size)) })
        {
            return []
        }
        let ahead = wantsWhole ? ByteRange(0, size) : readAhead
        let farPieceMax = farPieceMax
        // Nobody waits for what is wanted whole, and what is on its way is fetched again when the daemon is killed.
        let isSlow = isSlow && !wantsWhole
        for range in wanted {
            for gap in covered.missing(in: range) {
                var position = gap.lower
                while position < gap.upper {
                    guard inFlight.count < min(countMax, HydrationPlan.fetchesMax) else { return result }
                    let isAwaited = waiting.contains { $0.overlaps(ByteRange(position, gap.upper)) }
                    guard isAwaited || inFlight.count < 2 || inFlightByteCount < aheadMax else { return result }
                    // What is wanted after it comes along: a fetch's first bytes come first, and one costs less than two.
                    let next = ahead.map { $0.contains(gap) ? $0.upper : gap.upper } ?? gap.upper
                    let pieceMax = isNear ? sizes.pieceMax : isSlow ? slowPieceMax(at: position) : farPieceMax
                    let end = min(position + pieceMax, next)
                    // What a reader goes on to want is asked for when there is a whole piece of it.
                    let isWhole = end == min(position + pieceMax, size)
                    if isSlow, !isNear, !isAwaited, !isWhole, !inFlight.isEmpty { return result }
                    let piece = covered.missing(in: ByteRange(position, end)).first ?? ByteRange(position, gap.upper)
                    inFlight.append(piece)
                    covered.insert(piece)
                    result.append(piece)
                    position = piece.upper
                }
            }
        }
        return result
    }

    /// Grows with what has been read in order, or has come of what is wanted whole.
    private var farPieceMax: UInt64 {
        let done = max(sequentialByteCount, wantsWhole ? presentByteCount : 0)
        let grown = ByteRange(0, done / 4).aligned(to: sizes.block).count
        return min(max(grown, sizes.farPieceMax), sizes.grownPieceMax)
    }

    /// As much as is read, or under way, in one stretch before it: it doubles from piece to piece.
    private func slowPieceMax(at position: UInt64) -> UInt64 {
        let start = expectedOffset - min(sequentialByteCount, expectedOffset)
        let before = ByteRange(0, position - min(start, position)).aligned(to: sizes.block).count
        return min(max(before, sizes.pieceMax), sizes.slowPieceMax)
    }

    /// The file was cut or grown here. What it grew by reads as zero and is not fetched.
    package mutating func resize(to newSize: UInt64) {
        if newSize < size {
            present.remove(ByteRange(newSize, size))
            unproven.remove(ByteRange(newSize, size))
        } else {
            present.insert(ByteRange(size, newSize))
        }
        readAhead = readAhead?.clamped(to: newSize)
        size = newSize
    }

    /// The file was changed here.
    package mutating func apply(_ change: ContentClaim.Change) {
        switch change {
        case .written(let range):
            // What lies between the old end and the new bytes reads as zero.
            if range.upper > size { resize(to: range.upper) }
            present.insert(range)
            unproven.remove(range)
        case .resized(let size): resize(to: size)
        }
    }

    /// Bytes of a fetch that has not ended. What was here stays as proven as it was.
    package mutating func arrived(_ range: ByteRange) {
        let range = range.clamped(to: size)
        for gap in present.missing(in: range) { unproven.insert(gap) }
        present.insert(range)
    }

    /// The provider has another version, or sent what it does not have: what fetches have brought
    /// that did not end may be of that.
    package mutating func refuteUnproven() {
        for range in unproven.ranges { present.remove(range) }
        unproven = ByteRangeSet()
        leftBefore = [:]
    }

    /// A fetch ended well; what arrived of it was told by `arrived`.
    package mutating func ended(_ range: ByteRange) {
        if let left = leftBefore[range] { unproven = unproven.without(left) }
        brokeOff(range)
        unproven.remove(range)
    }

    /// A fetch was given up, or failed: nobody has said of which version its bytes are.
    package mutating func brokeOff(_ range: ByteRange) {
        if let index = inFlight.firstIndex(of: range) { inFlight.remove(at: index) }
        leftBefore[range] = nil
    }
}
