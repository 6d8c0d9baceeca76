import CPromiseIndex
import GRDBSQLite
import Glibc
import PromiseCore

/// One SQLite connection with its prepared statements.
///
/// Not thread-safe (SQLITE_OPEN_NOMUTEX): its owner holds a lock around every call. Statements are prepared once and
/// found again by the address of their text, so every text must be a literal.
final class Connection {
    private(set) var database: OpaquePointer?
    private var statements = StatementTable()
    /// For `Binder`: room for the bytes of one statement's parameters.
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 16)
    /// The last failure of the storage below, other than a broken constraint. Whoever runs a transaction looks at it,
    /// so that a caller who swallowed the error does not commit half of his changes.
    var problem: Failure?

    /// Opens `path`, which must exist. Waits up to two seconds for another process's lock, then fails with `.busy`.
    init(path: [UInt8]) throws(Failure) {
        var name = path.map { CChar(bitPattern: $0) }
        name.append(0)
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(name, &database, flags, nil)
        guard code == SQLITE_OK else {
            let failure = failure(code, during: "open")
            sqlite3_close_v2(database)
            database = nil
            throw failure
        }
        sqlite3_extended_result_codes(database, 1)
        sqlite3_busy_timeout(database, 2_000)
        // Nothing but memory can be missing, and then SQLite itself says so of the statement.
        _ = promise_index_add_functions(database)
    }

    deinit {
        close()
        scratch.deallocate()
    }

    /// Releases the statements and the connection; more than once is fine.
    func close() {
        statements.removeAll { sqlite3_finalize($0) }
        if let database {
            let code = sqlite3_close_v2(database)
            precondition(code == SQLITE_OK, "a connection with no statement left can be closed: SQLite error \(code)")
        }
        database = nil
    }

    /// No transaction is open, or SQLite has rolled it back by itself after a serious error.
    var isInAutocommit: Bool { sqlite3_get_autocommit(database) != 0 }

    // Running statements.

    /// Runs a statement that gives no rows; returns how many rows it changed.
    @discardableResult
    func run(_ sql: StaticString, binding bind: (inout Binder) -> Void) throws(Failure) -> Int {
        let statement = try prepared(sql)
        defer { sqlite3_reset(statement) }
        bindAll(statement, scratch, nil, bind)
        while try step(statement, sql) {}
        return Int(sqlite3_changes(database))
    }

    /// As `run`, and adds the statement to `record` unless it fails or changes nothing.
    func run(
        _ sql: StaticString, recordingTo record: UnsafeMutablePointer<RecordBuffer>, binding bind: (inout Binder) -> Void
    ) throws(Failure) -> Int {
        let slot = try number(sql, in: record)
        let mark = record.pointee.count
        record.pointee.run(slot.number, parameterCount: sqlite3_bind_parameter_count(slot.statement))
        defer { sqlite3_reset(slot.statement) }
        bindAll(slot.statement, scratch, record, bind)
        do throws(Failure) {
            while try step(slot.statement, sql) {}
        } catch {
            record.pointee.takeBack(to: mark)
            throw error
        }
        let count = Int(sqlite3_changes(database))
        if count == 0 { record.pointee.takeBack(to: mark) }
        return count
    }

    /// Adds the statement to `record` and does not run it.
    func note(
        _ sql: StaticString, to record: UnsafeMutablePointer<RecordBuffer>, binding bind: (inout Binder) -> Void
    ) throws(Failure) {
        let slot = try number(sql, in: record)
        record.pointee.run(slot.number, parameterCount: sqlite3_bind_parameter_count(slot.statement))
        var binder = Binder(nil, scratch: scratch, record: record)
        bind(&binder)
    }

    /// The statement, defined in the journal file that `record` goes to.
    private func number(
        _ sql: StaticString, in record: UnsafeMutablePointer<RecordBuffer>
    ) throws(Failure) -> StatementTable.Slot {
        let position = try find(sql)
        let slot = statements[position]
        if slot.life == record.pointee.life { return slot }
        let text = UnsafeRawBufferPointer(start: sql.utf8Start, count: sql.utf8CodeUnitCount)
        statements[position].number = record.pointee.define(text)
        statements[position].life = record.pointee.life
        return statements[position]
    }

    @discardableResult
    func run(_ sql: StaticString, _ values: SQLValue...) throws(Failure) -> Int {
        try run(sql) { $0.all(values) }
    }

    /// The first row, or nil. `read` must run no statement.
    func first<Value>(
        _ sql: StaticString, binding bind: (inout Binder) -> Void, read: (Row) -> Value
    ) throws(Failure) -> Value? {
        let statement = try prepared(sql)
        defer { sqlite3_reset(statement) }
        bindAll(statement, scratch, nil, bind)
        return try step(statement, sql) ? read(Row(statement: statement)) : nil
    }

    func first<Value>(_ sql: StaticString, _ values: SQLValue..., read: (Row) -> Value) throws(Failure) -> Value? {
        try first(sql, binding: { $0.all(values) }, read: read)
    }

    /// Whether there is a row.
    func exists(_ sql: StaticString, _ values: SQLValue...) throws(Failure) -> Bool {
        try first(sql, binding: { $0.all(values) }, read: { _ in true }) ?? false
    }

    func all<Value>(_ sql: StaticString, _ values: SQLValue..., read: (Row) -> Value) throws(Failure) -> [Value] {
        var result: [Value] = []
        try forEach(sql, values) { row in
            result.append(read(row))
            return true
        }
        return result
    }

    /// Gives `body` one row after the other until it returns false. `body` must not run the same statement.
    func forEach(_ sql: StaticString, _ values: [SQLValue] = [], _ body: (Row) -> Bool) throws(Failure) {
        let statement = try prepared(sql)
        defer { sqlite3_reset(statement) }
        // `body` may run other statements, so nothing of this one lies in the scratch.
        bindAll(statement, UnsafeMutableRawBufferPointer(start: nil, count: 0), nil) { $0.all(values) }
        while try step(statement, sql) {
            guard body(Row(statement: statement)) else { return }
        }
    }

    private func bindAll(
        _ statement: OpaquePointer, _ scratch: UnsafeMutableRawBufferPointer, _ record: UnsafeMutablePointer<RecordBuffer>?,
        _ bind: (inout Binder) -> Void
    ) {
        var binder = Binder(statement, scratch: scratch, record: record)
        bind(&binder)
        assert(
            binder.count == sqlite3_bind_parameter_count(statement), "every parameter is bound, not \(binder.count) of them")
    }

    /// Pages written to the log since the connection was opened.
    var writtenPageCount: Int {
        var count: CInt = 0
        var unused: CInt = 0
        sqlite3_db_status(database, SQLITE_DBSTATUS_CACHE_WRITE, &count, &unused, 0)
        return Int(count)
    }

    /// Statements run since each was prepared.
    var runCount: Int { total(SQLITE_STMTSTATUS_RUN) }

    /// What they did, in the steps of SQLite's own machine: a few for each row that is looked at.
    var stepCount: Int { total(SQLITE_STMTSTATUS_VM_STEP) }

    private func total(_ counter: CInt) -> Int {
        var (count, statement) = (0, sqlite3_next_stmt(database, nil))
        while let current = statement {
            count += Int(sqlite3_stmt_status(current, counter, 0))
            statement = sqlite3_next_stmt(database, current)
        }
        return count
    }

    /// Copies what is committed into the database file; never waits for a reader or a writer (SQLITE_CHECKPOINT_PASSIVE)
    /// unless `truncating`. Returns whether nothing is left in the log that is not in the database.
    func checkpoint(truncating: Bool) throws(Failure) -> Bool {
        var frames: CInt = 0
        var copied: CInt = 0
        let mode = truncating ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
        let code = sqlite3_wal_checkpoint_v2(database, nil, mode, &frames, &copied)
        if code & 0xFF == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else { throw failure(code, during: "checkpoint") }
        return frames == copied
    }

    // Below: one statement.

    private func prepared(_ sql: StaticString) throws(Failure) -> OpaquePointer { statements[try find(sql)].statement }

    /// The position of a statement in the table.
    private func find(_ sql: StaticString) throws(Failure) -> Int {
        if let position = statements.find(sql.utf8Start) { return position }
        precondition(database != nil, "a closed connection runs no statement")
        var statement: OpaquePointer?
        let code = sql.utf8Start.withMemoryRebound(to: CChar.self, capacity: sql.utf8CodeUnitCount + 1) { text in
            sqlite3_prepare_v3(
                database, text, CInt(sql.utf8CodeUnitCount), UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        }
        precondition(code != SQLITE_ERROR, "SQL of this program is correct: \(sql): \(String(cString: sqlite3_errmsg(database)))")
        guard code == SQLITE_OK, let statement else { throw failure(code, during: sql) }
        return statements.insert(sql.utf8Start, statement)
    }

    private func step(_ statement: OpaquePointer, _ sql: StaticString) throws(Failure) -> Bool {
        let code = sqlite3_step(statement)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        throw failure(code, during: sql)
    }

    /// What a result code means; remembers it as `problem` unless it is a broken constraint.
    func failure(_ code: CInt, during sql: StaticString) -> Failure {
        let text = "\(sql)"
        let words = text.split(separator: " ", maxSplits: 3).prefix(3).joined(separator: " ")
        let message = database.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
        // SQLite reports a full disk behind some operations as an I/O error; the errno tells.
        let errno = database.map { sqlite3_system_errno($0) } ?? 0
        let isFull = code & 0xFF == SQLITE_IOERR && (errno == ENOSPC || errno == EDQUOT)
        let meaning = isFull ? .storeFull : Connection.meaning(of: code)
        let result = Failure(
            meaning,
            meaning == .storeFull
                ? "the local disk is full: make room there, or let 'promisefs evict' do it"
                : "the index failed at \(words): \(message) (SQLite \(code))")
        if code & 0xFF != SQLITE_CONSTRAINT { problem = result }
        return result
    }

    /// https://www.sqlite.org/rescode.html
    static func meaning(of code: CInt) -> Failure.Code {
        switch code & 0xFF {
        case SQLITE_FULL: .storeFull
        case SQLITE_CORRUPT, SQLITE_NOTADB: .corrupted
        case SQLITE_BUSY, SQLITE_LOCKED: .busy
        case SQLITE_CONSTRAINT: .exists
        case SQLITE_READONLY: .readOnly
        case SQLITE_PERM, SQLITE_AUTH: .refused
        case SQLITE_TOOBIG: .tooLarge
        case SQLITE_INTERRUPT: .interrupted
        default: .inputOutput
        }
    }
}
