import GRDBSQLite
import PromiseCore

/// SQLITE_TRANSIENT, which the importer does not see: SQLite copies the bytes before the call returns.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

/// Binds one value after the other to ?1, ?2, … of a statement, without allocating.
///
/// Bytes are copied to `scratch` and bound in place (SQLITE_STATIC) while there is room, which saves SQLite a malloc for
/// each; so the statement must be stepped to its end, or for the last time, before the scratch is used again.
struct Binder {
    /// Nil: the values are only recorded.
    private let statement: OpaquePointer?
    private var scratch: UnsafeMutableRawBufferPointer
    /// Every value goes there too; nil for a statement that changes nothing.
    private let record: UnsafeMutablePointer<RecordBuffer>?
    private(set) var count: CInt = 0

    init(_ statement: OpaquePointer?, scratch: UnsafeMutableRawBufferPointer, record: UnsafeMutablePointer<RecordBuffer>?) {
        self.statement = statement
        self.scratch = scratch
        self.record = record
    }

    mutating func integer(_ value: Int64) {
        count += 1
        record?.pointee.integer(value)
        guard let statement else { return }
        check(sqlite3_bind_int64(statement, count, value))
    }

    mutating func null() {
        count += 1
        record?.pointee.addNull()
        guard let statement else { return }
        check(sqlite3_bind_null(statement, count))
    }

    /// A blob of no bytes is a blob, not NULL.
    mutating func bytes(_ value: [UInt8]) {
        count += 1
        value.withUnsafeBytes { buffer in
            record?.pointee.add(buffer, tag: RecordBuffer.bytes)
            guard let statement else { return }
            if buffer.isEmpty { return check(sqlite3_bind_zeroblob(statement, count, 0)) }
            if let copy = keep(buffer) {
                check(sqlite3_bind_blob64(statement, count, copy, UInt64(buffer.count), nil))
            } else {
                check(sqlite3_bind_blob64(statement, count, buffer.baseAddress, UInt64(buffer.count), transient))
            }
        }
    }

    mutating func text(_ value: String) {
        count += 1
        var value = value
        value.withUTF8 { buffer in
            record?.pointee.add(UnsafeRawBufferPointer(buffer), tag: RecordBuffer.text)
            guard let statement else { return }
            if buffer.isEmpty { return check(sqlite3_bind_text(statement, count, "", 0, transient)) }
            let copy = keep(UnsafeRawBufferPointer(buffer))
            let start = copy ?? UnsafeRawPointer(buffer.baseAddress!)
            let characters = start.assumingMemoryBound(to: CChar.self)
            let life = copy == nil ? transient : nil
            check(sqlite3_bind_text64(statement, count, characters, UInt64(buffer.count), life, UInt8(SQLITE_UTF8)))
        }
    }

    /// A copy in the scratch, or nil when there is no room.
    private mutating func keep(_ buffer: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
        guard buffer.count <= scratch.count else { return nil }
        scratch.copyMemory(from: buffer)
        let start = scratch.baseAddress!
        scratch = UnsafeMutableRawBufferPointer(rebasing: scratch[buffer.count...])
        return UnsafeRawPointer(start)
    }

    private func check(_ code: CInt) {
        precondition(code == SQLITE_OK, "parameter \(count) can be bound: SQLite error \(code)")
    }
}

extension Binder {
    mutating func id(_ node: NodeID) { integer(Int64(bitPattern: node.rawValue)) }
    mutating func id(_ entry: EntryID) { integer(entry.rawValue) }
    /// Keeps all 64 bits; values from 2^63 on come out negative inside SQLite.
    mutating func unsigned(_ value: UInt64) { integer(Int64(bitPattern: value)) }
    mutating func word(_ value: UInt32) { integer(Int64(value)) }
    mutating func count(_ value: Int) { integer(Int64(value)) }
    mutating func flag(_ value: Bool) { integer(value ? 1 : 0) }
    mutating func time(_ value: Timestamp) { integer(value.rawValue) }
    mutating func name(_ value: FileName) { bytes(value.bytes) }
    mutating func identifier(_ value: ItemIdentifier?) { optional(value?.rawValue) }

    mutating func optional(_ value: String?) {
        if let value { text(value) } else { null() }
    }

    mutating func optional(_ value: [UInt8]?) {
        if let value { bytes(value) } else { null() }
    }
}
