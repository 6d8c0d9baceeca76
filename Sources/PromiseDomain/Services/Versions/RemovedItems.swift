import PromiseContent
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync

/// What came back, and what did not.
package struct RestorationReport: Sendable {
    package var restored = 0
    /// Where what was asked for is now; nil: nothing of it came back.
    package var place: [FileName]?
    package var failures: [(path: [FileName], failure: Failure)] = []
}

/// One of what was removed.
package struct RemovedDescription: Sendable {
    /// Where it was.
    package var path: [FileName]
    package var kind: NodeKind
    package var size: UInt64
    package var modificationTime: Timestamp
    package var removalTime: Timestamp
    /// False: it was not on this machine, and cannot come back from here.
    package var isKept: Bool
}

/// One of what was removed, here or at the provider.
protocol Removal {
    var path: [FileName] { get }
    var kind: NodeKind { get }
    var removalTime: Timestamp { get }
}

extension RemovedItem: Removal {}
extension BinItem: Removal {}

/// What programs have removed on the mount, for its owner: listed, brought back, given up for good.
package struct RemovedItems: Sendable {
    let tree: DomainTree

    /// What goes in pieces, as by `rm -r`, has pauses of up to this.
    private static let pauseMax = Duration.seconds(60)
    private static let kernelPatience = Duration.seconds(1)

    /// The newest first, so that folders come before what was in them.
    package func list(below path: [FileName]) throws(Failure) -> [RemovedDescription] {
        try all(below: path).map { item in
            RemovedDescription(
                path: item.path, kind: item.kind, size: item.size,
                modificationTime: item.modificationTime,
                removalTime: item.removalTime, isKept: item.isKept)
        }
    }

    private func all(below path: [FileName], withReplaced: Bool = false) throws(Failure)
        -> [RemovedItem]
    {
        try tree.engine.removed.dropOld()
        return try tree.index.read { transaction throws(Failure) in
            try RemovedRows.all(below: path, transaction).filter { withReplaced || !$0.isReplaced }
        }
    }

    /// For good. Returns how many there were, and how much of the disk they took.
    package func empty(below path: [FileName]) throws(Failure) -> (count: Int, byteCount: UInt64) {
        let items = try all(below: path, withReplaced: true)
        let count = try tree.engine.removed.drop(items)
        if count > 0 {
            tree.engine.remover.flush()
            try tree.index.shrink()
        }
        // What was only told of is nothing that somebody gives up.
        let mentioned = items.count { !$0.isKept }
        return (max(count - mentioned, 0), items.reduce(0) { $0.plus($1.localBytes) })
    }

    /// The newest that was removed at a path, a folder with what was removed with it; where nothing
    /// was, all that was removed below it. To `place`, which `freePlace` says. Throws `.notFound`
    /// when nothing is kept, `.conflict` when the name is taken.
    package func restore(
        _ path: [FileName], to place: [FileName]
    ) async throws(Failure) -> RestorationReport {
        try tree.demandWritable()
        let items = RemovedItems.chosen(of: try all(below: path), at: path)
        guard !items.isEmpty else {
            throw Failure(
                .notFound,
                "nothing that was removed there is kept: 'promisefs trash list' shows what is")
        }
        var report = RestorationReport()
        var isRoot = true
        for item in items {
            let target = place + item.path.dropFirst(path.count)
            do throws(Failure) {
                try await restore(item, to: target)
                report.restored += 1
                report.place = place
            } catch {
                // Nothing of what was in it finds its place either.
                if isRoot, items.count == 1 || target == place { throw error }
                report.failures.append((item.path, error))
            }
            isRoot = false
        }
        await tree.filesystem.waitUntilKernelIsTold(within: RemovedItems.kernelPatience)
        return report
    }

    /// `items` is the newest first. Folders before what is in them.
    static func chosen<Item: Removal>(of items: [Item], at path: [FileName]) -> [Item] {
        var seen: Set<[FileName]> = []
        var chosen: [(place: Int, item: Item)] = []
        if let top = items.firstIndex(where: { $0.path == path }) {
            guard items[top].kind == .folder else { return [items[top]] }
            var last = items[top].removalTime
            for (place, item) in items.enumerated().dropFirst(top) {
                if place != top, item.path == path { break }
                if item.removalTime.advanced(by: pauseMax) < last { break }
                last = item.removalTime
                if seen.insert(item.path).inserted { chosen.append((place, item)) }
            }
        } else {
            for (place, item) in items.enumerated() where seen.insert(item.path).inserted {
                chosen.append((place, item))
            }
        }
        return chosen.sorted {
            ($0.item.path.count, $0.place) < ($1.item.path.count, $1.place)
        }.map(\.item)
    }

    // MARK: Places

    /// Where what was removed at a path is to be: where it was, or in `folder` under a free name.
    package func freePlace(
        for path: [FileName], in folder: [FileName]?
    ) async throws(Failure) -> [FileName] {
        guard let folder else { return path }
        let node = try await tree.node(at: folder)
        try await tree.list(node)
        guard try kind(of: node) == .folder else {
            throw Failure(.notFolder, "'\(folder.last?.display ?? "/")' is no folder")
        }
        guard let name = path.last else { return folder }
        var number = 1
        while true {
            let candidate = number == 1 ? name : RemovedItems.numbered(name, number)
            if try child(of: node, candidate) == nil { return folder + [candidate] }
            number += 1
        }
    }

    /// `report 2.txt`.
    static func numbered(_ name: FileName, _ number: Int) -> FileName {
        let mark = Array(" \(number)".utf8)
        let dot =
            name.bytes.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 == 0 ? nil : $0 }
            ?? name.bytes.endIndex
        var ending = Array(name.bytes[dot...])
        if ending.count > 32 { ending = [] }
        let stem = name.bytes.prefix(
            min(name.bytes.count - ending.count, FileName.byteCountMax - mark.count - ending.count))
        return FileName(trusted: stem + mark + ending)
    }

    private func kind(of node: NodeID) throws(Failure) -> NodeKind? {
        try tree.index.read { transaction throws(Failure) in try transaction.node(node)?.kind }
    }

    private func child(of folder: NodeID, _ name: FileName) throws(Failure) -> NodeID? {
        try tree.index.read { transaction throws(Failure) in
            try transaction.entry(in: folder, named: name)?.node
        }
    }

    private func restore(_ item: RemovedItem, to target: [FileName]) async throws(Failure) {
        guard let name = target.last else {
            throw Failure(.invalid, "the root of a domain is never removed")
        }
        let parent = try await folder(at: Array(target.dropLast()))
        // A listing may go while it is used.
        for _ in 0..<3 {
            try await tree.list(parent)
            if let there = try child(of: parent, name) {
                guard try kind(of: there) == .folder, item.kind == .folder else {
                    throw Failure(
                        .conflict,
                        "there is a '\(name.display)' now: give that another name, or say where with --to"
                    )
                }
                // What was in it comes back into the one that is there.
                try tree.engine.removed.drop([item])
                return
            }
            if try Restoring(tree.filesystem).restore(item, as: name, in: parent) { return }
        }
        throw Failure(.busy, "the folder changes too quickly")
    }

    /// Folders that are not there any more, and are not kept, are made.
    private func folder(at path: [FileName]) async throws(Failure) -> NodeID {
        var current = NodeID.root
        for name in path {
            try await tree.list(current)
            let parent = current
            if let next = try child(of: parent, name) {
                guard try kind(of: next) == .folder else {
                    throw Failure(.notFolder, "'\(name.display)' is no folder now")
                }
                current = next
            } else {
                current = try await tree.makeFolder(name, in: parent)
            }
        }
        return current
    }
}
