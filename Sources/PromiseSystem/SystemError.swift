package import PromiseCore

import Glibc

/// A system call failed: which one, at which labelled place in this program, and with which errno.
package struct SystemError: Error, Sendable, CustomStringConvertible {
    package let errno: CInt
    /// Unique to the call site, e.g. `content.open`. Fault injection names call sites by it.
    package let label: String

    package init(errno: CInt, label: String) {
        self.errno = errno
        self.label = label
    }

    package var reason: String { String(cString: strerror(errno)) }
    package var description: String { "\(label): \(reason)" }

    /// For people, of a call on this machine.
    fileprivate func sentence(_ code: Failure.Code) -> String {
        switch code {
        case .storeFull: "the local disk is full: make room there, or let 'promisefs evict' do it"
        case .quotaExceeded: "your share of the local disk is used up: make room there"
        default: "a call on this machine failed: \(reason) (\(label))"
        }
    }
}

extension Failure {
    /// What a failed call on a local file means to a caller of the tree. Unlisted errnos are I/O errors.
    package init(_ error: SystemError) {
        let code: Failure.Code =
            switch error.errno {
            case ENOENT: .notFound
            case EEXIST: .exists
            case ENOTDIR: .notFolder
            case EISDIR: .isFolder
            case ENOTEMPTY: .notEmpty
            case EXDEV: .crossDevice
            case EMLINK: .tooManyLinks
            case ENAMETOOLONG: .nameTooLong
            case EPERM: .notPermitted
            case EACCES: .refused
            case EROFS: .readOnly
            case EBUSY, ETXTBSY: .busy
            case EINTR: .interrupted
            case ENOSPC: .storeFull
            case EDQUOT: .quotaExceeded
            case EFBIG: .tooLarge
            case EINVAL: .invalid
            case EOPNOTSUPP, ENOSYS: .notSupported
            case ENXIO: .outOfRange
            case EMFILE, ENFILE: .tooManyOpen
            default: .inputOutput
            }
        self.init(code, error.sentence(code))
    }
}

/// Runs a system call that returns -1 on failure: repeats on EINTR and throws everything else.
///
/// errno is read in the next expression, before anything can allocate. EBADF and EFAULT trap: they are bugs of
/// this program and not conditions of the world. Not for close(2), which must not be repeated.
package func call<Value: FixedWidthInteger & SignedInteger>(
    _ label: StaticString, _ body: () -> Value
) throws(SystemError) -> Value {
    while true {
        let fault = FaultInjection.take(label)
        let result = fault == nil ? body() : -1
        if result != -1 { return result }
        let code = fault ?? errno
        if code == EINTR { continue }
        precondition(code != EBADF && code != EFAULT, "\(label) was called with a bad descriptor or address: errno \(code)")
        throw SystemError(errno: code, label: "\(label)")
    }
}
