package import PromiseCore

/// The last moves of this provider, by path. Who asks for an item may have made its path before one of them: the path is then
/// followed to where it leads now. Only a hint: what is found there is always compared.
package struct MovedPaths: Sendable {
    private struct Move {
        var from: [FileName]
        var to: [FileName]
    }

    /// So many moves are remembered at least. A path is older than the few that are under way at a time, hardly ever than more.
    package static let countMin = 512

    /// Oldest first.
    private var moves: [Move] = []

    package init() {}

    package mutating func note(from: [FileName], to: [FileName]) {
        if moves.count >= 2 * MovedPaths.countMin { moves.removeFirst(MovedPaths.countMin) }
        moves.append(Move(from: from, to: to))
    }

    /// Where an item may be whose path was `path` at some time, each once; a path that only the last moves have changed first.
    package func successors(of path: [FileName]) -> [[FileName]] {
        var result: [[FileName]] = []
        for start in moves.indices.reversed() where path.starts(with: moves[start].from) {
            var current = path
            for move in moves[start...] where current.starts(with: move.from) {
                current = move.to + current.dropFirst(move.from.count)
            }
            if current != path, !result.contains(current) { result.append(current) }
        }
        return result
    }
}
