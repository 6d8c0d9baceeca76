import Glibc
import PromiseSystem
import Synchronization

/// A sink through which bytes come only as fast as the faults allow, and not at all while they say offline or hang.
///
/// Its sleeps hold the provider's thread, as a slow network would, and end at once when the fetch is cancelled.
final class FaultySink: ContentSink {
    private struct Flow {
        var start: Duration
        var byteCount: UInt64
        var bandwidth: UInt64
    }

    private let wrapped: any ContentSink
    private let faults: @Sendable () -> Faults?
    private let clock = SystemClock()
    private let isCancelled = Monitor(false)
    private let flow = Mutex<Flow?>(nil)

    init(_ sink: any ContentSink, faults: @escaping @Sendable () -> Faults?) {
        wrapped = sink
        self.faults = faults
    }

    func cancel() { isCancelled.update { $0 = true } }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        var done = 0
        repeat {
            let count = min(bytes.count - done, pieceByteCount)
            try wait(for: count)
            try wrapped.write(UnsafeRawBufferPointer(rebasing: bytes[done..<(done + count)]), at: offset + UInt64(done))
            done += count
        } while done < bytes.count
    }

    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError) -> UInt64 {
        var done: UInt64 = 0
        while done < count {
            let piece = min(count - done, UInt64(pieceByteCount))
            try wait(for: Int(piece))
            let copied = try wrapped.copy(from: descriptor, at: sourceOffset + done, to: offset + done, count: piece)
            done += copied
            if copied < piece { break }
        }
        return done
    }

    /// About twenty pieces a second, so that progress is seen; everything at once without a limit.
    private var pieceByteCount: Int { faults()?.bandwidth.map { Int(clamping: max($0 / 20, 4096)) } ?? .max }

    private func wait(for count: Int) throws(ProviderError) {
        while true {
            if isCancelled.withLock({ $0 }) { throw Faults.cancelled }
            guard let faults = faults() else { return }
            if faults.isOffline { throw Faults.offline }
            if faults.isHanging {
                sleep(FaultyProvider.interval)
                continue
            }
            if let bandwidth = faults.bandwidth { pace(count, bandwidth: bandwidth) }
            if isCancelled.withLock({ $0 }) { throw Faults.cancelled }
            return
        }
    }

    /// Sleeps until the bytes sent so far and `count` more are due at this bandwidth.
    private func pace(_ count: Int, bandwidth: UInt64) {
        let now = clock.uptime()
        let due = flow.withLock { flow -> Duration in
            var current = flow ?? Flow(start: now, byteCount: 0, bandwidth: bandwidth)
            if current.bandwidth != bandwidth { current = Flow(start: now, byteCount: 0, bandwidth: bandwidth) }
            current.byteCount += UInt64(count)
            flow = current
            return current.start + .seconds(Double(current.byteCount) / Double(bandwidth))
        }
        if due > now { sleep(due - now) }
    }

    private func sleep(_ duration: Duration) {
        _ = isCancelled.wait(timeout: duration) { $0 ? true : nil }
    }
}
