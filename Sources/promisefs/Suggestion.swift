/// What a word that nobody knows was probably meant to be.
enum Suggestion {
    /// The known word that is fewest letters away, when that are few.
    static func nearest(to word: String, among known: [String]) -> String? {
        let limit = max(1, word.count / 3)
        let found = known.map {
            (word: $0, distance: distance(Array(word.lowercased()), Array($0)))
        }
        .filter { $0.distance <= limit }
        // Few people are wrong about the first letter.
        func rank(_ found: (word: String, distance: Int)) -> (Int, Int, String) {
            (found.distance, found.word.first == word.lowercased().first ? 0 : 1, found.word)
        }
        return found.min { rank($0) < rank($1) }?.word
    }

    /// Letters that are left out, added, changed, or exchanged with their neighbour.
    static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var rows = [Array(0...right.count)]
        for (row, letter) in left.enumerated() {
            var next = [row + 1]
            for (column, other) in right.enumerated() {
                var best = min(
                    rows[row][column] + (letter == other ? 0 : 1), rows[row][column + 1] + 1,
                    next[column] + 1)
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    best = min(best, rows[row - 1][column - 1] + 1)
                }
                next.append(best)
            }
            rows.append(next)
        }
        return rows[left.count][right.count]
    }
}
