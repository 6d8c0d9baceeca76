import Glibc
package import Logging
package import PromiseCore
package import PromiseSystem
import Synchronization

/// What was fetched for which program, and what was sent, as long as there has been the domain.
///
/// Whoever counts waits for nothing: a thread of its own writes a small file a moment later, and while much is fetched
/// each ten seconds. What was counted since is lost with a daemon that is killed. Thread-safe.
package final class TransferHistory: Sendable {
    private struct State {
        /// What the file has.
        var kept = TransferCounts()
        /// What was counted since.
        var news = TransferCounts()
        /// The thread looks soon.
        var isAwaited = false
        /// When it has written last.
        var written: Duration?
        /// Until then, and where nobody begins it, everything is only counted.
        var file: [UInt8]?
    }

    /// In the state folder.
    package static let fileName = "transfers"
    package static let byteCountMax = 1 << 20
    /// From a count to the file; and from one file, which is synced, to the next.
    private static let rest = Duration.seconds(1)
    private static let pause = Duration.seconds(10)
    private static let pauseAfterFailure = Duration.seconds(30)

    private let clock: any TimeSource
    private let logger: Logger
    private let lookout: Lookout
    /// A leaf: nothing but the clock is called while it is held.
    private let state = Mutex(State())

    package init(clock: any TimeSource, logger: Logger) {
        (self.clock, self.logger) = (clock, logger)
        lookout = Lookout(name: "transfers", clock: clock)
    }

    /// All that is known of.
    package var counts: TransferCounts {
        state.withLock { state in
            var counts = state.kept
            counts.add(state.news)
            return counts
        }
    }

    /// Knows what was counted before, and keeps what is counted from now on. Blocking. A file that is there and cannot
    /// be read is not written over.
    package func begin(file: [UInt8]) {
        lookout.begin { [weak self] in self?.write() }
        var kept = TransferCounts()
        if let bytes = readSmallFile(file, countMax: TransferHistory.byteCountMax) {
            kept = TransferCounts(text: String(decoding: bytes, as: UTF8.self))
        } else if (try? FileStatus.of(file, label: "transfers.status")) != nil {
            return logger.warning("the history of transfers cannot be read", metadata: ["file": "\(escapedForDisplay(file))"])
        }
        state.withLock { [kept] state in (state.kept, state.file) = (kept, file) }
        count { _ in }
    }

    /// Writes what is left. Blocking.
    package func end() {
        lookout.end()
        _ = write()
        state.withLock { $0.file = nil }
    }

    package func count(_ body: (inout TransferCounts) -> Void) {
        let time: Duration? = state.withLock { state in
            body(&state.news)
            if state.news.since == nil { state.news.since = clock.now() }
            if state.file == nil || state.isAwaited || state.news.isEmpty { return nil }
            state.isAwaited = true
            return due(after: state.written)
        }
        if let time { lookout.wake(at: time) }
    }

    private func due(after written: Duration?) -> Duration {
        let soon = clock.uptime() + TransferHistory.rest
        return written.map { max(soon, $0 + TransferHistory.pause) } ?? soon
    }

    /// Returns when it is to be called again. What counts as kept is what the file has.
    private func write() -> Duration? {
        let (all, written, file): (TransferCounts, TransferCounts, [UInt8]?) = state.withLock { state in
            state.isAwaited = false
            var all = state.kept
            all.add(state.news)
            return (all, state.news, state.news.isEmpty ? nil : state.file)
        }
        guard let file else { return nil }
        do throws(SystemError) {
            try replace(file, by: Array(all.text.utf8))
            return state.withLock { state -> Duration? in
                state.kept = all
                state.news.remove(written)
                state.isAwaited = !state.news.isEmpty
                state.written = clock.uptime()
                return state.isAwaited ? due(after: state.written) : nil
            }
        } catch {
            state.withLock { $0.isAwaited = true }
            logger.info("the history of transfers could not be kept", metadata: ["reason": "\(error.reason)"])
            return clock.uptime() + TransferHistory.pauseAfterFailure
        }
    }

    /// The old one or this one is there after a power cut.
    private func replace(_ file: [UInt8], by bytes: [UInt8]) throws(SystemError) {
        let draft = file + Array(".new".utf8)
        let flags = O_WRONLY | O_CREAT | O_TRUNC
        let descriptor = try Descriptor.open(draft, flags: flags, mode: 0o600, label: "transfers.create")
        try writeFully(descriptor.number, bytes, at: 0, label: "transfers.write")
        try synchronize(descriptor.number, dataOnly: true, label: "transfers.sync")
        try rename(draft, to: file, label: "transfers.rename")
    }
}
