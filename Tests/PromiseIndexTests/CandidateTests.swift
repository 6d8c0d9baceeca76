import PromiseCore
import PromiseIndex
import PromiseQuery
import PromiseTestSupport
import Testing

/// Whatever a predicate allows SQL to leave out does not satisfy it, wherever the search of names has got to.
@Suite struct CandidateTests {
    private struct Attributes: AttributeSource {
        let item: IndexedItem
        func value(of key: AttributeKey) -> QueryValue {
            switch key {
            case .name: .text(Array(item.entry.name.display.utf8))
            case .size: .integer(Int64(item.node.size))
            case .contentChangeDate: .time(item.node.modificationTime.rawValue)
            default: .null
            }
        }
    }

    private static let predicates = [
        "TRUEPREDICATE", "FALSEPREDICATE", "kMDItemFSName CONTAINS 'port'", "kMDItemFSName CONTAINS[c] 'PORT'",
        "kMDItemFSName CONTAINS[cd] 'resume'", "kMDItemFSName LIKE '*.txt'", "kMDItemFSName LIKE[c] 'Rep*9.TXT'",
        "kMDItemFSName == 'report-7.txt'", "kMDItemFSName ENDSWITH 'ésumé'", "kMDItemFSName MATCHES 'report-[0-4]+.txt'",
        "kMDItemFSSize > 50 AND kMDItemFSSize < 70", "kMDItemFSSize BETWEEN {10, 20} AND kMDItemFSName CONTAINS 'report'",
        "kMDItemFSSize == 33", "kMDItemFSSize > 50 OR kMDItemFSName CONTAINS 'port'", "NOT kMDItemFSName CONTAINS 'port'",
        "kMDItemFSSize > 90 AND kMDItemFSSize < 10", "kMDItemFSName CONTAINS '\"x\"'", "kMDItemFSName CONTAINS '\\\\xff'",
        "kMDItemFSContentChangeDate > '1970-01-02'", "kMDItemFSSize IN {1, 2, 3}", "kMDItemFSName CONTAINS 'ab'",
        "kMDItemFSName == 'ab'", "kMDItemFSName == 'a'", "kMDItemFSName ==[c] 'PORT'", "kMDItemFSName == 'eport'",
        "kMDItemFSName BEGINSWITH 'report-1'", "kMDItemFSName BEGINSWITH 'eport'", "kMDItemFSName BEGINSWITH[c] 'RE'",
        "kMDItemFSName ENDSWITH '7.txt'", "kMDItemFSName ENDSWITH[c] 'ort'", "kMDItemFSName LIKE 'report-?.txt'",
        "kMDItemFSName LIKE '?a*'", "kMDItemFSName LIKE 'po*'", "kMDItemFSName CONTAINS 'a/b'", "kMDItemFSName == 'say \"x\"'",
    ]

    private func matches(_ predicate: Predicate, _ index: Index, pageCount: Int) throws -> [String] {
        let plan = CandidatePlan(predicate)
        var position = CandidatePosition.start
        var result: Set<EntryID> = []
        var names: [String] = []
        while true {
            if case .end = position { return names.sorted() }
            let page = try index.read { transaction throws(Failure) in
                try transaction.candidates(plan, &position, limit: pageCount)
            }
            for item in page where predicate.isSatisfied(by: Attributes(item: item)) {
                if result.insert(item.entry.id).inserted { names.append(item.entry.name.display) }
            }
        }
    }

    @Test(arguments: [0, 60, 120]) func noCandidateIsLeftOut(caughtUp: Int) throws {
        let folder = try TemporaryFolder()
        let index = try folder.open()
        defer { index.close() }
        var names = (0..<110).map { name("report-\($0).\($0 % 3 == 0 ? "TXT" : "txt")") }
        names += [name("Résumé"), name("résumé"), name("say \"x\""), FileName([0x61, 0x62, 0xFF])!, name("port"), name("PORT")]
        names += [name("a"), name("ab"), name("aab")]
        for (number, name) in names.enumerated() {
            if number == caughtUp { try index.catchUpSearch() }
            try index.write { transaction throws(Failure) in
                try transaction.make(named: name) { node in
                    node.size = UInt64(number)
                    node.modificationTime = time(Int64(number) * 1_000_000_000_000)
                }
                return
            }
        }
        for text in Self.predicates {
            let predicate = try PredicateParser.parse(text)
            let expected = try index.read { transaction throws(Failure) in
                try transaction.items(of: try transaction.children(of: .root).map(\.node))
            }.filter { predicate.isSatisfied(by: Attributes(item: $0)) }.map(\.entry.name.display).sorted()
            for pageCount in [7, 1_000] {
                let found = try matches(predicate, index, pageCount: pageCount)
                #expect(found == expected, "\(text), pages of \(pageCount)")
            }
        }
    }

    /// An index whose search of names was made before names were put between slashes.
    @Test func theSearchOfAnOlderVersionIsMadeAnew() throws {
        let folder = try TemporaryFolder()
        let older = try folder.open()
        try older.write { transaction throws(Failure) in
            for text in ["report", "report-2"] { try transaction.make(named: name(text)) }
        }
        try older.catchUpSearch()
        older.close()
        try Index.runAside("UPDATE name_search SET names = trim(names, '/')", path: folder.database)
        try Index.runAside("DELETE FROM grdb_migrations WHERE identifier LIKE '3 %'", path: folder.database)
        let index = try folder.open()
        defer { index.close() }
        let predicate = try PredicateParser.parse("kMDItemFSName == 'report'")
        for _ in 0..<2 {
            #expect(try matches(predicate, index, pageCount: 10) == ["report"])
            try index.catchUpSearch()
        }
        var position = CandidatePosition.start
        let first = try index.read { transaction throws(Failure) in
            try transaction.candidates(CandidatePlan(predicate), &position, limit: 10)
        }
        #expect(first.map(\.entry.name) == [name("report")], "nothing else is looked at")
    }

    /// More names than a piece of the index of names has, all with `name` in them.
    private func fill(_ index: Index, count: Int) throws -> [Entry] {
        try index.write { transaction throws(Failure) in
            var made: [Entry] = []
            for number in 0..<count { made.append(try transaction.make(named: name("name \(number)")).entry) }
            return made
        }
    }

    private func isMadeFurther(_ index: Index) throws -> Bool {
        try index.write { transaction throws(Failure) in try transaction.indexSomeNames() }
    }

    /// It was emptied first, in one step: with half a million names that took as long as a daemon may be silent.
    @Test func theSearchIsMadeAnewByPieces() throws {
        let folder = try TemporaryFolder()
        let index = try folder.open()
        defer { index.close() }
        let made = try fill(index, count: 4_000)
        try index.catchUpSearch()
        try index.write { transaction throws(Failure) in
            for entry in made[1_000..<2_500] {
                try transaction.delete(entry.id)
                try transaction.delete(entry.node)
                try transaction.record(.deleted, node: entry.node, parent: .root, name: entry.name)
            }
        }
        try index.checkpoint(keepingChanges: 1)
        let before = try index.logPageCount()
        #expect(try isMadeFurther(index))
        #expect(try index.logPageCount() - before < 10, "the first piece only says that it begins")
        var count = 1
        while try isMadeFurther(index) { count += 1 }
        #expect(count > 4_000 / 300, "also where there are only rows of what has gone")
        let plan = CandidatePlan(try PredicateParser.parse("kMDItemFSName CONTAINS 'name'"))
        var position = CandidatePosition.start
        var found = 0
        while true {
            let page = try index.read { transaction throws(Failure) in
                try transaction.candidates(plan, &position, limit: 100)
            }
            found += page.count
            guard case .names = position else { break }
            #expect(!page.isEmpty, "no row of what has gone is left")
        }
        #expect(found == 2_500)
    }

    /// A reader takes its time; meanwhile the feed is pruned and the index of names made anew.
    @Test func aQuestionThatIsAskedMeanwhileMissesNothing() throws {
        let folder = try TemporaryFolder()
        let index = try folder.open()
        defer { index.close() }
        var expected = Set(try fill(index, count: 2_000).map(\.id))
        try index.catchUpSearch()
        let plan = CandidatePlan(try PredicateParser.parse("kMDItemFSName CONTAINS 'name'"))
        var position = CandidatePosition.start
        var found: Set<EntryID> = []
        func readPage() throws {
            let page = try index.read { transaction throws(Failure) in
                try transaction.candidates(plan, &position, limit: 100)
            }
            found.formUnion(page.map(\.entry.id))
        }
        try readPage()
        guard case .names = position else {
            Issue.record("the index of names is not used")
            return
        }
        try index.write { transaction throws(Failure) in
            for number in 0..<20 { expected.insert(try transaction.make(named: name("late name \(number)")).entry.id) }
        }
        try index.checkpoint(keepingChanges: 1)
        while try isMadeFurther(index) { try readPage() }
        while true {
            if case .end = position { break }
            try readPage()
        }
        #expect(found == expected)
    }

    @Test func aFollowerWaitsUntilSomethingChanges() throws {
        let folder = try TemporaryFolder()
        let index = try folder.open()
        defer { index.close() }
        let first = index.waitForChange(after: 0, timeout: .milliseconds(20))
        #expect(first == 0)
        try index.write { transaction throws(Failure) in
            try transaction.make(named: name("a"))
            return
        }
        let second = index.waitForChange(after: first, timeout: .seconds(30))
        #expect(second > first)
        index.wakeFollower()
        #expect(index.waitForChange(after: second, timeout: .seconds(30)) == second)
    }
}
