import Glibc
import PromiseCore
import PromiseSystem
import Synchronization

/// One of the two files of the journal: a header, then records without gaps. It is written over from its start in each of
/// its *lives*; a life has a random salt, so that what an earlier one left is never taken for a record.
///
///     magic (8)  format (8)  index's identity (16)  salt (8)  checksum of the 40 bytes before it (8)
///
/// Calls are labelled `index.journal.…`. Closed when the last reference goes, so an fsync under way never meets a closed
/// descriptor. Not locked: one thread writes, others may fsync.
final class JournalFile: Sendable {
    static let headerCount = 48
    /// `PRFSIDX1`.
    static let magic: UInt64 = 0x3158_4449_5346_5250
    static let format: UInt32 = 1
    /// A file that claims more is none of ours.
    private static let readCountMax: UInt64 = 256 << 20

    private let descriptor: Descriptor
    /// Nil where syncing another file does not flush the disk.
    private let flushedDevice: UInt64?
    /// Not all of it can be written. The kernel tells that once, and takes what it could not write
    /// for written (fsync(2)): it is never again to be taken for what the disk has.
    private let hasFailed = Atomic(false)

    private init(_ descriptor: consuming Descriptor) {
        let facts = try? FileSystemFacts.of(descriptor: descriptor.number, label: "index.journal.facts")
        flushedDevice = facts?.flushesWithAnyFile == true ? JournalFile.device(of: descriptor.number) : nil
        self.descriptor = descriptor
    }

    private static func device(of descriptor: CInt) -> UInt64? {
        try? FileStatus.of(descriptor: descriptor, label: "index.journal.device").device
    }

    /// Nil when there is none.
    static func open(_ path: [UInt8]) throws(SystemError) -> JournalFile? {
        do throws(SystemError) {
            return JournalFile(try Descriptor.open(path, flags: O_RDWR, label: "index.journal.open"))
        } catch {
            if error.errno == ENOENT { return nil }
            throw error
        }
    }

    /// With all its blocks written: an append needs no room and an fdatasync no metadata. Throws and leaves no new file
    /// when the disk has no room.
    static func make(_ path: [UInt8], byteCount: Int) throws(SystemError) -> JournalFile {
        let file = JournalFile(try Descriptor.open(path, flags: O_RDWR | O_CREAT, label: "index.journal.make"))
        do throws(SystemError) {
            try file.fill(byteCount)
        } catch {
            _ = try? unlink(path, label: "index.journal.discard")
            throw error
        }
        return file
    }

    private func fill(_ byteCount: Int) throws(SystemError) {
        let size = Int(try FileStatus.of(descriptor: descriptor.number, label: "index.journal.size.fill").size)
        // Page by page: in one large write the kernel makes large folios, and then each small append costs it a look at every
        // block of one (fs/buffer.c, ext4).
        let zeros = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 4096)
        defer { zeros.deallocate() }
        zeros.initializeMemory(as: UInt8.self, repeating: 0)
        var position = size
        while position < byteCount {
            let piece = UnsafeRawBufferPointer(rebasing: zeros[..<min(zeros.count, byteCount - position)])
            try writeFully(descriptor.number, piece, at: UInt64(position), label: "index.journal.allocate")
            position += piece.count
        }
    }

    /// Begins a life: from now on the file has no record.
    func begin(identity: JournalIdentity, salt: UInt64) throws(SystemError) {
        try write(header: identity, salt: salt)
    }

    /// The file has no record any more.
    func invalidate() throws(SystemError) {
        let zeros = [UInt8](repeating: 0, count: JournalFile.headerCount)
        try write(zeros)
    }

    private func write(header identity: JournalIdentity, salt: UInt64) throws(SystemError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(JournalFile.headerCount)
        for word in [JournalFile.magic, UInt64(JournalFile.format), identity.upper, identity.lower, salt] {
            withUnsafeBytes(of: word.littleEndian) { bytes += $0 }
        }
        let checksum = bytes.withUnsafeBytes { Checksum.of($0, seed: 0) }
        withUnsafeBytes(of: checksum.littleEndian) { bytes += $0 }
        try write(bytes)
    }

    private func write(_ header: [UInt8]) throws(SystemError) {
        try writeFully(descriptor.number, header, at: 0, label: "index.journal.header")
    }

    func append(_ record: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
        try writeFully(descriptor.number, record, at: UInt64(offset), label: "index.journal.append")
    }

    func beginWriting() { PromiseSystem.beginWriting(descriptor.number) }

    /// Returns when the disk has every record, perhaps in its cache.
    func finishWriting() throws(SystemError) {
        try rememberingFailure { () throws(SystemError) in
            try PromiseSystem.finishWriting(descriptor.number, label: "index.journal.write")
        }
    }

    private func rememberingFailure(_ body: () throws(SystemError) -> Void) throws(SystemError) {
        if hasFailed.load(ordering: .acquiring) {
            throw SystemError(errno: EIO, label: "index.journal.failed")
        }
        do throws(SystemError) {
            try body()
        } catch {
            hasFailed.store(true, ordering: .releasing)
            throw error
        }
    }

    /// After `finishWriting` a sync of `other` makes this file durable, too: a record replaces what is in the file's blocks.
    func isFlushed(with other: CInt) -> Bool { flushedDevice != nil && flushedDevice == JournalFile.device(of: other) }

    /// fdatasync(2).
    func synchronize() throws(SystemError) {
        try rememberingFailure { () throws(SystemError) in
            try PromiseSystem.synchronize(
                descriptor.number, dataOnly: true, label: "index.journal.fsync")
        }
    }

    /// The bytes of the file, to be parsed and deallocated by `JournalContents`; no more than the header when that says
    /// that there is no record.
    func load() throws(SystemError) -> UnsafeRawBufferPointer {
        let size = try FileStatus.of(descriptor: descriptor.number, label: "index.journal.size").size
        let bytes = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(min(size, JournalFile.readCountMax)), alignment: 16)
        do throws(SystemError) {
            let header = UnsafeMutableRawBufferPointer(rebasing: bytes[..<min(bytes.count, JournalFile.headerCount)])
            var count = try readFully(descriptor.number, into: header, at: 0, label: "index.journal.read.header")
            if header.contains(where: { $0 != 0 }) {
                count = try readFully(descriptor.number, into: bytes, at: 0, label: "index.journal.read")
            }
            return UnsafeRawBufferPointer(start: bytes.baseAddress, count: count)
        } catch {
            bytes.deallocate()
            throw error
        }
    }
}

/// Which index a journal belongs to.
struct JournalIdentity: Equatable {
    var upper: UInt64
    var lower: UInt64
}
