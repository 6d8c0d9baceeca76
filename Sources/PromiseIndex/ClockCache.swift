/// A bounded dictionary that forgets what was not asked for lately (second chance, one bit a slot).
///
/// A hit costs one dictionary look-up and no allocation. Not thread-safe.
struct ClockCache<Key: Hashable, Value> {
    private struct Slot {
        var key: Key
        var value: Value
        var wasUsed: Bool
    }

    private let countMax: Int
    private var positions: [Key: Int] = [:]
    private var slots: ContiguousArray<Slot> = []
    private var free: [Int] = []
    private var hand = 0

    init(countMax: Int) {
        precondition(countMax > 0, "a cache holds at least one value")
        self.countMax = countMax
    }

    var count: Int { positions.count }
    var keys: Dictionary<Key, Int>.Keys { positions.keys }

    mutating func value(for key: Key) -> Value? {
        guard let position = positions[key] else { return nil }
        slots[position].wasUsed = true
        return slots[position].value
    }

    mutating func set(_ key: Key, _ value: Value) {
        if let position = positions[key] {
            slots[position].value = value
            slots[position].wasUsed = true
            return
        }
        let slot = Slot(key: key, value: value, wasUsed: false)
        if let position = free.popLast() {
            slots[position] = slot
            positions[key] = position
        } else if slots.count < countMax {
            positions[key] = slots.count
            slots.append(slot)
        } else {
            let position = victim()
            positions[slots[position].key] = nil
            slots[position] = slot
            positions[key] = position
        }
        assert(positions.count + free.count == slots.count, "every slot is in use or free")
    }

    mutating func remove(_ key: Key) {
        guard let position = positions.removeValue(forKey: key) else { return }
        // The old value stays until the slot is taken again; nothing finds it.
        free.append(position)
    }

    mutating func removeAll() {
        positions.removeAll(keepingCapacity: true)
        slots.removeAll(keepingCapacity: true)
        free.removeAll()
        hand = 0
    }

    /// Turns the hand to the next slot that was not used since it last passed. Only called when every slot is in use,
    /// so it ends within two turns.
    private mutating func victim() -> Int {
        while true {
            let position = hand
            hand = (hand + 1) % slots.count
            if !slots[position].wasUsed { return position }
            slots[position].wasUsed = false
        }
    }
}
