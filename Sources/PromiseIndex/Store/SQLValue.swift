import PromiseCore

import GRDBSQLite

/// What is bound to a parameter of a statement, where convenience counts; `Binder` is for where time does.
enum SQLValue {
    case integer(Int64)
    case bytes([UInt8])
    case text(String)
    case null

    static func id(_ node: NodeID) -> SQLValue { .integer(Int64(bitPattern: node.rawValue)) }
    static func id(_ entry: EntryID) -> SQLValue { .integer(entry.rawValue) }
    /// Keeps all 64 bits; values from 2^63 on come out negative inside SQLite.
    static func unsigned(_ value: UInt64) -> SQLValue { .integer(Int64(bitPattern: value)) }
    static func count(_ value: Int) -> SQLValue { .integer(Int64(value)) }
    static func flag(_ value: Bool) -> SQLValue { .integer(value ? 1 : 0) }
    static func time(_ value: Timestamp) -> SQLValue { .integer(value.rawValue) }
    static func name(_ value: FileName) -> SQLValue { .bytes(value.bytes) }
    static func identifier(_ value: ItemIdentifier?) -> SQLValue { value.map { .text($0.rawValue) } ?? .null }
    static func optional(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
    static func optional(_ value: [UInt8]?) -> SQLValue { value.map { .bytes($0) } ?? .null }
}

extension Binder {
    mutating func all(_ values: [SQLValue]) {
        for value in values {
            switch value {
            case .integer(let number): integer(number)
            case .bytes(let value): bytes(value)
            case .text(let value): text(value)
            case .null: null()
            }
        }
    }
}

/// The current row of a statement. Valid until the statement is stepped or reset.
struct Row {
    let statement: OpaquePointer

    func isNull(_ column: CInt) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
    func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(statement, column) }
    func unsigned(_ column: CInt) -> UInt64 { UInt64(bitPattern: integer(column)) }
    /// An older program took any number of a server for a size, and no file has more than the kernel counts to.
    func size(_ column: CInt) -> UInt64 { min(unsigned(column), UInt64(Int64.max)) }
    func word(_ column: CInt) -> UInt32 { UInt32(truncatingIfNeeded: integer(column)) }
    func flag(_ column: CInt) -> Bool { integer(column) != 0 }
    func time(_ column: CInt) -> Timestamp { Timestamp(nanoseconds: integer(column)) }
    func node(_ column: CInt) -> NodeID { NodeID(unsigned(column)) }
    func entry(_ column: CInt) -> EntryID { EntryID(integer(column)) }
    func name(_ column: CInt) -> FileName { FileName(trusted: bytes(column)) }

    func bytes(_ column: CInt) -> [UInt8] { withBytes(column) { Array($0) } }
    func optionalBytes(_ column: CInt) -> [UInt8]? { isNull(column) ? nil : bytes(column) }

    /// What was stored came from a `String`, so decoding repairs nothing.
    func text(_ column: CInt) -> String { withBytes(column) { String(decoding: $0, as: UTF8.self) } }
    func optionalText(_ column: CInt) -> String? { isNull(column) ? nil : text(column) }
    func identifier(_ column: CInt) -> ItemIdentifier? { optionalText(column).map { ItemIdentifier($0) } }

    /// The bytes of a blob or text in place, without a copy.
    func withBytes<Value>(_ column: CInt, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        // The pointer must be asked for before the count (sqlite.org/c3ref/column_blob.html).
        let start = sqlite3_column_blob(statement, column)
        let count = Int(sqlite3_column_bytes(statement, column))
        return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }
}
