import Glibc
import Logging
import Synchronization
import Testing

@testable import promisefs

private final class Seen: Sendable {
    let values = Mutex<[Bool]>([])

    func wait(for wanted: [Bool]) async throws {
        for _ in 0..<6_000 where values.withLock({ $0.count }) < wanted.count {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(values.withLock { $0 } == wanted)
    }
}

@Suite(.serialized) struct TerminationSignalTests {
    /// It was ignored until Dispatch looked for it, and one of the daemon's first milliseconds was lost.
    @Test func aSignalBeforeThereIsAMountIsCarriedOutWhenThereIsOne() async throws {
        // Of no use to anybody else in this process.
        let number = SIGURG
        let signals = TerminationSignals(Logger(label: "test"), signals: [number])
        defer {
            signal(number, SIG_DFL)
            signals.stop()
        }
        kill(getpid(), number)
        let seen = Seen()
        try await Task.sleep(for: .milliseconds(100))
        signals.begin { isLazy in seen.values.withLock { $0.append(isLazy) } }
        try await seen.wait(for: [false])
        kill(getpid(), number)
        try await seen.wait(for: [false, true])
    }
}
