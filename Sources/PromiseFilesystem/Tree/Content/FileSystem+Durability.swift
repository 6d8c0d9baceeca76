package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// fsync: the content file and the journal of the index, as far as either has anything to lose.

extension FileSystem {
    package func synchronize(
        _ id: NodeID, handle: HandleID, dataOnly: Bool, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if fsyncs.reachesProvider(id) {
            return fsyncs.synchronize(file: id, reply) { [self] () throws(Failure) in
                try makeDurable(id, dataOnly: dataOnly, isNoted: false)
            }
        }
        return whenDurable(reply) { [self] () throws(Failure) in try makeDurable(id, dataOnly: dataOnly) }
    }

    package func synchronizeFolder(_ id: NodeID, reply: @escaping Reply<Void>) -> ParkedRequest? {
        let body = { @Sendable [self] () throws(Failure) in try index.synchronize() }
        return fsyncs.reachesProvider(id) ? fsyncs.synchronize(folder: id, reply, body) : whenDurable(reply, body)
    }

    /// Answers when `body` has returned. Two changes of threads take as long as a fast disk's flush, so one caller at a time
    /// waits for the disk on the thread that serves it, which is never the only one. Not while a request is parked: its
    /// answer may have to be sent by this thread.
    private func whenDurable(
        _ reply: @escaping Reply<Void>, _ body: @escaping @Sendable () throws(Failure) -> Void
    ) -> ParkedRequest? {
        let attempt: @Sendable () -> Result<Void, Failure> = { Result { () throws(Failure) in try body() } }
        let isFree = parking.count == 0
        if isFree, isSynchronizing.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged {
            let result = attempt()
            isSynchronizing.store(false, ordering: .releasing)
            reply(result)
            return nil
        }
        // Only the disk is waited for, so nothing is there to interrupt.
        let parked = parking.enter { reply(.failure($0)) }
        workers.submit { [parking] in
            let result = attempt()
            if parking.claim(parked) { reply(result) }
        }
        return parked
    }

    /// Content first, then the index that names it. The next time only the content, while the index on the disk says that
    /// the file is being written to and has an edit that the provider does not: after a crash its content file tells the rest.
    /// `isNoted`: an edit that is known may stand for what was written after it.
    private func makeDurable(_ id: NodeID, dataOnly: Bool, isNoted: Bool = true) throws(Failure) {
        if isNoted, let file = opens.durablyWrittenFile(of: id), try hasUnsentEdit(id) {
            return try file.synchronize(dataOnly: dataOnly, label: "content.synchronize.again")
        }
        let written = opens.writeFile(of: id)
        if opens.hasWriters(id) { noteWrites(of: id, isClosing: false) }
        if let node = try known(id), node.kind == .file, node.content != .absent {
            let file = try contentFile(of: node)
            let fetched = engine.hydrator.unsynchronized(of: id)
            try index.synchronize(after: file.number) { () throws(Failure) in
                try file.synchronize(dataOnly: dataOnly, label: "content.synchronize")
            }
            engine.hydrator.synchronized(fetched, of: id)
            if node.version != nil, opens.hasWriters(id) ? !node.durability.hasBase : !node.durability.isWhole {
                try noteDurable(node)
                try index.synchronize()
            }
        } else {
            try index.synchronize()
        }
        if let written { opens.noteWritingDurable(id, written) }
    }

    /// `synced`: as it was before its content file was synchronized.
    private func noteDurable(_ synced: Node) throws(Failure) {
        try index.write { transaction throws(Failure) in
            try transaction.noteDurable(
                synced, isWrittenTo: opens.hasWriters(synced.id),
                unsynchronized: engine.hydrator.unsynchronized(of: synced.id))
        }
    }

    /// Not for a file that stays on this machine, which is nobody's to send.
    private func hasUnsentEdit(_ id: NodeID) throws(Failure) -> Bool {
        try index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id), node.isOpenForWriting, node.content == .whole,
                node.version == nil || node.durability.hasBase
            else { return false }
            for entry in try transaction.entries(of: id) where !entry.isExcluded {
                guard let identifier = entry.identifier, let agreed = try transaction.synced(identifier) else { continue }
                if agreed.edits == node.edits { return false }
            }
            return true
        }
    }
}

extension Transaction {
    /// The content file was synchronized. `synced`: the node before that. `unsynchronized`: what was
    /// fetched meanwhile, which does not count as here until it is on the disk, too.
    func noteDurable(
        _ synced: Node, isWrittenTo: Bool, unsynchronized: ByteRangeSet
    ) throws(Failure) {
        // What became whole meanwhile did so by bytes that may not be on the disk.
        guard var node = try node(synced.id), node.generation == synced.generation,
            node.version == synced.version, node.content == synced.content
        else { return }
        if node.content == .partial, !unsynchronized.isEmpty {
            try setRanges(of: node.id, to: try ranges(of: node.id).without(unsynchronized))
        }
        node.durability = node.edits == synced.edits && !isWrittenTo ? .whole : .begun
        try update(node)
    }
}

extension SharedDescriptor {
    /// fsync(2), or fdatasync(2), of a content file.
    func synchronize(dataOnly: Bool = false, label: StaticString) throws(Failure) {
        do throws(SystemError) {
            try PromiseSystem.synchronize(number, dataOnly: dataOnly, label: label)
        } catch {
            throw Failure(error)
        }
    }
}
