import Glibc
import Logging
import PromiseCore
import PromiseSystem
import PromiseWire
import Synchronization

/// Sees that the socket of a domain's owner stays where clients look for it. The folder of sockets is the session's, and is
/// emptied or taken away when the last session ends (logind); the mount lives on.
///
/// **Threads.** Any; `state` is a leaf. Its own looks each ten seconds, at a folder in memory.
package final class SocketKeeper: Sendable {
    private struct State {
        /// Which socket is there now.
        var path: String
        var added: [(server: ControlServer, task: Task<Void, Never>)] = []
        var isStopped = false
    }

    private static let intervalSeconds: UInt32 = 10

    private let routes: ControlRoutes
    private let logger: Logger
    /// Most wanted first.
    private let places: [String]
    private let state: Mutex<State>

    /// `server` serves already.
    package init(of server: ControlServer, domain: String) {
        routes = server.routes
        logger = server.logger
        let own = ControlSocket.path(domain: domain, user: geteuid(), runtimeFolder: nil)
        places = server.socketPath == own ? [own] : [server.socketPath, own]
        state = Mutex(State(path: server.socketPath))
    }

    /// Until the process ends.
    package func start() {
        OwnedThread(name: "socket") { [self] in
            while true {
                sleep(SocketKeeper.intervalSeconds)
                look()
            }
        }.detach()
    }

    /// Nothing is served any more but by the server that this began with.
    package func stop() async {
        let added = state.withLock { state in
            state.isStopped = true
            return state.added
        }
        for (server, task) in added {
            await server.stop()
            await task.value
        }
    }

    /// One look; a socket that is gone is made anew. Blocking.
    func look() {
        let (path, isStopped) = state.withLock { ($0.path, $0.isStopped) }
        guard !isStopped, !SocketKeeper.isSocket(path) else { return }
        for place in places where serve(at: place) {
            logger.notice("the control socket had gone and is made anew", metadata: ["path": "\(place)"])
            return
        }
    }

    private func serve(at place: String) -> Bool {
        guard (try? ControlServer.prepare(socketPath: place)) != nil else { return false }
        let server = ControlServer(routes, atAnotherPlace: place, logger: logger)
        state.withLock { state in
            if state.isStopped { return }
            state.path = place
            let task = Task { [logger] in
                do throws(ControlServer.StartFailure) {
                    try await server.run {}
                } catch {
                    logger.warning("the control socket cannot be made anew", metadata: ["reason": "\(error.message)"])
                }
            }
            state.added.append((server, task))
        }
        return true
    }

    private static func isSocket(_ path: String) -> Bool {
        (try? FileStatus.of(Array(path.utf8), label: "control.keeper.look"))?.kind == .socket
    }
}
