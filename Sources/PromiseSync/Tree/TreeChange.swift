package import PromiseCore
package import PromiseIndex

/// A name in a folder.
package struct TreePlace: Hashable, Sendable {
    package var parent: NodeID
    package var name: FileName

    package init(_ name: FileName, in parent: NodeID) {
        self.parent = parent
        self.name = name
    }
}

/// What following the provider has changed in the tree that programs see, for those that watch it.
/// In the order in which it happened; the index has it already.
package enum TreeChange: Sendable {
    /// A name that was not there, or stood for something else.
    case appeared(TreePlace)
    /// `node`: what the name stood for.
    case gone(TreePlace, Node)
    case moved(NodeID, from: TreePlace, to: TreePlace)
    /// The bytes (`content`) or other attributes of a node that keeps its names.
    case modified(NodeID, content: Bool)
}

extension Notices {
    /// A name stands for another node now.
    mutating func noteReplaced(_ entry: Entry, _ old: Node) {
        entries.append((entry.parent, entry.name))
        tree.append(.gone(entry.treePlace, old))
        tree.append(.appeared(entry.treePlace))
    }

    mutating func noteMoved(_ old: Entry, to new: Entry) {
        entries.append((old.parent, old.name))
        entries.append((new.parent, new.name))
        tree.append(.moved(new.node, from: old.treePlace, to: new.treePlace))
    }

    mutating func noteAppeared(_ name: FileName, in parent: NodeID) {
        entries.append((parent, name))
        tree.append(.appeared(TreePlace(name, in: parent)))
    }

    mutating func noteModified(_ node: NodeID, content: Bool) {
        nodes.append((node, content))
        tree.append(.modified(node, content: content))
    }
}

extension Entry {
    var treePlace: TreePlace { TreePlace(name, in: parent) }
}

extension [TreeChange] {
    /// The same without names that were there for a moment only, as the one to which something
    /// makes way before it goes, too.
    package var condensed: [TreeChange] {
        var result: [TreeChange?] = []
        // Which of them brought what has this name now.
        var arrivals: [TreePlace: Int] = [:]
        for change in self {
            switch change {
            case .appeared(let place):
                arrivals[place] = result.count
                result.append(change)
            case .gone(let place, let node):
                guard let arrival = arrivals.removeValue(forKey: place) else {
                    result.append(change)
                    continue
                }
                if case .moved(_, let from, to: _) = result[arrival] {
                    result[arrival] = .gone(from, node)
                } else {
                    result[arrival] = nil
                }
            case .moved(let node, let from, let to):
                let arrival = arrivals.removeValue(forKey: from)
                arrivals[to] = result.count
                switch arrival.flatMap({ result[$0] }) {
                case .appeared: result.append(.appeared(to))
                case .moved(_, let first, to: _): result.append(.moved(node, from: first, to: to))
                default: result.append(change)
                }
                if let arrival { result[arrival] = nil }
            case .modified: result.append(change)
            }
        }
        return result.compactMap { $0 }
    }
}
