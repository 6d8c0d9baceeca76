import Logging
package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseKeyValue
import PromiseMount
import PromiseSystem
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
        package var socket: String
    }

    private struct State {
        var sessions: [UInt16: MountSession] = [:]
        var next: UInt16 = 1
        var count = 0
        var isOver = false
    }

    /// So long a launch may take until it hands its device over.
    private static let patience = Duration.seconds(30)
    private static let countMax = 1_000

    private let filesystem: FileSystem
    private let containers: Containers
    private let domainName: String
    private let door: AccessDoor
    private let logger: Logger
    private let state = Monitor(State())

    init(
        filesystem: FileSystem, containers: Containers, domainName: String, door: AccessDoor,
        logger: Logger
    ) {
        self.filesystem = filesystem
        self.containers = containers
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
        let sessions = state.update { state in
            state.isOver = true
            return Array(state.sessions.values)
        }
        for session in sessions { try? session.unmount(lazy: true) }
        _ = state.wait(timeout: .seconds(5)) { $0.count == 0 ? true : nil }
    }

    package var count: Int { state.withLock { $0.count } }

    /// Makes a view for one launch of an application, which must take it soon.
    package func open(
        for application: String, by principal: Principal
    ) async throws(Failure) -> Place {
        try door.admit(principal, to: "views.open", of: application, isChange: true)
        guard principal.isOwner else {
            throw Failure(.refused, "an application does not start others")
        }
        var roots = ViewRoots()
        if let entry = try await containers.entry(of: application) {
            roots.add(
                ViewRoot(
                    name: Views.containerName, entry: entry, rights: .readWrite, place: .top))
        }
        let policy = LaunchPolicy(application: application, roots: roots, logger: logger)
        let number = try take()
        let launch = Views.chance()
        do throws(Failure) {
            let listener = try Views.listener(launch)
            OwnedThread(name: "view") { [self] in
                serve(listener, number, launch, policy)
                state.update { state in
                    state.sessions[number] = nil
                    state.count -= 1
                }
            }.detach()
            return Place(launch: launch, socket: "@promisefs-view-\(launch)")
        } catch {
            state.update { $0.count -= 1 }
            throw error
        }
    }

    package static let containerName = FileName(trusted: Array("container".utf8))

    private func take() throws(Failure) -> UInt16 {
        try state.withLock { state throws(Failure) in
            guard !state.isOver else { throw Failure(.stale, "the domain is being unmounted") }
            guard state.count < Views.countMax else {
                throw Failure(.tooManyOpen, "\(Views.countMax) views are mounted already")
            }
            state.count += 1
            while state.next == 0 || state.sessions[state.next] != nil { state.next &+= 1 }
            defer { state.next &+= 1 }
            return state.next
        }
    }

    private static func listener(_ launch: String) throws(Failure) -> DeviceListener {
        do throws(SystemError) {
            return try DeviceListener(name: "promisefs-view-\(launch)")
        } catch {
            throw Failure(error)
        }
    }

    private static func chance() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    // MARK: One view

    private func serve(
        _ listener: DeviceListener, _ number: UInt16, _ launch: String, _ policy: LaunchPolicy
    ) {
        guard let handed = listener.take(within: Views.patience) else {
            logger.notice(
                "a launch did not come for its view", metadata: ["application": "\(policy.shown)"])
            return
        }
        let folders = ViewFolders(filesystem)
        do throws(Failure) {
            let place = try folders.make(FileName(trusted: Array(launch.utf8)))
            defer { folders.remove(place) }
            let view = View(
                of: filesystem,
                for: View.Launch(
                    number: number, user: handed.user, group: handed.group, folders: place),
                policy: policy)
            let session = MountSession(
                filesystem: view, options: .view(of: domainName, device: handed.device),
                logger: logger)
            try session.mount()
            let isOver = state.update { state in
                state.sessions[number] = session
                return state.isOver
            }
            handed.answer("ok")
            logger.info(
                "a view is mounted",
                metadata: ["application": "\(policy.shown)", "launch": "\(launch)"])
            if isOver { try session.unmount(lazy: true) }
            session.serve()
        } catch {
            handed.answer(error.message)
            logger.warning(
                "a view could not be mounted",
                metadata: ["application": "\(policy.shown)", "reason": "\(error.message)"])
        }
    }
}

/// What one launch may reach.
private final class LaunchPolicy: ViewPolicy {
    private let application: String
    private let logger: Logger
    private let state: Mutex<ViewRoots>

    init(application: String, roots: ViewRoots, logger: Logger) {
        self.application = application
        self.logger = logger
        state = Mutex(roots)
    }

    /// For the log.
    var shown: String { escapedForDisplay(application.utf8.prefix(80)) }

    var roots: ViewRoots { state.withLock { $0 } }
    var endsOpenFiles: Bool { false }

    func refused(_ operation: StaticString, _ node: NodeID) {
        logger.warning(
            "access",
            metadata: [
                "by": "application \(shown)", "call": "view.\(operation)", "node": "\(node)",
                "outcome": "refused",
            ])
    }

    func replaced(_ entry: EntryID, by other: EntryID) {}
}
