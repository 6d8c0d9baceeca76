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
        if event == .deleted { return tellGone(node, change, from: then) }
        if event == .changed { return tellChanged(node, change) }
        if event == .appeared { knowNames(of: node) }
        let here = vacancy(of: node, change)
        let named = entry(of: node, change)?.id
        guard event == .moved else {
            // A further name appears in its own folders, and not in those of the others.
            return coordinator.happened(
                event, to: node, named: named, by: change.sequence, in: isThere ? then : now ?? then, at: here)
        }
        let old = oldPlace.withLock { old in
            defer { old = nil }
            return old?.node == node ? old?.place : nil
        }
        let before = old.map { foldersAndSelf($0.parent) } ?? []
        // Other names are where they were.
        let inside = isThere ? then : now ?? then
        coordinator.left(before.filter { !inside.contains($0) }, node, named: named, from: old)
        // It has moved on meanwhile, and that is told then.
        if let now, !isThere {
            let passed = then.filter { !now.contains($0) && !before.contains($0) }
            return coordinator.left(passed, node, named: named, from: old)
        }
        let names = try? index.read { transaction throws(Failure) in try transaction.foldersOfNames(node) }
        let name = now.map { _ in MovedName(node, in: then, names: names, entry: named) }
        coordinator.happened(.moved, to: node, by: change.sequence, in: inside, from: old, at: here, name: name)
    }

    /// The content is that of all its names: each is told of.
    private func tellChanged(_ node: NodeID, _ change: Change) {
        let names = try? index.read { transaction throws(Failure) in
            try transaction.entries(of: node).map { name throws(Failure) in
                (id: name.id, folders: try transaction.foldersAbove(name) ?? [])
            }
        }
        guard let names, !names.isEmpty else {
            let folders = node == .root ? [] : foldersAndSelf(change.parent)
            return coordinator.happened(.changed, to: node, by: change.sequence, in: folders)
        }
        for name in names {
            coordinator.happened(.changed, to: node, named: name.id, by: change.sequence, in: name.folders)
        }
    }

    /// One of its names has gone, or the last one: that of a draft that has taken its document's name, or one of several. Who
    /// shows another one, or what has the node's place by now, is not concerned.
    private func tellGone(_ node: NodeID, _ change: Change, from folders: [NodeID]) {
        var gone: Set<EntryID> = []
        for name in coordinator.presentedNames(of: node) {
            let isThere = try? index.read { transaction throws(Failure) in try transaction.entry(name) != nil }
            if isThere == false { gone.insert(name) }
        }
        let place = change.name.map { OldPlace(parent: change.parent, name: $0) }
        coordinator.lost(gone, of: node, from: place, in: folders)
        knowNames(of: node)
    }

    /// Who shows an item of several names is asked for those in the folders of each.
    private func knowNames(of node: NodeID) {
        guard coordinator.isPresented(node) else { return }
        let chains = try? index.read { transaction throws(Failure) in try transaction.foldersOfNames(node) }
        if let chains, !chains.isEmpty { coordinator.named(node, chains) }
    }

    /// What its name would leave: who has a claim on that has one on the item now.
    private func vacancy(of node: NodeID, _ change: Change) -> NodeID? {
        let entries = try? index.read { transaction throws(Failure) in try transaction.entries(of: node) }
        return (entry(of: node, change) ?? entries?.first).map { .vacancy($0.name, in: $0.parent) }
    }

    /// The name that the change was about, where it is there still.
    private func entry(of node: NodeID, _ change: Change) -> Entry? {
        let entry = try? index.read { transaction throws(Failure) in
            try change.name.flatMap { name throws(Failure) in try transaction.entry(in: change.parent, named: name) }
        }
        return entry.flatMap { $0.node == node ? $0 : nil }
    }

    private func foldersAndSelf(_ folder: NodeID) -> [NodeID] {
        let above = try? index.read { transaction throws(Failure) in try transaction.foldersAbove(folder) }
        return [folder] + (above ?? [])
    }
}
