package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue

// Paths as an application has them: below the names at the top of its view. It never learns a name
// of what it was not given.

extension Grants {
    /// From the root of the mount; nil where an application has nothing of that name.
    package func path(
        ofShown path: [FileName], for principal: Principal
    ) throws(Failure) -> [FileName]? {
        guard case .application = principal else { return path }
        let isGranted = path.first == Grants.grantedName
        let rest = isGranted ? path.dropFirst() : path[...]
        guard let name = rest.first else { return nil }
        return try tree.index.read { transaction throws(Failure) in
            let root = try roots(of: principal, transaction).first {
                $0.name == name && $0.isContainer != isGranted
            }
            guard let root, let above = try transaction.path(of: root.node) else { return nil }
            return above + rest.dropFirst()
        }
    }

    /// As an application has it: `container/…` or `granted/NAME/…`; nil of what it was not given. `named`: by that name of
    /// the node alone; nil: by whichever it has it.
    package func shownPath(
        of node: NodeID, named name: EntryID? = nil, for principal: Principal
    ) throws(Failure) -> [FileName]? {
        try tree.index.read { transaction throws(Failure) in
            guard case .application = principal else { return try transaction.path(of: node) }
            let tops = try roots(of: principal, transaction)
            if let top = tops.first(where: { $0.node == node && (name == nil || $0.entry == name) }) {
                return top.path([])
            }
            for entry in try transaction.entries(of: node) where name == nil || entry.id == name {
                if let path = try shownPath(of: entry, below: tops, transaction) { return path }
            }
            return nil
        }
    }

    private func shownPath(
        of entry: Entry, below tops: [GrantedRoot], _ transaction: borrowing Transaction
    ) throws(Failure) -> [FileName]? {
        var (names, folder) = ([entry.name], entry.parent)
        for _ in 0..<4_096 where folder != .root {
            if let top = tops.first(where: { $0.node == folder }) { return top.path(names) }
            guard let above = try transaction.entries(of: folder).first else { return nil }
            names.append(above.name)
            folder = above.parent
        }
        return nil
    }

    /// The same of what is at a path of the mount, as far as it is known here.
    package func shownPath(
        ofPath path: [FileName], for principal: Principal
    ) throws(Failure) -> [FileName]? {
        let node: NodeID? = try tree.index.read { transaction throws(Failure) in
            var current = NodeID.root
            for name in path {
                guard let entry = try transaction.entry(in: current, named: name) else { return nil }
                current = entry.node
            }
            return current
        }
        guard let node, try allowed(principal, node) > .none else { return nil }
        return try shownPath(of: node, for: principal)
    }

    /// The grants that open something to a principal now, whatever their items are called.
    package func open(to principal: Principal) -> Set<GrantID> {
        guard case .application(let name, let launch) = principal else { return [] }
        let (table, now) = snapshot()
        return Set(table.open(for: Key(name), in: launch, now: now).map(\.id))
    }

    /// What is under a grant's item now.
    package func node(of grant: Grant) throws(Failure) -> NodeID? {
        try tree.look(for: grant.key, bound: grant.entry, believesNotes: false).entry?.node
    }

    /// Throws, and writes a line, where the principal may not do as much, or there is no such node.
    package func require(
        _ rights: Rights, _ principal: Principal, _ node: NodeID, to call: StaticString
    ) throws(Failure) {
        if principal.isOwner { return }
        if try allowed(principal, node) >= rights { return }
        throw refuse(principal, call, "node \(node)")
    }

    /// Of what an application was not given. `detail` is for the audit log alone.
    package func refuse(_ principal: Principal, _ call: StaticString, _ detail: String) -> Failure {
        let sentence = "this application was not given that"
        return door.refusal(principal, call, sentence, of: application(principal), detail: detail)
    }

    /// For a view: an application has used what it was given.
    package func noteUse(_ principal: Principal, _ call: StaticString, _ node: NodeID) {
        door.note(principal, call, of: application(principal), detail: "node \(node)")
    }

    private func application(_ principal: Principal) -> String? {
        if case .application(let name, _) = principal { name } else { nil }
    }
}

extension GrantedRoot {
    /// As the application has it. `names`: below it, from the inside out.
    fileprivate func path(_ names: [FileName]) -> [FileName] {
        (isContainer ? [] : [Grants.grantedName]) + [name] + names.reversed()
    }
}
