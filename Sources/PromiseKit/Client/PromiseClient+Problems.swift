import AsyncHTTPClient
import Glibc
import NIOCore
import PromiseCore
import PromiseWire

// What goes wrong between a program and a daemon.

extension PromiseClient {
    /// What an error of the HTTP client means to who asked.
    static func meaning(of error: any Error, domain: String) -> PromiseError {
        switch error {
        case is CancellationError: return PromiseError(.cancelled, "the request was cancelled", exitStatus: 1)
        case let error as HTTPClientError where error == .cancelled:
            return PromiseError(.cancelled, "the request was cancelled", exitStatus: 1)
        case let error as HTTPClientError where error == .deadlineExceeded || error == .readTimeout:
            return PromiseError(.notAnswering, "the daemon of '\(domain)' did not answer in time", exitStatus: 4)
        case let error as HTTPClientError where error == .remoteConnectionClosed:
            return PromiseError(.brokenReply, "the daemon of '\(domain)' closed the connection; look at its log", exitStatus: 4)
        case is ServerEventParser.Overflow:
            return PromiseError(.brokenReply, "the daemon of '\(domain)' sent an event that never ends", exitStatus: 1)
        case _ where PromiseClient.isRefusal(error): return PromiseClient.notAnswering(domain)
        default:
            let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
            return PromiseError(
                .brokenReply, "the connection to the daemon of '\(domain)' broke: \(reason); look at its log", exitStatus: 4)
        }
    }

    /// Nobody listens at the socket, or it is gone.
    static func isRefusal(_ error: any Error) -> Bool {
        guard let error = error as? IOError else { return false }
        return [ECONNREFUSED, ENOENT, ENOTSOCK, EACCES, EPERM].contains(error.errnoCode)
    }

    static func notOwn(_ mount: MountEntry) -> PromiseError {
        let others = mount.user == 0 ? "" : "\(mount.userName) and "
        return PromiseError(
            .local,
            "\(escapedForDisplay(mount.mountPoint)) is mounted by \(mount.userName): "
                + "only \(others)root may ask its daemon", exitStatus: 5)
    }

    static func notAnswering(_ domain: String) -> PromiseError {
        PromiseError(
            .notAnswering,
            "no daemon answers for the domain '\(domain)'; if it has died, 'promisefs unmount --lazy MOUNTPOINT' and mount again",
            exitStatus: 4)
    }
}
