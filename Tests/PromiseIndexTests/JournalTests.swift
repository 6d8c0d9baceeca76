import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// What was answered and not yet committed is in the journal, whatever happens.
@Suite struct JournalTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    static let small = 32_768

    private func open(_ path: [UInt8]? = nil) throws -> Index {
        try Index(path: path ?? folder.database, cacheCountMax: 100, journalByteCount: JournalTests.small)
    }

    private func make(_ text: String, in index: Index) throws {
        try index.write { transaction throws(Failure) in _ = try transaction.make(named: name(text)) }
    }

    private func names(_ path: [UInt8]) throws -> [String] {
        let index = try open(path)
        defer { index.close() }
        #expect(try index.verify() == [])
        return try index.read { transaction throws(Failure) in try transaction.children(of: .root).map(\.name.display) }
    }

    @Test func aKillAfterAnyBodyLosesNothing() throws {
        let index = try open()
        var made: [String] = []
        for number in 0..<40 {
            try make("\(100 + number)", in: index)
            made.append("\(100 + number)")
            #expect(try names(try folder.copyOfDatabase("copy\(number)")) == made)
            if number == 20 { _ = try index.commitCount() }
        }
    }

    /// Whichever byte of the last record is missing or wrong, what was before it is there.
    @Test func aTornLastRecordTakesNothingElse() throws {
        let index = try open()
        for number in 0..<3 { try make("\(number)", in: index) }
        let before = try folder.read("index.sqlite-redo-a")
        try make("last", in: index)
        let copy = try folder.copyOfDatabase("copy")
        let after = try folder.read("index.sqlite-redo-a")
        let first = try #require(after.indices.first { after[$0] != before[$0] })
        let last = try #require(after.indices.last { after[$0] != before[$0] })
        #expect(last - first > 100)
        let original = ["", "-wal", "-redo-a"].map { suffix in try? readFile(copy + Array(suffix.utf8)) }
        func reopen(_ journal: [UInt8]) throws -> [String] {
            for (suffix, bytes) in zip(["", "-wal"], original) {
                if let bytes { try writeFile(bytes, to: copy + Array(suffix.utf8)) }
            }
            _ = try? unlink(copy + Array("-redo-b".utf8), label: "test.remove")
            try writeFile(journal, to: copy + Array("-redo-a".utf8))
            return try names(copy)
        }
        #expect(try reopen(after) == ["0", "1", "2", "last"])
        for position in first...last {
            #expect(try reopen(Array(after[..<position])) == ["0", "1", "2"])
            var wrong = after
            wrong[position] ^= 0x10
            #expect(try reopen(wrong) == ["0", "1", "2"])
        }
    }

    @Test func recoveringAgainAndAgainChangesNothing() throws {
        let index = try open()
        for number in 0..<9 { try make("\(number)", in: index) }
        var copy = try folder.copyOfDatabase("copy")
        let expected = (0..<9).map { "\($0)" }
        for round in 0..<5 {
            let opened = try open(copy)
            defer { opened.close() }
            let again = try folder.copyOfDatabase("copy\(round)", from: copy)
            #expect(try names(try folder.copyOfDatabase("look\(round)", from: copy)) == expected)
            copy = again
        }
    }

    /// SQLite has committed what the journal holds too.
    @Test func recordsThatTheDatabaseHasAreNotRunAgain() throws {
        let index = try open()
        try make("a", in: index)
        // A node's row is written behind.
        _ = try index.commitCount()
        try index.runJournaled("UPDATE node SET edits = edits + 1 WHERE id = 2")
        let journal = try folder.read("index.sqlite-redo-a")
        _ = try index.commitCount()
        let copy = try folder.copyOfDatabase("copy")
        try writeFile(journal, to: copy + Array("-redo-a".utf8))
        let opened = try open(copy)
        #expect(try opened.read { transaction throws(Failure) in try transaction.node(NodeID(2))?.edits } == 1)
    }

    /// A journal that another version wrote is run as it was written, and before the tables are changed.
    @Test func statementsThatThisVersionDoesNotKnowAreReplayedBeforeTablesAreMigrated() throws {
        let index = try open()
        try Index.runAside("CREATE TABLE elsewhere (value TEXT)", path: folder.database)
        try index.runJournaled("INSERT INTO elsewhere VALUES ('from another version')")
        let copy = try folder.copyOfDatabase("copy")
        // As an older version's database: its migration finds what it would make.
        try Index.runAside("DELETE FROM grdb_migrations", path: copy)
        #expect(failure { _ = try open(copy) } != nil)
        try Index.runAside("INSERT INTO grdb_migrations VALUES ('1 tree'), ('2 listings'), ('3 searched names')", path: copy)
        try Index.runAside("DROP INDEX node_pinned", path: copy)
        try Index.runAside("DROP INDEX entry_conflict", path: copy)
        try Index.runAside("DROP INDEX entry_excluded", path: copy)
        try Index.runAside("DROP TABLE sent", path: copy)
        try Index.runAside("DROP TABLE displaced", path: copy)
        try Index.runAside("DROP TABLE hole", path: copy)
        try Index.runAside("DROP TABLE fingerprint", path: copy)
        try Index.runAside("DROP TABLE access_grant", path: copy)
        try Index.runAside("DROP TABLE removed", path: copy)
        try Index.runAside("DROP TABLE noted", path: copy)
        try Index.runAside("DROP TABLE noted_left", path: copy)
        try Index.runAside("INSERT INTO setting SELECT 'found', value FROM elsewhere", path: copy)
        let opened = try open(copy)
        #expect(try opened.read { transaction throws(Failure) in try transaction.setting("found") } == "from another version")
    }

    @Test func aJournalThatDoesNotFitIsReportedAndKept() throws {
        let index = try open()
        try Index.runAside("CREATE TABLE elsewhere (value TEXT)", path: folder.database)
        try index.runJournaled("INSERT INTO elsewhere VALUES ('a')")
        try make("b", in: index)
        let copy = try folder.copyOfDatabase("copy")
        try Index.runAside("DROP TABLE elsewhere", path: copy)
        for _ in 0..<2 { #expect(failure { _ = try open(copy) } == .corrupted) }
        try Index.runAside("CREATE TABLE elsewhere (value TEXT)", path: copy)
        #expect(try names(copy) == ["b"])
    }

    @Test func theJournalOfAnotherIndexIsIgnored() throws {
        let index = try open()
        try make("a", in: index)
        try folder.makeFolder("other")
        let other = folder.path("other/index.sqlite")
        try open(other).close()
        try writeFile(try folder.read("index.sqlite-redo-a"), to: other + Array("-redo-a".utf8))
        #expect(try names(other) == [])
    }

    @Test func aJournalOfANewerFormatIsRefused() throws {
        let index = try open()
        try make("a", in: index)
        let copy = try folder.copyOfDatabase("copy")
        var journal = try readFile(copy + Array("-redo-a".utf8))
        journal[8] += 1
        let sum = Index.checksum(Array(journal[..<40]))
        for byte in 0..<8 { journal[40 + byte] = UInt8(truncatingIfNeeded: sum >> UInt64(byte * 8)) }
        try writeFile(journal, to: copy + Array("-redo-a".utf8))
        #expect(failure { _ = try open(copy) } == .invalid)
    }

    /// Vectors of the specification of XXH64.
    @Test func theChecksumIsXXH64() {
        #expect(Index.checksum([]) == 0xEF46_DB37_51D8_E999)
        #expect(Index.checksum(Array("a".utf8)) == 0xD24E_C4F1_A98C_6E5B)
        #expect(Index.checksum(Array("abc".utf8)) == 0x44BC_2CF5_AD77_0999)
        let text = "Nobody inspects the spammish repetition"
        #expect(Index.checksum(Array(text.utf8)) == 0xFBCE_A83C_8A37_8BF1)
    }

    /// What `synchronize` has returned for survives without what SQLite has not synced.
    @Test func aPowerCutAfterSynchronizeLosesNothing() throws {
        let index = try open()
        try make("a", in: index)
        try index.synchronize()
        let log = try folder.read("index.sqlite-wal")
        for number in 0..<20 {
            try make("b\(number)", in: index)
            if number % 5 == 0 { _ = try index.commitCount() }
        }
        try index.synchronize()
        let copy = try folder.copyOfDatabase("copy")
        try writeFile(log, to: copy + Array("-wal".utf8))
        #expect(try names(copy).count == 21)
    }

    /// A body that was too large for the journal was lost with SQLite's log, and so were those after it. Then a new one got
    /// the number of the lost one, and at the next start what the journal still had of those after it happened.
    @Test func whatAPowerCutLeftBehindAGapNeverHappens() throws {
        let index = try open()
        try make("a", in: index)
        let cut = try folder.copyOfDatabase("cut")
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("large", String(repeating: "x", count: JournalTests.small))
            try transaction.make(named: name("lost"))
        }
        for number in 0..<3 { try make("after\(number)", in: index) }
        try writeFile(try folder.read("index.sqlite-redo-a"), to: cut + Array("-redo-a".utf8))
        let opened = try open(cut)
        for number in 0..<3 {
            try make("b\(number)", in: opened)
            _ = try opened.commitCount()
            let killed = try folder.copyOfDatabase("killed\(number)", from: cut)
            #expect(try names(killed) == ["a"] + (0...number).map { "b\($0)" })
        }
        opened.close()
    }

    /// SQLite with a rollback journal, an editor that saves: a new file is synced, and with it the index that names it.
    ///
    /// In a process of its own, as a fault is meant for the whole process.
    @Test func whereOneFlushDoesForAnotherFileAndTheJournalThereIsNoSecond() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("index")
            let index = try Index(path: folder.database, journalByteCount: JournalTests.small)
            let beside = try folder.fileBeside()
            // The first time the journal's files are new.
            try index.synchronize()
            try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
            FaultInjection.arm(from: "index.journal.fsync:\(EIO)")
            var count = 0
            try index.synchronize(after: beside.number) { count += 1 }
            try index.synchronize()
            try #require(count == 1)
            try #require(try FaultInjection.isArmed == folder.flushesWithAnyFile)
        }
    }

    @Test func whatCouldNotBeWrittenForAnothersFlushIsKeptBySQLite() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("index")
            let index = try Index(path: folder.database, journalByteCount: JournalTests.small)
            let beside = try folder.fileBeside()
            try index.synchronize()
            try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
            FaultInjection.arm(from: "index.journal.write:\(EIO)")
            var count = 0
            try index.synchronize(after: beside.number) { count += 1 }
            try #require(count == 1)
            try #require(try !FaultInjection.isArmed || !folder.flushesWithAnyFile)
            let copy = try folder.copyOfDatabase("copy")
            for half in ["-redo-a", "-redo-b"] { _ = try? unlink(copy + Array(half.utf8), label: "test") }
            let left = try Index(path: copy)
            try #require(try left.read { transaction throws(Failure) in try transaction.hasChildren(.root) })
        }
    }

    /// The kernel takes what it has dropped for written, and says so once.
    @Test func afterAFailingSyncTheIndexGoesOnInAnotherFile() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("index")
            let index = try Index(path: folder.database, journalByteCount: JournalTests.small)
            let make: (String) throws -> Void = { text in
                try index.write { transaction throws(Failure) in _ = try transaction.make(named: name(text)) }
            }
            try make("first")
            try #require(folder.exists("index.sqlite-redo-a") && !folder.exists("index.sqlite-redo-b"))
            FaultInjection.arm(from: "index.journal.fsync:\(EIO)")
            try index.synchronize()
            try #require(!FaultInjection.isArmed)
            try #require(!folder.exists("index.sqlite-redo-a"), "what could not be synced is given up")
            try make("second")
            let record = try folder.read("index.sqlite-redo-b").dropFirst(48).prefix(64)
            try #require(record.contains { $0 != 0 }, "the change is in the other file")
            // Both are written in turn again, and the first is a new one.
            for number in 0..<300 { try make("\(number)") }
            try #require(folder.exists("index.sqlite-redo-a"))
            try index.synchronize()
            let left = try Index(path: try folder.copyOfDatabase("copy"))
            let names = try left.read { transaction throws(Failure) in try transaction.children(of: .root) }
            try #require(names.count == 302)
            try #require(try left.verify() == [])
        }
    }

    /// Where it cannot be given up either, the next sync of it would succeed, and what was dropped be promised.
    @Test func aFileThatCouldNotBeSyncedIsNeverTakenForSynced() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("index")
            let index = try Index(path: folder.database, journalByteCount: JournalTests.small)
            try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
            try writeFile(
                Array("index.journal.fsync 1 EIO\nindex.log.fsync 1 EIO\n".utf8), to: folder.path("faults"))
            FaultInjection.watch(String(decoding: folder.path("faults"), as: UTF8.self))
            let code = failure { try index.synchronize() }
            try #require(code == .inputOutput)
            // By another way than that file.
            try index.synchronize()
            try #require(!folder.exists("index.sqlite-redo-a"))
        }
    }

    /// A body that fails leaves the journal as unsynced as it was.
    @Test func theJournalIsNotTakenForSyncedWhenTheOtherFileCouldNotBe() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("index")
            let index = try Index(path: folder.database, journalByteCount: JournalTests.small)
            let beside = try folder.fileBeside()
            try index.synchronize()
            try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
            let code = failure {
                try index.synchronize(after: beside.number) { () throws(Failure) in throw Failure(.inputOutput, "the disk") }
            }
            try #require(code == .inputOutput)
            FaultInjection.arm(from: "index.journal.fsync:\(EIO)")
            try index.synchronize()
            try #require(!FaultInjection.isArmed)
        }
    }

    /// Only their statements are in the journal, so their number decides, not the size of the database.
    @Test func aRecordLargerThanTheJournalIsACommit() throws {
        let index = try open()
        try make("a", in: index)
        try index.write { transaction throws(Failure) in
            for number in 0..<5 {
                let made = try transaction.make(named: name("b\(number)"))
                try transaction.setAttribute([1], of: made.node.id, to: [UInt8](repeating: 7, count: 20_000))
            }
        }
        try make("c", in: index)
        #expect(try names(try folder.copyOfDatabase("copy")) == ["a", "b0", "b1", "b2", "b3", "b4", "c"])
    }

    @Test func aBodyThatFailsTakesNoOtherWithIt() throws {
        let index = try open()
        for number in 0..<10 {
            try make("a\(number)", in: index)
            #expect(
                failure {
                    try index.write { transaction throws(Failure) in
                        try transaction.make(named: name("b\(number)"))
                        throw Failure(.interrupted, "the body gives up")
                    }
                } == .interrupted)
        }
        #expect(try index.verify() == [])
        #expect(try names(try folder.copyOfDatabase("copy")) == (0..<10).map { "a\($0)" })
    }
}
