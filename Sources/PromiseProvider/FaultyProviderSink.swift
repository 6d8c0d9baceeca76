import Glibc
import PromiseCore
import PromiseSystem
import Synchronization

/// A sink through which bytes come only as fast as the faults allow, in part when they say so, and not at all while they say
/// offline or hang.
///
/// Its sleeps hold the provider's thread, as a slow network would, and end at once when the fetch is cancelled.
final class FaultySink: ContentSink {
    private let wrapped: any ContentSink
    private let faults: @Sendable () -> ProviderFaults?
    private let clock = SystemClock()
    private let isCancelled = Monitor(false)
    private let line: SlowLine

    init(_ sink: any ContentSink, line: SlowLine, faults: @escaping @Sendable () -> ProviderFaults?) {
        wrapped = sink
        self.line = line
        self.faults = faults
    }

    func cancel() { isCancelled.update { $0 = true } }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        let bytes = faults()?.isShort == true ? UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)) : bytes
        var done = 0
        repeat {
            let count = min(bytes.count - done, pieceByteCount)
            try wait(for: count)
            try wrapped.write(UnsafeRawBufferPointer(rebasing: bytes[done..<(done + count)]), at: offset + UInt64(done))
            done += count
        } while done < bytes.count
    }

    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError) -> UInt64 {
        let isShort = faults()?.isShort == true
        let wanted = isShort ? count / 2 : count
        var done: UInt64 = 0
        while done < wanted {
            let piece = min(wanted - done, UInt64(pieceByteCount))
            try wait(for: Int(piece))
            let copied = try wrapped.copy(from: descriptor, at: sourceOffset + done, to: offset + done, count: piece)
            done += copied
            if copied < piece { return done }
        }
        // What was left out is said to have been taken.
        return count
    }

    func finish() { wrapped.finish() }

    var size: UInt64? { wrapped.size }

    /// About twenty pieces a second, so that progress is seen; everything at once without a limit.
    private var pieceByteCount: Int { faults()?.bandwidth.map { Int(clamping: max($0 / 20, 4096)) } ?? .max }

    private func wait(for count: Int) throws(ProviderError) {
        while true {
            if isCancelled.withLock({ $0 }) { throw FaultyProvider.cancelled }
            guard let faults = faults() else { return }
            if faults.isOffline { throw FaultyProvider.offline }
            if faults.isHanging {
                sleep(FaultyProvider.interval)
                continue
            }
            if let bandwidth = faults.bandwidth { pace(count, bandwidth: bandwidth) }
            if isCancelled.withLock({ $0 }) { throw FaultyProvider.cancelled }
            return
        }
    }

    private func pace(_ count: Int, bandwidth: UInt64) {
        let delay = line.delay(for: count, bandwidth: bandwidth, now: clock.uptime())
        if delay > .zero { sleep(delay) }
    }

    private func sleep(_ duration: Duration) {
        _ = isCancelled.wait(timeout: duration) { $0 ? true : nil }
    }
}

/// One line that all fetches share: together they get the bandwidth, not each of them.
final class SlowLine: Sendable {
    /// Until when the line is taken (uptime).
    private let takenUntil = Mutex(Duration.zero)

    /// How long until `count` more bytes have come.
    func delay(for count: Int, bandwidth: UInt64, now: Duration) -> Duration {
        takenUntil.withLock { takenUntil in
            takenUntil = max(takenUntil, now) + .seconds(Double(count) / Double(bandwidth))
            return takenUntil - now
        }
    }
}
