import Glibc
import Logging
import PromiseControl
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire

/// The process that serves a mount: from start to the end of the mount.
enum Daemon {
    /// Longer than the control socket gives its clients.
    private static let partingMax = Duration.seconds(8)

    /// Returns when the mount has ended. `ready` is told once, of success or of why not.
    static func run(
        _ configuration: DomainConfiguration, plan: MountPlan, level: Logger.Level, holder: Holder?, ready: ReadyChannel?
    ) async throws(CommandFailure) {
        settle(level)
        let logger = Logger(label: "promisefs")
        if let problem = configuration.problem {
            logger.warning("the settings cannot be used", metadata: ["reason": "\(problem)"])
        }
        do throws(CommandFailure) {
            try await serve(configuration, socketPath: plan.socketPath, logger, holder, ready)
        } catch {
            logger.error("the domain could not be served", metadata: ["reason": "\(error.message ?? "")"])
            if let ready {
                _ = ready.send(ReadyMessage(ready: false, error: error.message, exitStatus: error.exitStatus))
                throw CommandFailure(nil, exitStatus: error.exitStatus)
            }
            throw error
        }
    }

    /// What must be so before any thread of the daemon starts.
    private static func settle(_ level: Logger.Level) {
        FaultInjection.arm(from: environment("PROMISEFS_FAULT"))
        FaultInjection.watch(environment("PROMISEFS_FAULT_FILE"))
        signal(SIGPIPE, SIG_IGN)
        // A file that may not grow is an error of the call that met it (EFBIG), not the end of the mount.
        signal(SIGXFSZ, SIG_IGN)
        ProcessLimits.raise()
        ProcessMemory.shareArenas()
        // Modes are set as the callers of the mount say.
        umask(0)
        // Nothing below the working directory should be kept from being unmounted.
        chdir("/")
        LoggingSystem.bootstrap { _ in DaemonLog(logLevel: level) }
    }

    /// Where the socket can be. Who goes on with a mount that is there takes another place where the
    /// session's folder has gone: nobody would serve the mount any more.
    private static func preparedSocket(
        _ path: String, _ domain: String, isSuccessor: Bool
    ) async throws(CommandFailure) -> String {
        let own = ControlSocket.path(domain: domain, user: geteuid(), runtimeFolder: nil)
        var problem: CommandFailure?
        for place in isSuccessor && own != path ? [path, own] : [path] {
            do throws(ControlServer.StartFailure) {
                try await Blocking.run { () throws(ControlServer.StartFailure) in
                    try ControlServer.prepare(socketPath: place)
                }
                return place
            } catch {
                problem = problem ?? CommandFailure(error.message, exitStatus: error.exitStatus)
            }
        }
        throw problem ?? CommandFailure("there is no place for the control socket")
    }

    private static func serve(
        _ configuration: DomainConfiguration, socketPath: String, _ logger: Logger, _ holder: Holder?, _ ready: ReadyChannel?
    ) async throws(CommandFailure) {
        let socketPath = try await preparedSocket(socketPath, configuration.name, isSuccessor: holder?.device != nil)
        // Before there is a mount that nobody would end.
        let signals = TerminationSignals(logger)
        let domain: Domain
        do throws(Domain.StartFailure) {
            domain = try await Domain.start(configuration, holder: holder, logger: logger)
        } catch {
            throw CommandFailure(error.message, exitStatus: error.exitStatus)
        }
        let place = StatePlaces.Place(name: configuration.name, folder: configuration.stateFolder)
        await Blocking.run { () throws(Never) in StatePlaces.note(place) }
        domain.services.meet(MountedDomains(own: configuration.name))
        let shown = escapedForDisplay(configuration.mountPoint)
        // Whoever waits for `ready` is a process that ends; a service stays in the foreground.
        let manager = ready == nil ? ServiceManager.take() : nil
        let server = ControlServer(service: DomainService(domain), socketPath: socketPath, logger: logger)
        let keeper = SocketKeeper(of: server, domain: configuration.name)
        let serving = Task { () async -> CommandFailure? in
            do throws(ControlServer.StartFailure) {
                try await server.run {
                    logger.notice("mounted", metadata: ["domain": "\(configuration.name)", "on": "\(shown)"])
                    signals.unmount(domain)
                    // From here on a daemon that dies has a successor; before, whoever started it hears of it.
                    // Nobody is told of a mount that would go with its daemon.
                    holder?.tellServing()
                    keeper.start()
                    manager?.tell(["READY=1", "STATUS=\(configuration.name) is mounted on \(shown)"])
                    manager?.keepTelling(thatAnswers: configuration.mountPoint)
                    guard let ready, !ready.send(ReadyMessage(ready: true, processID: getpid())) else { return }
                    // Who asked for the mount has gone before it was there, so nobody knows of it.
                    logger.notice("the process that asked for the mount has gone; unmounting")
                    signals.request()
                }
                return nil
            } catch {
                signals.unmount(domain)
                signals.request()
                return CommandFailure(error.message, exitStatus: error.exitStatus)
            }
        }
        await domain.waitUntilUnmounted()
        manager?.tell(["STOPPING=1"])
        // A reply that waits for a provider's call may never come, and the process is to end all
        // the same.
        let ending = Attempt {
            await keeper.stop()
            await server.stop()
            return await serving.value
        }
        let failure = await ending.outcome(within: partingMax) ?? nil
        signals.stop()
        logger.notice("unmounted", metadata: ["domain": "\(configuration.name)", "from": "\(shown)"])
        if let failure { throw failure }
    }
}
