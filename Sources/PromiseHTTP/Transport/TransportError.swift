import AsyncHTTPClient
import Glibc
import NIOCore
import NIOPosix
package import NIOHTTP1
package import PromiseProvider

extension ProviderError {
    /// Why no reply came. No message mentions a URL's user, a header or a body.
    package init(transport error: any Error, _ method: HTTPMethod, server: String) {
        if let error = error as? ProviderError {
            self = error
            return
        }
        switch error {
        case is CancellationError: self.init(.cancelled, "the call was cancelled")
        case let error as HTTPClientError:
            switch error {
            case .cancelled: self.init(.cancelled, "the call was cancelled")
            case .connectTimeout, .getConnectionFromPoolTimeout:
                self.init(.offline, "\(server) cannot be reached: no connection within the time for one")
            case .tlsHandshakeTimeout: self.init(.offline, "\(server) does not complete a TLS handshake")
            case .readTimeout, .writeTimeout, .deadlineExceeded:
                self.init(.retry, "\(server) does not answer \(method) in time")
            default: self.init(.retry, "\(server) broke off \(method): \(error.shortDescription)")
            }
        // The last one: this connection is dead, and there may be others.
        case let error as IOError where [ECONNRESET, EPIPE, ETIMEDOUT].contains(error.errnoCode):
            self.init(.retry, "\(server) broke off \(method)")
        case let error as IOError:
            self.init(.offline, "\(server) cannot be reached: \(String(cString: strerror(error.errnoCode)))")
        case let error as NIOConnectionError:
            // One of each address that was tried.
            if let reason = error.connectionErrors.first?.error {
                let code = (reason as? IOError)?.errnoCode
                let text = code.map { String(cString: strerror($0)) } ?? "no connection within the time for one"
                self.init(.offline, "\(server) cannot be reached: \(text)")
            } else {
                self.init(.offline, "\(server) cannot be reached: its name is not known")
            }
        case is ChannelError: self.init(.retry, "\(server) broke off \(method)")
        default:
            let kind = String(reflecting: type(of: error))
            if ServerTrust.isOtherName(error) {
                self.init(.authenticate, "\(server) cannot be trusted: its certificate is for another name")
            } else if kind.hasPrefix("NIOSSL") {
                self.init(.authenticate, "\(server) cannot be trusted (TLS: \(error)): check its certificate")
            } else if kind.hasPrefix("NIOPosix") || kind.hasPrefix("NIOCore.SocketAddressError") {
                // Refused connections and unknown hosts come in a type that lists every address tried.
                self.init(.offline, "\(server) cannot be reached: \(ProviderError.shortened("\(error)"))")
            } else {
                self.init(.retry, "\(server) broke off \(method): \(ProviderError.shortened("\(error)"))")
            }
        }
    }

    private static func shortened(_ text: String) -> String {
        let line = text.split(separator: "\n").first ?? ""
        return line.count <= 200 ? String(line) : line.prefix(200) + "…"
    }
}
