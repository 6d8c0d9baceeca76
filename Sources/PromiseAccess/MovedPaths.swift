package import PromiseCore
package import PromiseKeyValue

/// Where items have gone from, and where to, as machines have told each other at a store that knows
/// places only.
package struct MovedPaths: Hashable, Sendable {
    package static let store: Key = "items"
    /// Moves of one item, one after the other.
    private static let stepCountMax = 32

    package var places: [[FileName]: [FileName]] = [:]

    package init() {}

    /// What machines exchange; nothing of what is damaged, or of a later version.
    package init(record bytes: [UInt8]) {
        guard let record = try? ValueRecord(JSONReader.read(bytes), of: MovedPaths.store) else { return }
        for (key, value) in record.values {
            if let from = ItemKey.names(key.text), let note = MovedPaths.note(value) { places[from] = note.path }
        }
    }

    /// When it was moved, and where to; nil for what a stranger may have written there.
    package static func note(_ value: Value?) -> (time: Int64, path: [FileName])? {
        guard case .string(let text)? = value else { return nil }
        let words = text.split(separator: " ")
        guard words.count == 2, let time = Int64(words[0]), let path = ItemKey.names(String(words[1])), !path.isEmpty
        else { return nil }
        return (time, path)
    }

    /// Where what was at a path is, also with a folder above and by several moves. A note is believed
    /// only of a place where nothing is.
    package func now(of path: [FileName], isThere: ([FileName]) -> Bool) -> [FileName] {
        var current = path
        for _ in 0..<MovedPaths.stepCountMax where !isThere(current) {
            guard let next = step(current) else { break }
            current = next
        }
        return current
    }

    private func step(_ path: [FileName]) -> [FileName]? {
        for count in stride(from: path.count, to: 0, by: -1) {
            if let place = places[Array(path.prefix(count))] { return place + path[count...] }
        }
        return nil
    }

    /// What is known already stays.
    package mutating func add(_ other: MovedPaths) { places.merge(other.places) { own, _ in own } }
}
