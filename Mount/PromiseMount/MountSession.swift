import CFuse
import CFuseTransport
import Glibc
package import Logging
package import PromiseCore
package import PromiseFilesystem
package import PromiseSystem
import Synchronization

/// One mount and the threads that serve it, from `mount` over `run` to the end, which comes from outside (`umount`) or by
/// `unmount`. Several may live in one process.
///
/// Threads: `mount`, `run` and `unmount` block for a moment and are called from any thread but a serving one.
package final class MountSession: Sendable {
    private enum Phase {
        case new
        case mounted(Session)
        /// The session of a view, which ends by being told.
        case running(Session?)
        case ended
    }

    private struct State {
        var phase = Phase.new
        var mountPoint: MountPoint?
        /// By which the mount is found when a folder above was renamed.
        var device: (major: UInt32, minor: UInt32)?
        var connection: MountConnection?
        var gauge: TransportGauge?
        var outlivesDaemon = false
        /// Why the session ended, when it was not an unmount.
        var problem: String?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let options: MountOptions
    /// Keeps the mount while no daemon lives; nil: the mount ends with this process.
    private let holder: Holder?
    private let logger: Logger
    private let context: MountContext
    private let state = Mutex(State())

    package init(
        filesystem: any FileSystemOperations, options: MountOptions, holder: Holder? = nil, trace: RequestTrace = RequestTrace(),
        logger: Logger
    ) {
        precondition(options.threads > 0, "a session has at least one thread")
        self.options = options
        self.holder = holder
        self.logger = logger
        let latency = options.wantsLatencyLimit ? ProcessorLatency(logger: logger) : nil
        context = MountContext(filesystem: filesystem, trace: trace, latency: latency, logger: logger)
    }

    /// Mounts, settles with the kernel what both can do, and calls the file system's `mounted`. Requests wait until `run`.
    ///
    /// Throws a sentence: `.notFound`, `.notFolder`, `.notEmpty`, `.busy` or `.refused` for the mount point, `.refused` when
    /// this user may not mount, `.notSupported` without /dev/fuse. Nothing is left mounted then.
    package func mount() throws(Failure) {
        let isResuming = holder?.device != nil
        let mountPoint =
            // A view is seen in a namespace of its own.
            if options.device != nil {
                MountPoint(resuming: options.mountPoint)
            } else if isResuming {
                MountPoint(resuming: options.mountPoint, ofDomain: options.domain)
            } else {
                try MountPoint(checking: options.mountPoint, permitsNonempty: options.permitsNonempty)
            }
        LibraryLog.route(to: logger)
        let session = try Session(
            context: context, options: options, mountPoint: mountPoint, holder: holder, logger: logger)
        if !isResuming, options.device == nil { KernelReadAhead.widen(for: mountPoint, logger: logger) }
        let connection = session.connection
        let device = options.device == nil ? MountTable.device(of: mountPoint.path) : nil
        state.withLock { state in
            guard case .new = state.phase else { preconditionFailure("a session is mounted once") }
            state.device = device
            state.phase = .mounted(session)
            state.mountPoint = mountPoint
            state.connection = connection
            state.gauge = session.gauge
            state.outlivesDaemon = session.outlivesDaemon
        }
        let transport = session.gauge.status
        logger.info(
            isResuming ? "went on with the mount" : "mounted",
            metadata: [
                "protocol": "\(connection.protocolMajor).\(connection.protocolMinor)",
                "passthrough": "\(connection.passthroughProblem ?? "yes")",
                "transport": "\(transport.message ?? transport.name)",
            ])
        context.filesystem.mounted(connection)
    }

    /// Starts serving. Returns at once.
    package func run() {
        let session = state.withLock { state in
            guard case .mounted(let session) = state.phase else { preconditionFailure("a session is run once, after mount") }
            state.phase = .running(options.device == nil ? nil : session)
            return session
        }
        context.latency?.start()
        holder?.tellAlive(while: session.liveness)
        let threads = options.threads
        // It waits for the serving threads, which nobody else may; and nobody waits for it.
        _ = OwnedThread(name: "pfs-session") { [self] in
            pthread_detach(pthread_self())
            let rings = session.ringCount
            let serving =
                (0..<rings).map { index in OwnedThread(name: "pfs-ring-\(index)") { session.serveRing(index) } }
                + (0..<threads).map { index in OwnedThread(name: "pfs-serve-\(index)") { session.serveDevice() } }
            for thread in serving { thread.join() }
            finish(session)
        }
    }

    /// As `run`, by this thread alone, until the session has ended: for a view.
    package func serve() {
        let session: Session? = state.withLock { state in
            // Who it was for may have ended at once, and had it unmounted.
            if case .ended = state.phase { return nil }
            guard case .mounted(let session) = state.phase else { preconditionFailure("a session is run once, after mount") }
            state.phase = .running(session)
            return session
        }
        guard let session else { return }
        session.serveDevice()
        finish(session)
    }

    private func finish(_ session: Session) {
        let problem = session.end()
        let waiters = state.withLock { state in
            state.phase = .ended
            state.problem = problem
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the session has ended and the file system's `ended` has returned. At once when it was never run.
    package func waitUntilEnded() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard case .running = state.phase else { return true }
                state.waiters.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Takes the mount away; the session ends soon after, see `waitUntilEnded`. With `lazy` the name is gone at once and the
    /// session ends when the last program has closed what it had open. What is not mounted is done.
    ///
    /// Throws `.busy` when programs use the mount, `.refused` when this user may not unmount it.
    package func unmount(lazy: Bool) throws(Failure) {
        let (mountPoint, session): (MountPoint?, Session?) = state.withLock { state in
            switch state.phase {
            case .new, .ended: return (nil, nil)
            case .running(let view?):
                view.leave()
                return (nil, nil)
            case .running(nil): return (state.mountPoint, nil)
            case .mounted(let session):
                // Never run: there are no threads that would notice.
                state.phase = .ended
                return (state.mountPoint, session)
            }
        }
        if let session {
            _ = session.end()
            return
        }
        let device = state.withLock { $0.device }
        try mountPoint?.now(on: device).unmount(lazy: lazy)
    }

    /// What was settled with the kernel; nil before `mount`.
    package var connection: MountConnection? { state.withLock { $0.connection } }

    /// How requests come from the kernel; nil before `mount`.
    package var transport: TransportStatus? { state.withLock { $0.gauge }?.status }

    /// Requests received since the mount, by the kernel's name for them (`lookup`, `open`, …); only those that came.
    package var requestCounts: [String: UInt64] { state.withLock { $0.gauge }?.requestCounts ?? [:] }

    /// Why the session ended, when it was not an unmount; nil while it runs.
    package var problem: String? { state.withLock { $0.problem } }

    /// The mount is kept, and can be gone on with, when this process ends.
    package var outlivesDaemon: Bool { state.withLock { $0.outlivesDaemon } }

    /// The absolute path of the mount; nil before `mount`.
    package var mountPoint: [UInt8]? { state.withLock { $0.mountPoint?.path } }

    /// How often requests have failed, by code, and how many wait for the provider now.
    package var failureCounts: [Failure.Code: UInt64] { context.failureCounts }
    package var parkedCount: Int { context.parked.count }
}
