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
        self.init(code, "\(what): \(error.reason)")
    }

    /// Nothing was ever found at the path.
    init(firstOpening path: String, _ error: SystemError) {
        switch error.errno {
        case ENOENT: self.init(.permanent, "the folder '\(path)' does not exist: create it or name another")
        case ENOTDIR: self.init(.permanent, "'\(path)' is not a folder: name another")
        case EACCES, EPERM:
            self.init(
                .permanent, "the folder '\(path)' may not be entered: change its permissions or name another")
        case ELOOP: self.init(.permanent, "'\(path)' is a link that leads to itself: name another")
        default: self.init(error, "the folder '\(path)' cannot be opened")
        }
    }

    init(notMounted path: String) {
        self.init(.away, "what was mounted on '\(path)' is not there now: mount it, or remove that folder")
    }
}

/// Runs calls on the folder's file system and gives their errors the provider's meaning.
func mapped<Value: ~Copyable>(
    _ what: @autoclosure () -> String, _ body: () throws(SystemError) -> Value
) throws(ProviderError) -> Value {
    do throws(SystemError) { return try body() } catch { throw ProviderError(error, what()) }
}
