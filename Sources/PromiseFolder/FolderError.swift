import Glibc
import PromiseProvider
import PromiseSystem

extension ProviderError {
    /// What a failed call on the folder's file system means to the engine. Unlisted errnos are passing trouble: a folder on
    /// a failing or remote disk comes back, and a wrong `.refused` would stop an item for good.
    init(_ error: SystemError, _ what: String) {
        let code: Code =
            switch error.errno {
            // A link or file where a folder was expected: the path leads nowhere any more.
            case ENOENT, ENOTDIR, ELOOP: .notFound
            case EEXIST, ENOTEMPTY, EISDIR: .conflict
            case EACCES, EPERM, EROFS, ENAMETOOLONG, EFBIG, EMLINK, EXDEV, EILSEQ, EINVAL, EOPNOTSUPP, ENOSYS: .refused
            case ENOSPC, EDQUOT: .outOfSpace
            case ENODEV, ENXIO, ESTALE, ENOTCONN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ETIMEDOUT, ESHUTDOWN: .offline
            default: .retry
            }
        self.init(code, "\(what): \(error.description)")
    }
}

/// Runs calls on the folder's file system and gives their errors the provider's meaning.
func mapped<Value: ~Copyable>(
    _ what: @autoclosure () -> String, _ body: () throws(SystemError) -> Value
) throws(ProviderError) -> Value {
    do throws(SystemError) { return try body() } catch { throw ProviderError(error, what()) }
}
