import PromiseCore
import PromiseFilesystem

/// What programs do to files beside their content: rights, times, sizes and second names.
extension Program {
    func actOnMetadata() async throws(Failure) {
        switch simulation.pick(4) {
        case 0:
            let path = simulation.chance(60) ? file() : subfolder()
            let found = try await on.node(at: path)
            let modes: [UInt32] = found.kind == .folder ? [0o700, 0o755] : [0o600, 0o644]
            try await change(path, found.node, AttributeChanges(permissions: modes[simulation.pick(2)]))
        case 1:
            let path = file()
            let time = simulation.timeOfWrite()
            try await change(path, try await on.node(at: path).node, AttributeChanges(modificationTime: .at(time)))
        case 2: try await truncate(file())
        default: try await addName(file(), to: file())
        }
    }

    private func change(_ path: [FileName], _ node: NodeID, _ changes: AttributeChanges) async throws(Failure) {
        note("changes \(display(path))")
        _ = try await on.call {
            on.filesystem.setAttributes(of: node, handle: nil, changes, caller: on.caller, reply: $0)
        }
    }

    private func truncate(_ path: [FileName]) async throws(Failure) {
        let found = try await on.node(at: path)
        guard found.kind == .file else { return }
        if !world.plan.hasLargeFiles { _ = try await on.contents(of: found.node) }
        note("truncates \(display(path))")
        let size = UInt64(simulation.pick(world.plan.hasLargeFiles ? 24 : 3) * Ledger.tokenSize)
        let before = try world.tokens(of: found.node, on: on)
        _ = try await on.call(stamping: { _ in found.node }) {
            on.filesystem.setAttributes(
                of: found.node, handle: nil, AttributeChanges(size: size), caller: on.caller, reply: $0)
        }
        world.ledger.gave(before.subtracting(try world.tokens(of: found.node, on: on)))
    }

    private func addName(_ path: [FileName], to other: [FileName]) async throws(Failure) {
        let node = try await on.node(at: other)
        guard node.kind == .file else { return }
        // Of what has not come and is removed by others nothing is left for its second name.
        _ = try await on.contents(of: node.node)
        let (parent, name) = try await on.folder(of: path)
        note("gives \(display(other)) the name \(display(path)), too")
        _ = try await on.call {
            on.filesystem.addName(name, in: parent, to: node.node, caller: on.caller, reply: $0)
        }
    }
}
