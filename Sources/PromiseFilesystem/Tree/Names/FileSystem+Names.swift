import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// Looking names up and making new ones.

extension FileSystem {
    // MARK: Lookup

    package func lookup(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<LookupReply>
    ) -> ParkedRequest? {
        if let answer = echoed(lookup: name, in: parent, by: caller) {
            reply(answer)
            return nil
        }
        engine.used?.note(parent)
        return withListing(of: parent, reply: reply) { [self] () throws(Failure) in
            let (isListed, found): (Bool, EntryReply?) = try index.read { transaction throws(Failure) in
                let isListed = try folder(parent, transaction).isPopulated
                guard let entry = try transaction.entry(in: parent, named: name) else { return (isListed, nil) }
                return (isListed, try transaction.node(entry.node).map(remember))
            }
            if let found { return .found(found) }
            return isListed ? .absent(lifetimeSeconds: FileSystem.lifetimeSeconds) : nil
        }
    }

    package func entry(of id: NodeID) throws(Failure) -> EntryReply {
        try index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id) else { throw Failure(.notFound, "there is no such node any more") }
            return remember(node)
        }
    }

    package func parentEntry(of folder: NodeID) throws(Failure) -> EntryReply {
        try entry(of: parentFolder(of: folder))
    }

    package func forget(_ node: NodeID, lookups: UInt64) {
        references.withLock { $0.forget(node, lookups: lookups) }
    }

    /// The reply that gives the kernel one more reference to a node. Within the transaction that read the node: a node that
    /// is being written is only right together with its content file, until the last close has been noted.
    func remember(_ node: Node) -> EntryReply {
        references.withLock { $0.lookups[node.id, default: 0] += 1 }
        return entryReply(for: node)
    }

    func entryReply(for node: Node) -> EntryReply {
        let lifetime = attributeLifetime(of: node)
        return EntryReply(
            attributes(of: node), entryLifetimeSeconds: FileSystem.lifetimeSeconds, attributeLifetimeSeconds: lifetime)
    }

    // MARK: Making

    package func create(
        _ name: FileName, in parent: NodeID, permissions: UInt32, opening: OpenRequest, caller: Caller,
        reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        return inTurn(for: .making(name, in: parent), caller, listing: { parent }, reply: reply) {
            [self] () throws(Failure) in
            if let made = try recreate(name, in: parent, opening, caller) { return made }
            guard let (node, file) = try makeFile(name, in: parent, permissions, isOpen: opening.isWritable, caller) else {
                return nil
            }
            return opened(node, file, opening, caller)
        }
    }

    /// What `create` answers with, once the file is there.
    func opened(_ node: Node, _ file: SharedDescriptor, _ opening: OpenRequest, _ caller: Caller) -> CreateReply {
        opens.announce(node.id)
        let granted = opens.grant(
            node.id, access: opening.access, file: file, generation: node.generation, backings: backings,
            now: node.modificationTime, caller)
        let opened = OpenReply(handle: granted.handle, backing: granted.backing, keepsCache: true)
        return CreateReply(entry: remember(node), opened: opened)
    }

    package func makeNode(
        _ name: FileName, in parent: NodeID, kind: NodeKind, permissions: UInt32, deviceNumber: UInt64, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if let answer = echoed(making: name, in: parent, by: caller) {
            reply(answer)
            return nil
        }
        return inTurn(for: .making(name, in: parent), caller, listing: { parent }, reply: reply) {
            [self] () throws(Failure) in
            if isCarriedOut(caller) { return try entry(name, in: parent) }
            if kind == .file {
                return try makeFile(name, in: parent, permissions, isOpen: false, caller).map { remember($0.0) }
            }
            let fresh = Node(id: .root, kind: kind, mode: permissions, owner: caller.user, group: caller.group, time: clock.now())
            return try make(fresh, name, in: parent, caller) { node, _ throws(Failure) in node.device = deviceNumber }
        }
    }

    package func makeFolder(
        _ name: FileName, in parent: NodeID, permissions: UInt32, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if let answer = echoed(making: name, in: parent, by: caller) {
            reply(answer)
            return nil
        }
        return inTurn(for: .making(name, in: parent), caller, listing: { parent }, reply: reply) {
            [self] () throws(Failure) in
            let fresh = Node(
                id: .root, kind: .folder, mode: permissions, owner: caller.user, group: caller.group, time: clock.now())
            return try make(fresh, name, in: parent, caller) { node, _ throws(Failure) in node.isPopulated = true }
        }
    }

    package func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8], caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if let answer = echoed(making: name, in: parent, by: caller) {
            reply(answer)
            return nil
        }
        return inTurn(for: .making(name, in: parent), caller, listing: { parent }, reply: reply) {
            [self] () throws(Failure) in
            let fresh = Node(
                id: .root, kind: .link, mode: 0o777, owner: caller.user, group: caller.group, size: UInt64(target.count),
                time: clock.now())
            return try make(fresh, name, in: parent, caller) { node, _ throws(Failure) in node.target = target }
        }
    }

    private func make(
        _ fresh: Node, _ name: FileName, in parent: NodeID, _ caller: Caller,
        _ prepare: (inout Node, borrowing Transaction) throws(Failure) -> Void
    ) throws(Failure) -> EntryReply? {
        if isCarriedOut(caller) { return try entry(name, in: parent) }
        let made: Node? = try carryOut(caller) { transaction throws(Failure) in
            let folder = try folder(parent, transaction)
            guard folder.isPopulated else { return nil }
            var node = fresh
            try prepare(&node, transaction)
            return try enter(node, name, in: folder, caller, transaction)
        }
        guard let made else { return nil }
        succession.follow(to: made.id)
        engine.notePending()
        return remember(made)
    }

    /// A new empty file with its content file; nil when the folder has to be listed first.
    private func makeFile(
        _ name: FileName, in parent: NodeID, _ permissions: UInt32, isOpen: Bool, _ caller: Caller
    ) throws(Failure) -> (Node, SharedDescriptor)? {
        var file: SharedDescriptor?
        var spare: SpareFiles.Spare?
        do throws(Failure) {
            let made: Node? = try carryOut(caller) { transaction throws(Failure) in
                let folder = try folder(parent, transaction)
                guard folder.isPopulated else { return nil }
                var fresh = Node(
                    id: .root, kind: .file, mode: permissions, owner: caller.user, group: caller.group, time: clock.now(),
                    content: .whole)
                fresh.isOpenForWriting = isOpen
                if isOpen { removedRoom.noteWriter(transaction) }
                spare = spares.take()
                var node = try enter(fresh, name, in: folder, as: spare, caller, transaction)
                if let spare { file = spare.file } else { file = try makeContent(of: &node, transaction) }
                return node
            }
            guard let made, let file else { return nil }
            succession.follow(to: made.id)
            engine.notePending()
            return (made, file)
        } catch {
            // Its number is not used again.
            if let spare { engine.remover.remove(spare.node, Generation(0)) }
            throw error
        }
    }

    /// Inside the transaction that inserts the node: when this fails nothing is entered, and a file without a row is rubbish.
    func makeContent(of node: inout Node, _ transaction: borrowing Transaction) throws(Failure) -> SharedDescriptor {
        let start = clock.uptime()
        let created = SharedDescriptor(try content.create(node.id, node.generation))
        spares.note(making: clock.uptime() - start)
        do throws(SystemError) {
            // Times as the content file has them, so that closing it unwritten shows no change.
            let status = try FileStatus.of(descriptor: created.number, label: "filesystem.create")
            node.modificationTime = status.modificationTime
            node.changeTime = status.modificationTime
        } catch {
            throw Failure(error)
        }
        try transaction.update(node)
        return created
    }

    /// Enters a new node under a name, as the same document that was there before if the provider still has one of that name.
    /// `spare`: its content file, which is given the node's time, so that closing it unwritten shows no change.
    func enter(
        _ fresh: Node, _ name: FileName, in folder: Node, as spare: SpareFiles.Spare? = nil, _ caller: Caller,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Node {
        if folder.linkCount == 0 { throw Failure(.notFound, "the folder was removed") }
        if try transaction.entry(in: folder.id, named: name) != nil { throw Failure(.exists, "the name is taken") }
        var node = fresh
        let inherited = try inherit(from: folder, into: &node, caller, transaction)
        let isMarked = node.kind == .file && exclusion.marks.isLeft(TreePlace(name, in: folder.id), at: clock.now())
        let isExcluded = try isMarked ? true : exclusion.covers(name, node.kind, in: folder.id, transaction)
        let adopted = isExcluded ? nil : try succession.adoptable(name, node.kind, in: folder.id, transaction)
        if let adopted {
            node.succeed(adopted.edits)
            if let pin = adopted.pin { node.pin = pin }
        }
        if let spare { try stamp(spare.file, node.modificationTime) }
        node = try transaction.insert(node, as: spare?.node)
        for (attribute, value) in inherited { try transaction.setAttribute(attribute, of: node.id, to: value) }
        if isMarked { try exclusion.mark(node.id, node.kind, transaction) }
        let place = TreePlace(name, in: folder.id)
        let entry = try succession.name(node.id, at: place, as: adopted, isExcluded: isExcluded, transaction)
        if let item = adopted?.item { try markAdopted(item, transaction) }
        try touch(folder, subfolders: node.kind == .folder ? 1 : 0, transaction)
        try markPending(entry, transaction)
        return node
    }

    /// What a new node has from its folder; returns the attributes to set once it is inserted.
    func inherit(
        from folder: Node, into node: inout Node, _ caller: Caller, _ transaction: borrowing Transaction
    ) throws(Failure) -> [([UInt8], [UInt8])] {
        if folder.mode & 0o2000 != 0 {
            node.group = folder.group
            if node.kind == .folder { node.mode |= 0o2000 }
        }
        node.pin = folder.pin
        return try inheritAccessControl(from: folder, into: &node, caller, transaction)
    }

    /// It is not to be deleted any more. Others may have put something into a folder since it was removed here.
    func markAdopted(_ item: Item, _ transaction: borrowing Transaction) throws(Failure) {
        try transaction.deletePending(.deletion(item.identifier))
        if item.kind == .folder { engine.noteAdopted(item.identifier) }
    }

    // MARK: Hard links

    package func addName(
        _ name: FileName, in parent: NodeID, to id: NodeID, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        return inTurn(for: .making(name, in: parent), caller, listing: { parent }, reply: reply) {
            [self] () throws(Failure) in
            if isCarriedOut(caller) { return try entry(name, in: parent) }
            let linked: EntryReply? = try carryOut(caller) { transaction throws(Failure) in
                let folder = try folder(parent, transaction)
                guard folder.isPopulated else { return nil }
                // A file without a name gets its first: the kernel lets this through for one that O_TMPFILE made.
                guard var node = try transaction.node(id), node.linkCount > 0 || opens.isOpen(id) else {
                    throw Failure(.notFound, "the file was removed")
                }
                if node.kind == .folder { throw Failure(.notPermitted, "a folder has one name only") }
                try trash.forget(node, transaction)
                if node.linkCount >= 65_000 { throw Failure(.tooManyLinks, "the file has 65,000 names already") }
                if try transaction.entry(in: parent, named: name) != nil { throw Failure(.exists, "the name is taken") }
                let isExcluded = try exclusion.covers(secondName: name, of: node, in: parent, transaction)
                let isFirst = node.linkCount == 0 && !isExcluded
                let adopted = isFirst ? try succession.adoptable(name, node.kind, in: parent, transaction) : nil
                if let adopted {
                    node.succeed(adopted.edits)
                    if let pin = adopted.pin { node.pin = pin }
                }
                node.linkCount += 1
                node.changeTime = clock.now()
                try transaction.update(node)
                let place = TreePlace(name, in: parent)
                let entry = try succession.name(id, at: place, as: adopted, isExcluded: isExcluded, transaction)
                if let item = adopted?.item { try transaction.deletePending(.deletion(item.identifier)) }
                try touch(folder, transaction)
                try markPending(entry, transaction)
                return remember(node)
            }
            guard let linked else { return nil }
            opens.noteRenamed(id)
            succession.follow(to: id)
            engine.notePending()
            return linked
        }
    }

    package func linkTarget(of id: NodeID) throws(Failure) -> [UInt8] {
        try linkTargets.target(of: try known(id))
    }

    package func ask(_ what: LinkQuestion, of id: NodeID, _ caller: Caller, reply: @escaping LinkReply) -> ParkedRequest? {
        linkTargets.answer(what, parking, caller, reply) { () throws(Failure) in try known(id) }
    }

    package var linkTargets: LinkTargets { LinkTargets(index: index, notifier: notifier, memory: configuration.references) }
}
