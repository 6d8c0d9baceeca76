import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem
import Synchronization

/// The patterns of `.promisefsignore` files, as far as their content is here. Thread-safe.
final class IgnoreFiles: Sendable {
    private struct Stamp: Equatable {
        var generation: Generation
        var size: UInt64
        var modificationTime: Timestamp
        var changeTime: Timestamp
    }

    let marks = StayingMarks()

    private static let countMax = 256
    private let known = Mutex<[NodeID: (stamp: Stamp, patterns: IgnorePatterns)]>([:])

    /// Whether patterns say that the name stays here; nil: none speaks of it. Those of the nearest folder come first, and the
    /// user's own, for the whole mount, last.
    func excludes(
        _ name: FileName, isFolder: Bool, in parent: NodeID, own: IgnorePatterns, _ content: ContentStore,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool? {
        // From the name upwards: put in front one by one, they would take the square of their number.
        var (folder, names) = (parent, [name])
        while true {
            if let patterns = try patterns(in: folder, content, transaction),
                let verdict = patterns.excludes(names.reversed(), isFolder: isFolder)
            {
                return verdict
            }
            guard folder != .root, let entry = try transaction.entries(of: folder).first else { break }
            names.append(entry.name)
            folder = entry.parent
        }
        return own.isEmpty ? nil : own.excludes(names.reversed(), isFolder: isFolder)
    }

    private func patterns(
        in folder: NodeID, _ content: ContentStore, _ transaction: borrowing Transaction
    ) throws(Failure) -> IgnorePatterns? {
        guard let name = IgnorePatterns.fileName, let entry = try transaction.entry(in: folder, named: name),
            let node = try transaction.node(entry.node), node.kind == .file, node.content == .whole
        else { return nil }
        let stamp = Stamp(
            generation: node.generation, size: node.size, modificationTime: node.modificationTime, changeTime: node.changeTime)
        if let found = known.withLock({ $0[node.id] }), found.stamp == stamp { return found.patterns }
        guard let patterns = read(node, content) else { return nil }
        // What is written to is read each time: nobody says when.
        if !node.isOpenForWriting {
            known.withLock { known in
                if known.count >= IgnoreFiles.countMax { known = [:] }
                known[node.id] = (stamp, patterns)
            }
        }
        return patterns
    }

    private func read(_ node: Node, _ content: ContentStore) -> IgnorePatterns? {
        guard let file = try? content.open(node.id, node.generation, writable: false) else { return nil }
        var bytes = [UInt8](repeating: 0, count: IgnorePatterns.byteCountMax)
        let count = bytes.withUnsafeMutableBytes { buffer in
            try? readFully(file.number, into: buffer, at: 0, label: "filesystem.ignore")
        }
        return count.map { IgnorePatterns(bytes[..<$0]) }
    }
}
