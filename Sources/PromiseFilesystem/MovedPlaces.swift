package import PromiseCore
package import PromiseIndex

/// Where what was at a place is now, as the machine has said that moved it: of stores that know
/// places only. A note is believed only of a place where nothing is.
package struct MovedPlace: Hashable, Sendable {
    package var path: [FileName]
    /// The place that it has left was seen without anything: what is there next is something else.
    package var isLeft: Bool

    private static let prefix = "moved."
    /// Moves of one item, one after the other.
    private static let stepCountMax = 32

    package init(path: [FileName], isLeft: Bool) {
        (self.path, self.isLeft) = (path, isLeft)
    }

    package static func all(_ transaction: borrowing Transaction) throws(Failure) -> [[FileName]: MovedPlace] {
        var result: [[FileName]: MovedPlace] = [:]
        for key in try transaction.settingKeys(startingWith: prefix) {
            let path = PathDigits.path(key.dropFirst(prefix.count))
            result[path] = try known(path[...], transaction)
        }
        return result
    }

    /// Nil: nothing has moved from there.
    package static func set(
        _ place: MovedPlace?, from path: [FileName], _ transaction: borrowing Transaction
    ) throws(Failure) {
        let text = place.map { "\($0.isLeft ? 1 : 0) \(PathDigits.text($0.path))" }
        try transaction.setSetting(prefix + PathDigits.text(path), text)
    }

    private static func known(
        _ path: ArraySlice<FileName>, _ transaction: borrowing Transaction
    ) throws(Failure) -> MovedPlace? {
        guard let words = try transaction.setting(prefix + PathDigits.text(path))?.split(separator: " "),
            words.count == 2
        else { return nil }
        let target = PathDigits.path(words[1])
        return target.isEmpty ? nil : MovedPlace(path: target, isLeft: words[0] == "1")
    }

    /// Where it went, also with a folder above and by several moves; nil when nobody has said so.
    static func now(
        of path: [FileName], _ transaction: borrowing Transaction
    ) throws(Failure) -> [FileName]? {
        var current = path
        for _ in 0..<stepCountMax {
            guard let next = try step(current, transaction) else { break }
            current = next
        }
        return current == path ? nil : current
    }

    private static func step(
        _ path: [FileName], _ transaction: borrowing Transaction
    ) throws(Failure) -> [FileName]? {
        if path.isEmpty { return nil }
        if try entry(at: path, transaction) != nil { return nil }
        for count in stride(from: path.count, through: 1, by: -1) {
            if let place = try known(path[..<count], transaction) { return place.path + path[count...] }
        }
        return nil
    }

    /// A folder on the way was never listed here, so that nobody knows what is there.
    static func isUnlisted(_ path: [FileName], _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        var current = NodeID.root
        for name in path {
            guard let entry = try transaction.entry(in: current, named: name) else {
                return try transaction.node(current)?.isPopulated == false
            }
            current = entry.node
        }
        return false
    }

    /// What the provider has there, too.
    package static func entry(
        at path: [FileName], _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        var current = NodeID.root
        var found: Entry?
        for name in path {
            guard let entry = try transaction.entry(in: current, named: name), !entry.isExcluded else { return nil }
            (current, found) = (entry.node, entry)
        }
        return found
    }
}
