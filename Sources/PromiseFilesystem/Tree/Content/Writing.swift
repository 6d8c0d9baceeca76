import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// One write(2) that goes through the daemon.
struct Writing {
    let tree: FileSystem
    let id: NodeID
    let position: FilePosition
    let file: SharedDescriptor
    /// The daemon before has received it, too, and may have carried it out.
    let isResent: Bool

    /// Throws when nothing was written.
    func carryOut(
        _ bytes: UnsafeRawBufferPointer, isWhole: Bool
    ) throws(Failure) -> Written {
        isWhole ? try store(bytes) : try writePartial(bytes)
    }

    // MARK: Whole content

    private func store(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Written {
        guard position.appends else { return try Written(bytes, at: position.offset, in: file) }
        let known = isResent ? try countWrittenBefore(bytes, endOfFile: try size()) : 0
        let (written, isMoved) = try Written.appending(
            bytes, after: known, at: position.offset, in: file)
        if isMoved { tree.nodeChanged(id, content: true) }
        return written
    }

    private func size() throws(Failure) -> UInt64 {
        do throws(SystemError) {
            return try FileStatus.of(descriptor: file.number, label: "content.append.before").size
        } catch {
            throw Failure(error)
        }
    }

    /// How many of the bytes the daemon before has put where the kernel took the end to be: all, or
    /// as many as there are up to the end of the file. Nothing else tells what a write has come to
    /// that was not answered, and one at the end would be there twice.
    private func countWrittenBefore(
        _ bytes: UnsafeRawBufferPointer, endOfFile end: UInt64
    ) throws(Failure) -> Int {
        guard position.offset < end else { return 0 }
        let count = Int(min(UInt64(bytes.count), end - position.offset))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { buffer.deallocate() }
        do throws(SystemError) {
            let found = try readFully(
                file.number, into: buffer, at: position.offset, label: "content.append.compare")
            return found == count && buffer.elementsEqual(bytes[..<count]) ? count : 0
        } catch {
            throw Failure(error)
        }
    }

    // MARK: Partial content

    /// Writes where content is still on its way; the rest is brought here in the background, as an
    /// upload needs it.
    private func writePartial(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Written {
        let wanted =
            position.appends
            ? ByteRange(position.offset, .max)
            : ByteRange(offset: position.offset, count: UInt64(bytes.count))
        guard let claim = try tree.engine.hydrator.claim(wanted, of: id) else {
            return try store(bytes)
        }
        guard position.appends else { return try write(bytes, at: position.offset, under: claim) }
        let known: Int
        do throws(Failure) {
            known = isResent ? try countWrittenBefore(bytes, under: claim) : 0
        } catch {
            claim.withdraw()
            throw error
        }
        let end = claim.size
        if known > 0, known == bytes.count {
            claim.withdraw()
            return Written(all: known)
        }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[known...])
        var written: Written
        do throws(Failure) {
            written = try write(rest, at: end, under: claim)
        } catch {
            if known > 0 { return Written(all: known) }
            throw error
        }
        // The kernel has the bytes where it took the end to be.
        if end != position.offset + UInt64(known) { tree.nodeChanged(id, content: true) }
        written.count += known
        return written
    }

    /// As for whole content. What is not here was not written before.
    private func countWrittenBefore(
        _ bytes: UnsafeRawBufferPointer, under claim: ContentClaim
    ) throws(Failure) -> Int {
        let end = claim.size
        let range = ByteRange(offset: position.offset, count: UInt64(bytes.count))
        guard position.offset < end, claim.isHere(range.clamped(to: end)) else { return 0 }
        return try countWrittenBefore(bytes, endOfFile: end)
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, under claim: ContentClaim
    ) throws(Failure) -> Written {
        let written: Written
        do throws(Failure) {
            written = try Written(bytes, at: offset, in: file)
        } catch {
            claim.withdraw()
            throw error
        }
        let range = ByteRange(offset: offset, count: UInt64(written.count))
        do throws(Failure) {
            try note(range, under: claim)
        } catch {
            takeBack(range, under: claim)
            throw error
        }
        claim.confirm(.written(range))
        tree.engine.notePending()
        tree.engine.hydrator.hydrateInBackground(id)
        return written
    }

    private func note(_ range: ByteRange, under claim: ContentClaim) throws(Failure) {
        try tree.index.write { transaction throws(Failure) in
            guard var node = try transaction.node(id), node.content != .absent else { return }
            node.size = max(node.size, range.upper)
            node.noteEdit(at: tree.clock.now())
            if node.content == .partial {
                try transaction.setRanges(
                    of: id, to: claim.ranges(after: .written(range), of: node))
            } else {
                // Whoever made it whole took the write's time from the content file.
                try tree.stampContent(of: node)
            }
            try transaction.update(node)
            try tree.markPending(namesOf: id, transaction)
        }
    }

    /// The content file has bytes that the index could not be told of. Those that were not here
    /// before are fetched again. The others are in the place of what was here, perhaps an edit, so
    /// they are one.
    private func takeBack(_ range: ByteRange, under claim: ContentClaim) {
        let size = claim.size
        do throws(SystemError) {
            // The end of the file is claimed, so nobody else has moved it.
            if range.upper > size {
                try truncate(file.number, to: size, label: "content.write.back")
            }
        } catch {
            // What cannot be taken away is there.
            claim.confirm(.written(range))
            return tree.noteSize(of: id)
        }
        let isEdit = claim.isPartlyHere(range)
        claim.withdraw()
        if isEdit { tree.noteEdit(of: id) }
    }
}

/// What a write has come to: fewer bytes than were given when something has stopped it on the way
/// (write(2)).
struct Written {
    var count: Int
    var problem: Failure?

    private init(_ count: Int, _ problem: SystemError?) throws(Failure) {
        if count == 0, let problem { throw Failure(problem) }
        self.count = count
        self.problem = problem.map { Failure($0) }
    }

    init(all count: Int) { self.count = count }

    /// Throws when nothing was written.
    init(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, in file: SharedDescriptor
    ) throws(Failure) {
        let (count, problem) = writeSome(file.number, bytes, at: offset, label: "content.write")
        try self.init(count, problem)
    }

    /// The same at the end, of what comes after the first `known` bytes, which are there. True: the
    /// end was not where the kernel thought, by `offset`.
    static func appending(
        _ bytes: UnsafeRawBufferPointer, after known: Int, at offset: UInt64,
        in file: SharedDescriptor
    ) throws(Failure) -> (Written, Bool) {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[known...])
        let (count, problem, isMoved) = appendSome(
            file.number, rest, at: offset + UInt64(known), label: "content.append")
        return (try Written(known + count, problem), isMoved)
    }
}
