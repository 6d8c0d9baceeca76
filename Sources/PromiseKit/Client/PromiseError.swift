public import PromiseWire

/// Why a request to PromiseFS failed.
public struct PromiseError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable {
        /// The path is on no PromiseFS mount.
        case notPromiseFS
        /// There is a mount, but no daemon answers for it.
        case notAnswering
        /// The daemon refused or failed, and said why.
        case refused(ProblemDocument)
        /// What answered does not speak this protocol, or the connection broke in the middle.
        case brokenReply
        /// A local path could not be looked at.
        case local
        /// The task was cancelled.
        case cancelled
    }

    public let kind: Kind
    /// A sentence without a final full stop.
    public let message: String
    /// As the command line exits: 1 failed, 2 usage, 3 not a PromiseFS path, 4 offline or timed out, 5 refused, 6 conflict,
    /// 7 work is pending.
    public let exitStatus: Int32

    /// What was to be written is not where it was: it was moved or removed.
    private(set) var isMissing = false

    public init(_ kind: Kind, _ message: String, exitStatus: Int32) {
        self.kind = kind
        self.message = message
        self.exitStatus = exitStatus
    }

    public init(_ problem: ProblemDocument) {
        self.init(.refused(problem), problem.detail, exitStatus: problem.exitStatus)
    }

    /// Of status 6. Whether it is elsewhere or no more will be told.
    static func missing(_ message: String) -> PromiseError {
        var error = PromiseError(.local, message, exitStatus: 6)
        error.isMissing = true
        return error
    }

    public var description: String { message }

    /// What was meant is no more, whatever has its name.
    var isGone: Bool { if case .refused(let problem) = kind { problem.code == "gone" } else { false } }
}
