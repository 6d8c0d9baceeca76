/// The record of one body, encoded while its statements are bound:
///
///     checksum (8)  sequence (8)  payload's length (4)  zero (4)  payload
///
/// Little-endian. The checksum is that of everything behind it, seeded with the file's salt. The payload is a series of
///
///     1  number (4)  length (4)  SQL       from here on, in this file, the number stands for this statement
///     2  number (4)  count (1)  values     the statement ran with these parameters
///
/// and a value is a tag, `0…8` for a whole number of that many bytes (sign-extended), 9 for NULL, 10 for bytes and 11 for
/// text, both followed by a length (4) and the bytes. Owned by one store, under its lock.
struct RecordBuffer {
    static let headerCount = 24
    static let definition: UInt8 = 1
    static let statement: UInt8 = 2
    static let null: UInt8 = 9
    static let bytes: UInt8 = 10
    static let text: UInt8 = 11

    /// What a body of usual size needs; more is given back.
    private static let capacityKept = 1 << 20

    private var start = UnsafeMutableRawPointer.allocate(byteCount: 65_536, alignment: 16)
    private var capacity = 65_536
    /// Header included.
    private(set) var count = RecordBuffer.headerCount
    /// A larger record is not kept: `isTooLarge`.
    private let countMax: Int
    private(set) var isTooLarge = false

    /// Statements in the record.
    private(set) var statementCount = 0
    /// Definitions in the record; they are lost with it.
    private var definitionCount = 0
    /// Statements whose `life` this is have been defined in the journal file that is being written.
    private(set) var life: UInt64 = 1
    private var nextNumber: UInt32 = 0

    init(countMax: Int) { self.countMax = countMax }

    func free() { start.deallocate() }

    var contents: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// The record is in the file: what it defines counts from now on.
    mutating func wasWritten() { definitionCount = 0 }

    /// Begins a new record.
    mutating func begin() {
        if definitionCount > 0 { life += 1 }
        definitionCount = 0
        statementCount = 0
        isTooLarge = false
        count = RecordBuffer.headerCount
        guard capacity > RecordBuffer.capacityKept else { return }
        start.deallocate()
        capacity = 65_536
        start = .allocate(byteCount: capacity, alignment: 16)
    }

    /// What follows goes to another journal file, in which nothing is defined.
    mutating func forgetDefinitions() {
        life += 1
        nextNumber = 0
    }

    /// Takes back a statement that failed, or changed nothing, from where its parameters begin.
    mutating func takeBack(to count: Int) {
        self.count = count
        statementCount -= 1
    }

    /// Fills in the header.
    mutating func seal(sequence: UInt64, salt: UInt64) {
        start.storeBytes(of: sequence.littleEndian, toByteOffset: 8, as: UInt64.self)
        start.storeBytes(of: UInt32(count - RecordBuffer.headerCount).littleEndian, toByteOffset: 16, as: UInt32.self)
        start.storeBytes(of: 0, toByteOffset: 20, as: UInt32.self)
        let checksum = Checksum.of(UnsafeRawBufferPointer(start: start + 8, count: count - 8), seed: salt)
        start.storeBytes(of: checksum.littleEndian, as: UInt64.self)
    }

    // Adding.

    /// Defines a statement; returns the number that stands for it from now on.
    mutating func define(_ sql: UnsafeRawBufferPointer) -> UInt32 {
        defer { nextNumber += 1 }
        definitionCount += 1
        guard makeRoom(9 + sql.count) else { return nextNumber }
        head(RecordBuffer.definition, nextNumber)
        tail(sql)
        return nextNumber
    }

    /// A statement runs; its parameters follow.
    mutating func run(_ number: UInt32, parameterCount: CInt) {
        statementCount += 1
        guard makeRoom(6) else { return }
        head(RecordBuffer.statement, number)
        start.storeBytes(of: UInt8(parameterCount), toByteOffset: count, as: UInt8.self)
        count += 1
    }

    @inline(__always)
    mutating func integer(_ value: Int64) {
        guard makeRoom(9) else { return }
        // As many bytes as hold the value with its sign.
        let bits = 65 - max(value.leadingZeroBitCount, (~value).leadingZeroBitCount)
        let size = value == 0 ? 0 : (bits + 7) / 8
        start.storeBytes(of: UInt8(size), toByteOffset: count, as: UInt8.self)
        // All eight bytes are stored, and the next value overwrites what is too much.
        start.storeBytes(of: value.littleEndian, toByteOffset: count + 1, as: Int64.self)
        count += 1 + size
    }

    mutating func addNull() {
        guard makeRoom(1) else { return }
        start.storeBytes(of: RecordBuffer.null, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    mutating func add(_ value: UnsafeRawBufferPointer, tag: UInt8) {
        guard makeRoom(5 + value.count) else { return }
        start.storeBytes(of: tag, toByteOffset: count, as: UInt8.self)
        count += 1
        tail(value)
    }

    private mutating func head(_ kind: UInt8, _ number: UInt32) {
        start.storeBytes(of: kind, toByteOffset: count, as: UInt8.self)
        start.storeBytes(of: number.littleEndian, toByteOffset: count + 1, as: UInt32.self)
        count += 5
    }

    private mutating func tail(_ value: UnsafeRawBufferPointer) {
        start.storeBytes(of: UInt32(value.count).littleEndian, toByteOffset: count, as: UInt32.self)
        if let source = value.baseAddress { (start + count + 4).copyMemory(from: source, byteCount: value.count) }
        count += 4 + value.count
    }

    /// False when nothing more is recorded.
    @inline(__always)
    private mutating func makeRoom(_ more: Int) -> Bool {
        if count + more <= capacity { return true }
        return grow(more)
    }

    @inline(never)
    private mutating func grow(_ more: Int) -> Bool {
        if isTooLarge || count + more > countMax {
            isTooLarge = true
            return false
        }
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        moved.copyMemory(from: start, byteCount: count)
        start.deallocate()
        start = moved
        capacity = larger
        return true
    }
}

/// Reads a record's parts in order; nil where the bytes end or make no sense.
struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    enum Value {
        case integer(Int64)
        case null
        case bytes(UnsafeRawBufferPointer)
        case text(UnsafeRawBufferPointer)
    }

    init(_ payload: UnsafeRawBufferPointer) { bytes = payload }

    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func word() -> UInt32? {
        guard position + 4 <= bytes.count else { return nil }
        defer { position += 4 }
        return UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    }

    mutating func run() -> UnsafeRawBufferPointer? {
        guard let count = word(), position + Int(count) <= bytes.count else { return nil }
        defer { position += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(count)])
    }

    mutating func value() -> Value? {
        guard let tag = byte() else { return nil }
        switch tag {
        case RecordBuffer.null: return .null
        case RecordBuffer.bytes: return run().map { .bytes($0) }
        case RecordBuffer.text: return run().map { .text($0) }
        case 0...8: return integer(Int(tag)).map { .integer($0) }
        default: return nil
        }
    }

    private mutating func integer(_ size: Int) -> Int64? {
        guard position + size <= bytes.count else { return nil }
        var value: Int64 = 0
        for offset in (0..<size).reversed() { value = value << 8 | Int64(bytes[position + offset]) }
        position += size
        let unused = Int64(64 - size * 8)
        return size == 0 ? 0 : (value << unused) >> unused
    }
}
