import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

@Suite struct ConcurrencyTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    @Test func concurrentWritersShareCommitsLoseNothingAndFailAlone() throws {
        let index = try folder.open()
        let failures = Atomic<Int>(0)
        let threads = (0..<8).map { thread in
            OwnedThread(name: "writer \(thread)") {
                for number in 0..<200 {
                    do throws(Failure) {
                        try index.write { transaction throws(Failure) in
                            try transaction.make(named: name("\(thread) \(number)"))
                            let count = Int(try transaction.setting("count") ?? "0")!
                            try transaction.setSetting("count", "\(count + 1)")
                            if number % 7 == 3 { throw Failure(.interrupted, "the body gives up") }
                        }
                    } catch {
                        #expect(error.code == .interrupted)
                        failures.wrappingAdd(1, ordering: .relaxed)
                    }
                }
            }
        }
        let reader = OwnedThread(name: "reader") {
            for _ in 0..<500 {
                // A read sees whole bodies only.
                let seen = try? index.read { transaction throws(Failure) in
                    (try transaction.children(of: .root).count, Int(try transaction.setting("count") ?? "0")!)
                }
                #expect(seen.map { $0.0 == $0.1 } == true)
            }
        }
        for thread in threads { thread.join() }
        reader.join()
        let failed = failures.load(ordering: .relaxed)
        #expect(failed == 8 * 29)
        let expected = 1_600 - failed
        #expect(try index.commitCount() < expected)
        #expect(try index.verify() == [])
        index.close()
        let again = try folder.open()
        try again.read { transaction throws(Failure) in
            #expect(try transaction.setting("count") == "\(expected)")
            #expect(try transaction.children(of: .root).count == expected)
        }
        #expect(try again.verify() == [])
    }

    @Test func writersGoOnDuringCheckpointsAndSynchronisation() throws {
        let index = try folder.open()
        let isDone = Atomic<Bool>(false)
        let background = OwnedThread(name: "background") {
            while !isDone.load(ordering: .relaxed) {
                #expect(throws: Never.self) {
                    try index.checkpoint(keepingChanges: 50)
                    try index.catchUpSearch()
                    try index.synchronize()
                }
            }
        }
        let writers = (0..<3).map { thread in
            OwnedThread(name: "writer") {
                for number in 0..<300 {
                    #expect(throws: Never.self) {
                        try index.write { transaction throws(Failure) in
                            _ = try transaction.make(named: name("\(thread) \(number)"))
                        }
                    }
                }
            }
        }
        for writer in writers { writer.join() }
        isDone.store(true, ordering: .relaxed)
        background.join()
        #expect(try index.read { transaction throws(Failure) in try transaction.children(of: .root).count } == 900)
        #expect(try index.verify() == [])
    }

    /// The thread that waits for checkpoints commits what is old, and ends when the index is closed.
    @Test func theBackgroundThreadCommitsWhatIsOpenForLong() throws {
        let index = try folder.open()
        let background = OwnedThread(name: "background") { while index.waitUntilCheckpointIsDue() {} }
        try index.write { transaction throws(Failure) in _ = try transaction.make(named: name("a")) }
        func logHasIt() throws -> Bool {
            let log = try folder.read("index.sqlite-wal")
            return log.count > 0 && log != empty
        }
        let empty = try folder.read("index.sqlite-wal")
        for _ in 0..<1_200 where try !logHasIt() { usleep(50_000) }
        #expect(try logHasIt())
        index.close()
        background.join()
    }

    /// Pages of one query followed each other so closely that the mount stood still for as long as it took.
    @Test(.timeLimit(.minutes(1))) func whoReadsManyTimesInARowLetsOthersInBetween() throws {
        let index = try folder.open()
        let isDone = Atomic<Bool>(false)
        let writes = Atomic<Int>(0)
        let writer = OwnedThread(name: "writer") {
            while !isDone.load(ordering: .relaxed) {
                #expect(throws: Never.self) {
                    try index.write { transaction throws(Failure) in try transaction.setSetting("a", "b") }
                }
                writes.wrappingAdd(1, ordering: .relaxed)
            }
        }
        while writes.load(ordering: .relaxed) == 0 { usleep(1_000) }
        let before = writes.load(ordering: .relaxed)
        for _ in 0..<20 { try index.readInTurn { transaction throws(Failure) in _ = usleep(20_000) } }
        let count = writes.load(ordering: .relaxed) - before
        isDone.store(true, ordering: .relaxed)
        writer.join()
        index.close()
        #expect(count >= 10, "\(count) writes beside 20 reads")
    }

    @Test func callsAfterCloseFail() throws {
        let index = try folder.open()
        index.close()
        index.close()
        #expect(failure { try index.read { transaction throws(Failure) in _ = try transaction.node(.root) } } == .interrupted)
        let code = failure { try index.write { transaction throws(Failure) in try transaction.setSetting("a", "b") } }
        #expect(code == .interrupted)
        #expect(failure { try index.synchronize() } == .interrupted)
        #expect(failure { try index.checkpoint() } == .interrupted)
        #expect(failure { _ = try index.verify() } == .interrupted)
    }
}
