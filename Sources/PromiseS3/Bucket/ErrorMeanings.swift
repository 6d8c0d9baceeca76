import PromiseCore
import PromiseProvider

/// A path for people.
func shown(_ path: [FileName]) -> String { "'/" + path.map(\.display).joined(separator: "/") + "'" }

extension ProviderError {
    /// Something else is at a path than whoever asks expected.
    static func taken(_ path: [FileName]) -> ProviderError {
        ProviderError(.conflict, "\(shown(path)) was changed or made on the server meanwhile")
    }

    /// There is a folder where a file was.
    static func becameFolder(_ path: [FileName]) -> ProviderError {
        ProviderError(.conflict, "\(shown(path)) is a folder on the server now")
    }
}

extension ProviderError.Code {
    /// The server will answer the same the next time.
    var isLasting: Bool {
        switch self {
        case .refused, .permanent: true
        default: false
        }
    }

    /// Nobody knows whether the request was carried out: it may have happened all the same.
    var leavesInDoubt: Bool {
        switch self {
        case .retry, .retryAfter, .offline, .authenticate, .cancelled: true
        default: false
        }
    }
}
