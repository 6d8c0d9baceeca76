import Logging
package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseKeyValue
import PromiseMount
package import PromiseSystem
import Synchronization

/// The views of applications that run now. Each is a mount in a namespace of the application's own:
/// whoever starts it mounts there and hands the device over (Mount/ViewHelper), and the view ends
/// with the namespace, or with this daemon.
///
/// **Threads.** A thread for each view waits for its device, and is then the one that serves it.
package final class Views: Sendable {
    /// What a launch needs to have its view.
    package struct Place: Sendable, Hashable {
        package var launch: String
        /// An abstract socket (unix(7)) that one peer may reach, once: with `@` before its name.
        package var handover: String
        /// Where the application asks for what it was given; nil where nobody makes sockets.
        package var socket: String?
    }

    private struct Running {
        var session: MountSession
        var application: String
        var process: DeviceListener.Handed
        /// Of no program that would lose what it is about.
        var isForSession: Bool
    }

    private struct State {
        var running: [UInt16: Running] = [:]
        var next: UInt16 = 1
        var count = 0
        var isOver = false
    }

    /// So long a launch may take until it hands its device over.
    private static let patience = Duration.seconds(10)
    private static let countMax = 1_000

    private let filesystem: FileSystem
    private let grants: Grants
    private let domainName: String
    private let door: AccessDoor
    /// By which programs in views hear of what is done outside.
    private let echoProgram: [UInt8]?
    private let isReadOnly: Bool
    private let logger: Logger
    private let state = Monitor(State())

    init(
        filesystem: FileSystem, grants: Grants, domainName: String, door: AccessDoor,
        echoProgram: [UInt8]?, isReadOnly: Bool, logger: Logger
    ) {
        self.isReadOnly = isReadOnly
        self.echoProgram = echoProgram
        self.filesystem = filesystem
        self.grants = grants
        self.domainName = domainName
        self.door = door
        self.logger = logger
    }

    /// Removes what launches of earlier daemons have left.
    func start() {
        let folders = ViewFolders(filesystem)
        OwnedThread(name: "views") { folders.sweep() }.detach()
    }

    /// Ends every view: programs inside get ENOTCONN. Returns when that is done.
    func stop() {
        let running = state.update { state in
            state.isOver = true
            return Array(state.running.values)
        }
        for view in running { try? view.session.unmount(lazy: true) }
        _ = state.wait(timeout: .seconds(5)) { $0.running.isEmpty ? true : nil }
    }

    /// Before the domain is unmounted. Throws `.busy` while applications run that have views of it;
    /// lazily they are ended, as they hold the domain's mount in namespaces of theirs.
    func letGo(lazy: Bool) throws(Failure) {
        let running = state.withLock { Array($0.running.values) }
        if lazy { return running.forEach { $0.process.terminate() } }
        let programs = running.filter { !$0.isForSession }
        guard let first = programs.first else { return running.forEach { $0.process.terminate() } }
        let others = programs.count == 1 ? "" : ", and \(programs.count - 1) more"
        throw Failure(
            .busy,
            "\(first.application)\(others) runs with a view of the domain: end it, or unmount with --lazy")
    }

    package var count: Int { state.withLock { $0.count } }

    /// Makes a view for one launch of an application, which must take it soon. `takenBy`: who is to
    /// take it; the launch ends when that has ended before.
    package func open(
        for application: String, by principal: Principal, isForSession: Bool = false,
        takenBy process: DeviceListener.ProcessEnd? = nil
    ) async throws(Failure) -> Place {
        let number = try take()
        do throws(Failure) {
            let begun = try await grants.beginLaunch(of: application, by: principal)
            let listener: DeviceListener
            guard let handover = begun.socket.map(Views.handover) else {
                await grants.endLaunch(begun.launch)
                throw Failure(.notSupported, "this domain has no sockets of launches")
            }
            do throws(SystemError) {
                listener = try DeviceListener(path: Array(handover.utf8))
            } catch {
                await grants.endLaunch(begun.launch)
                throw Failure(error)
            }
            let launch = Starting(
                number: number, launch: begun.launch, application: application, owner: principal,
                policy: LaunchPolicy(grants, begun.principal, door, isReadOnly: isReadOnly),
                isForSession: isForSession, taker: process)
            OwnedThread(name: "view") { [self] in
                serve(listener, launch)
                state.update { $0.running[number] = nil }
                Task { [self] in
                    await grants.endLaunch(launch.launch)
                    state.update { $0.count -= 1 }
                }
            }.detach()
            return Place(launch: begun.launch.text, handover: handover, socket: begun.socket)
        } catch {
            state.update { $0.count -= 1 }
            throw error
        }
    }

    private struct Starting: Sendable {
        var number: UInt16
        var launch: LaunchID
        var application: String
        var owner: Principal
        var policy: LaunchPolicy
        var isForSession: Bool
        var taker: DeviceListener.ProcessEnd?
    }

    private func take() throws(Failure) -> UInt16 {
        try state.withLock { state throws(Failure) in
            guard !state.isOver else { throw Failure(.stale, "the domain is being unmounted") }
            guard state.count < Views.countMax else {
                throw Failure(.tooManyOpen, "\(Views.countMax) views are mounted already")
            }
            state.count += 1
            while state.next == 0 || state.running[state.next] != nil { state.next &+= 1 }
            defer { state.next &+= 1 }
            return state.next
        }
    }

    /// Beside the launch's own socket, which has a name of its own.
    private static func handover(_ socket: String) -> String {
        let own = socket.hasSuffix(".app.sock") ? String(socket.dropLast(9)) : socket
        return own + ".dev.sock"
    }

    // MARK: One view

    private func serve(_ listener: DeviceListener, _ launch: Starting) {
        let shown = escapedForDisplay(launch.application.utf8.prefix(80))
        guard let handed = listener.take(within: Views.patience, until: launch.taker) else {
            logger.notice("a launch did not come for its view", metadata: ["application": "\(shown)"])
            return
        }
        let folders = ViewFolders(filesystem)
        // Closed when there will be no session that closes it.
        let device = Descriptor(adopting: handed.device)
        do throws(Failure) {
            try bind(launch, handed)
            let place = try folders.make(FileName(trusted: Array(launch.launch.text.utf8)))
            defer { folders.remove(place) }
            let view = View(
                of: filesystem,
                for: View.Launch(
                    number: launch.number, user: handed.user, group: handed.group, folders: place),
                policy: launch.policy)
            var options = MountOptions.view(
                of: domainName, device: device.release(), hasLocks: view.locks.isServed,
                at: handed.mount)
            if handed.mount != nil { options.echoProgram = echoProgram }
            let session = MountSession(
                filesystem: WatchedView(view), options: options, logger: logger)
            try session.mount()
            let isOver = state.update { state in
                state.running[launch.number] = Running(
                    session: session, application: shown, process: handed,
                    isForSession: launch.isForSession)
                return state.isOver
            }
            handed.answer("ok")
            logger.info(
                "a view is mounted",
                metadata: ["application": "\(shown)", "launch": "\(launch.launch)"])
            // Unmounted meanwhile: a session that ends before it serves is not served.
            if isOver { return try session.unmount(lazy: true) }
            if launch.isForSession, let end = handed.end {
                // Others look into it, and may keep open what they have seen: that is no part of the launch.
                OwnedThread(name: "view-end") {
                    end.wait()
                    try? session.unmount(lazy: true)
                }.detach()
            }
            launch.policy.begin()
            session.serve()
            launch.policy.end()
        } catch {
            handed.answer(error.message)
            logger.warning(
                "a view could not be mounted",
                metadata: ["application": "\(shown)", "reason": "\(error.message)"])
        }
    }

    /// Whoever has handed the device over has made the namespaces, and what is inside them is the
    /// application, whatever its user.
    private func bind(_ launch: Starting, _ handed: DeviceListener.Handed) throws(Failure) {
        guard let user = handed.peer?.userNamespaces.first else {
            throw Failure(.notSupported, "the kernel does not say in whose namespace the view is")
        }
        try grants.bind(launch.launch, to: .user(user), by: launch.owner)
    }
}
