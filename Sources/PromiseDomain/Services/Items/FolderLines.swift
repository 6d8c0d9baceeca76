import PromiseCore

/// One line of a folder that was ordered.
struct FolderLine: Sendable {
    var entry: EntryID
    /// As it is compared.
    var name: [UInt8]
}

/// The lines of a folder, to be ordered: folders first, whichever way; by a number or a text, and by
/// name where these are equal.
struct FolderLines {
    /// What is compared first, in a few words beside each other: what a name has beyond them is
    /// looked at only where nothing else differs.
    private struct SortKey {
        var number: Int64
        /// The first bytes of the name.
        var start: (UInt64, UInt64)
        var place: Int
    }

    private var lines: [FolderLine] = []
    private var folders: [SortKey] = []
    private var documents: [SortKey] = []
    /// There are few of them, however many lines: each has a number until it has its rank.
    private var texts: [String: Int64] = [:]

    mutating func add(
        _ entry: EntryID, _ isFolder: Bool, _ name: [UInt8], number: Int64 = 0
    ) {
        let start = (FolderLines.number(name, from: 0), FolderLines.number(name, from: 8))
        let key = SortKey(number: number, start: start, place: lines.count)
        if isFolder { folders.append(key) } else { documents.append(key) }
        lines.append(FolderLine(entry: entry, name: name))
    }

    mutating func add(_ entry: EntryID, _ isFolder: Bool, _ name: [UInt8], text: String) {
        let known = texts[text]
        let number = known ?? Int64(texts.count)
        if known == nil { texts[text] = number }
        add(entry, isFolder, name, number: number)
    }

    private static func number(_ bytes: [UInt8], from first: Int) -> UInt64 {
        var result: UInt64 = 0
        for place in first..<(first + 8) {
            result = result << 8 | (place < bytes.count ? UInt64(bytes[place]) : 0)
        }
        return result
    }

    func sorted(isDescending: Bool) -> [FolderLine] {
        var ranks: [Int64] = []
        if !texts.isEmpty {
            ranks = Array(repeating: 0, count: texts.count)
            let ordered = texts.sorted {
                Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8))
            }
            for (rank, text) in ordered.enumerated() { ranks[Int(text.value)] = Int64(rank) }
        }
        let parts = [folders, documents].map { sorted($0, ranks) }
        return parts.flatMap { part in
            isDescending ? part.reversed().map { lines[$0.place] } : part.map { lines[$0.place] }
        }
    }

    private func sorted(_ keys: [SortKey], _ ranks: [Int64]) -> [SortKey] {
        var keys = keys
        if !ranks.isEmpty {
            for index in keys.indices { keys[index].number = ranks[Int(keys[index].number)] }
        }
        keys.sort { left, right in
            if left.number != right.number { return left.number < right.number }
            if left.start.0 != right.start.0 { return left.start.0 < right.start.0 }
            if left.start.1 != right.start.1 { return left.start.1 < right.start.1 }
            let (first, second) = (lines[left.place], lines[right.place])
            if first.name != second.name { return first.name.lexicographicallyPrecedes(second.name) }
            return first.entry.rawValue < second.entry.rawValue
        }
        return keys
    }
}
