import PromiseCore
import PromiseSync
import PromiseSystem
import Synchronization

// Mappings that outlive the last close.

extension OpenTable {
    /// For a successor: the handle that the mapping was made by may be closed long before.
    func noteMapping(by backing: BackingID, _ node: NodeID, _ generation: Generation, _ state: inout State) {
        let mapped = MountRecord.Open(handle: 0, node: node, generation: generation, backing: backing, isWritable: true)
        guard let record, let before = state.backingPositions[backing], let position = record.note(mapped) else { return }
        state.backingPositions[backing] = position
        record.clear(before)
    }

    /// Nobody has the node open any more, and a mapping may write to it. From here on `file`, which is open for reading only,
    /// tells its size and times, and no other descriptor of ours counts as a writer. False: somebody opens it again.
    func linger(_ node: NodeID, _ file: SharedDescriptor) -> Bool {
        state.withLock { state in
            var open = state.nodes[node, default: OpenNode()]
            // A registration that rests is a writer of ours.
            guard open.handles == 0, open.announced == 0, !state.resting.holds(node) else { return false }
            open.writeFile = file
            open.isFileReadOnly = true
            open.lingers = true
            state.nodes[node] = open
            return true
        }
    }

    /// There is no mapping.
    func endLingering(_ node: NodeID) {
        state.withLock { state in
            guard state.nodes[node]?.lingers == true else { return }
            state.nodes[node]?.lingers = false
            state.nodes[node]?.mayBeMapped = false
        }
    }

    /// Nobody has it open, and a mapping of it may be left that nobody looks after.
    func isLeftMapped(_ node: NodeID) -> Bool {
        state.withLock { state in
            guard let open = state.nodes[node], open.mayBeMapped else { return false }
            return !open.lingers && open.handles == 0 && open.announced == 0
        }
    }

    func lingers(_ node: NodeID) -> Bool { state.withLock { $0.nodes[node]?.lingers ?? false } }

    /// Nil while mappings cannot be told from other uses: somebody has it open.
    func lingeringFile(of node: NodeID) -> SharedDescriptor? {
        state.withLock { state in
            guard let open = state.nodes[node], open.lingers, open.handles == 0, open.announced == 0 else { return nil }
            return open.writeFile
        }
    }
}
