import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// Random bodies, commits, failures and crashes: what is reopened must be what the model says.
@Suite struct CrashTests {
    @Test(arguments: 0..<6) func whatIsReopenedAfterACrashIsWhatWasAnswered(_ round: Int) throws {
        let folder = try TemporaryFolder("index")
        var run = Run(generator: SeededGenerator(for: "whatIsReopenedAfterACrashIsWhatWasAnswered \(round)"))
        var path = folder.database
        // So small that files are changed all the time.
        let size = [16_384, 20_000, 65_536][round % 3]
        var index = try Index(path: path, cacheCountMax: 16, journalByteCount: size)
        try index.write { transaction throws(Failure) in try transaction.setSetting("root.identifier", "root") }
        run.model.nodes[.root] = try index.read { transaction throws(Failure) in try transaction.node(.root) }
        for step in 0..<120 {
            switch Int.random(in: 0..<12, using: &run.generator) {
            case 0: _ = try index.commitCount()
            case 1: try index.synchronize()
            case 2 where run.chance(3): try index.checkpoint(keepingChanges: 40)
            case 3:
                path = try folder.copyOfDatabase("copy\(step)", from: path)
                index = try Index(path: path, cacheCountMax: 16, journalByteCount: size)
                try expectEqual(index, run.model)
            case 4 where run.chance(4):
                index.close()
                index = try Index(path: path, cacheCountMax: 16, journalByteCount: size)
            default: try runBody(index, &run)
            }
        }
        try expectEqual(index, run.model)
    }

    private func runBody(_ index: Index, _ run: inout Run) throws {
        let before = run.model
        let gaveUp = failure {
            try index.write { transaction throws(Failure) in
                for _ in 0..<Int.random(in: 1...6, using: &run.generator) { try run.step(transaction) }
                if run.chance(5) { throw Failure(.interrupted, "the body gives up") }
            }
        }
        if let gaveUp {
            try #require(gaveUp == .interrupted)
            run.model = before
        }
    }

    private func expectEqual(_ index: Index, _ model: Model) throws {
        try index.read { transaction throws(Failure) in
            // Nothing below throws another type; the expectations merely hide that from the compiler.
            do { try model.expectEqual(transaction, names: Run.names) } catch { throw error as! Failure }
        }
        try #require(try index.verify() == [])
    }

    /// Every call of the journal and the commit fails once, at every moment: what had returned is there, what threw is not.
    ///
    /// In a process of its own, as a fault is meant for the whole process.
    /// > After a failing fsync of the journal the index goes on in another file, as the kernel may have dropped what it could
    @Test(.timeLimit(.minutes(5))) func aFailureOfAnyCallCostsOnlyItsBody() async {
        await #expect(processExitsWith: .success) {
            let labels = [
                "index.journal.append", "index.journal.header", "index.journal.make", "index.journal.allocate",
                "index.journal.fsync", "index.journal.read", "index.journal.size", "index.log.fsync", "index.commit",
                "index.folder.fsync",
            ] + (try Faults.oneFlushLabels)
            for label in labels {
                for code in [EIO, ENOSPC] {
                    for skip in [0, 1, 2, 5, 17] { try Faults(label, code, skip).run() }
                }
            }
        }
    }

    /// The log of SQLite grows from life to life, though none of them writes much.
    @Test(.timeLimit(.minutes(2))) func crashAfterCrashTheLogStaysSmall() throws {
        let folder = try TemporaryFolder("index")
        var path = folder.database
        var checkpointCount = 0
        func logSize() throws -> UInt64 { try FileStatus.of(path + Array("-wal".utf8), label: "test").size }
        for round in 0..<12 {
            let index = try Index(path: path)
            if try logSize() > 17 << 20 {
                #expect(index.waitUntilCheckpointIsDue())
                try index.checkpoint()
                checkpointCount += 1
            }
            for number in 0..<50 {
                try index.write { transaction throws(Failure) in
                    let made = try transaction.make(named: name("\(round) \(number)"))
                    try transaction.setAttribute([1], of: made.node.id, to: [UInt8](repeating: 7, count: 50_000))
                }
            }
            _ = try index.commitCount()
            path = try folder.copyOfDatabase("copy\(round)", from: path)
        }
        #expect(checkpointCount > 0)
        #expect(try logSize() < 24 << 20)
        #expect(try Index(path: path).read { transaction throws(Failure) in try transaction.children(of: .root).count } == 600)
    }

    @Test func aNewIndexWorksWhereItsJournalCannotBeMade() async {
        await #expect(processExitsWith: .success) {
            for label in ["index.journal.make", "index.journal.allocate", "index.journal.header"] {
                let folder = try TemporaryFolder("index")
                FaultInjection.arm(from: "\(label):\(ENOSPC)")
                let index = try Index(path: folder.database, journalByteCount: 16_384)
                for number in 0..<5 {
                    try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("\(number)")) }
                }
                let copy = try Index(path: try folder.copyOfDatabase("copy"), journalByteCount: 16_384)
                try #require(try copy.read { transaction throws(Failure) in try transaction.children(of: .root).count } == 5)
            }
        }
    }

    /// The kernel takes a part of a record and then refuses: RLIMIT_FSIZE makes it (setrlimit(2)).
    @Test func aShortWriteIsNoRecord() async {
        await #expect(processExitsWith: .success) {
            signal(SIGXFSZ, SIG_IGN)
            let folder = try TemporaryFolder("index")
            let index = try Index(path: folder.database, journalByteCount: 1 << 20)
            var made: Set<String> = []
            func make(_ text: String) throws {
                try index.write { transaction throws(Failure) in
                    let made = try transaction.make(named: name(text))
                    try transaction.setAttribute([1], of: made.node.id, to: [UInt8](repeating: 7, count: 5_000))
                }
                made.insert(text)
            }
            for number in 0..<60 { try make("a\(number)") }
            // The journal has about 300 KiB of records now; the log of SQLite is smaller than the limit.
            var limit = rlimit()
            try #require(getrlimit(__rlimit_resource_t(1), &limit) == 0)
            limit.rlim_cur = 330_000
            try #require(setrlimit(__rlimit_resource_t(1), &limit) == 0)
            for number in 0..<20 { try? make("b\(number)") }
            limit.rlim_cur = limit.rlim_max
            try #require(setrlimit(__rlimit_resource_t(1), &limit) == 0)
            for number in 0..<5 { try make("c\(number)") }
            let copy = try Index(path: try folder.copyOfDatabase("copy"), journalByteCount: 1 << 20)
            let found = try copy.read { transaction throws(Failure) in try transaction.children(of: .root).map(\.name.display) }
            try #require(Set(found) == made)
            try #require(try copy.verify() == [])
        }
    }
}

/// One run with one fault, compared after a crash and after a close.
private struct Faults {
    let folder: TemporaryFolder
    let index: Index
    let label: String
    let isFirst: Bool
    private let beside: SharedDescriptor

    /// Only called where one flush does for every file.
    static var oneFlushLabels: [String] {
        get throws { try TemporaryFolder("index").flushesWithAnyFile ? ["index.journal.write"] : [] }
    }

    init(_ label: String, _ code: CInt, _ skip: Int) throws {
        folder = try TemporaryFolder("index")
        index = try Index(path: folder.database, journalByteCount: 16_384)
        beside = SharedDescriptor(try folder.fileBeside())
        self.label = label
        isFirst = skip == 0
        FaultInjection.arm(from: "\(label):\(code):\(skip)")
    }

    func run() throws {
        var made: Set<String> = []
        for number in 0..<120 {
            do {
                try index.write { transaction throws(Failure) in
                    let made = try transaction.make(named: name("\(number)"))
                    try transaction.setAttribute([1], of: made.node.id, to: [UInt8](repeating: 7, count: 300))
                    if number % 10 == 7 { throw Failure(.interrupted, "the body gives up") }
                }
                made.insert("\(number)")
            } catch {
                // A restoring that failed is tried again by the next call.
            }
            // Neither must lose anything when it fails.
            if number % 13 == 0 { _ = try? index.synchronize() }
            if number % 13 == 6 { _ = try? index.synchronize(after: beside.number) {} }
            if number % 31 == 0 { _ = try? index.commitCount() }
        }
        // A call that nobody makes is no test.
        try #require(!isFirst || !FaultInjection.isArmed)
        FaultInjection.arm(from: "nothing:\(EIO)")
        // All but those that gave up, and at most one that met the fault, or two where replaying failed too.
        try #require(made.count >= 106)
        let seen = try index.read { transaction throws(Failure) in try transaction.children(of: .root).map(\.name.display) }
        try #require(Set(seen) == made)
        let copy = try Index(path: try folder.copyOfDatabase("copy"), journalByteCount: 16_384)
        let found = try copy.read { transaction throws(Failure) in try transaction.children(of: .root).map(\.name.display) }
        try #require(Set(found) == made)
        try #require(try copy.verify() == [])
        index.close()
        let again = try Index(path: folder.database, journalByteCount: 16_384)
        let left = try again.read { transaction throws(Failure) in try transaction.children(of: .root).count }
        try #require(left == made.count)
    }
}
