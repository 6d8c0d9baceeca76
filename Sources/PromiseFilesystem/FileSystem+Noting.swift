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
        do throws(Failure) {
            // All of it inside the transaction: a change of times must not come between looking and storing. What was written
            // must be noted also on a full disk.
            try index.writeFreeing { transaction throws(Failure) in
                guard let file = opens.writeFile(of: id), var node = try transaction.node(id) else { return }
                let since = opens.writingSince(id)
                let status: FileStatus
                do throws(SystemError) {
                    status = try FileStatus.of(descriptor: file.number, label: "filesystem.note")
                } catch {
                    throw Failure(error)
                }
                let isStillWritten = !isClosing || opens.mayBeWritten(id)
                let isDoubtful = since.map { $0.rawValue - node.modificationTime.rawValue < 20_000_000 } ?? true
                let isVisible = node.content == .whole
                let hasMoved = status.modificationTime != node.modificationTime
                let isEdited =
                    isVisible
                    && (isCertain || status.size != node.size || hasMoved || isDoubtful && countsDoubtful)
                hasMovedTimesAlone = isVisible && status.size == node.size && hasMoved
                if isEdited { node.take(status) }
                node.isOpenForWriting = isStillWritten
                try transaction.update(node)
                if !isStillWritten { opens.endWriting(id) }
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
            noteAgain(id)
        }
    }

    // MARK: Noticing again

    /// So that a failing disk is asked once a second and not all the time.
    private static let pauseMicroseconds: UInt32 = 1_000_000

    /// The content file of a node that nobody has open was cut or grown, and storing that failed.
    func noteSize(of id: NodeID) {
        do throws(Failure) {
            try index.writeFreeing { transaction throws(Failure) in
                guard let node = try transaction.node(id), node.content != .absent,
                    let status = try content.status(id, node.generation), status.size != node.size
                else { return }
                try transaction.takeSize(of: id, status, now: clock.now())
            }
            notifier?.invalidateAttributes(of: id)
            engine.notePending()
        } catch {
            logger.error("a new size could not be noted", metadata: ["node": "\(id)", "reason": "\(error.message)"])
            noteAgain(id)
        }
    }

    /// What the disk refused once it may take later; until then the index says that the file is being written to, or a crash
    /// makes the next start compare it.
    private func noteAgain(_ id: NodeID) {
        let isFirst = unnoted.withLock { unnoted in
            defer { unnoted.insert(id) }
            return unnoted.isEmpty
        }
        guard isFirst else { return }
        workers.submit { [self] in
            usleep(FileSystem.pauseMicroseconds)
            let nodes = unnoted.withLock { unnoted in
                defer { unnoted = [] }
                return unnoted
            }
            for node in nodes {
                guard opens.writeFile(of: node) != nil else {
                    noteSize(of: node)
                    continue
                }
                noteWrites(of: node, isClosing: !opens.mayBeWritten(node))
                opens.forgetIfUnused(node)
            }
        }
    }
}
