import PromiseCore
import PromiseProvider
import PromiseTestSupport

// What others do at the provider, by paths.

extension MemoryProvider {
    func stored(at path: [String]) -> Item? { item(at: path.map { FileName($0)! })?.item }

    /// Creates the file, or replaces what is in it; where there is no such folder, nothing.
    func write(_ text: String, to path: [String]) {
        guard let parent = stored(at: path.dropLast()), parent.kind == .folder else { return }
        if let known = stored(at: path) {
            if known.kind == .file { change(known.identifier, text: text) }
        } else {
            put(path.last!, text, in: parent.identifier)
        }
    }

    func makeFolder(_ path: [String]) {
        guard let parent = stored(at: path.dropLast()), parent.kind == .folder, stored(at: path) == nil else { return }
        put(path.last!, kind: .folder, in: parent.identifier)
    }

    func remove(at path: [String]) {
        if let item = stored(at: path) { remove(item.identifier) }
    }

    /// As rename(2) does it, but never over a folder.
    func move(from path: [String], to other: [String]) {
        guard let item = stored(at: path), let parent = stored(at: other.dropLast()), parent.kind == .folder,
            !other.starts(with: path)
        else { return }
        if let taken = stored(at: other) {
            guard taken.kind == .file, item.kind == .file, taken.identifier != item.identifier else { return }
            remove(taken.identifier)
        }
        move(item.identifier, to: parent.identifier, name: other.last!)
    }

    /// Every path, with the text of what is a file.
    func tree(below folder: ItemIdentifier = rootIdentifier, _ path: String = "") -> [String] {
        var result: [String] = []
        for stored in items.values where stored.item.parent == folder {
            let name = stored.item.name.display
            if stored.item.kind == .folder {
                result.append("\(path)\(name)/")
                result += tree(below: stored.item.identifier, "\(path)\(name)/")
            } else {
                result.append("\(path)\(name)=\(String(decoding: stored.bytes, as: UTF8.self))")
            }
        }
        return result.sorted()
    }
}
