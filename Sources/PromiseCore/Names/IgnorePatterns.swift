/// Patterns of names that stay on this machine, in the syntax of gitignore(5), with the folder that they are for.
///
/// A pattern may come from a stranger, with the storage: however it is made, matching it takes no more steps than the pattern
/// and the path have bytes, multiplied.
package struct IgnorePatterns: Sendable {
    /// The file in a folder that holds the patterns for everything below it.
    package static let fileName = FileName(".promisefsignore")
    /// Of such a file no more is read.
    package static let byteCountMax = 1 << 16

    private struct Rule: Sendable {
        var tokens: [GlobToken]
        /// It says that something is sent after all.
        var isNegative: Bool
        var isForFoldersOnly: Bool
        /// Of the path from the folder; else of the name alone.
        var isOfPath: Bool
    }

    private let rules: [Rule]

    package init(_ text: some Sequence<UInt8>) {
        var bytes = Array(text)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        rules = bytes.split(separator: 0x0A).compactMap { IgnorePatterns.rule(of: $0) }
    }

    package init(lines: [String]) { self.init(lines.joined(separator: "\n").utf8) }

    package var isEmpty: Bool { rules.isEmpty }

    /// Whether an item below the folder stays here; nil: no pattern speaks of it. What is in a folder that stays, stays: that is
    /// not looked at here.
    package func excludes(_ path: [FileName], isFolder: Bool) -> Bool? {
        guard let name = path.last else { return nil }
        let whole = Array(path.map(\.bytes).joined(separator: [0x2F]))
        let rule = rules.last { rule in
            if rule.isForFoldersOnly && !isFolder { return false }
            return rule.tokens.match(rule.isOfPath ? whole : name.bytes)
        }
        return rule.map { !$0.isNegative }
    }

    private static func rule(of line: ArraySlice<UInt8>) -> Rule? {
        var line = line
        if line.last == 0x0D { line.removeLast() }
        line = withoutTrailingSpaces(line)
        if line.isEmpty || line.first == UInt8(ascii: "#") { return nil }
        let isNegative = line.first == UInt8(ascii: "!")
        if isNegative { line.removeFirst() }
        let isForFoldersOnly = line.last == 0x2F
        if isForFoldersOnly { line.removeLast() }
        let isOfPath = line.contains(0x2F)
        if isOfPath, line.first == 0x2F { line.removeFirst() }
        guard !line.isEmpty, let tokens = [GlobToken](pattern: Array(line)) else { return nil }
        return Rule(tokens: tokens, isNegative: isNegative, isForFoldersOnly: isForFoldersOnly, isOfPath: isOfPath)
    }

    /// Those that no backslash is before.
    private static func withoutTrailingSpaces(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var end = line.startIndex
        var index = line.startIndex
        while index < line.endIndex {
            if line[index] == UInt8(ascii: "\\") {
                index = min(index + 2, line.endIndex)
                end = index
            } else {
                index += 1
                if line[index - 1] != 0x20 { end = index }
            }
        }
        return line[..<end]
    }
}

/// One step of a pattern of paths.
private enum GlobToken: Sendable {
    case byte(UInt8)
    /// `?`
    case any
    /// `[…]`
    case oneOf(Set<UInt8>)
    /// `*`: bytes of one name.
    case star
    /// `**/`: any folders, or none. The second is within it.
    case folders, inFolders
    /// `**` at the end.
    case rest

    /// Of brackets, by their names.
    static func bytes(ofClass name: String) -> [UInt8]? {
        let (digits, upper, lower) = (Array(0x30...0x39) as [UInt8], Array(0x41...0x5A) as [UInt8], Array(0x61...0x7A) as [UInt8])
        let visible: [UInt8] = Array(0x21...0x7E)
        switch name {
        case "alpha": return upper + lower
        case "digit": return digits
        case "alnum": return digits + upper + lower
        case "upper": return upper
        case "lower": return lower
        case "space": return [0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D]
        case "blank": return [0x20, 0x09]
        case "cntrl": return Array(0x00...0x1F) + [0x7F]
        case "print": return [0x20] + visible
        case "graph": return visible
        case "punct": return visible.filter { !digits.contains($0) && !upper.contains($0) && !lower.contains($0) }
        case "xdigit": return digits + upper.prefix(6) + lower.prefix(6)
        default: return nil
        }
    }
}

extension [GlobToken] {
    /// Nil for what can match nothing: brackets without an end, a backslash at the end.
    fileprivate init?(pattern: [UInt8]) {
        self = []
        var index = 0
        while index < pattern.count {
            let byte = pattern[index]
            switch byte {
            case UInt8(ascii: "\\"):
                guard index + 1 < pattern.count else { return nil }
                append(.byte(pattern[index + 1]))
                index += 2
            case UInt8(ascii: "?"):
                append(.any)
                index += 1
            case UInt8(ascii: "["):
                guard let (set, end) = Self.set(in: pattern, at: index + 1) else { return nil }
                append(.oneOf(set))
                index = end
            case UInt8(ascii: "*"):
                var end = index
                while end < pattern.count, pattern[end] == byte { end += 1 }
                let isWhole = end - index > 1 && (index == 0 || pattern[index - 1] == 0x2F)
                if isWhole, end == pattern.count {
                    append(.rest)
                } else if isWhole, pattern[end] == 0x2F {
                    append(.folders)
                    append(.inFolders)
                    end += 1
                } else {
                    append(.star)
                }
                index = end
            default:
                append(.byte(byte))
                index += 1
            }
        }
    }

    /// What is in brackets, and where it ends. Nil without an end, or of a class that nobody knows.
    private static func set(in pattern: [UInt8], at start: Int) -> (Set<UInt8>, Int)? {
        var index = start
        let isNegative = index < pattern.count && [UInt8(ascii: "!"), UInt8(ascii: "^")].contains(pattern[index])
        if isNegative { index += 1 }
        var set: Set<UInt8> = []
        var isFirst = true
        while index < pattern.count {
            var byte = pattern[index]
            if byte == UInt8(ascii: "]"), !isFirst {
                if isNegative { set = Set(0...255).subtracting(set) }
                return (set.subtracting([0x2F]), index + 1)
            }
            isFirst = false
            if byte == UInt8(ascii: "["), index + 1 < pattern.count, pattern[index + 1] == UInt8(ascii: ":"),
                let end = pattern[(index + 2)...].firstIndex(of: UInt8(ascii: "]")), end - 1 >= index + 2,
                pattern[end - 1] == UInt8(ascii: ":")
            {
                let name = String(decoding: pattern[(index + 2)..<(end - 1)], as: UTF8.self)
                guard let bytes = GlobToken.bytes(ofClass: name) else { return nil }
                set.formUnion(bytes)
                index = end + 1
                continue
            }
            if byte == UInt8(ascii: "\\") {
                guard index + 1 < pattern.count else { return nil }
                index += 1
                byte = pattern[index]
            }
            index += 1
            guard index + 1 < pattern.count, pattern[index] == UInt8(ascii: "-"), pattern[index + 1] != UInt8(ascii: "]") else {
                set.insert(byte)
                continue
            }
            index += 1
            if pattern[index] == UInt8(ascii: "\\") { index += 1 }
            guard index < pattern.count else { return nil }
            if byte <= pattern[index] { set.formUnion(byte...pattern[index]) }
            index += 1
        }
        return nil
    }

    /// Follows all ways through the pattern at once.
    fileprivate func match(_ path: [UInt8]) -> Bool {
        var now = [Bool](repeating: false, count: count + 1)
        enter(0, &now)
        for byte in path {
            var next = [Bool](repeating: false, count: count + 1)
            for index in indices where now[index] { step(index, byte, &next) }
            now = next
        }
        return now[count]
    }

    private func step(_ index: Int, _ byte: UInt8, _ next: inout [Bool]) {
        switch self[index] {
        case .byte(let wanted): if byte == wanted { enter(index + 1, &next) }
        case .any: if byte != 0x2F { enter(index + 1, &next) }
        case .oneOf(let set): if set.contains(byte) { enter(index + 1, &next) }
        case .star: if byte != 0x2F { enter(index, &next) }
        case .folders: break
        case .inFolders:
            next[index] = true
            if byte == 0x2F { enter(index + 1, &next) }
        case .rest: enter(index, &next)
        }
    }

    /// What may be empty is passed, too.
    private func enter(_ index: Int, _ set: inout [Bool]) {
        guard !set[index] else { return }
        set[index] = true
        guard index < count else { return }
        switch self[index] {
        case .star, .rest: enter(index + 1, &set)
        case .folders:
            enter(index + 1, &set)
            enter(index + 2, &set)
        case .byte, .any, .oneOf, .inFolders: break
        }
    }
}
