/// The bytes of a file that are here: sorted, disjoint, non-adjacent, non-empty ranges.
///
/// Every mutation costs O(n) in the number of ranges, which stays small because neighbours merge.
package struct ByteRangeSet: Hashable, Sendable {
    package private(set) var ranges: [ByteRange] = []

    package init() {}
    package init(_ ranges: some Sequence<ByteRange>) {
        for range in ranges { insert(range) }
    }

    package var isEmpty: Bool { ranges.isEmpty }
    package var byteCount: UInt64 { ranges.reduce(0) { $0 + $1.count } }

    package func contains(_ range: ByteRange) -> Bool {
        range.isEmpty || ranges.contains { $0.contains(range) }
    }

    package mutating func insert(_ range: ByteRange) {
        guard !range.isEmpty else { return }
        var merged = range
        var result: [ByteRange] = []
        result.reserveCapacity(ranges.count + 1)
        var placed = false
        for existing in ranges {
            if existing.upper < merged.lower {
                result.append(existing)
            } else if merged.upper < existing.lower {
                if !placed {
                    result.append(merged)
                    placed = true
                }
                result.append(existing)
            } else {
                merged = ByteRange(min(existing.lower, merged.lower), max(existing.upper, merged.upper))
            }
        }
        if !placed { result.append(merged) }
        ranges = result
        checkInvariants()
    }

    package mutating func remove(_ range: ByteRange) {
        guard !range.isEmpty else { return }
        var result: [ByteRange] = []
        result.reserveCapacity(ranges.count + 1)
        for existing in ranges {
            guard existing.overlaps(range) else {
                result.append(existing)
                continue
            }
            if existing.lower < range.lower { result.append(ByteRange(existing.lower, range.lower)) }
            if range.upper < existing.upper { result.append(ByteRange(range.upper, existing.upper)) }
        }
        ranges = result
        checkInvariants()
    }

    package func without(_ other: ByteRangeSet) -> ByteRangeSet {
        var result = self
        for range in other.ranges { result.remove(range) }
        return result
    }

    /// The parts of `range` that are not in the set, in order.
    package func missing(in range: ByteRange) -> [ByteRange] {
        var result: [ByteRange] = []
        var position = range.lower
        for existing in ranges where existing.overlaps(range) {
            if position < existing.lower { result.append(ByteRange(position, existing.lower)) }
            position = max(position, existing.upper)
        }
        if position < range.upper { result.append(ByteRange(position, range.upper)) }
        return result
    }

    private func checkInvariants() {
        assert(ranges.allSatisfy { !$0.isEmpty }, "a range set holds no empty range: \(ranges)")
        assert(
            zip(ranges, ranges.dropFirst()).allSatisfy { $0.upper < $1.lower },
            "ranges are sorted, disjoint and not adjacent: \(ranges)")
    }
}
