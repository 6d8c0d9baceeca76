import Glibc
import NIOCore

/// Who listens at a socket: this user or root, by what the kernel says (SO_PEERCRED, unix(7)).
enum PeerCheck {
    struct Stranger: Error {
        var user: UInt32
    }

    /// `struct ucred` of unix(7), which the Glibc module does not show.
    private struct PeerCredentials: Sendable {
        var process: Int32
        var user: UInt32
        var group: UInt32
    }

    private static let peerCredentialsOption: CInt = 17

    /// For each new connection, before anything is sent over it.
    static func verify(_ channel: any Channel) -> EventLoopFuture<Void> {
        guard let provider = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(Stranger(user: .max))
        }
        let peer: EventLoopFuture<PeerCredentials> = provider.unsafeGetSocketOption(
            level: NIOBSDSocket.OptionLevel(rawValue: SOL_SOCKET), name: NIOBSDSocket.Option(rawValue: peerCredentialsOption))
        return peer.flatMapThrowing { peer in
            guard peer.user == 0 || peer.user == geteuid() else { throw Stranger(user: peer.user) }
        }
    }

    /// Whether somebody listens at the socket already. Blocking, for an instant.
    static func canConnect(_ path: [UInt8]) -> Bool {
        var address = sockaddr_un()
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let number = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(number, $0, length) == 0 }
        }
    }
}
