/// A bounded dictionary that forgets what was not asked for lately (second chance, one bit a slot).
///
/// A hit costs one probe and no allocation. Each slot keeps its key's hash, so that forgetting a key looks at no other
/// key: in a standard dictionary that, and not the storing, is what filling a full cache spends its time on. Not
/// thread-safe.
struct ClockCache<Key: Hashable, Value> {
    private struct Slot {
        var key: Key
        var value: Value
        var hash: UInt64
        var wasUsed: Bool
    }

    private let countMax: Int
    private var slots: ContiguousArray<Slot> = []
    /// Open addressing, linear: a slot's number plus one, or 0. At most half full.
    private var table: ContiguousArray<UInt32>
    private var free: [Int] = []
    private var hand = 0

    init(countMax: Int) {
        precondition(
            countMax > 0 && countMax < Int(UInt32.max / 4), "a cache holds at least one value, and numbers them in 32 bits")
        self.countMax = countMax
        table = ContiguousArray(repeating: 0, count: 64)
    }

    var count: Int { slots.count - free.count }
    /// In no order. Looks at everything.
    var keys: [Key] { table.compactMap { $0 == 0 ? nil : slots[Int($0) - 1].key } }

    mutating func value(for key: Key) -> Value? {
        guard let position = find(key, ClockCache.hash(key)) else { return nil }
        slots[position].wasUsed = true
        return slots[position].value
    }

    mutating func set(_ key: Key, _ value: Value) {
        let hash = ClockCache.hash(key)
        if let position = find(key, hash) {
            slots[position].value = value
            slots[position].wasUsed = true
            return
        }
        let slot = Slot(key: key, value: value, hash: hash, wasUsed: false)
        let position: Int
        if let unused = free.popLast() {
            position = unused
            slots[position] = slot
        } else if slots.count < countMax {
            position = slots.count
            slots.append(slot)
            if slots.count * 2 > table.count { grow() }
        } else {
            position = victim()
            vacate(entry(of: position))
            slots[position] = slot
        }
        enter(position)
    }

    mutating func remove(_ key: Key) {
        guard let position = find(key, ClockCache.hash(key)) else { return }
        vacate(entry(of: position))
        // The old value stays until the slot is taken again; nothing finds it.
        free.append(position)
    }

    mutating func removeAll() {
        table = ContiguousArray(repeating: 0, count: table.count)
        slots.removeAll(keepingCapacity: true)
        free.removeAll()
        hand = 0
    }

    /// Turns the hand to the next slot that was not used since it last passed. Only called when every slot is in use,
    /// so it ends within two turns.
    private mutating func victim() -> Int {
        while true {
            let position = hand
            hand = hand + 1 == slots.count ? 0 : hand + 1
            if !slots[position].wasUsed { return position }
            slots[position].wasUsed = false
        }
    }

    // The table. Its count is a power of two.

    private static func hash(_ key: Key) -> UInt64 { UInt64(bitPattern: Int64(key.hashValue)) }

    private func start(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (table.count - 1) }

    private func find(_ key: Key, _ hash: UInt64) -> Int? {
        var place = start(hash)
        while table[place] != 0 {
            let position = Int(table[place]) - 1
            if slots[position].hash == hash, slots[position].key == key { return position }
            place = (place + 1) & (table.count - 1)
        }
        return nil
    }

    /// Where the table names a slot that is in use.
    private func entry(of position: Int) -> Int {
        var place = start(slots[position].hash)
        while table[place] != UInt32(position + 1) { place = (place + 1) & (table.count - 1) }
        return place
    }

    private mutating func enter(_ position: Int) {
        var place = start(slots[position].hash)
        while table[place] != 0 { place = (place + 1) & (table.count - 1) }
        table[place] = UInt32(position + 1)
    }

    /// Empties a place and moves up what was pushed beyond it.
    private mutating func vacate(_ emptied: Int) {
        var hole = emptied
        var place = hole
        while true {
            place = (place + 1) & (table.count - 1)
            if table[place] == 0 { break }
            let wanted = start(slots[Int(table[place]) - 1].hash)
            // Its own start lies behind the hole, seen from where it is: it stays.
            let distanceToHole = (place - hole) & (table.count - 1)
            if (place - wanted) & (table.count - 1) < distanceToHole { continue }
            table[hole] = table[place]
            hole = place
        }
        table[hole] = 0
    }

    private mutating func grow() {
        let used = table
        table = ContiguousArray(repeating: 0, count: used.count * 2)
        // The newest slot is entered by who appended it.
        for number in used where number != 0 { enter(Int(number) - 1) }
    }
}
