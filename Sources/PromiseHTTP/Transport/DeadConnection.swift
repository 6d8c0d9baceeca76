import Glibc
import NIOCore
import NIOPosix

/// A connection whose other end is gone without a sign, as after a machine has slept or its network has changed: who waits for
/// an answer, which may be ten minutes over an upload, waits for nothing. The kernel asks the other end (tcp(7)); a server that
/// is slow answers that, whatever it does.
enum DeadConnection {
    private static let options: [(level: CInt, name: CInt, value: Int)] = [
        (SOL_SOCKET, SO_KEEPALIVE, 1), (CInt(IPPROTO_TCP), TCP_KEEPIDLE, 20), (CInt(IPPROTO_TCP), TCP_KEEPINTVL, 10),
        (CInt(IPPROTO_TCP), TCP_KEEPCNT, 4),
        // What was sent and is not acknowledged, in milliseconds.
        (CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, 120_000),
    ]

    /// Where it cannot be set, it is as before.
    static func watch(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.submit {
            for (level, name, value) in options {
                let option = ChannelOptions.Types.SocketOption(
                    level: .init(rawValue: level), name: .init(rawValue: name))
                try? channel.syncOptions?.setOption(option, value: value)
            }
        }
    }
}
