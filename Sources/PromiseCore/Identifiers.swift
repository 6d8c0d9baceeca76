// The names things go by. Each is a type of its own, so that two numbers cannot be mistaken for each other.

/// The inode number of a node in the mount. Never reused within one state directory.
package struct NodeID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// The root folder: FUSE fixes its number (`FUSE_ROOT_ID`).
    package static let root = NodeID(1)

    package static func < (left: NodeID, right: NodeID) -> Bool { left.rawValue < right.rawValue }
    package var description: String { "\(rawValue)" }
}

/// One name of one node in one folder. Keeps its value when the name or the folder changes.
package struct EntryID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: EntryID, right: EntryID) -> Bool { left.rawValue < right.rawValue }
    package var description: String { "\(rawValue)" }
}

/// Counts the content files a node has had: content is replaced by a file of the next generation.
package struct Generation: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    package var next: Generation { Generation(rawValue + 1) }
    package static func < (left: Generation, right: Generation) -> Bool { left.rawValue < right.rawValue }
    package var description: String { "\(rawValue)" }
}

/// A provider's stable, opaque name for an item. Not a path, although a poor provider may use one.
package struct ItemIdentifier: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
    package init(_ rawValue: String) { self.rawValue = rawValue }
    package var description: String { rawValue }
    package static func == (left: ItemIdentifier, right: ItemIdentifier) -> Bool { left.rawValue.hasBytes(of: right.rawValue) }
}

/// A provider's opaque name for one state of an item's content (an ETag or the like).
package struct ContentVersion: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
    package init(_ rawValue: String) { self.rawValue = rawValue }
    package var description: String { rawValue }
    package static func == (left: ContentVersion, right: ContentVersion) -> Bool { left.rawValue.hasBytes(of: right.rawValue) }
}

/// A point in time: nanoseconds since 1970-01-01 00:00 UTC, as `stat` gives it, from 1677 to 2262. What is beyond is the
/// end that it is beyond of.
package struct Timestamp: RawRepresentable, Hashable, Comparable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
    package init(nanoseconds: Int64) { self.rawValue = nanoseconds }
    package init(seconds: Int, nanoseconds: Int) {
        rawValue = Int64(clamping: Int128(seconds) * 1_000_000_000 + Int128(nanoseconds))
    }

    package static let zero = Timestamp(nanoseconds: 0)

    /// As far as both tell: a store that keeps whole seconds says nothing of the parts of one.
    package func isSame(as other: Timestamp) -> Bool {
        if self == other { return true }
        return seconds == other.seconds && (nanosecondPart == 0 || other.nanosecondPart == 0)
    }

    /// Whole seconds, rounded down, so that `nanosecondPart` is never negative.
    package var seconds: Int {
        let (whole, rest) = rawValue.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Int(rest < 0 ? whole - 1 : whole)
    }
    package var nanosecondPart: Int {
        let rest = rawValue % 1_000_000_000
        return Int(rest < 0 ? rest + 1_000_000_000 : rest)
    }

    /// How long after another one, in nanoseconds; a time of a stranger may be any.
    package func nanoseconds(since other: Timestamp) -> Int64 {
        let (difference, isBeyond) = rawValue.subtractingReportingOverflow(other.rawValue)
        return isBeyond ? (rawValue < other.rawValue ? .min : .max) : difference
    }

    package func advanced(by duration: Duration) -> Timestamp {
        let (sum, isBeyond) = rawValue.addingReportingOverflow(duration.nanoseconds)
        return Timestamp(nanoseconds: isBeyond ? (rawValue < 0 ? .min : .max) : sum)
    }
    package static func < (left: Timestamp, right: Timestamp) -> Bool { left.rawValue < right.rawValue }
}

extension Duration {
    /// Whole nanoseconds; saturates beyond 292 years.
    package var nanoseconds: Int64 {
        let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return components.seconds < 0 ? .min : .max }
        return seconds &+ components.attoseconds / 1_000_000_000
    }
}

extension String {
    /// Names of strangers are bytes: to Swift two texts are one where they only look alike.
    fileprivate func hasBytes(of other: String) -> Bool {
        self == other && utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}
