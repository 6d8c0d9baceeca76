import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// stat, chmod, chown, truncate, utimensat, statfs.

extension FileSystem {
    // MARK: Reading

    package func attributes(of id: NodeID, handle: HandleID?) throws(Failure) -> AttributesReply {
        let reply: AttributesReply? = try index.read { transaction throws(Failure) in
            try transaction.node(id).map(attributesReply)
        }
        engine.used?.note(id)
        if let reply { return reply }
        guard let ghost = references.withLock({ $0.ghosts[id] }) else { throw Failure(.stale, "the file is gone") }
        return attributesReply(for: ghost)
    }

    private func attributesReply(for node: Node) -> AttributesReply {
        AttributesReply(attributes(of: node), attributeLifetimeSeconds: attributeLifetime(of: node))
    }

    /// A node by its number, also one that was removed and that the kernel still names.
    func known(_ id: NodeID) throws(Failure) -> Node? {
        if let node = try index.read({ transaction throws(Failure) in try transaction.node(id) }) { return node }
        return references.withLock { $0.ghosts[id] }
    }

    func attributeLifetime(of node: Node) -> Double {
        node.isOpenForWriting ? FileSystem.writingLifetimeSeconds : FileSystem.lifetimeSeconds
    }

    /// While a program writes, size and times are the content file's: the kernel may be writing it without our knowing.
    /// Within the transaction that read the node (see `remember`).
    func attributes(of node: Node) -> NodeAttributes {
        var size = node.size
        var modification = node.modificationTime
        var change = node.changeTime
        var localBytes = node.localBytes
        // What is partial is written by the daemon alone, and what is fetched moves the content file's time.
        if node.isOpenForWriting, node.content == .whole, let file = opens.writeFile(of: node.id),
            let status = try? FileStatus.of(descriptor: file.number, label: "filesystem.attributes")
        {
            size = status.size
            modification = status.modificationTime
            change = max(change, status.changeTime)
            localBytes = status.blocks * 512
        }
        let attributes = NodeAttributes(
            node: node.id, kind: node.kind, permissions: node.mode, links: node.linkCount, owner: node.owner, group: node.group,
            size: node.kind == .folder ? 4096 : size, blocks: blocks(of: node, size: size, localBytes: localBytes),
            deviceNumber: node.device, accessTime: node.accessTime, modificationTime: modification, changeTime: change)
        return configuration.owners.applied(to: attributes)
    }

    /// Never 0 for a file with bytes, local or not: `tar -S` and `cp` take 0 for a file of nothing but zeros.
    private func blocks(of node: Node, size: UInt64, localBytes: UInt64) -> UInt64 {
        switch node.kind {
        case .folder: 8
        case .file where size > 0: max(localBytes / 512, 1)
        default: 0
        }
    }

    package func space() throws(Failure) -> FileSystemSpace {
        let block: UInt64 = 4096
        var (free, total) = content.space()
        if let quota = quota.withLock({ $0 }) { (free, total) = (min(free, quota.available), quota.total) }
        return FileSystemSpace(
            blockSize: UInt32(block), blocks: total / block, blocksFree: free / block, blocksAvailable: free / block,
            nodes: 1 << 40, nodesFree: 1 << 39)
    }

    // MARK: Changing

    package func setAttributes(
        of id: NodeID, handle: HandleID?, _ changes: AttributeChanges, caller: Caller, reply: @escaping Reply<AttributesReply>
    ) -> ParkedRequest? {
        if let answer = echoed(touching: id, by: caller) {
            reply(answer)
            return nil
        }
        // Whoever has it open has had his turn.
        if handle == nil,
            case .taken(let parked) = turn(
                for: changes.size == nil ? .changing(id) : .truncating(id), caller, reply: reply,
                again: { [self] in setAttributes(of: id, handle: handle, changes, caller: caller, reply: reply) })
        {
            return parked
        }
        do throws(Failure) {
            if let size = changes.size {
                reply(.success(try resize(id, to: size, changes, by: caller)))
            } else {
                reply(.success(try change(id, changes, by: caller)))
            }
        } catch {
            reply(.failure(error))
        }
        return nil
    }

    private func change(
        _ id: NodeID, _ changes: AttributeChanges, by caller: Caller
    ) throws(Failure) -> AttributesReply {
        let answer: AttributesReply? = try index.write { transaction throws(Failure) in
            // The time that tells what was written is about to be another one.
            if changes.modificationTime != nil { try noteOpenWrites(of: id, countsDoubtful: true, transaction) }
            guard var node = try transaction.node(id) else { return nil }
            try change(&node, changes, by: caller, transaction)
            if changes.modificationTime != nil { try stampContent(of: node) }
            return attributesReply(for: node)
        }
        guard let answer else { return try changeGhost(id, changes, by: caller) }
        engine.notePending()
        return answer
    }

    /// Of a removed folder that somebody has open, or works in: nobody else will see it.
    private func changeGhost(
        _ id: NodeID, _ changes: AttributeChanges, by caller: Caller
    ) throws(Failure) -> AttributesReply {
        guard var ghost = references.withLock({ $0.ghosts[id] }) else {
            throw Failure(.stale, "the file is gone")
        }
        apply(changes, to: &ghost, by: caller)
        references.withLock { $0.change(ghost) }
        return attributesReply(for: ghost)
    }

    /// All but the size.
    private func change(
        _ node: inout Node, _ changes: AttributeChanges, by caller: Caller,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        let before = Metadata(node)
        apply(changes, to: &node, by: caller)
        if changes.permissions != nil { try chmodAccessControl(of: node, transaction) }
        try transaction.update(node)
        guard
            differs(Metadata(node), before, kind: node.kind)
                || node.modificationTime != before.modificationTime
        else { return }
        try markPending(namesOf: node.id, transaction)
        if let entry = try transaction.entries(of: node.id).first {
            try transaction.record(.modified, node: node.id, parent: entry.parent, name: entry.name)
        }
    }

    private func apply(_ changes: AttributeChanges, to node: inout Node, by caller: Caller) {
        let now = clock.now()
        if let permissions = changes.permissions { node.mode = permissions }
        let groupBefore = node.group
        if let owner = changes.owner { node.owner = owner }
        if let group = changes.group { node.group = group }
        let changesOwner = changes.owner != nil || changes.group != nil
        // Of everything but folders (chown(2)): a fifo that lends a group is as wrong as a program.
        if node.kind != .folder, changes.clearsSetID || changesOwner && changes.permissions == nil {
            node.clearSetID(isMember: node.lendsOnlyItsGroup && caller.isMember(of: groupBefore))
        }
        if let time = changes.accessTime { node.accessTime = time.resolved(now) }
        if let time = changes.modificationTime { node.giveTime(time.resolved(now)) }
        node.changeTime = changes.changeTime ?? now
    }

    /// While somebody writes, the content file's times are the truth, so they are set there, too.
    func stampContent(of node: Node) throws(Failure) {
        guard let file = opens.writeFile(of: node.id) else { return }
        try stamp(file, node.modificationTime)
    }

    func stamp(_ file: SharedDescriptor, _ time: Timestamp) throws(Failure) {
        do throws(SystemError) {
            try setTimes(file.number, access: nil, modification: time, label: "filesystem.times")
        } catch {
            throw Failure(error)
        }
    }

    // MARK: Truncating

    /// Cuts or grows a file, and changes the attributes that are to change with it, or does
    /// neither. Nothing is fetched: what is cut away is not needed, what is added reads as zero.
    @discardableResult func resize(
        _ id: NodeID, to size: UInt64, _ changes: AttributeChanges, by caller: Caller
    ) throws(Failure) -> AttributesReply {
        guard size < 1 << 62 else { throw Failure(.tooLarge, "a file cannot be that large") }
        // Content may come, be made whole or go between the look and the change; then the next look
        // finds it so.
        for _ in 0..<8 {
            let found = try index.read { transaction throws(Failure) in try transaction.node(id) }
            guard let node = found else { throw Failure(.stale, "the file is gone") }
            if node.kind == .folder { throw Failure(.isFolder, "it is a folder") }
            guard node.kind == .file else { throw Failure(.invalid, "it is not a regular file") }
            var resizing = Resizing(id: id, size: size, changes: changes, caller: caller)
            // Of a placeholder that is emptied nothing is wanted any more: it gets another content
            // file.
            let isPlaceholder = node.content == .absent && size == 0
            if node.content != .whole, !isPlaceholder {
                resizing.claim = try engine.hydrator.claimSize(size, of: id)
            }
            resizing.isLarge = isLargeCut(of: node, to: size)
            if let reply = try resizeFile(&resizing) {
                if size == 0, node.content != .whole {
                    engine.hydrator.answerWaiters(of: id, resizing.generation)
                } else if resizing.claim != nil {
                    engine.hydrator.resized(id)
                }
                engine.notePending()
                return reply
            }
        }
        throw Failure(.busy, "the content of node \(id) keeps changing")
    }

    /// A change of size, and how far it has come.
    private struct Resizing {
        let id: NodeID
        let size: UInt64
        let changes: AttributeChanges
        let caller: Caller
        /// Of content that is on its way.
        var claim: ContentClaim?
        /// So much is cut off that nobody is to wait for the index meanwhile.
        var isLarge = false
        /// Of the content, before the change.
        var generation = Generation(0)
        /// The content file that the index names, and the size that it had.
        var file: SharedDescriptor?
        var sizeBefore: UInt64 = 0
        /// It has the new one.
        var isCut = false

        /// The content is as it was when this was begun.
        func fits(_ node: Node) -> Bool {
            switch node.content {
            case .whole: claim == nil
            case .partial: claim?.generation == node.generation
            case .absent: claim == nil && size == 0
            }
        }
    }

    /// The file that writers have open, or the same opened again.
    func contentFile(of node: Node) throws(Failure) -> SharedDescriptor {
        if let file = opens.writableFile(of: node.id) { return file }
        return SharedDescriptor(try content.open(node.id, node.generation))
    }

    /// Nil, and nothing has happened, when the content is not what it was.
    private func resizeFile(_ resizing: inout Resizing) throws(Failure) -> AttributesReply? {
        let (id, size) = (resizing.id, resizing.size)
        // From here on the engine does not replace or evict the content.
        if resizing.isLarge { opens.announce(id) }
        defer { if resizing.isLarge { withdraw(id) } }
        do throws(Failure) {
            try cutAhead(&resizing)
            let reply: AttributesReply? = try index.writeFreeing { transaction throws(Failure) in
                guard let node = try transaction.node(id) else {
                    throw Failure(.stale, "the file is gone")
                }
                return resizing.fits(node) ? try resizeFile(of: node, &resizing, transaction) : nil
            }
            if reply != nil {
                resizing.claim?.confirm(.resized(to: size))
            } else {
                takeBack(resizing)
            }
            return reply
        } catch {
            takeBack(resizing)
            throw error
        }
    }

    private func isLargeCut(of node: Node, to size: UInt64) -> Bool {
        attributes(of: node).blocks * 512 > size + configuration.cutWithIndexMax
    }

    /// A disk takes long to give much back: seconds where gigabytes are in memory. Until the index
    /// is told it is as if the kernel had written to the file.
    private func cutAhead(_ resizing: inout Resizing) throws(Failure) {
        guard resizing.isLarge, let node = try known(resizing.id), node.content != .absent,
            resizing.fits(node)
        else { return }
        let file = try contentFile(of: node)
        let before = try size(of: file)
        guard before > resizing.size else { return }
        do throws(SystemError) {
            try truncate(file.number, to: resizing.size, label: "content.cut")
        } catch {
            throw Failure(error)
        }
        (resizing.file, resizing.sizeBefore, resizing.isCut) = (file, before, true)
    }

    private func resizeFile(
        of before: Node, _ resizing: inout Resizing, _ transaction: borrowing Transaction
    ) throws(Failure) -> AttributesReply {
        let (changes, size) = (resizing.changes, resizing.size)
        var node = before
        resizing.generation = before.generation
        // First, as what fails here has cut nothing.
        try change(&node, changes, by: resizing.caller, transaction)
        if node.content == .absent {
            node.generation = node.generation.next
            node.durability = .unknown
            try cut(
                SharedDescriptor(try content.create(node.id, node.generation)), of: &node, &resizing
            )
        } else {
            let file = try contentFile(of: node)
            // Not when it was cut already, and the index has asked for a second try.
            if resizing.file == nil {
                resizing.sizeBefore = try self.size(of: file)
                resizing.file = file
            }
            try cut(file, of: &node, &resizing)
        }
        node.size = size
        node.edits += 1
        node.noteWritten()
        node.content = size > 0 && resizing.claim != nil ? .partial : .whole
        let ranges = node.content == .whole
            ? nil : resizing.claim?.ranges(after: .resized(to: size), of: node)
        try transaction.setRanges(of: node.id, to: ranges ?? ByteRangeSet())
        try transaction.cutHoles(of: node.id, to: size)
        try transaction.update(node)
        try markPending(namesOf: node.id, transaction)
        if changes.modificationTime != nil { try stampContent(of: node) }
        return attributesReply(for: node)
    }

    private func cut(
        _ file: SharedDescriptor, of node: inout Node, _ resizing: inout Resizing
    ) throws(Failure) {
        // It was cut before; who has moved the end since came first.
        let isDone = resizing.isCut && (try? self.size(of: file)) == resizing.size
        do throws(SystemError) {
            if !isDone { try truncate(file.number, to: resizing.size, label: "content.truncate") }
        } catch {
            throw Failure(error)
        }
        resizing.isCut = true
        // It is cut, which a look that fails does not undo.
        let status = try? FileStatus.of(descriptor: file.number, label: "content.truncate.status")
        let (changes, now) = (resizing.changes, clock.now())
        if changes.modificationTime == nil { node.modificationTime = status?.modificationTime ?? now }
        if changes.changeTime == nil { node.changeTime = max(node.changeTime, status?.changeTime ?? now) }
        if let status { node.localBytes = status.blocks * 512 }
    }

    private func size(of file: SharedDescriptor) throws(Failure) -> UInt64 {
        do throws(SystemError) {
            return try FileStatus.of(descriptor: file.number, label: "content.truncate.before").size
        } catch {
            throw Failure(error)
        }
    }

    /// The caller is told that it failed. What was added goes again. What was cut off cannot come
    /// back, and what is there must be what the index says.
    private func takeBack(_ resizing: Resizing) {
        // A file that the index does not name may have any size.
        guard resizing.isCut, let file = resizing.file else {
            resizing.claim?.withdraw()
            return
        }
        let (size, before) = (resizing.size, resizing.sizeBefore)
        if size >= before,
            (try? truncate(file.number, to: before, label: "content.truncate.back")) != nil
        {
            resizing.claim?.withdraw()
        } else {
            resizing.claim?.confirm(.resized(to: size))
            noteSize(of: resizing.id)
        }
    }
}

extension AttributeChanges.Time {
    func resolved(_ now: Timestamp) -> Timestamp {
        switch self {
        case .now: now
        case .at(let time): time
        }
    }
}

extension Node {
    /// A folder's time changes with what is in it, on each side at another moment: what a program gives it is told.
    fileprivate mutating func giveTime(_ time: Timestamp) {
        modificationTime = time
        if kind == .folder { edits += 1 }
    }
}
