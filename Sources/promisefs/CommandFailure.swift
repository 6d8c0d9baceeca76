import PromiseControl
import PromiseDomain
import PromiseKit

/// The exit statuses of the command line, an outside contract.
enum ExitStatus {
    static let failed: Int32 = 1
    static let usage: Int32 = 2
    static let notPromiseFS: Int32 = 3
    static let offline: Int32 = 4
    static let refused: Int32 = 5
    static let conflict: Int32 = 6
    static let pending: Int32 = 7
}

/// Why a command did not do what it was asked: one sentence, without a final full stop, and the exit status.
struct CommandFailure: Error, Equatable {
    /// Nil when it has been said already.
    var message: String?
    var exitStatus: Int32

    init(_ message: String?, exitStatus: Int32 = ExitStatus.failed) {
        self.message = message
        self.exitStatus = exitStatus
    }

    init(_ error: PromiseError) { self.init(error.message, exitStatus: error.exitStatus) }

    /// Nil for errors of the argument parser.
    init?(known error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as PromiseError: self.init(error)
        case let failure as Domain.StartFailure: self.init(failure.message, exitStatus: failure.exitStatus)
        case let failure as ControlServer.StartFailure: self.init(failure.message, exitStatus: failure.exitStatus)
        case is CancellationError: self.init("stopped")
        default: return nil
        }
    }
}

/// Goes on after a failure, says each one, and ends with the first one's status.
struct FailureCollector {
    private(set) var first: Int32?

    mutating func note(_ failure: CommandFailure) {
        if let message = failure.message { Output.problem(message, exitStatus: failure.exitStatus) }
        first = first ?? failure.exitStatus
    }

    func finish() throws(CommandFailure) {
        if let first { throw CommandFailure(nil, exitStatus: first) }
    }
}
