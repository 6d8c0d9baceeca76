package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex

// Paths as an application has them: below the names at the top of its view. It never learns a name
// of what it was not given.

extension Grants {
    /// From the root of the mount; nil where an application has nothing of that name.
    package func path(
        ofShown path: [FileName], for principal: Principal
    ) throws(Failure) -> [FileName]? {
        guard case .application = principal else { return path }
        guard let first = path.first else { return nil }
        return try tree.index.read { transaction throws(Failure) in
            guard
                let root = try roots(of: principal, transaction).first(where: { $0.name == first }),
                let above = try transaction.path(of: root.node)
            else { return nil }
            return above + path.dropFirst()
        }
    }

    /// As an application has it; nil of what it was not given.
    package func shownPath(
        of node: NodeID, for principal: Principal
    ) throws(Failure) -> [FileName]? {
        try tree.index.read { transaction throws(Failure) in
            guard case .application = principal else { return try transaction.path(of: node) }
            let tops = try roots(of: principal, transaction)
            var names: [FileName] = []
            var current = node
            var depth = 0
            while current != .root, depth < 4_096 {
                if let top = tops.first(where: { $0.node == current }) {
                    return [top.name] + names.reversed()
                }
                guard let entry = try transaction.entries(of: current).first else { return nil }
                names.append(entry.name)
                current = entry.parent
                depth += 1
            }
            return nil
        }
    }

    /// Throws, and writes a line, where the principal may not do as much. Whether there is such a
    /// node is not told.
    package func require(
        _ rights: Rights, _ principal: Principal, _ node: NodeID, to call: StaticString
    ) throws(Failure) {
        if principal.isOwner { return }
        if try allowed(principal, node) >= rights { return }
        throw refuse(principal, call, "node \(node)")
    }

    /// Of what an application was not given. `detail` is for the audit log alone.
    package func refuse(_ principal: Principal, _ call: StaticString, _ detail: String) -> Failure {
        door.refusal(
            principal, call, "this application was not given that", of: application(principal),
            detail: detail)
    }

    /// For a view: an application has used what it was given.
    package func noteUse(_ principal: Principal, _ call: StaticString, _ node: NodeID) {
        door.note(principal, call, of: application(principal), detail: "node \(node)")
    }

    private func application(_ principal: Principal) -> String? {
        if case .application(let name, _) = principal { name } else { nil }
    }
}
