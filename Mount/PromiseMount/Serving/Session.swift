import CFuse
import CFuseTransport
import Glibc
import Logging
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization

/// libfuse's session with all that hangs on it: made by mounting, served by threads, ended once.
///
/// Unchecked because of the two pointers: they are constant, libfuse locks what is behind them, and `end` frees them after
/// the last thread that uses them has left.
final class Session: @unchecked Sendable {
    /// How long parked requests may take to be answered at the end. After that the session's memory is given up, not freed.
    private static let partingSeconds = 10

    let connection: MountConnection
    let gauge: TransportGauge
    /// The holder has the device, and a successor can go on.
    let outlivesDaemon: Bool
    private let context: MountContext
    private let mountPoint: MountPoint
    private let logger: Logger
    private let session: OpaquePointer
    private let transport: OpaquePointer
    /// Nil for a view, whose kernel keeps nothing.
    private let notifications: NotificationQueue?
    /// What ends a view, whose mount is out of reach.
    private let stop: StopEvent?
    private let backings: BackingFiles
    private let readers = DeviceReaders()
    private let problem = Mutex<String?>(nil)

    /// Mounts and answers the kernel's INIT, or goes on with the mount that the holder has.
    init(
        context: MountContext, options: MountOptions, mountPoint: MountPoint, holder: Holder?, logger: Logger
    ) throws(Failure) {
        // Balanced in `freeMemory`: libfuse's user data refers to it.
        let owner = Unmanaged.passRetained(context)
        guard let transport = ct_create(owner.toOpaque(), options.wantsPassthrough, options.wantsRings) else {
            preconditionFailure("out of memory")
        }
        if context.latency != nil { ct_on_requests(transport, RequestBurst.batch, batchCame) }
        if options.device != nil { ct_want_direct_mappings(transport) }
        if let holder { ct_use_record(transport, holder.record.session) }
        do throws(Failure) {
            session = try Session.mounted(transport, options, mountPoint, holder)
        } catch {
            ct_destroy(transport)
            owner.release()
            throw error
        }
        let descriptor = fuse_session_fd(session)
        let negotiation = ct_negotiated(transport)
        let queue = options.device == nil ? NotificationQueue(session: session, logger: logger) : nil
        notifications = queue
        stop = options.device == nil ? nil : StopEvent(watching: descriptor)
        backings = BackingFiles(
            descriptor: descriptor, negotiation: negotiation, isWanted: options.wantsPassthrough, helper: options.backingHelper)
        let locks = options.lockProgram.map { LockProcess(program: $0, mountPoint: mountPoint.path, domain: options.domain) }
        let echoes = options.echoProgram.map {
            EchoProcess(
                program: $0, mountPoint: mountPoint.path, domain: options.domain, elsewhere: options.foreignMount)
        }
        connection = MountConnection(
            notifier: queue ?? SilentNotifier(), echoes: echoes, locks: locks, backings: backings.problem == nil ? backings : nil,
            passthroughProblem: backings.problem,
            protocolMajor: negotiation.protocol_major, protocolMinor: negotiation.protocol_minor)
        self.context = context
        self.mountPoint = mountPoint
        self.logger = logger
        self.transport = transport
        gauge = TransportGauge(transport, isWanted: options.wantsRings)
        outlivesDaemon = holder != nil && ct_may_be_resumed(transport)
    }

    private static func mounted(
        _ transport: OpaquePointer, _ options: MountOptions, _ mountPoint: MountPoint, _ holder: Holder?
    ) throws(Failure) -> OpaquePointer {
        ct_clear_message()
        var table = makeOperationTable(withLocks: options.servesLocks)
        let words = options.libraryArguments.map { strdup($0) }
        defer { for word in words { Glibc.free(word) } }
        // libfuse changes the array: it takes out what it has understood, and replaces it by copies of its own.
        var argv: [UnsafeMutablePointer<CChar>?] = words + [nil]
        let count = CInt(words.count)
        let made = argv.withUnsafeMutableBufferPointer { argv in
            var arguments = fuse_args(argc: count, argv: argv.baseAddress, allocated: 0)
            defer { fuse_opt_free_args(&arguments) }
            return fuse_session_new(
                &arguments, &table, MemoryLayout<fuse_lowlevel_ops>.size, UnsafeMutableRawPointer(transport))
        }
        guard let session = made else { throw Failure(.invalid, "the mount options were refused\(libraryReason())") }
        let given = holder?.device ?? options.device
        let replacement = try given == nil && mountPoint.isDeadThere ? mountPoint.replaceDeadMount(options) : nil
        let device = given ?? replacement
        // libfuse takes a device that is mounted already by this name, and leaves the mount alone at the end.
        let place = device.map { Array("/dev/fd/\($0)".utf8) } ?? mountPoint.path
        guard withCPath(place, { fuse_session_mount(session, $0) }) == 0 else {
            fuse_session_destroy(session)
            throw mountFailure(mountPoint)
        }
        let isAttached = ct_attach(transport, session) == 0
        let isResuming = holder?.device != nil
        guard isAttached, isResuming ? ct_resume(transport, session) == 0 : answerInit(transport, session) else {
            fuse_session_unmount(session)
            fuse_session_destroy(session)
            if replacement != nil { try? mountPoint.sever() }
            throw Failure(.inputOutput, "the kernel and libfuse did not agree on a protocol\(libraryReason())")
        }
        if given == nil, ct_may_be_resumed(transport) { holder?.keep(device: fuse_session_fd(session)) }
        return session
    }

    /// The kernel queues INIT while mounting, so this does not wait.
    private static func answerInit(_ transport: OpaquePointer, _ session: OpaquePointer) -> Bool {
        guard let buffer = ct_buffer_create() else { return false }
        defer { ct_buffer_destroy(buffer) }
        while !ct_negotiated(transport).is_done {
            let result = ct_receive(session, buffer)
            if result == -EINTR || result == -EAGAIN { continue }
            if result <= 0 { return false }
            ct_process(transport, session, buffer)
            if fuse_session_exited(session) != 0 { return false }
        }
        return true
    }

    private static func mountFailure(_ mountPoint: MountPoint) -> Failure {
        if access("/dev/fuse", F_OK) != 0 {
            return Failure(
                .notSupported, "this machine has no /dev/fuse: load the module with 'modprobe fuse', or pass the device in")
        }
        if access("/dev/fuse", R_OK | W_OK) != 0 {
            return Failure(.refused, "this user may not open /dev/fuse: join the group that owns it, or mount as root")
        }
        let user = geteuid()
        if user != 0, getpwuid(user) == nil {
            return Failure(
                .refused, "\(mountPoint.display) could not be mounted: user \(user) has no name on this machine, and "
                    + "fusermount3 wants one: add it to /etc/passwd")
        }
        return Failure(.refused, "\(mountPoint.display) could not be mounted\(libraryReason())")
    }

    /// What libfuse has said last on this thread, to be put behind a sentence.
    private static func libraryReason() -> String {
        let text = String(cString: ct_last_message())
        return text.isEmpty ? "" : ": \(text)"
    }

    /// How many threads `serveRing` needs; 0 when the kernel uses the device alone.
    var ringCount: Int { Int(ct_ring_count(transport)) }

    /// The loop of a thread that serves a ring: until the session has ended.
    func serveRing(_ index: Int) {
        let result = ct_serve_ring(transport, session, UInt32(index), context.latency == nil)
        if result < 0 { giveUp("serving a ring failed", errno: -result) }
    }

    /// The loop of a thread that reads the device: until the session has ended.
    func serveDevice() {
        guard let buffer = ct_buffer_create() else { preconditionFailure("out of memory") }
        defer { ct_buffer_destroy(buffer) }
        let result = readers.work(
            receive: {
                guard stop?.waitForRequest() ?? true, fuse_session_exited(session) == 0 else { return 0 }
                return ct_receive(session, buffer)
            },
            serve: { ct_process(transport, session, buffer) })
        // Whatever ends this loop ends the session: the others have nothing to wait for then.
        readers.end()
        ct_stop_rings(transport)
        if result < 0 { giveUp("reading from the kernel failed", errno: -result) }
    }

    /// For whoever watches over the daemon: see `DeviceReaders.isServing`. By rings others serve as well.
    var liveness: @Sendable () -> Bool {
        let (hasRings, readers) = (ringCount > 0, readers)
        return { hasRings || readers.isServing() }
    }

    /// Requests cannot be received any more: the other threads are woken by taking the mount away.
    private func giveUp(_ what: String, errno code: CInt) {
        let sentence = "\(what): \(String(cString: strerror(code)))"
        problem.withLock { $0 = $0 ?? sentence }
        logger.error("the mount is given up", metadata: ["errno": "\(code)"])
        fuse_session_exit(session)
        if stop != nil { return }
        do throws(Failure) {
            try mountPoint.sever()
        } catch {
            logger.error("the mount stays behind", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Has the threads of a view leave. From any thread.
    func leave() { stop?.set() }

    /// Once, after every serving thread has left: answers what is parked, stops the queue, and frees the session. Returns
    /// why the session ended when it was not an unmount.
    func end() -> String? {
        for request in context.parked.interruptAll() { context.filesystem.interrupt(request) }
        let isQuiet = waitForReplies()
        // With the connection gone the kernel holds no notification back any more.
        let isSilent = notifications?.stop(within: .seconds(Self.partingSeconds)) ?? true
        context.latency?.end()
        backings.close()
        gauge.close()
        // Closes the descriptor and, where the mount is still there, takes it away.
        if isSilent { fuse_session_unmount(session) }
        if stop == nil, mountPoint.isDead { leaveNothingBehind() }
        context.filesystem.ended()
        connection.locks?.stop()
        if isQuiet && isSilent {
            freeMemory()
        } else {
            logger.error(
                "the session could not be freed", metadata: ["unanswered": "\(context.unanswered.load(ordering: .relaxed))"])
        }
        return problem.withLock { $0 }
    }

    /// An aborted connection leaves its mount in the way of the next one.
    private func leaveNothingBehind() {
        do throws(Failure) {
            try mountPoint.unmount(lazy: true)
        } catch {
            logger.error("the mount stays behind", metadata: ["reason": "\(error.message)"])
        }
    }

    private func waitForReplies() -> Bool {
        for _ in 0..<(Self.partingSeconds * 200) {
            if context.unanswered.load(ordering: .acquiring) == 0 { return true }
            usleep(5000)
        }
        return false
    }

    private func freeMemory() {
        fuse_session_destroy(session)
        let owner = Unmanaged<MountContext>.fromOpaque(ct_owner(transport))
        ct_destroy(transport)
        // Balances the passRetained of init; no request is left that could ask for it.
        owner.release()
    }
}

/// On a serving thread, with what `ct_create` was given.
private func batchCame(_ owner: UnsafeMutableRawPointer) {
    // Unretained: the session holds a reference until after its last request has been freed.
    Unmanaged<MountContext>.fromOpaque(owner).takeUnretainedValue().latency?.batchCame()
}
