import PromiseCore
import PromiseSync
import PromiseSystem
import Synchronization

// What the daemon before this one had open for the kernel, which goes on using it.

extension OpenTable.State {
    /// Content files are opened later: see `FileSystem.resumeOpenFiles`.
    mutating func inherit(_ entries: [(position: MountRecord.Position, open: MountRecord.Open)]) {
        for (position, open) in entries where open.handle != 0 { inherit(open, at: position) }
        for (position, open) in entries where open.handle == 0 {
            guard let backing = open.backing else { continue }
            backingPositions[backing] = position
            if open.isWritable { nodes[open.node]?.mayBeMapped = true }
            // One that nobody has open rests; no more than may rest were noted.
            if nodes[open.node]?.mode.isPassthrough != true { _ = resting.rest(backing, open.node, open.generation) }
        }
    }

    private mutating func inherit(_ open: MountRecord.Open, at position: MountRecord.Position) {
        var node = nodes[open.node, default: OpenTable.OpenNode()]
        if let backing = open.backing {
            node.mode = OpenMode(inheriting: .passthrough(opens: node.handles + 1, backing: backing))
            node.generation = open.generation
        } else {
            node.mode = OpenMode(inheriting: .cached(opens: node.handles + 1))
        }
        node.handles += 1
        if open.isWritable {
            node.writers += 1
            node.wasWritable = true
            if open.backing != nil { node.mayBeMapped = true }
        }
        nodes[open.node] = node
        let handle = OpenTable.Handle(node: open.node, isWritable: open.isWritable, file: nil, position: position)
        handles[HandleID(open.handle)] = handle
        if open.request != 0 { inherited[open.request] = HandleID(open.handle) }
    }
}

extension OpenTable {
    /// The nodes that were open when this daemon started.
    var inheritedNodes: Set<NodeID> { state.withLock { Set($0.nodes.filter { $0.value.handles > 0 }.map(\.key)) } }

    /// The content file of a node that was inherited: for its handles, and for its size and times where somebody writes.
    func resume(_ node: NodeID, with file: SharedDescriptor) {
        state.withLock { state in
            for (id, handle) in state.handles where handle.node == node && handle.file == nil {
                if handle.isWritable || state.nodes[node]?.mode.isPassthrough == false { state.handles[id]?.file = file }
            }
            if let open = state.nodes[node], open.writers > 0 { state.nodes[node]?.writeFile = file }
        }
    }

    /// What a request that is sent again opened when it came first; it is answered with that.
    func takeInherited(_ request: UInt64) -> (node: NodeID, handle: HandleID, backing: BackingID?)? {
        state.withLock { state in
            guard let id = state.inherited.removeValue(forKey: request), let handle = state.handles[id] else { return nil }
            var backing: BackingID?
            if case .passthrough(_, let registered) = state.nodes[handle.node]?.mode.state { backing = registered }
            return (handle.node, id, backing)
        }
    }
}
