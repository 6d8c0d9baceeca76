/// A half-open range of bytes of a file. Never empty unless a caller made it so; offsets count from 0.
package struct ByteRange: Hashable, Sendable, CustomStringConvertible {
    package var lower: UInt64
    package var upper: UInt64

    package init(_ lower: UInt64, _ upper: UInt64) {
        precondition(lower <= upper, "a byte range runs forward, not from \(lower) to \(upper)")
        self.lower = lower
        self.upper = upper
    }

    package init(offset: UInt64, count: UInt64) {
        let (end, overflow) = offset.addingReportingOverflow(count)
        self.init(offset, overflow ? .max : end)
    }

    package var count: UInt64 { upper - lower }
    package var isEmpty: Bool { lower == upper }
    package var description: String { "\(lower)..<\(upper)" }

    package func contains(_ other: ByteRange) -> Bool { lower <= other.lower && other.upper <= upper }
    package func overlaps(_ other: ByteRange) -> Bool { lower < other.upper && other.lower < upper }

    package func clamped(to size: UInt64) -> ByteRange {
        ByteRange(min(lower, size), min(upper, size))
    }

    /// The smallest range of whole blocks around this one.
    package func aligned(to block: UInt64) -> ByteRange {
        precondition(block > 0, "a block has at least one byte")
        let end = upper.addingReportingOverflow(block - 1)
        return ByteRange(lower / block * block, end.overflow ? .max : end.partialValue / block * block)
    }
}
