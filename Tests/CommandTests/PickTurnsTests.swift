import Synchronization
import Testing

@testable import promisefs

@Suite struct PickTurnsTests {
    private final class Log: Sendable {
        private let entries = Mutex<[String]>([])
        var all: [String] { entries.withLock { $0 } }
        func note(_ entry: String) { entries.withLock { $0.append(entry) } }
    }

    private func eventually(_ condition: () -> Bool) async throws {
        for _ in 0..<1000 where !condition() { try await Task.sleep(for: .milliseconds(10)) }
        #expect(condition())
    }

    /// Keys went to the wrong one of two pickers that were shown on one terminal.
    @Test(.timeLimit(.minutes(1))) func oneIsShownAfterTheOtherAndNoneThatWasWithdrawn() async throws {
        let (turns, log) = (PickTurns(), Log())
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let first = Task {
            try await turns.take {
                log.note("first begins")
                for await _ in ends { break }
                log.note("first ends")
            }
        }
        try await eventually { log.all == ["first begins"] }
        let second = Task { try await turns.take { log.note("second") } }
        let third = Task { try await turns.take { log.note("third") } }
        try await Task.sleep(for: .milliseconds(200))
        #expect(log.all == ["first begins"])
        second.cancel()
        end.yield()
        try await first.value
        try await third.value
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(log.all == ["first begins", "first ends", "third"])
        // The next one waits for nobody.
        try await turns.take { log.note("fourth") }
        #expect(log.all.last == "fourth")
    }
}
