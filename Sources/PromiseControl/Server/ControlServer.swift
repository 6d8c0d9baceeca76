import Glibc
package import Logging
package import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire
import ServiceLifecycle
import Synchronization

/// The control API of one domain: HTTP/1.1 and JSON over a Unix socket that only its owner and root reach.
///
/// `run` serves until `stop`, which lets the replies under way reach their clients first.
package final class ControlServer: Sendable {
    /// Why the API could not be served. A sentence without a final full stop.
    package struct StartFailure: Error, Sendable {
        package let message: String
        /// As the command line exits: 1 failed, 5 refused.
        package let exitStatus: Int32
    }

    private struct Life {
        var services: ServiceGroup?
        var isStopped = false
    }

    /// A wait of a client may end here; work goes on at the next mount.
    private static let stopGrace: Duration = .seconds(5)

    package let socketPath: String
    let routes: ControlRoutes
    let logger: Logger
    let application: Principal?
    private let launches: LaunchServers?
    /// Of a launch: it ends with the task that runs it.
    private let isOfLaunch: Bool
    private let life = Mutex(Life())
    private let connections = Mutex<ConnectionBudget?>(nil)

    /// `keepAliveInterval`: how often a silent stream says that it lives, and learns that its client has gone.
    /// `application`: the socket is that of an application, which gets what it may ask for. `unreadPatience`: how long what is
    /// sent may be left unread.
    package init(
        service: any ControlService, socketPath: String, application: Principal? = nil, logger: Logger,
        keepAliveInterval: Duration = .seconds(1), unreadPatience: Duration = .seconds(60)
    ) {
        self.socketPath = socketPath
        self.application = application
        self.logger = logger
        routes = ControlRoutes(
            service: service, blocking: BlockingPool(name: "control", threads: 2),
            keepAlive: KeepAlive(interval: keepAliveInterval, unreadPatience: unreadPatience))
        isOfLaunch = false
        launches = application == nil ? LaunchServers(routes, beside: socketPath, logger) : nil
        if let launches { service.documents?.grants.serve(by: launches) }
    }

    /// Of one launch: with the threads and beats of the domain's own.
    init(_ routes: ControlRoutes, socketPath: String, for application: Principal, logger: Logger) {
        self.routes = routes
        self.socketPath = socketPath
        self.application = application
        self.logger = logger
        isOfLaunch = true
        launches = nil
    }

    /// One more for the domain's owner, with the threads and beats of the first one.
    init(_ routes: ControlRoutes, atAnotherPlace socketPath: String, logger: Logger) {
        self.routes = routes
        self.socketPath = socketPath
        self.logger = logger
        application = nil
        isOfLaunch = false
        launches = nil
    }

    deinit { if launches != nil { routes.blocking.stop() } }

    /// Makes the socket's folder (0700) and sees that nobody else owns it or answers at the socket. Blocking. Call before
    /// mounting, so that nothing is mounted that cannot be asked.
    package static func prepare(socketPath: String) throws(StartFailure) {
        guard socketPath.utf8.count <= ControlSocket.pathByteCountMax else {
            throw StartFailure(
                message: "the control socket's path is too long: \(socketPath); give a shorter --domain or XDG_RUNTIME_DIR",
                exitStatus: 1)
        }
        let folder = String(socketPath[..<(socketPath.lastIndex(of: "/") ?? socketPath.startIndex)])
        let status: FileStatus
        do throws(SystemError) {
            try makeFolders(Array(folder.utf8), label: "control.folder")
            status = try FileStatus.of(Array(folder.utf8), label: "control.folderStatus")
        } catch {
            throw StartFailure(
                message: "the folder for the control socket cannot be made: \(folder): \(error.reason); set XDG_RUNTIME_DIR",
                exitStatus: error.errno == EACCES || error.errno == EPERM ? 5 : 1)
        }
        // A folder below /tmp may have been put there by somebody else.
        guard status.kind == .folder, status.owner == geteuid() else {
            throw StartFailure(message: "the folder for the control socket belongs to somebody else: \(folder)", exitStatus: 5)
        }
        if status.permissions & 0o077 != 0 { chmod(folder, 0o700) }
        guard !answers(socketPath) else {
            throw StartFailure(
                message: "another daemon answers at \(socketPath); unmount that domain or give another name with --domain",
                exitStatus: 1)
        }
    }

    /// Serves until `stop` or cancellation. `ready` is called once clients can connect.
    package func run(ready: @escaping @Sendable () async -> Void) async throws(StartFailure) {
        let (path, isOwners) = (socketPath, application == nil)
        launches?.sweep()
        let listener: any Service
        do {
            let budget: ConnectionBudget = isOwners ? .ofOwner() : .ofLaunch()
            connections.withLock { $0 = budget }
            listener = try controlListener(at: path, routes, application: application, budget, logger: logger) {
                // The folder (0700) keeps everybody else out between bind and here. A sandbox may
                // run as another user, and reaches this socket alone, where it was put into it.
                chmod(path, isOwners ? 0o600 : 0o666)
                await ready()
            }
        } catch {
            throw StartFailure(message: "the control API cannot be served at \(path): \(error)", exitStatus: 1)
        }
        if isOfLaunch {
            defer { unlink(path) }
            return try await serveUntilCancelled(listener)
        }
        var configuration = ServiceGroupConfiguration(services: [listener], logger: logger)
        configuration.maximumGracefulShutdownDuration = ControlServer.stopGrace
        let services = ServiceGroup(configuration: configuration)
        let isStopped = life.withLock { life in
            life.services = services
            return life.isStopped
        }
        if isStopped { return }
        defer { unlink(path) }
        do {
            try await services.run()
        } catch is CancellationError {
            return
        } catch {
            // Stopped before it was up: nothing was served, and nothing was to be.
            if life.withLock({ $0.isStopped }) { return }
            throw StartFailure(message: "the control API cannot be served at \(path): \(error)", exitStatus: 1)
        }
    }

    /// A group of services would be tasks of its own that wait with it, as large as all else
    /// that an idle socket needs.
    private func serveUntilCancelled(_ listener: any Service) async throws(StartFailure) {
        do {
            try await listener.run()
        } catch {
            if Task.isCancelled { return }
            throw StartFailure(message: "the control API cannot be served at \(socketPath): \(error)", exitStatus: 1)
        }
    }

    /// Takes no more requests and lets `run` return when the replies under way are sent, after five seconds at most.
    package func stop() async { await stop(atOnce: false) }

    /// `atOnce`: connections end, whatever is under way on them.
    func stop(atOnce: Bool) async {
        let services = life.withLock { life in
            life.isStopped = true
            return life.services
        }
        routes.open.endAll()
        // Of the domain, and of no launch.
        if launches != nil { routes.picks.end() }
        await launches?.stop()
        await services?.triggerGracefulShutdown()
        if atOnce { connections.withLock { $0?.closeAll() } }
    }

    /// Whether a daemon accepts connections at a socket. connect(2) on a Unix socket does not wait
    /// for the peer, and so succeeds also while one that was killed cannot end.
    private static func answers(_ path: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) == 0 }
        }
        guard isConnected else { return false }
        // unix(7): whoever called listen(2).
        var peer = PeerCredentials(process: 0, user: 0, group: 0)
        var room = socklen_t(MemoryLayout<PeerCredentials>.size)
        let option = ControlConnections.peerCredentialsOption
        let isKnown = getsockopt(descriptor, SOL_SOCKET, option, &peer, &room) == 0
        return !isKnown || !ProcessTable.isStuckInItsEnd(peer.process)
    }
}
