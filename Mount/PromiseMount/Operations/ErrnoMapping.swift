import Glibc
package import Logging
package import PromiseCore

// The one table from failure codes to what a program sees in errno, and how loudly the log speaks of each.

extension Failure.Code {
    /// The errno of a failed call (an outside contract: docs of the command line, "errno").
    package var errorNumber: CInt {
        switch self {
        case .notFound, .gone: ENOENT
        case .exists: EEXIST
        case .notFolder: ENOTDIR
        case .isFolder: EISDIR
        case .notEmpty: ENOTEMPTY
        case .crossDevice: EXDEV
        case .tooManyLinks: EMLINK
        case .nameTooLong: ENAMETOOLONG
        case .notPermitted: EPERM
        case .refused: EACCES
        // Not EACCES: an indexer that was refused can tell it from a missing permission.
        case .hydrationRefused: EDEADLK
        case .readOnly: EROFS
        case .busy, .conflict: EBUSY
        case .offline: ENETDOWN
        case .timedOut: ETIMEDOUT
        case .stale: ESTALE
        case .corrupted: EIO
        case .interrupted: EINTR
        case .storeFull: ENOSPC
        case .quotaExceeded: EDQUOT
        case .tooLarge: EFBIG
        case .noAttribute: ENODATA
        case .attributeTooLarge: ERANGE
        case .invalid: EINVAL
        // Never ENOSYS: the kernel would not ask again for the life of the mount.
        case .notSupported: EOPNOTSUPP
        case .outOfRange: ENXIO
        // The daemon has an open file for each of the programs', so its limit is that of the whole mount.
        case .tooManyOpen: ENFILE
        case .inputOutput: EIO
        }
    }

    /// What a program may cause by itself is not worth a line; what an operator must know is.
    package var logLevel: Logger.Level {
        switch self {
        case .notFound, .gone, .exists, .notFolder, .isFolder, .notEmpty, .crossDevice, .tooManyLinks, .nameTooLong,
            .conflict, .notPermitted,
            .readOnly,
            .busy, .interrupted, .tooLarge, .noAttribute, .attributeTooLarge, .invalid, .notSupported, .outOfRange:
            .trace
        case .refused, .hydrationRefused, .offline, .timedOut, .stale, .quotaExceeded: .debug
        case .storeFull, .tooManyOpen: .warning
        case .corrupted, .inputOutput: .error
        }
    }
}
