import Logging
import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// open and release: where a file's content comes from, and what became of it.

extension FileSystem {
    package func open(
        _ id: NodeID, _ request: OpenRequest, caller: Caller, reply: @escaping Reply<OpenReply>
    ) -> ParkedRequest? {
        let isOfLocks = connection.withLock { $0?.isOfLocks(caller) } ?? false
        let request = isOfLocks ? request.forLocks : request
        if let answer = echoed(openingBy: caller) {
            reply(.success(answer))
            return nil
        }
        if caller.isResent, let known = opens.takeInherited(caller.request) {
            reply(.success(OpenReply(handle: known.handle, backing: known.backing, keepsCache: true)))
            return nil
        }
        if request.isWritable || request.truncates,
            case .taken(let parked) = turn(
                for: .writing(id), caller, reply: reply, again: { [self] in open(id, request, caller: caller, reply: reply) })
        {
            return parked
        }
        engine.used?.note(id)
        // Announced before the node is read: from here on the engine does not replace or evict the content.
        opens.announce(id)
        do throws(Failure) {
            guard let node = try index.read({ transaction throws(Failure) in try transaction.node(id) }) else {
                throw Failure(.stale, "the file is gone")
            }
            guard node.kind == .file else { throw Failure(.invalid, "only files are opened") }
            // Also of who only reads (the kernel has asked for the right to write), as on a disk.
            if request.truncates {
                try resize(
                    id, to: 0, AttributeChanges(clearsSetID: request.clearsSetID), by: caller)
                if request.clearsSetID, node.mode & 0o6000 != 0 {
                    notifier?.invalidateAttributes(of: id)
                }
            } else if node.content == .whole {
                engine.neighbours.opened(id, isHere: true)
                if request.access == .read, !caller.isOfView, let granted = grantKnown(node, caller) {
                    reply(.success(granted))
                    return nil
                }
            } else if node.size <= engine.hydrator.sizes.smallFileMax, request.access != .write {
                // Who only writes may be about to truncate, or to set times (touch(1)): nothing is fetched for that.
                let program = try admit(caller, to: id, opening: request)
                engine.neighbours.opened(id, isHere: false)
                return openAfterHydration(id, request, caller, for: program, reply: reply)
            } else if request.access != .write {
                _ = try admit(caller, to: id, opening: request)
                engine.neighbours.opened(id, isHere: false)
            }
            reply(.success(try grant(id, request, caller, known: request.truncates ? nil : node)))
        } catch {
            withdraw(id)
            reply(.failure(error))
        }
        return nil
    }

    /// A small file is read by the kernel's pages: one that is read again costs no request but OPEN and RELEASE, while each
    /// read by passthrough makes the kernel ask for the attributes anew. Beyond this size the copy costs more than that.
    private static let pagesMax: UInt64 = 128 << 10

    /// Content that is here, opened for reading in a way that needs no look at the content file.
    private func grantKnown(_ node: Node, _ caller: Caller) -> OpenReply? {
        if node.size <= Self.pagesMax,
            let handle = opens.grantPages(node.id, generation: node.generation, request: caller.request)
        {
            return OpenReply(handle: handle, backing: nil, keepsCache: true)
        }
        return opens.grantRegistered(node.id, generation: node.generation, request: caller.request).map { known in
            OpenReply(handle: known.handle, backing: known.backing, keepsCache: true)
        }
    }

    /// Small files are brought here whole and opened then.
    private func openAfterHydration(
        _ id: NodeID, _ request: OpenRequest, _ caller: Caller, for program: String,
        reply: @escaping Reply<OpenReply>
    ) -> ParkedRequest? {
        if let failure = engine.connectionFailure {
            withdraw(id)
            reply(.failure(failure))
            return nil
        }
        let parked = parking.enter { [self] failure in
            withdraw(id)
            reply(.failure(failure))
        }
        let waiter = engine.hydrator.hydrate(id, for: program) { [self] result in
            guard parking.claim(parked) else { return }
            do throws(Failure) {
                try result.get()
                reply(.success(try grant(id, request, caller)))
            } catch {
                withdraw(id)
                reply(.failure(error))
            }
        }
        guard let waiter else { return nil }
        parking.onAbandon(parked) { [engine] in engine.hydrator.detach(waiter, from: id) }
        return parked
    }

    /// Opens the content file, in the mode in which the kernel has the node already. `known`: the node, if it was read since the
    /// open was announced and nothing was fetched or changed for it.
    func grant(
        _ id: NodeID, _ request: OpenRequest, _ caller: Caller, known: Node? = nil
    ) throws(Failure) -> OpenReply {
        var node = known
        var opened: SharedDescriptor?
        if node == nil { node = try index.read { transaction throws(Failure) in try transaction.node(id) } }
        if request.isWritable, node?.isOpenForWriting == false {
            node = try index.write { transaction throws(Failure) in
                guard var node = try transaction.node(id) else { return nil }
                // Before anybody can write: what changes its time from here on has written to it.
                if !node.isOpenForWriting, node.content == .whole, opens.writeFile(of: id) == nil {
                    let file = try contentFile(of: node)
                    try align(file, with: node)
                    opened = file
                }
                node.isOpenForWriting = true
                try transaction.update(node)
                removedRoom.noteWriter(transaction)
                return node
            }
        }
        guard let node else { throw Failure(.stale, "the file is gone") }
        let (file, served) = if let opened { (opened, node) } else { try fileToServe(node) }
        let isWhole = served.content == .whole
        if request.isWritable, !isWhole, opens.writeFile(of: id) == nil {
            try align(file, with: served)
        }
        // The kernel clears no set-ID bits on passthrough writes, so such files are written through the daemon.
        let lendsPrivilege = request.isWritable && node.mode & 0o6000 != 0
        let granted = opens.grant(
            id, access: request.access, file: file, generation: served.generation,
            backings: isWhole && !lendsPrivilege ? backings : nil, now: clock.now(), caller)
        // A mapping's writes pass the kernel's attributes by, and those that it has from before may be an hour old.
        if granted.backing != nil, request.access == .readWrite { notifier?.invalidateAttributes(of: id) }
        return OpenReply(handle: granted.handle, backing: granted.backing, keepsCache: true)
    }

    /// What the bytes are read from and written to, here or by the kernel, and the node that it is
    /// of: what was a placeholder when it was looked at may have been emptied since, and has another
    /// content file then.
    func fileToServe(_ known: Node) throws(Failure) -> (file: SharedDescriptor, node: Node) {
        var node = known
        while node.content != .whole {
            if let partial = try engine.hydrator.file(of: node.id) { return (partial, node) }
            guard let now = try self.known(node.id) else {
                throw Failure(.stale, "the file is gone")
            }
            node = now
        }
        return (try contentFile(of: node), node)
    }

    /// From here on the content file tells size and times, so it must start with the node's.
    private func align(_ file: SharedDescriptor, with node: Node) throws(Failure) {
        do throws(SystemError) {
            let status = try FileStatus.of(descriptor: file.number, label: "filesystem.align.status")
            if status.modificationTime != node.modificationTime {
                try setTimes(file.number, access: nil, modification: node.modificationTime, label: "filesystem.align.times")
            }
        } catch {
            throw Failure(error)
        }
    }

    // MARK: Closing

    /// An announced open came to nothing.
    func withdraw(_ id: NodeID) {
        opens.withdraw(id)
        // What the last close left to it, which took it for an open that may be for writing.
        if opens.isLeftMapped(id) { _ = linger(id) }
        if !opens.mayBeWritten(id), !opens.hasHandles(id), opens.writeFile(of: id) != nil {
            noteWrites(of: id, isClosing: true)
        }
        if !opens.isOpen(id), (try? known(id))?.isOpenForWriting == true { noteUnwritten(id) }
        settleIfUnused(id)
    }

    /// The last use of a file may have ended, also one that had to wait for the index: what was
    /// unlinked goes, and content that is never to stay here.
    func settleIfUnused(_ id: NodeID) {
        if !opens.isOpen(id), let node = try? known(id) {
            if node.linkCount == 0 { deleteIfNameless(id) }
            if node.pin == .onlineOnly { evictIfOnlineOnly(id) }
        }
        opens.forgetIfUnused(id)
    }

    /// The index says that it is being written to, and nobody got so far.
    private func noteUnwritten(_ id: NodeID) {
        do throws(Failure) {
            try index.writeFreeing { transaction throws(Failure) in
                guard !opens.isOpen(id), opens.writeFile(of: id) == nil,
                    var node = try transaction.node(id), node.isOpenForWriting
                else { return }
                node.isOpenForWriting = false
                try transaction.update(node)
            }
        } catch {
            // It is looked at by the next open or start.
            logger.warning(
                "an open that failed was not noted",
                metadata: ["node": "\(id)", "reason": "\(error.message)"])
        }
    }

    package func release(_ id: NodeID, handle: HandleID) {
        guard var closed = opens.close(handle, now: clock.now()) else { return }
        if closed.usesAreDue { engine.store(uses: opens.takeRecentUses()) }
        for backing in closed.releasedBackings { backings?.release(backing) }
        // Given back first: what is ours must not be taken for a mapping.
        closed.handle.file = nil
        let lingers = closed.isLast && closed.mayBeMapped && linger(id)
        // The last close looks again: at the last writer's an open may have been under way.
        if lingers || closed.isLastWriter || closed.isLast && opens.writeFile(of: id) != nil {
            noteWrites(of: id, isClosing: !lingers, countsDoubtful: true)
        }
        if closed.isLast {
            engine.hydrator.release(id)
            // Nearly always neither, which one look tells.
            let node = try? known(id)
            if node?.linkCount == 0 { deleteIfNameless(id) }
            if node?.pin == .onlineOnly { evictIfOnlineOnly(id) }
        }
        opens.forgetIfUnused(id)
    }

    /// Content that is never to stay here goes when nobody uses it; what is not uploaded yet goes when it is.
    private func evictIfOnlineOnly(_ id: NodeID) {
        workers.submit { [self] in
            do throws(Failure) {
                _ = try engine.evict(id, evenUsed: true)
            } catch {
                logger.warning("content could not be evicted", metadata: ["node": "\(id)", "reason": "\(error.message)"])
            }
        }
    }

    /// An unlinked file lives until its last close. One whose name others took lives on when it was written to.
    func deleteIfNameless(_ id: NodeID) {
        do throws(Failure) {
            var resurfaced: Resurfaced?
            let removed: Removed? = try index.writeFreeing { transaction throws(Failure) in
                resurfaced = nil
                guard let node = try transaction.node(id), node.linkCount == 0, !opens.isOpen(id) else { return nil }
                resurfaced = try resurface(node, transaction)
                if resurfaced != nil { return nil }
                return try trash.delete(node, transaction)
            }
            finish(removed)
            if let resurfaced { tell(of: resurfaced) }
        } catch {
            logger.warning("an unlinked file could not be deleted", metadata: ["node": "\(id)", "reason": "\(error.message)"])
        }
    }

    /// What is removed from the content store gives its room back at once.
    func contentRemoved(_ id: NodeID) {
        if let backing = opens.dropResting(id) { backings?.release(backing) }
    }
}
