/// What differs between two texts, line by line, by their bytes.
public struct TextDifference: Encodable, Sendable, Equatable {
    public struct Line: Encodable, Sendable, Equatable {
        /// `same`, `cut` or `add`.
        public var kind: String
        public var text: String
    }

    static let byteCountMax = 1 << 20
    /// A person reads no more, and comparing takes the product of both.
    private static let lineCountMax = 4_000

    public var lines: [Line] = []
    /// Why there is none.
    public var note: String?

    init(note: String) { self.note = note }

    public init(from old: [UInt8], to new: [UInt8]) {
        guard max(old.count, new.count) <= TextDifference.byteCountMax else {
            note = "they are too long to be compared here"
            return
        }
        guard TextDifference.isText(old), TextDifference.isText(new) else {
            note = "they are no text"
            return
        }
        let (left, right) = (TextDifference.lines(of: old), TextDifference.lines(of: new))
        guard max(left.count, right.count) <= TextDifference.lineCountMax else {
            note = "they have too many lines to be compared here"
            return
        }
        compare(left, right)
    }

    private static func isText(_ bytes: [UInt8]) -> Bool {
        !bytes.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    }

    private static func lines(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    }

    private mutating func compare(_ old: [ArraySlice<UInt8>], _ new: [ArraySlice<UInt8>]) {
        var (cut, added): (Set<Int>, Set<Int>) = ([], [])
        for change in new.difference(from: old) {
            switch change {
            case .remove(let offset, _, _): cut.insert(offset)
            case .insert(let offset, _, _): added.insert(offset)
            }
        }
        var (left, right) = (0, 0)
        while left < old.count || right < new.count {
            if left < old.count, cut.contains(left) {
                add("cut", old[left])
                left += 1
            } else if right < new.count, added.contains(right) {
                add("add", new[right])
                right += 1
            } else {
                if left < old.count { add("same", old[left]) }
                left += 1
                right += 1
            }
        }
    }

    private mutating func add(_ kind: String, _ line: ArraySlice<UInt8>) {
        lines.append(Line(kind: kind, text: String(decoding: line, as: UTF8.self)))
    }
}
