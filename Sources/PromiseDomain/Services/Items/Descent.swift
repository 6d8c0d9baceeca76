import PromiseCore
import PromiseIndex

/// What is below an item, parents first. A folder that cannot be listed keeps nobody from the rest.
struct Descent: Sendable {
    var nodes: [Node] = []
    /// Folders that could not be listed, and why. What was known of them is in `nodes`.
    var troubles: [(folder: NodeID, failure: Failure)] = []

    /// With `id` itself. Folders that are not known are listed when `listing` is set.
    static func below(_ id: NodeID, _ tree: DomainTree, listing: Bool) async throws(Failure) -> Descent {
        var result = Descent()
        var waiting = [id]
        while let next = waiting.popLast() {
            if listing { await result.list(next, tree) }
            let (node, children): (Node?, [NodeID]) = try tree.index.read { transaction throws(Failure) in
                let node = try transaction.node(next)
                let children = node?.kind == .folder ? try transaction.children(of: next).map(\.node) : []
                return (node, children)
            }
            if let node { result.nodes.append(node) }
            waiting += children.reversed()
        }
        return result
    }

    private mutating func list(_ folder: NodeID, _ tree: DomainTree) async {
        // When the provider is away, each of many folders would be waited for.
        if troubles.last.map({ [.offline, .timedOut].contains($0.failure.code) }) ?? false { return }
        do throws(Failure) { try await tree.list(folder) } catch { troubles.append((folder, error)) }
    }
}
