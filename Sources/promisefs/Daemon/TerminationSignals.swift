import Dispatch
import Glibc
import Logging
import PromiseCore
import PromiseDomain
import PromiseSystem
import Synchronization

/// SIGTERM, SIGINT and SIGHUP unmount in order; the second one detaches the mount whatever is open.
///
/// A handler in C puts them into a pipe, which Dispatch reads on a queue of its own: nothing of Swift runs in a handler, and
/// none is lost between one disposition and the next. What comes while the daemon starts is carried out when there is a mount;
/// a second one does not wait for that, and ends the process.
final class TerminationSignals: Sendable {
    static let usual = [SIGTERM, SIGINT, SIGHUP]

    private struct State {
        var count = 0
        /// Whether it detaches.
        var act: (@Sendable (Bool) -> Void)?
    }

    private let state = Mutex(State())
    // Safe because it is set once, and dispatch objects may be used from any thread.
    nonisolated(unsafe) private let source: (any DispatchSourceRead)?
    private let logger: Logger

    /// Once in a process.
    init(_ logger: Logger, signals: [CInt] = TerminationSignals.usual) {
        self.logger = logger
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else {
            // Nothing of this process works then; the signals end it.
            source = nil
            return
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        // The other end is never closed: a signal may come at any time.
        let reading = ends[0]
        let source = DispatchSource.makeReadSource(
            fileDescriptor: reading, queue: DispatchQueue(label: "promisefs.signals"))
        self.source = source
        source.setEventHandler { [weak self] in
            var numbers = [UInt8](repeating: 0, count: 64)
            let count = read(reading, &numbers, numbers.count)
            for number in numbers.prefix(max(count, 0)) { self?.take(CInt(number)) }
        }
        source.setCancelHandler { close(reading) }
        source.activate()
        BoundProcess.write(signals, to: ends[1])
    }

    /// From now on. What came before is carried out at once.
    func unmount(_ domain: Domain) {
        begin { [logger] isLazy in
            Task {
                do throws(Failure) {
                    let pending = try await domain.unmount(wait: false, timeout: nil, lazy: isLazy)
                    if pending > 0 { logger.notice("work is kept for the next mount", metadata: ["pending": "\(pending)"]) }
                } catch {
                    let hint = isLazy ? "" : "; a second signal detaches it"
                    logger.warning("the mount cannot be unmounted\(hint)", metadata: ["reason": "\(error.message)"])
                }
            }
        }
    }

    func begin(_ act: @escaping @Sendable (_ isLazy: Bool) -> Void) {
        let isWanted = state.withLock { state in
            state.act = act
            return state.count > 0
        }
        if isWanted { act(false) }
    }

    /// As a signal does.
    func request() {
        let (act, isLazy) = state.withLock { state in
            state.count += 1
            return (state.act, state.count > 1)
        }
        act?(isLazy)
    }

    private func take(_ number: CInt) {
        let isStarting = state.withLock { $0.act == nil }
        logger.notice("\(isStarting ? "to be unmounted" : "unmounting") on a signal", metadata: ["signal": "\(number)"])
        if isStarting, state.withLock({ $0.count > 0 }) {
            signal(number, SIG_DFL)
            kill(getpid(), number)
        }
        request()
    }

    func stop() { source?.cancel() }
}
