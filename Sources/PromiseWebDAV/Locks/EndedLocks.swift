import NIOHTTP1
import PromiseCore
import PromiseProvider
import PromiseSystem

// Threads of Apache write its file of locks without regard for each other: of locks that are taken
// and given back at the same moment one may get lost, and one that has ended may be there again,
// and keeps everybody out for half a minute.

/// Locks of ours that have ended, for as long as one may come back. Pure.
struct EndedLocks: Sendable {
    private struct Entry {
        var token: String
        var isFolder: Bool
        /// Uptime.
        var ended: Duration
    }

    /// So many are remembered, if they have not run out.
    private static let countMax = 1000
    private var entries: [[FileName]: Entry] = [:]

    mutating func add(
        _ path: [FileName], isFolder: Bool, _ token: String, at now: Duration, lasting: Duration
    ) {
        if entries.count >= EndedLocks.countMax {
            entries = entries.filter { $0.value.ended + lasting > now }
            if entries.count >= EndedLocks.countMax { entries = [:] }
        }
        entries[path] = Entry(token: token, isFolder: isFolder, ended: now)
    }

    /// Those that may have been in the way of a request with that answer. Of a lock on something in
    /// a folder Apache also tells by 207 and 424 (RFC 4918, sections 9.6.1, 9.9.4 and 11.4).
    mutating func take(
        inTheWayOf method: HTTPMethod, _ path: [FileName], _ target: [FileName], isFolder: Bool,
        status: Int
    ) -> [(path: [FileName], isFolder: Bool, token: String)] {
        let isInside =
            [.MOVE, .DELETE].contains(method) && isFolder && [207, 423, 424].contains(status)
        guard status == 423 || isInside else { return [] }
        return take(above: path) + take(above: target) + (isInside ? take(below: path) : [])
    }

    /// Those that may stand in the way of a request to a place: of that, and of the folders it is
    /// in.
    private mutating func take(above path: [FileName]) -> [(
        path: [FileName], isFolder: Bool, token: String
    )] {
        var result: [(path: [FileName], isFolder: Bool, token: String)] = []
        for count in stride(from: path.count, to: 0, by: -1) {
            let place = Array(path.prefix(count))
            guard let entry = entries.removeValue(forKey: place) else { continue }
            result.append((place, entry.isFolder, entry.token))
        }
        return result
    }

    /// Those in a folder, which stand in the way of what moves or removes it.
    private mutating func take(below path: [FileName]) -> [(
        path: [FileName], isFolder: Bool, token: String
    )] {
        let found = entries.filter { $0.key.count > path.count && $0.key.starts(with: path) }
        for place in found.keys { entries[place] = nil }
        return found.map { ($0.key, $0.value.isFolder, $0.value.token) }
    }
}
