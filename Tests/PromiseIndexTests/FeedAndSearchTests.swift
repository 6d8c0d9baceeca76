import Glibc
import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

@Suite struct FeedAndSearchTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    @Test func changesComeInOrderAndTheSequenceGoesOnAfterPruning() throws {
        var index = try folder.open()
        try index.write { transaction throws(Failure) in
            #expect(try transaction.lastChange() == 0)
            for number in 0..<20 {
                let name = number == 3 ? nil : FileName([0xFF, UInt8(number + 1)])
                try transaction.record(.moved, node: NodeID(7), parent: .root, name: name)
            }
        }
        let all = try index.read { transaction throws(Failure) in try transaction.changes(since: 0, limit: 99) }
        #expect(all.count == 20 && all.map(\.sequence) == all.map(\.sequence).sorted())
        #expect(all[3].name == nil && all[4].name == FileName([0xFF, 5]) && all[4].kind == .moved && all[4].node == NodeID(7))
        let some = try index.read { transaction throws(Failure) in try transaction.changes(since: all[4].sequence, limit: 2) }
        #expect(some == Array(all[5...6]))
        try index.checkpoint(keepingChanges: 5)
        for _ in 0..<2 {
            try index.read { transaction throws(Failure) in
                #expect(try transaction.changes(since: 0, limit: 99) == Array(all[15...]))
                #expect(try transaction.firstChange() == all[15].sequence)
                #expect(try transaction.lastChange() == all[19].sequence)
            }
            index.close()
            index = try folder.open()
        }
        try index.write { transaction throws(Failure) in
            try transaction.record(.created, node: NodeID(8), parent: .root, name: nil)
            #expect(try transaction.lastChange() > all[19].sequence)
        }
    }

    private func names(_ index: Index, _ text: String, limit: Int = 99) throws -> Set<String> {
        let found = try index.read { transaction throws(Failure) in try transaction.search(names: text, limit: limit) }
        return Set(found.map(\.name.display))
    }

    private static let fillerCount = 21_000

    /// More names than are looked through one by one.
    private func fill(_ index: Index) throws {
        for part in 0..<21 {
            try index.write { transaction throws(Failure) in
                for number in 0..<(FeedAndSearchTests.fillerCount / 21) {
                    try transaction.make(named: name("filler \(part) \(number)"))
                }
            }
        }
    }

    /// Who searches seconds after a large folder was listed waited for each of its names to be found by its node.
    @Test func aSearchThatTheIndexOfNamesIsNotReadyForIsQuick() throws {
        let index = try folder.open()
        try fill(index)
        _ = try index.write { transaction throws(Failure) in try transaction.make(named: name("the one")) }
        var times: [Int] = []
        for _ in 0..<5 {
            let start = processorTime()
            let found = try names(index, "the one")
            times.append(processorTime() - start)
            #expect(found == ["the one"])
        }
        let each = try #require(times.min()) / FeedAndSearchTests.fillerCount
        #expect(each < 350, "\(each) ns of a processor for each name")
    }

    /// Of this thread.
    private func processorTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// The same answers before the trigram index has seen anything, afterwards, and after it was built anew.
    @Test(arguments: ["never", "caught up", "rebuilt", "far behind"]) func searchFindsPartsOfNames(_ state: String) throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            let names = [
                "Report 2024.txt", "report \"final\".md", "Übersicht", "übermut", "100%_sure", "cafe\u{301}", "caf\u{E9}", "ab",
            ]
            for text in names {
                try transaction.make(named: name(text))
            }
            try transaction.make(named: FileName(Array("raw".utf8) + [0xFF])!)
            let linked = try transaction.make(named: name("first name"))
            _ = try transaction.insertEntry(in: .root, named: name("second name"), node: linked.node.id, identifier: nil)
            var node = linked.node
            node.linkCount = 2
            try transaction.update(node)
        }
        if state == "caught up" { try index.catchUpSearch() }
        if state == "far behind" { try fill(index) }
        if state == "rebuilt" {
            try index.checkpoint(keepingChanges: 1)
            try index.catchUpSearch()
        }
        #expect(try names(index, "report") == ["Report 2024.txt", "report \"final\".md"])
        #expect(try names(index, "\"FINAL\"") == ["report \"final\".md"])
        #expect(try names(index, "ÜBER") == ["Übersicht", "übermut"])
        #expect(try names(index, "0%_") == ["100%_sure"])
        #expect(try names(index, "caf\u{E9}") == ["caf\u{E9}"])
        #expect(try names(index, "cafe") == ["cafe\u{301}"])
        #expect(try names(index, "\\xff") == ["raw\\xff"])
        #expect(try names(index, "second") == ["second name"])
        #expect(try names(index, "name") == ["first name", "second name"])
        #expect(try names(index, "ab") == ["ab"])
        #expect(try names(index, "Ü") == ["Übersicht", "übermut"])
        #expect(try names(index, "").isEmpty && names(index, "a/b").isEmpty && names(index, "first\u{0}").isEmpty)
        #expect(try names(index, "name/second").isEmpty)
        #expect(try names(index, "e", limit: 2).count == 2)
        #expect(try index.verify() == [])
    }

    @Test func searchIsNeverStale() throws {
        let index = try folder.open()
        let made = try index.write { transaction throws(Failure) in try transaction.make(named: name("before the move")) }
        try index.catchUpSearch()
        var moved = made.entry
        moved.name = name("after the move")
        try index.write { [moved] transaction throws(Failure) in
            try transaction.update(moved)
            try transaction.record(.moved, node: moved.node, parent: .root, name: moved.name)
        }
        for _ in 0..<2 {
            #expect(try names(index, "before").isEmpty)
            #expect(try names(index, "after") == ["after the move"])
            try index.catchUpSearch()
        }
        try index.write { [moved] transaction throws(Failure) in
            try transaction.delete(moved.id)
            try transaction.delete(moved.node)
            try transaction.record(.deleted, node: moved.node, parent: .root, name: moved.name)
        }
        for _ in 0..<2 {
            #expect(try names(index, "after").isEmpty)
            try index.catchUpSearch()
        }
    }

    /// The names that a repair gave could not be found, and those that it took were told of as if they were there.
    @Test func whatARepairNamesIsFound() throws {
        let index = try folder.open()
        let (nameless, loose, second) = try index.write { transaction throws(Failure) in
            let nameless = try transaction.insert(
                Node(id: .root, kind: .link, mode: 0o777, owner: 0, group: 0, time: time(5)))
            let file = try transaction.make(named: name("a file"))
            let loose = try transaction.make(in: file.node.id, named: name("loose"))
            let twice = try transaction.make(.folder, named: name("twice"))
            let second = try transaction.insertEntry(
                in: .root, named: name("second"), node: twice.node.id, identifier: nil)
            return (nameless.id, loose.node.id, second)
        }
        try index.catchUpSearch()
        let before = index.newestChange
        try index.write { transaction throws(Failure) in
            _ = try transaction.repair(now: .zero, hasContent: { _ in true }, keep: { _ in [] })
        }
        let shown = [nameless, loose].map { "recovered " + String($0.rawValue, radix: 16) }
        for _ in 0..<2 {
            #expect(try names(index, "recovered") == Set(shown))
            #expect(try names(index, "loose").isEmpty && names(index, "second").isEmpty)
            try index.catchUpSearch()
        }
        let changes = try index.read { transaction throws(Failure) in try transaction.changes(since: before, limit: 99) }
        #expect(changes.contains { $0.kind == .created && $0.node == nameless && $0.name?.display == shown[0] })
        #expect(changes.contains { $0.kind == .left && $0.node == loose && $0.name == name("loose") })
        #expect(changes.contains { $0.kind == .moved && $0.node == loose && $0.name?.display == shown[1] })
        #expect(changes.contains { $0.kind == .deleted && $0.node == second.node && $0.name == second.name })
    }
}
