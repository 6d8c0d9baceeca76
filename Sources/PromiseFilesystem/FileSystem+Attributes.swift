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
        return NodeAttributes(
            node: node.id, kind: node.kind, permissions: node.mode, links: node.linkCount, owner: node.owner, group: node.group,
            size: node.kind == .folder ? 4096 : size, blocks: blocks(of: node, size: size, localBytes: localBytes),
            deviceNumber: node.device, accessTime: node.accessTime, modificationTime: modification, changeTime: change)
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
        do throws(Failure) {
            if let size = changes.size { try resize(id, to: size) }
            let answer: AttributesReply = try index.write { transaction throws(Failure) in
                guard var node = try transaction.node(id) else { throw Failure(.stale, "the file is gone") }
                let before = Metadata(node)
                try apply(changes, to: &node, by: caller, transaction)
                try transaction.update(node)
                if differs(Metadata(node), before, kind: node.kind) || node.modificationTime != before.modificationTime {
                    try markPending(namesOf: id, transaction)
                    if let entry = try transaction.entries(of: id).first {
                        try transaction.record(.modified, node: id, parent: entry.parent, name: entry.name)
                    }
                }
                if changes.modificationTime != nil { try stampContent(of: node) }
                return attributesReply(for: node)
            }
            engine.notePending()
            reply(.success(answer))
        } catch {
            reply(.failure(error))
        }
        return nil
    }

    private func apply(
        _ changes: AttributeChanges, to node: inout Node, by caller: Caller, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let now = clock.now()
        if let permissions = changes.permissions {
            node.mode = permissions
            try chmodAccessControl(of: node, transaction)
        }
        let groupBefore = node.group
        if let owner = changes.owner { node.owner = owner }
        if let group = changes.group { node.group = group }
        let changesOwner = changes.owner != nil || changes.group != nil
        // Of everything but folders (chown(2)): a fifo that lends a group is as wrong as a program.
        if node.kind != .folder, changes.clearsSetID || changesOwner && changes.permissions == nil {
            node.clearSetID(isMember: node.lendsOnlyItsGroup && caller.isMember(of: groupBefore))
        }
        if let time = changes.accessTime { node.accessTime = time.resolved(now) }
        if let time = changes.modificationTime { node.modificationTime = time.resolved(now) }
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

    /// Cuts or grows a file. Nothing is fetched: what is cut away is not needed, what is added reads as zero.
    func resize(_ id: NodeID, to size: UInt64) throws(Failure) {
        guard size < 1 << 62 else { throw Failure(.tooLarge, "a file cannot be that large") }
        guard let node = try index.read({ transaction throws(Failure) in try transaction.node(id) }) else {
            throw Failure(.stale, "the file is gone")
        }
        if node.kind == .folder { throw Failure(.isFolder, "it is a folder") }
        guard node.kind == .file else { throw Failure(.invalid, "it is not a regular file") }
        if node.content == .whole {
            try resizeFile(node, to: size, becomesWhole: true, ranges: nil)
        } else if size == 0 {
            try empty(node)
        } else {
            let ranges = try engine.hydrator.resize(id, to: size)
            try resizeFile(node, to: size, becomesWhole: ranges == nil, ranges: ranges)
        }
    }

    /// The file that writers have open, or the same opened again.
    func contentFile(of node: Node) throws(Failure) -> SharedDescriptor {
        if let file = opens.writableFile(of: node.id) { return file }
        return SharedDescriptor(try content.open(node.id, node.generation))
    }

    /// What a placeholder held is not wanted any more.
    private func empty(_ node: Node) throws(Failure) {
        engine.hydrator.discard(node.id, because: Failure(.stale, "the file was truncated"))
        try resizeFile(node, to: 0, becomesWhole: true, ranges: nil)
    }

    private func resizeFile(_ before: Node, to size: UInt64, becomesWhole: Bool, ranges: ByteRangeSet?) throws(Failure) {
        var isCut = false
        do throws(Failure) {
            try index.writeFreeing { transaction throws(Failure) in
                try resizeFile(before.id, to: size, becomesWhole: becomesWhole, ranges: ranges, &isCut, transaction)
            }
        } catch {
            // The caller is told that it failed, but what is there must be what the index says.
            if isCut { noteSize(of: before.id) }
            throw error
        }
        engine.notePending()
    }

    private func resizeFile(
        _ id: NodeID, to size: UInt64, becomesWhole: Bool, ranges: ByteRangeSet?, _ isCut: inout Bool,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard var node = try transaction.node(id) else { throw Failure(.stale, "the file is gone") }
        let file: SharedDescriptor
        let isSameFile = node.content != .absent
        if node.content == .absent {
            node.generation = node.generation.next
            file = SharedDescriptor(try content.create(node.id, node.generation))
        } else {
            file = try contentFile(of: node)
        }
        do throws(SystemError) {
            try truncate(file.number, to: size, label: "content.truncate")
            isCut = isSameFile
            let status = try FileStatus.of(descriptor: file.number, label: "content.truncate.status")
            node.modificationTime = status.modificationTime
            node.changeTime = status.changeTime
            node.localBytes = status.blocks * 512
        } catch {
            throw Failure(error)
        }
        node.size = size
        node.edits += 1
        node.isDurable = false
        node.content = becomesWhole ? .whole : .partial
        try transaction.setRanges(of: node.id, to: becomesWhole ? ByteRangeSet() : ranges ?? ByteRangeSet())
        try transaction.cutHoles(of: node.id, to: size)
        try transaction.update(node)
        try markPending(namesOf: node.id, transaction)
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
