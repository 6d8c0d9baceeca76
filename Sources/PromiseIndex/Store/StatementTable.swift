/// Finds a prepared statement by the address of its text. Open addressing; a hit costs a multiplication and a compare,
/// where a dictionary would hash the pointer as if it came from an enemy.
struct StatementTable {
    struct Slot {
        let text: UnsafePointer<UInt8>
        let statement: OpaquePointer
        /// What stands for the statement in the records of one life of a journal file, and which life that is.
        var number: UInt32 = 0
        var life: UInt64 = 0
    }

    /// There are far fewer literals in this module; `insert` traps long before the table is slow.
    private static let slotCount = 1024
    private var slots = ContiguousArray<Slot?>(repeating: nil, count: slotCount)
    private var count = 0

    subscript(_ position: Int) -> Slot {
        get { slots[position]! }
        set { slots[position] = newValue }
    }

    /// The position of a statement.
    func find(_ text: UnsafePointer<UInt8>) -> Int? {
        var position = StatementTable.start(text)
        while let slot = slots[position] {
            if slot.text == text { return position }
            position = (position + 1) % StatementTable.slotCount
        }
        return nil
    }

    mutating func insert(_ text: UnsafePointer<UInt8>, _ statement: OpaquePointer) -> Int {
        precondition(count < StatementTable.slotCount / 2, "statements are prepared from a limited number of literals")
        var position = StatementTable.start(text)
        while slots[position] != nil { position = (position + 1) % StatementTable.slotCount }
        slots[position] = Slot(text: text, statement: statement)
        count += 1
        return position
    }

    mutating func removeAll(_ finish: (OpaquePointer) -> Void) {
        for slot in slots { if let slot { finish(slot.statement) } }
        slots = ContiguousArray(repeating: nil, count: StatementTable.slotCount)
        count = 0
    }

    /// Fibonacci hashing: the upper ten bits of the address times 2^64 / φ.
    private static func start(_ text: UnsafePointer<UInt8>) -> Int {
        Int((UInt64(UInt(bitPattern: text)) &* 0x9E37_79B9_7F4A_7C15) >> 54)
    }
}
