import CFuseTransport
import Glibc
import Logging
import PromiseSystem
import Synchronization

/// Keeps processors from sleeping deeply while requests come fast: each wakes the daemon and then its caller, and in a virtual
/// machine waking a processor that has halted takes longer than the request. `RequestBurst` says when.
///
/// By the kernel's limit on wake-up latency, which goes with the descriptor: a killed daemon leaves none behind. Source:
/// Documentation/power/pm_qos_interface.rst, /dev/cpu_dma_latency. Thread-safe; `start` and `end` once, by one thread.
final class ProcessorLatency: Sendable {
    /// Microseconds: none at all, and what the kernel takes for no limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE).
    private static let awake: Int32 = 0
    private static let unlimited: Int32 = 2_000_000_000

    private struct State {
        var burst = RequestBurst()
        var isEnded = false
        var thread: OwnedThread?
    }

    // A leaf. The limit is written under it, a matter of microseconds, so that its beginning and its end keep their order.
    private let state = Mutex(State())
    private let limit: CInt
    private let timer: CInt

    /// Nil where this process may not: the file is root's.
    init?(logger: Logger) {
        limit = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC)
        guard limit >= 0 else {
            logger.debug("processors may sleep between requests", metadata: ["errno": "\(errno)"])
            return nil
        }
        timer = ct_timer_create()
        precondition(timer >= 0, "no timer could be made: errno \(-timer)")
    }

    deinit {
        close(limit)
        close(timer)
    }

    func start() {
        let thread = OwnedThread(name: "pfs-latency") { [self] in wait() }
        state.withLock { $0.thread = thread }
    }

    /// A batch of requests has come. On a serving thread.
    func batchCame() { note { $0.batchCame(now: ct_now()) } }

    /// A request is parked. On a serving thread.
    func parked() { note { $0.parked(now: ct_now()) } }

    func end() {
        let thread = state.withLock { state in
            state.isEnded = true
            defer { state.thread = nil }
            return state.thread
        }
        ct_timer_set(timer, 1, 0)
        thread?.join()
    }

    private func note(_ event: (inout RequestBurst) -> Bool) {
        state.withLock { state in
            guard event(&state.burst) else { return }
            write(Self.awake)
            ct_timer_set(timer, RequestBurst.hold, 0)
        }
    }

    private func wait() {
        while true {
            var count: UInt64 = 0
            _ = read(timer, &count, 8)
            let isEnded = state.withLock { state in
                switch state.burst.expired(now: ct_now()) {
                case .later(let rest) where !state.isEnded: ct_timer_set(timer, rest, 0)
                case .later, .end: write(Self.unlimited)
                }
                return state.isEnded
            }
            if isEnded { return }
        }
    }

    /// What the kernel says of it is not looked at: it is a wish.
    private func write(_ microseconds: Int32) {
        withUnsafeBytes(of: microseconds) { _ = Glibc.write(limit, $0.baseAddress, $0.count) }
    }
}
