import Glibc
import NIOCore
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseHTTP
import PromiseSystem
import Synchronization

/// `struct ucred` of unix(7), which the Glibc module does not show.
struct PeerCredentials: Sendable {
    var process: Int32
    var user: UInt32
    var group: UInt32
}

/// One connection to the control socket: who is at its other end, and who wants to know when it ends.
final class ControlConnection: Sendable {
    private struct Handler { let call: @Sendable () -> Void }

    private struct State {
        var handlers: [UInt64: Handler] = [:]
        var next: UInt64 = 0
        var isClosed = false
        var process: PeerProcess?
    }

    /// By what the kernel says; nil when it does not.
    let peer: PeerCredentials?
    /// What the kernel says of the process that connected, when it was asked last; asked where there are launches.
    var process: PeerProcess? { state.withLock { $0.process } }
    /// Who makes the calls that come by it.
    let principal: Principal
    /// For tasks that belong to a request; nil: of no thread in particular.
    let executor: (any TaskExecutor)?
    private let channel: (any Channel)?
    private let state: Mutex<State>

    /// Without a channel: a request that came by no socket.
    init(
        peer: PeerCredentials?, process: PeerProcess? = nil, channel: (any Channel)?,
        application: Principal? = nil
    ) {
        self.peer = peer
        state = Mutex(State(process: process))
        // Who is not known is refused before anything is asked.
        principal =
            application ?? .owner(user: peer?.user ?? .max, process: peer?.process ?? 0)
        self.channel = channel
        executor = channel.map { LoopExecutor(loop: $0.eventLoop) }
    }

    /// Calls `body` when the connection ends, at once when it has ended; from any thread. Returns what `forget` takes.
    func whenClosed(_ body: @escaping @Sendable () -> Void) -> UInt64 {
        let number: UInt64? = state.withLock { state in
            if state.isClosed { return nil }
            state.next += 1
            state.handlers[state.next] = Handler(call: body)
            return state.next
        }
        if let number { return number }
        body()
        return 0
    }

    /// What the kernel says now. What it said of a process that has ended since is not true of
    /// those that have its connection.
    func note(_ process: PeerProcess?) { state.withLock { $0.process = process } }

    func forget(_ number: UInt64) { state.withLock { _ = $0.handlers.removeValue(forKey: number) } }

    /// Ends the connection, whatever is under way on it.
    func close() { channel?.close(promise: nil) }

    /// To be called once, when the connection has ended.
    func closed() {
        let handlers = state.withLock { state in
            state.isClosed = true
            defer { state.handlers = [:] }
            return Array(state.handlers.values)
        }
        for handler in handlers { handler.call() }
    }
}

/// The connections that have sent a request and have not ended.
final class ControlConnections: Sendable {
    /// SO_PEERCRED of socket(7).
    static let peerCredentialsOption: CInt = 17

    /// Whose socket it is; nil: the domain's own.
    let application: Principal?
    private let grants: Grants?
    private let known = Mutex<[ObjectIdentifier: ControlConnection]>([:])

    init(application: Principal?, grants: Grants?) {
        self.application = application
        self.grants = grants
    }

    /// The kernel is asked once for each connection whose it is. A process that connected as the owner may have entered the
    /// sandbox of a launch since then, with the connection: while there are launches that is asked again.
    func connection(of channel: any Channel) async -> ControlConnection {
        let key = ObjectIdentifier(channel)
        if let connection = known.withLock({ $0[key] }) {
            if application == nil { connection.note(await process(of: channel, connection.peer)) }
            return connection
        }
        var peer: PeerCredentials?
        if let provider = channel as? any SocketOptionProvider {
            peer = try? await provider.unsafeGetSocketOption(
                level: NIOBSDSocket.OptionLevel(rawValue: SOL_SOCKET),
                name: NIOBSDSocket.Option(rawValue: ControlConnections.peerCredentialsOption)
            ).get()
        }
        let connection = ControlConnection(
            peer: peer, process: await process(of: channel, peer), channel: channel,
            application: application)
        known.withLock { $0[key] = connection }
        channel.closeFuture.whenComplete { [self] _ in
            known.withLock { _ = $0.removeValue(forKey: key) }
            connection.closed()
        }
        return connection
    }

    /// Nil where nobody needs to know, and where the kernel does not say.
    private func process(of channel: any Channel, _ peer: PeerCredentials?) async -> PeerProcess? {
        guard let provider = channel as? any SocketOptionProvider, let number = peer?.process,
            application != nil || grants?.launches.isEmpty == false
        else { return nil }
        let pidfd: CInt? = try? await provider.unsafeGetSocketOption(
            level: NIOBSDSocket.OptionLevel(rawValue: SOL_SOCKET),
            name: NIOBSDSocket.Option(rawValue: PeerProcess.descriptorOption)
        ).get()
        guard let pidfd, pidfd >= 0 else { return nil }
        return PeerProcess.of(pidfd: pidfd, process: number)
    }
}
