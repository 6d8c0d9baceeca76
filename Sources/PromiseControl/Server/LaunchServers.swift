import Glibc
import Logging
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseWire
import Synchronization

/// The sockets of launches: each is a server of its own on the domain's event loops, with the routes
/// of an application.
///
/// **Threads.** Any; `state` is a leaf.
final class LaunchServers: LaunchSockets {
    private struct Running {
        let server: ControlServer
        let task: Task<Void, Never>
    }

    private static let suffix = ".app.sock"
    /// Where the launch hands its view over (`DeviceListener`). As long.
    private static let handoverSuffix = ".dev.sock"

    private let routes: ControlRoutes
    private let prefix: String
    private let logger: Logger
    private let state = Mutex<[LaunchID: Running]>([:])

    init(_ routes: ControlRoutes, beside socketPath: String, _ logger: Logger) {
        self.routes = routes
        prefix = (socketPath.hasSuffix(".sock") ? String(socketPath.dropLast(5)) : socketPath) + "-"
        self.logger = logger
    }

    /// Removes sockets that a killed daemon of this domain has left.
    func sweep() {
        guard let slash = prefix.lastIndex(of: "/") else { return }
        let (folder, start) = (String(prefix[...slash]), prefix[prefix.index(after: slash)...])
        guard let names = opendir(folder) else { return }
        defer { closedir(names) }
        while let entry = readdir(names) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            let middle = name.dropFirst(start.count).dropLast(LaunchServers.suffix.count)
            guard name.hasPrefix(start),
                [LaunchServers.suffix, LaunchServers.handoverSuffix].contains(where: name.hasSuffix),
                middle.count == LaunchServers.nameCount, middle.allSatisfy({ $0.isHexDigit })
            else { continue }
            unlink(folder + name)
        }
    }

    private static let nameCount = 8

    func open(for principal: Principal, _ launch: LaunchID) async throws(Failure) -> String {
        guard let grants = routes.service.documents?.grants else {
            throw Failure(.notSupported, "this domain keeps nothing for applications")
        }
        let number = String(UInt32.random(in: 0 ... .max), radix: 16)
        let path =
            prefix + String(repeating: "0", count: LaunchServers.nameCount - number.count) + number
            + LaunchServers.suffix
        do throws(ControlServer.StartFailure) {
            try ControlServer.prepare(socketPath: path)
        } catch {
            throw Failure(.inputOutput, error.message)
        }
        let own = ControlRoutes(
            service: ApplicationService(routes.service, grants, for: principal),
            blocking: routes.blocking, keepAlive: routes.keepAlive, picks: routes.picks)
        let server = ControlServer(own, socketPath: path, for: principal, logger: logger)
        let (answers, answer) = AsyncStream.makeStream(of: String?.self)
        let task = Task {
            do throws(ControlServer.StartFailure) {
                try await server.run { answer.yield(nil) }
            } catch {
                answer.yield(error.message)
            }
            answer.finish()
        }
        state.withLock { $0[launch] = Running(server: server, task: task) }
        for await problem in answers {
            guard let problem else { return path }
            throw Failure(.inputOutput, problem)
        }
        throw Failure(.gone, "the domain is being unmounted")
    }

    func close(_ launch: LaunchID) async {
        guard let running = state.withLock({ $0.removeValue(forKey: launch) }) else { return }
        await running.server.stop(atOnce: true)
        running.task.cancel()
        await running.task.value
    }

    func stop() async {
        for launch in state.withLock({ Array($0.keys) }) { await close(launch) }
    }
}
