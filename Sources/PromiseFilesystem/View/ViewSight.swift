import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

/// What a change of the tree is in a view: where it is seen there, if it is seen.
struct ViewSight {
    let view: View
    let roots: ViewRoots

    init(_ view: View) {
        self.view = view
        roots = view.roots
    }

    /// A change as the view shows it.
    enum Shown {
        case made(EchoPlace, Node)
        case gone(EchoPlace, Node)
        case moved(EchoPlace, EchoPlace, Node)
        case modified(EchoPlace, Node, content: Bool)
    }

    /// By what is so now: what has changed again since is told by the next change.
    func shown(_ change: TreeChange) throws(Failure) -> [Shown] {
        try view.index.read { transaction throws(Failure) in
            switch change {
            case .appeared(let place):
                guard let (entry, node) = try found(place, transaction) else { return [] }
                return ((try below(place, transaction)).map { [$0] + asRoot(entry) } ?? asRoot(entry))
                    .map { .made($0, node) }
            case .gone(let place, let node):
                if let (_, now) = try found(place, transaction), now.id == node.id { return [] }
                return ((try below(place, transaction)).map { [$0] + left(place) } ?? left(place))
                    .map { .gone($0, node) }
            case .moved(let id, let from, let to):
                guard let (entry, node) = try found(to, transaction), node.id == id else {
                    return []
                }
                return try moved(entry, node, from, to, transaction)
            case .modified(let id, let content):
                guard let node = try transaction.node(id) else { return [] }
                return try modified(node, content, transaction)
            }
        }
    }

    private func found(
        _ place: TreePlace, _ transaction: borrowing Transaction
    ) throws(Failure) -> (Entry, Node)? {
        guard let entry = try transaction.entry(in: place.parent, named: place.name),
            let node = try transaction.node(entry.node)
        else { return nil }
        return (entry, node)
    }

    /// A document that is moved keeps its name in `granted`; what takes its place does not.
    private func moved(
        _ entry: Entry, _ node: Node, _ from: TreePlace, _ to: TreePlace,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> [Shown] {
        var shown: [Shown] = []
        switch (try below(from, transaction), try below(to, transaction)) {
        case (let source?, let target?): shown.append(.moved(source, target, node))
        case (let source?, nil): shown.append(.gone(source, node))
        case (nil, let target?): shown.append(.made(target, node))
        case (nil, nil): break
        }
        guard let root = roots.byEntry[entry.id] else { return shown }
        let isItself = view.state.withLock { state in
            defer { state.places[root.name] = to }
            return state.places[root.name] == from
        }
        return isItself ? shown : shown + asRoot(entry).map { .made($0, node) }
    }

    private func modified(
        _ node: Node, _ content: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Shown] {
        // One of its names: whoever watches the file itself hears of it once.
        for entry in try transaction.entries(of: node.id) {
            var place = asRoot(entry).first
            if place == nil { place = try below(entry.place, transaction) }
            if let place { return [.modified(place, node, content: content)] }
        }
        return []
    }

    // MARK: Places

    private static let grantedFolder = ViewNode.granted.shown

    private func asRoot(_ entry: Entry) -> [EchoPlace] {
        guard let root = roots.byEntry[entry.id] else { return [] }
        switch root.place {
        case .top: return [EchoPlace(parent: ViewNode.root.shown, path: [], name: root.name)]
        case .granted: return inGranted(root.name)
        case .scratch: return []
        }
    }

    /// What was granted and had this place when it was last seen.
    private func left(_ place: TreePlace) -> [EchoPlace] {
        view.state.withLock { $0.places }.filter { $0.value == place }.flatMap { inGranted($0.key) }
    }

    private func inGranted(_ name: FileName) -> [EchoPlace] {
        // A program inside has put it away, as it does to save it.
        if view.given.isHidden(name) { return [] }
        return [EchoPlace(parent: Self.grantedFolder, path: [View.granted], name: name)]
    }

    private func below(
        _ place: TreePlace, _ transaction: borrowing Transaction
    ) throws(Failure) -> EchoPlace? {
        var path: [FileName] = []
        var folder = place.parent
        // No tree is that deep, see `ViewRoots.reach`.
        for _ in 0..<4096 {
            guard folder != .root, let entry = try transaction.entries(of: folder).first else {
                break
            }
            if let root = roots.byEntry[entry.id] {
                return EchoPlace(
                    parent: shownFolder(place.parent), path: start(of: root) + path.reversed(),
                    name: place.name)
            }
            path.append(entry.name)
            folder = entry.parent
        }
        return nil
    }

    private func start(of root: ViewRoot) -> [FileName] {
        switch root.place {
        case .top: [root.name]
        case .granted: [View.granted, root.name]
        case .scratch: [View.granted]
        }
    }

    private func shownFolder(_ folder: NodeID) -> NodeID {
        folder == view.launch.folders.scratch ? Self.grantedFolder : ViewNode.tree(folder).shown
    }
}

extension Entry {
    fileprivate var place: TreePlace { TreePlace(name, in: parent) }
}
