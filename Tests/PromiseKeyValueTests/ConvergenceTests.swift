import PromiseCore
import PromiseKeyValue
import PromiseTestSupport
import Testing

private let application: Key = "com.example.editor"

/// One object at a provider, written by compare and swap.
private struct Remote {
    var version = 0
    var text: [UInt8]?

    var record: ValueRecord? { get throws { try text.map { try ValueRecord(JSONReader.read($0), of: application) } } }

    mutating func write(_ record: ValueRecord, over base: Int) -> Bool {
        guard base == version else { return false }
        version += 1
        text = record.json.encoded
        return true
    }
}

/// A machine: what is on its disk, a clock that may be wrong, and a sync that may be cut short at any step.
private struct Machine {
    enum Step { case idle, hasRead(version: Int, record: ValueRecord?) }

    var disk: [UInt8]
    var clockOffset: Int
    var isOffline = false
    var step = Step.idle
    var notices: [ValueNotice] = []

    init(_ name: Key, clockOffset: Int) {
        disk = ValueStore(application: application, machine: name).json.encoded
        self.clockOffset = clockOffset
    }

    func time(_ now: Int) -> Timestamp { Timestamp(seconds: 1_700_000_000 + clockOffset, nanoseconds: now * 1_000_000) }

    var store: ValueStore {
        get throws { try ValueStore(JSONReader.read(disk), of: application) }
    }

    mutating func change(_ body: (inout ValueStore) throws -> Void) throws {
        var store = try store
        try body(&store)
        disk = store.json.encoded
    }

    /// One step of a sync: reading, then merging and writing over what was read.
    mutating func go(_ remote: inout Remote, at now: Int) throws {
        if isOffline { return }
        switch step {
        case .idle: step = .hasRead(version: remote.version, record: try remote.record)
        case .hasRead(let version, let record):
            var store = try store
            notices += store.merge(record, account: "a", at: time(now))
            disk = store.json.encoded
            let ours = store.record
            if ours.hasNews(for: record) { _ = remote.write(ours, over: version) }
            step = .idle
        }
    }
}

/// Three machines on one object: whatever is done at once, offline, with a wrong clock or cut short by a kill, all end with the
/// same values.
@Suite struct ConvergenceTests {
    @Test func threeMachinesEndWithTheSameValues() throws {
        var generator = SeededGenerator(for: "values")
        for _ in 0..<60 { try run(&generator) }
    }

    private func run(_ generator: inout SeededGenerator) throws {
        let keys: [Key] = ["a", "b", "c", "d"]
        var remote = Remote()
        var machines = [
            Machine("one", clockOffset: 0), Machine("two", clockOffset: 86_400), Machine("three", clockOffset: -86_400),
        ]
        for now in 0..<400 {
            let index = Int.random(in: 0..<3, using: &generator)
            let key = keys.randomElement(using: &generator) ?? "a"
            let time = machines[index].time(now)
            switch Int.random(in: 0..<20, using: &generator) {
            case 0..<5:
                let value = Value.integer(Int64.random(in: 0..<1000, using: &generator))
                try machines[index].change { try $0.set(value, for: key, at: time) }
            case 5..<7: try machines[index].change { $0.remove(key, at: time) }
            // A kill: the disk is as it was, and what was under way is forgotten.
            case 7: machines[index].step = .idle
            case 8: machines[index].isOffline.toggle()
            // Somebody sets the clock.
            case 9: machines[index].clockOffset = [-86_400, 0, 86_400].randomElement(using: &generator) ?? 0
            default: try machines[index].go(&remote, at: now)
            }
        }
        for index in machines.indices { machines[index].isOffline = false }
        try settle(&machines, &remote, at: 400)
        let values = try machines.map { try $0.store.values }
        #expect(values[0] == values[1] && values[1] == values[2])
        #expect(try remote.record?.values ?? [:] == values[0])
        for machine in machines { #expect(machine.notices.count { $0.reason == .initialSync } == 1) }

        // Whoever writes now has seen everything, so it is the last, whatever its clock says.
        for (index, key) in [(2, keys[0]), (0, keys[1]), (1, keys[2])] {
            let time = machines[index].time(500)
            try machines[index].change { try $0.set(.string("last"), for: key, at: time) }
        }
        let version = remote.version
        try settle(&machines, &remote, at: 501)
        for machine in machines {
            for key in keys.prefix(3) { #expect(try machine.store.value(for: key) == .string("last")) }
        }
        #expect(remote.version > version)
        let last = remote.version
        try settle(&machines, &remote, at: 502)
        #expect(remote.version == last, "nothing is written for ever")
    }

    private func settle(_ machines: inout [Machine], _ remote: inout Remote, at now: Int) throws {
        for _ in 0..<6 {
            for index in machines.indices {
                try machines[index].go(&remote, at: now)
                try machines[index].go(&remote, at: now)
            }
        }
    }

    /// In whatever order, and however often, records are merged.
    @Test func mergingIsCommutativeAssociativeAndIdempotent() throws {
        var generator = SeededGenerator(for: "merging values")
        for _ in 0..<200 {
            let records = try (0..<3).map { _ in
                // Also two machines of one name, as a copied disk makes.
                let machine = (["x", "y"] as [Key]).randomElement(using: &generator) ?? "x"
                var store = ValueStore(application: application, machine: machine)
                for _ in 0..<6 {
                    let key = (["a", "b", "c"] as [Key]).randomElement(using: &generator) ?? "a"
                    let time = Timestamp(seconds: Int.random(in: 0..<3, using: &generator), nanoseconds: 0)
                    let value = Value.integer(Int64.random(in: 0..<3, using: &generator))
                    if Bool.random(using: &generator) {
                        try store.set(value, for: key, at: time)
                    } else {
                        store.remove(key, at: time)
                    }
                }
                return store.record
            }
            func merged(_ order: [Int]) -> ValueRecord {
                order.dropFirst().reduce(into: records[order[0]]) { _ = $0.merge(records[$1]) }
            }
            var right = records[1]
            _ = right.merge(records[2])
            var associated = records[0]
            _ = associated.merge(right)
            #expect(merged([0, 1, 2]) == merged([2, 1, 0]))
            #expect(merged([0, 1, 2]) == associated)
            #expect(merged([0, 1, 2, 0, 1, 2]) == associated)
        }
    }
}
