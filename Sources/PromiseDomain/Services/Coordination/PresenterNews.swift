import PromiseCoordination
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import Synchronization

/// Tells presenters of what happened to their items, whoever did it: programs on the mount, coordinated or not, and the
/// provider.
final class PresenterNews: ChangeListener {
    private static let followingTime = Duration.milliseconds(200)

    private struct VersionNews: Sendable {
        let change: Change
        let what: VersionChange
        let name: FileName
        let due: ContinuousClock.Instant
    }

    private let index: Index
    private let coordinator: Coordinator
    private let versionNews: AsyncStream<VersionNews>.Continuation
    /// Of what is moving.
    private let oldPlace = Mutex<(node: NodeID, place: OldPlace)?>(nil)

    init(index: Index, coordinator: Coordinator) {
        self.index = index
        self.coordinator = coordinator
        let (stream, continuation) = AsyncStream.makeStream(of: VersionNews.self)
        versionNews = continuation
        // One after the other: a version that is gained and lost in a moment is not lost first.
        Task { [weak self] in
            for await news in stream {
                try? await Task.sleep(until: news.due)
                self?.tell(news)
            }
        }
    }

    deinit { versionNews.finish() }

    func changed(_ changes: [Change]) {
        guard coordinator.isActive else { return }
        for change in changes {
            let event: ClaimTable.Event
            switch change.kind {
            case .created: event = .appeared
            case .modified: event = .changed
            case .moved: event = .moved
            case .left:
                // The change that says where it is now follows right behind.
                oldPlace.withLock { $0 = change.name.map { (change.node, OldPlace(parent: change.parent, name: $0)) } }
                continue
            case .deleted: event = .deleted
            // Where the content is does not concern who shows it.
            case .content, .upload, .replaced: continue
            case .versionGained, .versionLost, .versionResolved:
                tellVersion(change)
                continue
            }
            for number in change.node.rawValue..<change.node.rawValue + UInt64(change.count) {
                tell(event, change, NodeID(number))
            }
        }
    }

    /// A moment later: whoever gave the document another node tells the coordinator of that right after the commit that is heard
    /// of here, and its presenters are with that node then. By then the document may be another node again.
    private func tellVersion(_ change: Change) {
        guard let name = change.name else { return }
        let what: VersionChange =
            switch change.kind {
            case .versionGained: .gained
            case .versionLost: .lost
            default: .resolved
            }
        versionNews.yield(VersionNews(change: change, what: what, name: name, due: .now + PresenterNews.followingTime))
    }

    private func tell(_ news: VersionNews) {
        let change = news.change
        let node = coordinator.current(change.node, after: change.sequence)
        guard let (now, then, _) = folders(of: change, node) else { return }
        coordinator.happened(.version(news.what, news.name), to: change.node, after: change.sequence, in: now ?? then)
    }

    /// Those above any name of the node now, nil when it has gone, and those above it when the change happened; and whether
    /// it is in the folder in which that was.
    private func folders(of change: Change, _ node: NodeID) -> (now: [NodeID]?, then: [NodeID], isThere: Bool)? {
        try? index.read { transaction throws(Failure) in
            let then = [change.parent] + (try transaction.foldersAbove(change.parent) ?? [])
            let now = try transaction.foldersAboveNames(of: node)
            let isThere = try transaction.entries(of: node).contains { $0.parent == change.parent }
            return (now: now, then: then, isThere: isThere)
        }
    }

    private func tell(_ event: ClaimTable.Event, _ change: Change, _ node: NodeID) {
        guard let (now, then, isThere) = folders(of: change, node) else { return }
        // One of its names has gone: that of a draft that has taken its document's name, or one of several.
        if event == .deleted, let now {
            coordinator.left(then.filter { !now.contains($0) }, node)
            return coordinator.happened(.lostName, to: node, by: change.sequence, in: [])
        }
        let here = event == .appeared || event == .moved ? vacancy(of: node, change) : nil
        guard event == .moved else {
            // A further name appears in its own folders, and not in those of the others.
            let folders = event == .appeared && isThere ? then : now ?? then
            return coordinator.happened(event, to: node, by: change.sequence, in: folders, at: here)
        }
        let old = oldPlace.withLock { old in
            defer { old = nil }
            return old?.node == node ? old?.place : nil
        }
        let before = old.map { foldersAndSelf($0.parent) } ?? []
        let inside = now ?? then
        coordinator.left(before.filter { !inside.contains($0) }, node, from: old)
        // It has moved on meanwhile, and that is told then.
        if let now, !isThere {
            return coordinator.left(then.filter { !now.contains($0) && !before.contains($0) }, node, from: old)
        }
        let names = try? index.read { transaction throws(Failure) in try transaction.foldersOfNames(node) }
        let name = now.map { _ in MovedName(node, in: then, names: names) }
        coordinator.happened(.moved, to: node, by: change.sequence, in: inside, from: old, at: here, name: name)
    }

    /// What its name would leave: who has a claim on that has one on the item now.
    private func vacancy(of node: NodeID, _ change: Change) -> NodeID? {
        let entry = try? index.read { transaction throws(Failure) in
            let entries = try transaction.entries(of: node)
            return entries.first { $0.parent == change.parent && $0.name == change.name } ?? entries.first
        }
        return entry.map { .vacancy($0.name, in: $0.parent) }
    }

    private func foldersAndSelf(_ folder: NodeID) -> [NodeID] {
        let above = try? index.read { transaction throws(Failure) in try transaction.foldersAbove(folder) }
        return [folder] + (above ?? [])
    }
}
