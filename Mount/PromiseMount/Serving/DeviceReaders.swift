import CFuseTransport
import Glibc
import Synchronization

/// The threads that read the device, in the order of `ReaderRota`. Those that rest wait for a timer.
final class DeviceReaders: Sendable {
    /// What is read within this time was there before: waking a thread takes longer.
    private static let immediate: UInt64 = 4_000

    private let rota = Mutex(ReaderRota())
    private let timer: CInt

    init() {
        timer = ct_timer_create()
        precondition(timer >= 0, "no timer could be made: errno \(-timer)")
    }

    deinit { close(timer) }

    /// Calls `receive` and then `serve`, both as `ct_receive` and `ct_process` are, until `receive` answers no request.
    /// Returns what it answered; 0 when another thread has ended it.
    func work(receive: () -> CInt, serve: () -> Void) -> CInt {
        var isRested = false
        while true {
            switch rota.withLock({ $0.turn(isRested: isRested, now: ct_now()) }) {
            case .end: return 0
            case .rest(let watches):
                if watches { ct_timer_set(timer, ReaderRota.patience, 0) }
                var count: UInt64 = 0
                _ = read(timer, &count, 8)
                isRested = true
            case .read:
                isRested = false
                let start = ct_now()
                let result = receive()
                let now = ct_now()
                switch rota.withLock({ $0.received(wasThere: now - start < Self.immediate, now: now) }) {
                case .leave: break
                case .afterPatience: ct_timer_set(timer, ReaderRota.patience, 0)
                case .now: ct_timer_set(timer, 1, 0)
                }
                if result == -EINTR || result == -EAGAIN { continue }
                if result <= 0 { return result }
                serve()
            }
        }
    }

    /// Whether requests can still be received; to be asked again and again.
    func isServing() -> Bool { rota.withLock { $0.isServing() } }

    /// Has every thread return.
    func end() {
        rota.withLock { $0.end() }
        // Again and again: one expiry wakes those who rest now, and others may be about to.
        ct_timer_set(timer, 1, 1_000_000)
    }
}
