import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// What was removed and can come back.
@Suite struct RemovedRowsTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("removed") }

    private func item(_ number: UInt64, at path: [FileName], bytes: UInt64 = 4096) -> RemovedItem {
        var node = Node(
            id: NodeID(1_000 + number), kind: .file, mode: 0o640, owner: 7, group: 8, size: 5,
            time: time(9))
        node.localBytes = bytes
        node.version = ContentVersion("v")
        return RemovedItem(node, at: path, removed: time(Int64(number)))
    }

    @Test func rowsComeBackAsTheyWentInAlsoWithOddNames() throws {
        let index = try folder.open()
        let odd = FileName([0xFF, 0x20, 0x0A])!
        var kept = item(1, at: [name("d"), odd])
        kept.attributes = [
            RemovedItem.ExtendedAttribute(name: Array("user.a".utf8), value: []),
            RemovedItem.ExtendedAttribute(name: Array("user.b".utf8), value: [0, 1, 255]),
        ]
        try index.write { [kept] transaction throws(Failure) in
            try RemovedRows.insert(kept, transaction)
            try RemovedRows.insert(item(2, at: [name("dd")]), transaction)
            try RemovedRows.insert(item(3, at: [name("d")]), transaction)
        }
        #expect(try index.verify() == [])
        index.close()
        let again = try folder.open()
        defer { again.close() }
        try again.read { transaction throws(Failure) in
            let below = try RemovedRows.all(below: [name("d")], transaction)
            #expect(below.map(\.node.rawValue) == [1_003, 1_001])
            #expect(below.last?.path == [name("d"), odd])
            #expect(below.last?.attributes == kept.attributes)
            #expect(
                below.last?.mode == 0o640 && below.last?.version?.rawValue == "v"
                    && below.last?.size == 5)
            #expect(try RemovedRows.all(transaction).count == 3)
            let totals = RemovedRows.totals(transaction)
            #expect(totals.count == 3 && totals.bytes == 3 * 4096)
        }
    }

    /// The totals are kept in memory: a body that is undone, and one that settles another size,
    /// must not shift them.
    @Test func totalsAreThoseOfTheTable() throws {
        let index = try folder.open()
        defer { index.close() }
        try index.write { transaction throws(Failure) in
            for number in 1...3 {
                try RemovedRows.insert(item(UInt64(number), at: [name("a")]), transaction)
            }
        }
        #expect(throws: Failure.self) {
            try index.write { transaction throws(Failure) in
                try RemovedRows.insert(item(4, at: [name("b")]), transaction)
                throw Failure(.invalid, "undone")
            }
        }
        try index.write { transaction throws(Failure) in
            var node = Node(
                id: NodeID(1_002), kind: .file, mode: 0, owner: 0, group: 0, size: 9, time: time(9),
                content: .whole)
            node.localBytes = 8192
            #expect(try RemovedRows.noteLastClose(of: node, transaction))
            let first = try RemovedRows.oldest(limit: 1, transaction)[0]
            #expect(try RemovedRows.drop(first, transaction)?.node == NodeID(1_001))
            #expect(
                try RemovedRows.drop(first, transaction)?.node == NodeID(1_001), "again is once")
        }
        try index.read { transaction throws(Failure) in
            let totals = RemovedRows.totals(transaction)
            #expect(totals.count == 2 && totals.bytes == 8192 + 4096)
            #expect(try RemovedRows.file(of: NodeID(1_002), transaction)?.size == 9)
        }
        #expect(try index.verify() == [])
    }

    @Test func aKeptNodeThatHasANameIsAProblem() throws {
        let index = try folder.open()
        defer { index.close() }
        try index.write { transaction throws(Failure) in
            let (node, entry) = try transaction.make(named: name("a"))
            _ = entry
            try RemovedRows.insert(
                RemovedItem(node, at: [name("a")], removed: time(1)), transaction)
        }
        #expect(try index.verify().count == 1)
    }
}
