package import PromiseCore
import PromiseDomain
import PromiseWire

// The one place where a failure's code becomes an exit status and an HTTP status.

extension Failure.Code {
    /// The command line's contract: 1 failed, 4 offline or timed out, 5 refused, 6 a conflict.
    package var exitStatus: Int32 {
        switch self {
        case .offline, .timedOut: 4
        case .refused, .notPermitted, .hydrationRefused: 5
        case .conflict: 6
        case .notFound, .gone, .exists, .notFolder, .isFolder, .notEmpty, .crossDevice, .tooManyLinks,
            .nameTooLong, .readOnly, .busy, .stale, .corrupted, .interrupted, .storeFull,
            .quotaExceeded, .tooLarge, .noAttribute, .attributeTooLarge, .invalid,
            .notSupported, .outOfRange, .tooManyOpen, .inputOutput:
            1
        }
    }

    package var httpStatus: Int {
        switch self {
        case .notFound, .noAttribute: 404
        case .exists, .notEmpty, .busy, .conflict: 409
        case .stale, .gone: 410
        case .notPermitted, .refused, .hydrationRefused, .readOnly: 403
        case .notFolder, .isFolder, .crossDevice, .tooManyLinks, .nameTooLong, .invalid, .outOfRange, .attributeTooLarge: 400
        case .tooLarge: 413
        case .offline, .interrupted, .tooManyOpen: 503
        case .timedOut: 504
        case .storeFull, .quotaExceeded: 507
        case .notSupported: 501
        case .corrupted, .inputOutput: 500
        }
    }

    fileprivate var title: String {
        switch self {
        case .notFound: "Not found"
        case .gone: "Gone"
        case .exists: "Exists already"
        case .notFolder: "Not a folder"
        case .isFolder: "Is a folder"
        case .notEmpty: "Folder not empty"
        case .crossDevice: "On another file system"
        case .tooManyLinks: "Too many links"
        case .nameTooLong: "Name too long"
        case .notPermitted: "Not permitted"
        case .refused: "Refused"
        case .hydrationRefused: "Hydration refused"
        case .readOnly: "Read-only"
        case .busy: "In use"
        case .conflict: "Changed meanwhile"
        case .offline: "Offline"
        case .timedOut: "Timed out"
        case .stale: "Gone at the provider"
        case .corrupted: "Content does not match its checksum"
        case .interrupted: "Interrupted"
        case .storeFull: "Local store full"
        case .quotaExceeded: "Quota exceeded"
        case .tooLarge: "Too large"
        case .noAttribute: "No such attribute"
        case .attributeTooLarge: "Attribute too large"
        case .invalid: "Invalid request"
        case .notSupported: "Not supported"
        case .outOfRange: "Out of range"
        case .tooManyOpen: "Too many open files"
        case .inputOutput: "Input or output failed"
        }
    }
}

extension KeptReason {
    /// As above, of a command that was to evict this very item: 7 when it can go as soon as work that is pending is done.
    package var exitStatus: Int32 { self == .unsent ? 7 : 1 }
}

extension ProblemDocument {
    init(_ failure: Failure) {
        let code = failure.code
        self.init(
            code: code.rawValue, title: code.title, status: code.httpStatus, detail: failure.message, exitStatus: code.exitStatus)
    }

    /// A wait that ended before the work did: nothing is lost, and work is pending.
    init(ofWait failure: Failure, for work: PendingList?) {
        self.init(failure)
        let isLeft = (work?.toBeSentCount ?? 0) > 0
        if failure.code == .timedOut || (exitStatus == 1 && isLeft) { exitStatus = 7 }
    }

    /// The request itself is wrong: nothing was looked at.
    static func request(_ detail: String, status: Int = 400) -> ProblemDocument {
        ProblemDocument(
            code: Failure.Code.invalid.rawValue, title: "Invalid request", status: status, detail: detail, exitStatus: 2)
    }
}
