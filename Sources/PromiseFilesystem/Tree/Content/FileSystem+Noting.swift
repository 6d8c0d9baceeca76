import Glibc
import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// Noticing what was written: the kernel writes content files without telling us.

extension FileSystem {
    /// The kernel writes without telling us: the content file's size and time say whether it did.
    ///
    /// A write within the clock's granularity of the time before it cannot be told from none, and counts as one at a `close`.
    func noteWrites(of id: NodeID, isClosing: Bool) {
        noteWrites(of: id, isClosing: isClosing, countsDoubtful: isClosing)
    }

    /// `countsDoubtful`: as at a close. `isCertain`: it was written to, whatever size and time say.
    func noteWrites(of id: NodeID, isClosing: Bool, countsDoubtful: Bool, isCertain: Bool = false) {
        // Perhaps through a mapping, of which the kernel's attributes know nothing; everything else makes it ask again.
        var hasMovedTimesAlone = false
        // Of an attempt that the index refused: on a full disk there is a second one.
        var ended: SharedDescriptor?
        do throws(Failure) {
            // All of it inside the transaction: a change of times must not come between looking and storing. What was written
            // must be noted also on a full disk.
            try index.writeFreeing { transaction throws(Failure) in
                guard let file = opens.writeFile(of: id) ?? ended, var node = try transaction.node(id) else { return }
                let found = try WrittenFile(file, since: opens.writingSince(id), label: "filesystem.note")
                let isStillWritten = !isClosing || opens.mayBeWritten(id)
                let isVisible = node.content == .whole
                let isEdited =
                    isVisible
                    && (isCertain || found.hasMoved(from: node) || countsDoubtful && found.isDoubtful(of: node))
                hasMovedTimesAlone = isVisible && found.status.size == node.size && found.hasMoved(from: node)
                if isEdited { node.take(found.status) }
                node.isOpenForWriting = isStillWritten
                try transaction.update(node)
                if !isStillWritten {
                    ended = file
                    opens.endWriting(id)
                }
                if isEdited && node.linkCount > 0 {
                    try markPending(namesOf: id, transaction)
                    if let entry = try transaction.entries(of: id).first {
                        try transaction.record(.modified, node: id, parent: entry.parent, name: entry.name)
                    }
                }
            }
            if hasMovedTimesAlone { notifier?.invalidateAttributes(of: id) }
            engine.notePending()
        } catch {
            logger.error("writes could not be noted", metadata: ["node": "\(id)", "reason": "\(error.message)"])
            // Size and times are still the content file's to tell.
            if let ended { opens.resumeWriting(id, ended) }
            noteAgain(id)
        }
    }

    // MARK: Noticing again

    /// So that a failing disk is asked once a second and not all the time.
    private static let pauseMicroseconds: UInt32 = 1_000_000

    /// A content file was cut or grown, and storing that failed; of whole content, while nobody has
    /// it open.
    func noteSize(of id: NodeID) {
        var claim: ContentClaim?
        do throws(Failure) {
            // What is fetched meanwhile would move the end of the file that is looked at.
            if try known(id)?.content == .partial {
                claim = try engine.hydrator.claim(ByteRange(0, .max), of: id)
            }
            let size: UInt64? = try index.writeFreeing { transaction throws(Failure) in
                guard let node = try transaction.node(id), node.content != .absent,
                    let status = try content.status(id, node.generation),
                    // Of what was written without another size its time tells.
                    status.size != node.size || node.content == .whole && status.modificationTime != node.modificationTime
                else { return nil }
                try transaction.takeSize(of: id, status, now: clock.now())
                if node.content == .partial, let claim {
                    try transaction.setRanges(
                        of: id, to: claim.ranges(after: .resized(to: status.size), of: node))
                }
                return status.size
            }
            if let size { claim?.confirm(.resized(to: size)) } else { claim?.withdraw() }
            notifier?.invalidateAttributes(of: id)
            engine.notePending()
        } catch {
            claim?.withdraw()
            logger.error("a new size could not be noted", metadata: ["node": "\(id)", "reason": "\(error.message)"])
            noteAgain(id)
        }
    }

    /// Bytes of partial content were overwritten, and storing that failed: nothing that can be
    /// looked at later shows it.
    func noteEdit(of id: NodeID) {
        var claim: ContentClaim?
        defer { claim?.withdraw() }
        let nothing = ByteRange(0, 0)
        do throws(Failure) {
            if try known(id)?.content == .partial { claim = try? engine.hydrator.claim(nothing, of: id) }
            try index.writeFreeing { transaction throws(Failure) in
                guard var node = try transaction.node(id), node.content != .absent else { return }
                node.noteEdit(at: clock.now())
                if node.content == .whole { try stampContent(of: node) }
                if node.content == .partial, let claim {
                    try transaction.setRanges(of: id, to: claim.ranges(after: .written(nothing), of: node))
                }
                try transaction.update(node)
                try markPending(namesOf: id, transaction)
            }
            notifier?.invalidateAttributes(of: id)
            engine.notePending()
        } catch {
            logger.error(
                "an edit could not be noted",
                metadata: ["node": "\(id)", "reason": "\(error.message)"])
            noteAgain(id, isEdit: true)
        }
    }

    /// What the disk refused once it may take later; until then the index says that the file is being written to, or a crash
    /// makes the next start compare it.
    private func noteAgain(_ id: NodeID, isEdit: Bool = false) {
        let isFirst = unnoted.withLock { unnoted in
            defer { unnoted[id] = isEdit || unnoted[id] == true }
            return unnoted.isEmpty
        }
        guard isFirst else { return }
        workers.submit { [self] in
            usleep(FileSystem.pauseMicroseconds)
            let nodes = unnoted.withLock { unnoted in
                defer { unnoted = [:] }
                return unnoted
            }
            for (node, isEdit) in nodes { noteOnceMore(node, isEdit: isEdit) }
        }
    }

    private func noteOnceMore(_ id: NodeID, isEdit: Bool) {
        let isWritten = opens.writeFile(of: id) != nil
        // The size of what is partial tells `noteWrites` nothing.
        if !isWritten || (try? known(id))?.content == .partial { noteSize(of: id) }
        if isEdit { noteEdit(of: id) }
        guard isWritten else { return }
        noteWrites(of: id, isClosing: !opens.mayBeWritten(id))
        settleIfUnused(id)
    }

    /// For the last time, when nobody can write any more.
    func noteWhatIsLeft() {
        for (node, isEdit) in unnoted.withLock({ $0 }) {
            noteSize(of: node)
            if isEdit { noteEdit(of: node) }
        }
    }
}

extension Node {
    /// The daemon itself has written to the content, whose file's time is not the write's.
    mutating func noteEdit(at time: Timestamp) {
        modificationTime = time
        changeTime = time
        edits += 1
        noteWritten()
    }
}
