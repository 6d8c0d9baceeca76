import PromiseAccess
package import PromiseCore
import PromiseIndex
import PromiseSync
package import PromiseSystem
import Synchronization

// Looking names up, making, moving and removing them in what an application may reach.

extension View {
    // MARK: Lookup

    package func lookup(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<LookupReply>
    ) -> ParkedRequest? {
        switch ViewNode(parent) {
        case .root:
            return guarded(reply) { () throws(Failure) in
                if name == View.granted {
                    reply(.success(.found(ownEntry(.granted))))
                } else if let root = roots.root(named: name, .top), let found = try entry(of: root) {
                    reply(.success(.found(found)))
                } else {
                    reply(.success(.absent(lifetimeSeconds: 0)))
                }
                return nil
            }
        case .granted: return given.lookup(name, caller: caller, reply: reply)
        case .tree(let folder): return lookup(name, below: folder, caller: caller, reply: reply)
        }
    }

    func lookup(
        _ name: FileName, below folder: NodeID, caller: Caller, reply: @escaping Reply<LookupReply>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let reach = try demand(.read, of: folder, "lookup")
            return tree.lookup(name, in: folder, caller: through(caller)) { [self] result in
                reply(
                    result.map { found in
                        switch found {
                        case .found(let entry): .found(shown(entry, reach: reach))
                        case .absent: .absent(lifetimeSeconds: 0)
                        }
                    })
            }
        }
    }

    /// Nil when what was granted is not there any more.
    func entry(of root: ViewRoot) throws(Failure) -> EntryReply? {
        guard let entry = try given.place(of: root) else { return nil }
        return shown(
            try tree.entry(of: entry.node), reach: Reach(rights: root.rights, root: root.entry))
    }

    package func entry(of node: NodeID) throws(Failure) -> EntryReply {
        switch ViewNode(node) {
        case .tree(let node):
            let reach = try demand(.read, of: node, "handle")
            return shown(try tree.entry(of: node), reach: reach)
        case let own: return ownEntry(own)
        }
    }

    /// A folder that was granted is in the view's root: what is above it is not the application's.
    package func parentEntry(of folder: NodeID) throws(Failure) -> EntryReply {
        guard case .tree(let node) = ViewNode(folder) else { return ownEntry(.root) }
        let above = try tree.parentFolder(of: node)
        return try reach(above).rights > .none ? try entry(of: ViewNode.tree(above).shown) : ownEntry(.root)
    }

    package func forget(_ node: NodeID, lookups: UInt64) {
        guard case .tree(let node) = ViewNode(node) else { return }
        let count = state.withLock { state in
            guard let known = state.known[node] else { return UInt64(0) }
            let count = min(known.lookups, lookups)
            state.known[node]?.lookups -= count
            if known.lookups == count { state.known[node] = nil }
            return count
        }
        if count > 0 { tree.forget(node, lookups: count) }
    }

    // MARK: Making

    package func create(
        _ name: FileName, in parent: NodeID, permissions: UInt32, opening: OpenRequest,
        caller: Caller, reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        make(name, .file, in: parent, "create", caller, reply: reply) { [self] folder, caller, done in
            tree.create(
                name, in: folder, permissions: permissions.withoutSetID, opening: opening, caller: caller,
                reply: done)
        } shown: { [self] made, reach in
            shown(made, reach, isWritable: opening.isWritable)
        } undone: { [self] made in
            let node = made.entry.attributes.node
            tree.release(node, handle: made.opened.handle)
            tree.forget(node, lookups: 1)
            _ = tree.unlink(name, in: launch.folders.scratch, caller: through(caller)) { _ in }
        }
    }

    package func createNameless(
        in parent: NodeID, permissions: UInt32, opening: OpenRequest, caller: Caller,
        reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let (folder, reach) = try folderToMakeIn(parent, "create")
            return tree.createNameless(
                in: folder, permissions: permissions.withoutSetID, opening: opening, caller: through(caller)
            ) { [self] result in
                reply(result.map { shown($0, reach, isWritable: opening.isWritable) })
            }
        }
    }

    package func makeFolder(
        _ name: FileName, in parent: NodeID, permissions: UInt32, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        make(name, .folder, in: parent, "makeFolder", caller, reply: reply) { [self] folder, caller, done in
            tree.makeFolder(
                name, in: folder, permissions: permissions.withoutSetID, caller: caller, reply: done)
        } shown: { [self] in shown($0, reach: $1) } undone: { [self] in undo($0, name, caller) }
    }

    package func makeNode(
        _ name: FileName, in parent: NodeID, kind: NodeKind, permissions: UInt32,
        deviceNumber: UInt64, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        // Device 0:0 is none: it says that nothing is there (whiteouts of an overlay).
        guard kind != .blockDevice, kind != .characterDevice || deviceNumber == 0 else {
            reply(.failure(Failure(.notPermitted, "a view has no devices")))
            return nil
        }
        return make(name, kind, in: parent, "makeNode", caller, reply: reply) { [self] folder, caller, done in
            tree.makeNode(
                name, in: folder, kind: kind, permissions: permissions.withoutSetID,
                deviceNumber: deviceNumber, caller: caller, reply: done)
        } shown: { [self] in shown($0, reach: $1) } undone: { [self] in undo($0, name, caller) }
    }

    package func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8], caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if ReferenceRecord(target: target) != nil {
            policy.refused("makeLink", parent)
            reply(.failure(Failure(.notPermitted, "references are made by the launch's socket")))
            return nil
        }
        return make(name, .link, in: parent, "makeLink", caller, reply: reply) { [self] folder, caller, done in
            tree.makeLink(name, in: folder, target: target, caller: caller, reply: done)
        } shown: { [self] in shown($0, reach: $1) } undone: { [self] in undo($0, name, caller) }
    }

    private func undo(_ made: EntryReply, _ name: FileName, _ caller: Caller) {
        tree.forget(made.attributes.node, lookups: 1)
        _ = tree.unlink(name, in: launch.folders.scratch, caller: through(caller)) { _ in }
    }

    /// `undone`: what was made in the scratch folder did not become the document it is called by.
    private func make<Value: Sendable, Shown: Sendable>(
        _ name: FileName, _ kind: NodeKind, in parent: NodeID, _ operation: StaticString,
        _ caller: Caller, reply: @escaping Reply<Shown>,
        _ body: (NodeID, Caller, @escaping Reply<Value>) -> ParkedRequest?,
        shown: @escaping @Sendable (Value, Reach) -> Shown,
        undone: @escaping @Sendable (Value) -> Void
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let (folder, reach) = try folderToMakeIn(parent, operation)
            let document = folder == launch.folders.scratch ? try given.documentToSave(name) : nil
            if let document { try given.demandSaving(document, kind, operation) }
            return body(folder, through(caller)) { [self] result in
                guard case .success(let made) = result else {
                    return reply(result.map { shown($0, reach) })
                }
                tell(of: .appeared(TreePlace(name, in: folder)))
                guard let document else { return reply(.success(shown(made, reach))) }
                given.save(name, as: document, caller) { saved in
                    if case .failure = saved { undone(made) }
                    reply(saved.map { shown(made, reach) })
                }
            }
        }
    }

    /// What a program makes in `granted` goes to its scratch folder.
    func folderToMakeIn(
        _ parent: NodeID, _ operation: StaticString
    ) throws(Failure) -> (NodeID, Reach) {
        switch ViewNode(parent) {
        case .root:
            policy.refused(operation, parent)
            throw Failure(.refused, "nothing is made beside what the application has")
        case .granted:
            let scratch = launch.folders.scratch
            return (scratch, try demand(.readWrite, of: scratch, operation))
        case .tree(let folder): return (folder, try demand(.readWrite, of: folder, operation))
        }
    }

    private func shown(_ made: CreateReply, _ reach: Reach, isWritable: Bool) -> CreateReply {
        let node = made.entry.attributes.node
        return CreateReply(
            entry: shown(made.entry, reach: reach),
            opened: opened(made.opened, node, isWritable: isWritable))
    }

    /// A hard link stays below what made its file reachable: it would outlive the grant elsewhere.
    package func addName(
        _ name: FileName, in parent: NodeID, to node: NodeID, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            guard case .tree(let node) = ViewNode(node) else {
                throw Failure(.notPermitted, "a folder has one name only")
            }
            let source = try demand(.readWrite, of: node, "addName")
            let (folder, reach) = try folderToMakeIn(parent, "addName")
            let isScratch = folder == launch.folders.scratch
            if isScratch ? try given.documentToSave(name) != nil : source.root != reach.root {
                policy.refused("addName", node)
                throw Failure(.crossDevice, "a second name would be outside what was granted")
            }
            return tree.addName(name, in: folder, to: node, caller: through(caller)) { [self] in
                if case .success = $0 { tell(of: .appeared(TreePlace(name, in: folder))) }
                reply($0.map { shown($0, reach: isScratch ? source : reach) })
            }
        }
    }

    // MARK: Removing and moving

    package func unlink(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if ViewNode(parent) == .granted, let document = given.root(name) {
            return given.hide(document, "unlink", reply: reply)
        }
        return remove(name, in: parent, "unlink", reply: reply) { [self] folder, done in
            tree.unlink(name, in: folder, caller: through(caller), reply: done)
        }
    }

    package func removeFolder(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if ViewNode(parent) == .granted, given.root(name) != nil {
            reply(.failure(Failure(.busy, "'\(name.display)' was granted")))
            return nil
        }
        return remove(name, in: parent, "removeFolder", reply: reply) { [self] folder, done in
            tree.removeFolder(name, in: folder, caller: through(caller), reply: done)
        }
    }

    private func remove(
        _ name: FileName, in parent: NodeID, _ operation: StaticString,
        reply: @escaping Reply<Void>,
        _ body: (NodeID, @escaping Reply<Void>) -> ParkedRequest?
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let (folder, _) = try folderToMakeIn(parent, operation)
            let gone = try node(named: name, in: folder)
            return body(folder) { [self] result in
                if case .success = result, let gone {
                    tell(of: .gone(TreePlace(name, in: folder), gone))
                }
                reply(result)
            }
        }
    }

    package func rename(
        _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID,
        flags: RenameFlags, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let (from, source) = try folderToMakeIn(parent, "rename")
            let (to, target) = try folderToMakeIn(newParent, "rename")
            // Programs copy what cannot be renamed, and a copy is what they may make of it.
            guard source.root == target.root else {
                throw Failure(.crossDevice, "a rename stays within what was granted")
            }
            if ViewNode(parent) == .granted, ViewNode(newParent) == .granted {
                return try given.rename(name, to: newName, flags, caller, reply: reply)
            }
            let moved = try node(named: name, in: from)
            return tree.rename(
                name, in: from, to: newName, in: to, flags: flags, caller: through(caller)
            ) { [self] result in
                if case .success = result, let moved {
                    tell(
                        of: .moved(
                            moved.id, from: TreePlace(name, in: from),
                            to: TreePlace(newName, in: to)))
                }
                reply(result)
            }
        }
    }

    package func linkTarget(of node: NodeID) throws(Failure) -> [UInt8] {
        guard case .tree(let node) = ViewNode(node) else {
            throw Failure(.invalid, "it is no link")
        }
        try demand(.read, of: node, "linkTarget")
        let roots = roots
        return try tree.linkTargets.inView.target(of: try tree.known(node)) { node throws(Failure) in
            try index.read { transaction throws(Failure) in try roots.path(of: node, transaction) }
        }
    }

    func node(named name: FileName, in folder: NodeID) throws(Failure) -> Node? {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: folder, named: name) else { return nil }
            return try transaction.node(entry.node)
        }
    }

    /// The main mount's kernel remembers names for long, and those who watch there hear of it.
    func tell(of change: TreeChange) {
        switch change {
        case .appeared(let place), .gone(let place, _):
            tree.entryChanged(in: place.parent, named: place.name)
        case .moved(_, let from, let to):
            tree.entryChanged(in: from.parent, named: from.name)
            tree.entryChanged(in: to.parent, named: to.name)
        case .modified(let node, let content): tree.nodeChanged(node, content: content)
        }
        tree.echoes.add([change], by: launch.number)
    }
}
