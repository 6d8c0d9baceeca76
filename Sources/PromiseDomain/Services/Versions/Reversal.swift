import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync

/// Gives up changes that the provider was not told of, or refuses: what it has comes back. What is given up stays for a while,
/// and is listed with the versions of its path.
package struct Reversal: Sendable {
    let index: Index
    let engine: SyncEngine

    private static let workMax = 1_000_000

    private struct Work {
        enum Order: Int { case deletion, change, creation }

        var subject: Pending.Subject
        var path: [FileName]
        var order: Order
        /// Whose content is to be kept.
        var content: Node?

        /// Folders come back before what is in them, and go after it.
        func goes(before other: Work) -> Bool {
            if order != other.order { return order.rawValue < other.order.rawValue }
            return order == .creation ? path.count > other.path.count : path.count < other.path.count
        }
    }

    package struct Report: Sendable {
        /// How many changes were given up.
        package var count = 0
        package var failures: [(path: [FileName], failure: Failure)] = []
    }

    /// Of an item and of everything below it, also of what was removed there. What cannot be given up now keeps nothing else
    /// from it. Throws `.notFound` when there is nothing.
    package func revert(_ path: [FileName]) async throws(Failure) -> Report {
        let work: [Work] = try index.read { transaction throws(Failure) in try collect(below: path, transaction) }
        guard !work.isEmpty else {
            throw Failure(
                .notFound, "nothing of it waits to be sent: there is nothing to give up, but what a "
                    + "program that has it open writes")
        }
        var report = Report()
        for one in work.sorted(by: { $0.goes(before: $1) }) {
            do throws(Failure) {
                try await giveUp(one)
                report.count += 1
            } catch {
                // It may have gone since, as with its folder, or somebody else has given it up.
                if error.code != .stale, try isLeft(one) {
                    report.failures.append((one.path, error))
                }
            }
        }
        return report
    }

    private func isLeft(_ work: Work) throws(Failure) -> Bool {
        try index.read { transaction throws(Failure) in
            try transaction.pending(work.subject) != nil
        }
    }

    private func giveUp(_ work: Work) async throws(Failure) {
        var kept: String?
        if let node = work.content {
            guard node.content == .whole else {
                throw Failure(
                    .busy, "'\(work.path.last?.display ?? "")' is here only in part, so that nothing of it could be kept: "
                        + "'promisefs fetch' brings the rest")
            }
            kept = try engine.keepGivenUp(node, of: try home(work.subject) ?? work.path)
        }
        do throws(Failure) {
            try await engine.revert(work.subject, kept: work.content).get()
        } catch {
            if let kept { engine.givenUp.forget(kept) }
            throw error
        }
    }

    /// Where an item that was moved here is when that is given up: there people look for what they have written. Folders
    /// above it have come back before. Nil of what was made here.
    private func home(_ subject: Pending.Subject) throws(Failure) -> [FileName]? {
        try index.read { transaction throws(Failure) in
            guard case .entry(let id) = subject, let identifier = try transaction.entry(id)?.identifier,
                var item = try transaction.synced(identifier)?.item
            else { return nil }
            if case .present(let now)? = try transaction.remote(identifier) { item = now }
            guard let parent = item.parent else { return nil }
            let isRoot = try engine.identifier(of: .root, transaction) == parent
            guard let folder = isRoot ? .root : try transaction.entry(for: parent)?.node else { return nil }
            return try transaction.path(of: folder).map { $0 + [item.name] }
        }
    }

    private func collect(below path: [FileName], _ transaction: borrowing Transaction) throws(Failure) -> [Work] {
        var result: [Work] = []
        for row in try transaction.allPending(limit: Reversal.workMax) {
            guard let one = try describe(row.subject, transaction), one.path.starts(with: path) else { continue }
            result.append(one)
        }
        return result
    }

    private func describe(
        _ subject: Pending.Subject, _ transaction: borrowing Transaction
    ) throws(Failure) -> Work? {
        switch subject {
        case .deletion(let identifier):
            guard let path = try transaction.remotePath(of: identifier) else { return nil }
            return Work(subject: subject, path: path, order: .deletion, content: nil)
        case .entry(let id):
            guard let entry = try transaction.entry(id), let node = try transaction.node(entry.node),
                let folder = try transaction.path(of: entry.parent)
            else { return nil }
            let synced = try entry.identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
            return Work(
                subject: subject, path: folder + [entry.name], order: synced == nil ? .creation : .change,
                content: node.isEdited(since: synced) ? node : nil)
        }
    }

    // MARK: What was given up

    /// The newest first, with what other files have replaced at this path.
    package func versions(at path: [FileName]) throws(Failure) -> [ItemVersion] {
        let givenUp = engine.givenUp.all().filter { $0.path == path }.map { file in
            ItemVersion(
                kind: .earlier, node: nil, path: path, version: nil, size: file.size, modificationTime: file.modificationTime,
                isLocal: true, earlierIdentifier: file.name)
        }
        let replaced = try replaced(at: path).map { item in
            ItemVersion(
                kind: .earlier, node: nil, path: path, version: item.version, size: item.size,
                modificationTime: item.modificationTime, isLocal: true, earlierIdentifier: Reversal.name(of: item))
        }
        return (givenUp + replaced).sorted { ($0.earlierIdentifier ?? "") > ($1.earlierIdentifier ?? "") }
    }

    /// The bytes of one of them as a file at `place`; false when it is none.
    func take(_ identifier: String, of path: [FileName], to place: [UInt8]) throws(Failure) -> Bool {
        if let file = engine.givenUp.find(identifier, of: path) {
            try engine.givenUp.link(file, to: place)
            return true
        }
        guard let item = try replaced(at: path).first(where: { Reversal.name(of: $0) == identifier }) else { return false }
        try engine.givenUp.link(item.node, item.generation, to: place)
        return true
    }

    private func replaced(at path: [FileName]) throws(Failure) -> [RemovedItem] {
        try index.read { transaction throws(Failure) in
            try RemovedRows.all(below: path, transaction).filter { $0.isReplaced && $0.path == path }
        }
    }

    /// As those of what was given up: it sorts by time.
    private static func name(of item: RemovedItem) -> String { "given-up-\(item.removalTime.rawValue)-\(item.node.rawValue)" }
}
