import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What is on disk at any moment, and what opening makes of a file that is damaged, newer or held by somebody else.
@Suite struct DurabilityTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    /// A copy of database, log and journal is what a kill would leave: it must open and hold everything that had returned.
    @Test func aCopyTakenWhileAWriterRunsHoldsWhatHadReturned() throws {
        let index = try folder.open()
        let returned = Atomic<Int>(0)
        let isDone = Atomic<Bool>(false)
        let writer = OwnedThread(name: "writer") {
            var number = 0
            while !isDone.load(ordering: .acquiring) {
                #expect(throws: Never.self) {
                    try index.write { [number] transaction throws(Failure) in
                        let made = try transaction.make(named: name("\(number)"))
                        if number % 3 == 2 {
                            try transaction.delete(made.entry.id)
                            try transaction.delete(made.node.id)
                        }
                        try transaction.setSetting("count", "\(number + 1)")
                    }
                }
                number += 1
                returned.store(number, ordering: .releasing)
                // Fast enough to be writing whenever a copy is taken, slow enough for the log to stay small.
                usleep(500)
            }
        }
        for round in 0..<10 {
            usleep(20_000)
            let before = returned.load(ordering: .acquiring)
            let copy = try folder.copyOfDatabase("copy\(round)")
            try expectPrefix(copy, atLeast: before)
        }
        isDone.store(true, ordering: .releasing)
        writer.join()
    }

    /// A power cut may leave any part of the log that was not synchronized, and of the journal.
    @Test func aTornLogLeavesAConsistentPrefix() throws {
        var random = SeededGenerator(for: "aTornLogLeavesAConsistentPrefix")
        let index = try folder.open()
        for number in 0..<100 {
            try index.write { transaction throws(Failure) in
                try transaction.make(named: name("\(number)"))
                try transaction.setSetting("count", "\(number + 1)")
            }
            // Commits what is open, now and then.
            if number % 30 == 29 { _ = try index.commitCount() }
        }
        for round in 0..<10 {
            let copy = try folder.copyOfDatabase("torn\(round)")
            var log = try readFile(copy + Array("-wal".utf8))
            log.removeLast(Int.random(in: 0..<log.count, using: &random))
            if let last = log.indices.last { log[last] ^= 0xFF }
            try writeFile(log, to: copy + Array("-wal".utf8))
            var journal = try readFile(copy + Array("-redo-a".utf8))
            journal[Int.random(in: 0..<40_000, using: &random)] ^= 0xFF
            try writeFile(journal, to: copy + Array("-redo-a".utf8))
            try expectPrefix(copy, atLeast: 0)
        }
    }

    private func expectPrefix(_ path: [UInt8], atLeast count: Int) throws {
        let index = try Index(path: path)
        #expect(try index.verify() == [])
        let found = try index.read { transaction throws(Failure) in Int(try transaction.setting("count") ?? "0")! }
        #expect(found >= count)
        index.close()
    }

    @Test func synchronizeSucceedsWithAndWithoutALog() throws {
        let index = try folder.open()
        try index.synchronize()
        try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
        try index.synchronize()
        try index.checkpoint()
        try index.synchronize()
        index.close()
        #expect(!folder.exists("index.sqlite-wal"))
        #expect(failure { try index.synchronize() } != nil)
    }

    @Test func theLogShrinksAfterACheckpoint() throws {
        let index = try folder.open()
        for number in 0..<50 {
            try index.write { transaction throws(Failure) in
                let made = try transaction.make(named: name("\(number)"))
                try transaction.setAttribute([1], of: made.node.id, to: [UInt8](repeating: 7, count: 50_000))
            }
        }
        func logSize() throws -> UInt64 { try FileStatus.of(folder.path("index.sqlite-wal"), label: "test").size }
        // Only what SQLite has committed is in its log.
        try index.checkpoint()
        let full = try logSize()
        #expect(full > 2_000_000)
        for round in 0..<50 {
            try index.checkpoint()
            try index.write { transaction throws(Failure) in try transaction.setSetting("round", "\(round)") }
        }
        // The next writer after a checkpoint begins the log again instead of adding to it.
        #expect(try logSize() <= full + 1_000_000)
        #expect(try index.verify() == [])
    }

    /// A writer always has a transaction open, so a checkpoint that is not alone never comes to the log's end: on a mount that
    /// was busy for half an hour the log had a gigabyte.
    @Test func aLogThatIsWrittenToAllTheTimeIsBegunAgain() throws {
        let index = try folder.open()
        // Three to a page: a record of a kilobyte costs a page of the log.
        let nodes = try (0..<3_000).map { number in
            try index.write { transaction throws(Failure) in
                let made = try transaction.make(named: name("\(number)"))
                try transaction.setAttribute([1], of: made.node.id, to: [UInt8](repeating: 7, count: 1_000))
                return made.node.id
            }
        }
        let isDone = Atomic<Bool>(false)
        let writer = OwnedThread(name: "writer") {
            var number = 0
            while !isDone.load(ordering: .acquiring) {
                let (node, byte) = (nodes[number % nodes.count], UInt8(truncatingIfNeeded: number))
                #expect(throws: Never.self) {
                    try index.write { transaction throws(Failure) in
                        try transaction.setAttribute([1], of: node, to: [UInt8](repeating: byte, count: 1_000))
                    }
                }
                // Another page each time.
                number += 3
            }
        }
        defer {
            isDone.store(true, ordering: .releasing)
            writer.join()
        }
        // As the background thread does, which is told of every 16 MiB.
        for _ in 0..<10 {
            let before = try index.logPageCount()
            while try index.logPageCount() - before < 4_096 { usleep(1_000) }
            try index.checkpoint()
        }
        usleep(50_000)
        _ = try index.logPageCount()
        // 160 MB were written to it; begun again it has what came since, and what may come while it is copied.
        #expect(try FileStatus.of(folder.path("index.sqlite-wal"), label: "test").size < 100_000_000)
    }

    @Test func aPathThatIsNoTextWorks() throws {
        let path = folder.path([0xFF, 0x25, 0x3F])
        let index = try Index(path: path)
        try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
        try index.synchronize()
        index.close()
        #expect(try folder.names().contains([0xFF, 0x25, 0x3F]))
        #expect(try Index(path: path).read { transaction throws(Failure) in try transaction.hasChildren(.root) })
    }

    @Test func aFileThatIsNoDatabaseIsCorrupted() throws {
        try writeFile([UInt8](repeating: 0x41, count: 8_192), to: folder.database)
        #expect(failure { _ = try folder.open() } == .corrupted)
    }

    @Test func aMissingFolderIsAFailure() throws {
        #expect(failure { _ = try Index(path: folder.path("missing/index.sqlite")) } == .inputOutput)
    }

    @Test func aDatabaseOfANewerVersionIsRefused() throws {
        let index = try folder.open()
        index.close()
        try Index.runAside("INSERT INTO grdb_migrations VALUES ('999 from the future')", path: folder.database)
        #expect(failure { _ = try folder.open() } == .invalid)
    }

    @Test func verifyNamesAMissingIndex() throws {
        let index = try folder.open()
        index.close()
        try Index.runAside("DROP INDEX entry_node", path: folder.database)
        let again = try folder.open()
        #expect(try again.verify() == ["the table or index entry_node is missing"])
    }

    @Test func aDatabaseHeldBySomebodyElseIsBusy() throws {
        let index = try folder.open()
        try Index.whileLocked(path: folder.database) { () throws in
            #expect(failure { try index.write { transaction throws(Failure) in try transaction.setSetting("a", "b") } } == .busy)
            // Readers do not wait for writers.
            #expect(try index.read { transaction throws(Failure) in try transaction.setting("a") } == nil)
        }
        try index.write { transaction throws(Failure) in try transaction.setSetting("a", "b") }
    }
}
