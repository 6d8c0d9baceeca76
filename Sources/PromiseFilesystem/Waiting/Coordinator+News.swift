package import PromiseCoordination
package import PromiseCore
import PromiseSystem

/// What happened to items, whoever did it, as presenters and claims hear of it.
extension Coordinator {
    /// `number`: of the index's change. Presenters of what became this node by it have been told when that was told.
    /// `entry`: the name that it is about. `here`: the vacancy of the name that it has now. `name`: of a move.
    package func happened(
        _ event: ClaimTable.Event, to node: NodeID, named entry: EntryID? = nil, by number: Int64, in folders: [NodeID],
        from place: OldPlace? = nil, at here: NodeID? = nil, name: MovedName? = nil
    ) {
        let now = clock.uptime()
        change { state in
            if let name { state.table.moved(name, from: place, now: now) }
            if let here { state.table.arrived(node, at: here, in: name?.folders ?? folders, now: now) }
            let isTold = state.isTold(event, of: node, since: number)
            state.table.happened(
                event, to: node, in: folders, from: place, isItemTold: isTold, named: entry ?? name?.entry)
            settle(&state)
        }
    }

    /// The names of an item that presenters show.
    package func presentedNames(of node: NodeID) -> Set<EntryID> {
        state.withLock { $0.table.presentedNames(of: node) }
    }

    package func isPresented(_ node: NodeID) -> Bool {
        isActive && state.withLock { $0.table.isPresented(node) }
    }

    /// The folders above each name that an item has by now.
    package func named(_ node: NodeID, _ chains: [[NodeID]]) {
        state.withLock { $0.table.named(node, chains) }
    }

    /// A name of the item went from these folders, which are told. `names`: those that presenters show, and that have gone.
    package func lost(_ names: Set<EntryID>, of node: NodeID, from place: OldPlace?, in folders: [NodeID]) {
        change { state in
            state.table.lostNames(names, of: node)
            if let place { state.table.vanished(node, from: place, in: folders) }
            settle(&state)
        }
    }

    /// The same of an item that was `node` after a change of the index, by somebody who tells of it later: it may have become
    /// another node meanwhile, and may do so at this moment.
    package func happened(_ event: ClaimTable.Event, to node: NodeID, after number: Int64, in folders: [NodeID]) {
        change { state in
            var actor: Purpose?
            if case .version(.resolved, _) = event {
                actor = state.resolutions.last { $0.changes.contains(number) }?.purpose
            }
            state.table.happened(event, to: state.current(node, after: number), in: folders, by: actor)
            settle(&state)
        }
    }

    /// Versions were resolved for a purpose by the index's changes after the first up to the last.
    package func resolved(for purpose: Purpose, from first: Int64, to last: Int64) {
        guard first < last else { return }
        state.withLock { state in
            if state.resolutions.count == Coordinator.replacementCountMax { state.resolutions.removeFirst() }
            state.resolutions.append(Resolution(purpose: purpose, changes: first + 1..<last + 1))
        }
    }

    /// An item left these folders for others.
    package func left(
        _ folders: [NodeID], _ node: NodeID, named name: EntryID? = nil, from place: OldPlace? = nil
    ) {
        change { state in
            state.table.left(folders, node, named: name, from: place)
            settle(&state)
        }
    }

    /// A name and what is below it are elsewhere now. Nobody is told. `place`: the vacancy of the name.
    package func moved(_ name: MovedName, from old: OldPlace? = nil, at place: NodeID? = nil) {
        let now = clock.uptime()
        change { state in
            state.table.moved(name, from: old, now: now)
            if let place { state.table.arrived(name.node, at: place, in: name.folders, now: now) }
            settle(&state)
        }
    }

    /// Items are other nodes now, and their presenters are told so: whoever tells of the index's changes may come before this,
    /// and finds nobody at the new node. `change`: the index's newest one.
    package func replaced(_ replaced: [ReplacedNode], by change: Int64) {
        let now = clock.uptime()
        let nodes = Dictionary(replaced.map { ($0.old, $0.new) }) { $1 }
        let moved = Set(replaced.filter { $0.newFolders != nil }.map(\.new))
        self.change { state in
            state.table.replaced(replaced, now: now)
            if state.replacements.count == Coordinator.replacementCountMax { state.replacements.removeFirst() }
            state.replacements.append(Replacement(nodes: nodes, moved: moved, change: change))
            settle(&state)
        }
    }

    /// The node that the item is now which was `node` after a change of the index.
    package func current(_ node: NodeID, after change: Int64) -> NodeID { state.withLock { $0.current(node, after: change) } }
}
