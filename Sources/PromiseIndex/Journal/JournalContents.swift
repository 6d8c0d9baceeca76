import PromiseCore
import PromiseSystem

/// What a journal file holds: the records of its present life, up to the first that is torn or of an earlier one.
final class JournalContents {
    private let bytes: UnsafeRawBufferPointer
    /// Nil when the file has no header.
    let identity: JournalIdentity?
    private let salt: UInt64

    /// Throws `.invalid` for a journal of a newer version of this program.
    init(of file: JournalFile) throws(Failure) {
        do throws(SystemError) {
            bytes = try file.load()
        } catch {
            throw Failure(error)
        }
        guard bytes.count >= JournalFile.headerCount, JournalContents.word(bytes, 0) == JournalFile.magic,
            JournalContents.word(bytes, 40) == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<40]), seed: 0)
        else {
            identity = nil
            salt = 0
            return
        }
        guard JournalContents.word(bytes, 8) == UInt64(JournalFile.format) else {
            identity = nil
            salt = 0
            throw Failure(.invalid, "the journal of the index was made by a newer version of this program; use that version")
        }
        identity = JournalIdentity(upper: JournalContents.word(bytes, 16), lower: JournalContents.word(bytes, 24))
        salt = JournalContents.word(bytes, 32)
    }

    deinit { bytes.deallocate() }

    /// The sequence of the first record; nil when there is none.
    var firstSequence: UInt64? { record(at: JournalFile.headerCount)?.sequence }

    var lastSequence: UInt64? {
        var last: UInt64?
        var position = JournalFile.headerCount
        while let record = record(at: position) {
            last = record.sequence
            position += RecordBuffer.headerCount + record.payload.count
        }
        return last
    }

    /// In the order in which they were written. The bytes are valid as long as this is.
    func forEach<Problem: Error>(
        _ body: (_ sequence: UInt64, _ payload: UnsafeRawBufferPointer) throws(Problem) -> Void
    ) throws(Problem) {
        var position = JournalFile.headerCount
        while let record = record(at: position) {
            try body(record.sequence, record.payload)
            position += RecordBuffer.headerCount + record.payload.count
        }
    }

    private func record(at position: Int) -> (sequence: UInt64, payload: UnsafeRawBufferPointer)? {
        guard identity != nil, position + RecordBuffer.headerCount <= bytes.count else { return nil }
        let count = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position + 16, as: UInt32.self)))
        let end = position + RecordBuffer.headerCount + count
        guard count > 0, end <= bytes.count else { return nil }
        let checked = UnsafeRawBufferPointer(rebasing: bytes[(position + 8)..<end])
        guard JournalContents.word(bytes, position) == Checksum.of(checked, seed: salt) else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[(position + RecordBuffer.headerCount)..<end])
        return (JournalContents.word(bytes, position + 8), payload)
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }
}
