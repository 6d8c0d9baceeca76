import GRDBSQLite
import PromiseCore

/// Runs the statements of journal records on a connection. Knows nothing of this program's tables: what a record says,
/// by whatever version it was written, is what runs. The bytes of the records must outlive it.
///
/// Not thread-safe; `close` before the connection is closed.
final class Replay {
    private let connection: Connection
    private var texts: [UInt32: UnsafeRawBufferPointer] = [:]
    private var statements: [UInt32: OpaquePointer] = [:]

    init(_ connection: Connection) { self.connection = connection }

    deinit { precondition(statements.isEmpty, "a replay is closed before it is forgotten") }

    func close() {
        for statement in statements.values { sqlite3_finalize(statement) }
        statements = [:]
    }

    /// What was defined in one file says nothing of the next.
    func beginFile() {
        close()
        texts = [:]
    }

    /// Learns what a record defines, and runs its statements if `isRunning`. Throws `.corrupted` for a record that is not
    /// one, or that this database cannot run, else what the storage says.
    func apply(_ payload: UnsafeRawBufferPointer, isRunning: Bool) throws(Failure) {
        var reader = RecordReader(payload)
        while !reader.isAtEnd {
            guard let kind = reader.byte(), let number = reader.word() else { throw Replay.nonsense }
            switch kind {
            case RecordBuffer.definition:
                guard let text = reader.run() else { throw Replay.nonsense }
                texts[number] = text
                if let old = statements.removeValue(forKey: number) { sqlite3_finalize(old) }
            case RecordBuffer.statement:
                guard let count = reader.byte() else { throw Replay.nonsense }
                let statement = isRunning ? try prepared(number) : nil
                if let statement, sqlite3_bind_parameter_count(statement) != CInt(count) { throw Replay.nonsense }
                for parameter in 0..<CInt(count) {
                    guard let value = reader.value() else { throw Replay.nonsense }
                    if let statement { try bind(value, to: parameter + 1, of: statement) }
                }
                if let statement { try run(statement) }
            default: throw Replay.nonsense
            }
        }
    }

    private func prepared(_ number: UInt32) throws(Failure) -> OpaquePointer {
        if let statement = statements[number] { return statement }
        guard let text = texts[number] else { throw Replay.nonsense }
        var statement: OpaquePointer?
        let start = text.baseAddress?.assumingMemoryBound(to: CChar.self)
        let code = sqlite3_prepare_v3(
            connection.database, start, CInt(text.count), UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        if code == SQLITE_ERROR { throw Failure(.corrupted, "the index's journal has a statement that does not fit the index") }
        guard code == SQLITE_OK, let statement else { throw connection.failure(code, during: "REPLAY") }
        statements[number] = statement
        return statement
    }

    /// The bytes stay where they are until the statement has run, so nothing is copied (SQLITE_STATIC).
    private func bind(_ value: RecordReader.Value, to parameter: CInt, of statement: OpaquePointer) throws(Failure) {
        let code =
            switch value {
            case .integer(let number): sqlite3_bind_int64(statement, parameter, number)
            case .null: sqlite3_bind_null(statement, parameter)
            case .bytes(let bytes):
                if bytes.isEmpty {
                    sqlite3_bind_zeroblob(statement, parameter, 0)
                } else {
                    sqlite3_bind_blob64(statement, parameter, bytes.baseAddress, UInt64(bytes.count), nil)
                }
            case .text(let bytes):
                if bytes.isEmpty {
                    sqlite3_bind_text(statement, parameter, "", 0, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
                } else {
                    sqlite3_bind_text64(
                        statement, parameter, bytes.baseAddress!.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), nil,
                        UInt8(SQLITE_UTF8))
                }
            }
        guard code == SQLITE_OK else { throw connection.failure(code, during: "REPLAY") }
    }

    private func run(_ statement: OpaquePointer) throws(Failure) {
        var code = sqlite3_step(statement)
        while code == SQLITE_ROW { code = sqlite3_step(statement) }
        sqlite3_reset(statement)
        if code == SQLITE_DONE { return }
        let failure = connection.failure(code, during: "REPLAY")
        // It ran without complaint when it was recorded.
        if failure.code == .exists { throw Failure(.corrupted, "the index's journal does not fit the index: \(failure.message)") }
        throw failure
    }

    private static let nonsense = Failure(.corrupted, "a record of the index's journal cannot be read")
}
