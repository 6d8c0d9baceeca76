import Logging
import PromiseCore
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

@Suite struct TransferHistoryTests {
    private let folder: TemporaryFolder
    private var file: [UInt8] { folder.path("transfers") }

    init() throws { folder = try TemporaryFolder("transfers") }

    private func history() -> TransferHistory {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return TransferHistory(clock: SystemClock(), logger: logger)
    }

    private func bytes(_ history: TransferHistory) -> [String: UInt64] {
        Dictionary(uniqueKeysWithValues: history.counts.ledger.lines.map { ($0.program, $0.bytes) })
    }

    /// It began with each daemon.
    @Test func whatWasFetchedForWhomIsKnownToTheNextDaemon() throws {
        let first = history()
        first.begin(file: file)
        first.count { $0.ledger.fetched(100, for: "cat") }
        first.count { $0.sent(7) }
        first.end()
        let second = history()
        // Before it knows what there was.
        second.count { $0.ledger.fetched(20, for: "cat") }
        second.begin(file: file)
        #expect(bytes(second) == ["cat": 120])
        second.count { $0.ledger.refused("updatedb") }
        second.end()
        let third = history()
        third.begin(file: file)
        #expect(bytes(third) == ["cat": 120, "updatedb": 0])
        #expect(third.counts.sentByteCount == 7)
        #expect(third.counts.since == first.counts.since && first.counts.since != nil)
        third.end()
    }

    /// Nobody ends the one of a daemon that is killed.
    @Test func whatWasCountedIsKeptAMomentLater() throws {
        let killed = history()
        killed.begin(file: file)
        killed.count { $0.ledger.fetched(100, for: "cat") }
        let deadline = SystemClock().uptime() + .seconds(60)
        var isKept = false
        while !isKept, SystemClock().uptime() < deadline {
            let next = history()
            next.begin(file: file)
            isKept = bytes(next) == ["cat": 100]
            next.end()
        }
        #expect(isKept)
        killed.end()
    }

    /// A count is in memory until it is in the file, and once.
    @Test func whatCannotBeWrittenIsStillCounted() throws {
        let history = history()
        history.begin(file: folder.path("missing/transfers"))
        history.count { $0.ledger.fetched(100, for: "cat") }
        history.end()
        #expect(bytes(history) == ["cat": 100])
        history.begin(file: file)
        history.count { $0.ledger.fetched(1, for: "cat") }
        history.end()
        #expect(bytes(history) == ["cat": 101])
        history.end()
        #expect(bytes(history) == ["cat": 101])
    }

    @Test func aHistoryThatCannotBeReadIsNotWrittenOver() throws {
        try makeFolder(file, mode: 0o700, label: "test")
        let history = history()
        history.begin(file: file)
        history.count { $0.ledger.fetched(1, for: "cat") }
        history.end()
        #expect(try FileStatus.of(file, label: "test").kind == .folder)
        #expect(bytes(history) == ["cat": 1])
    }
}
