package import Logging
package import PromiseAccess
package import PromiseCore

/// Where every call of a service comes in: whoever may not is refused, and each call leaves one
/// line in the log.
package struct AccessDoor: Sendable {
    private let logger: Logger

    package init(logger: Logger) { self.logger = logger }

    package func admit(
        _ principal: Principal, to call: StaticString, of application: String?,
        isChange: Bool = false
    ) throws(Failure) {
        guard principal.mayAct(for: application) else {
            throw refusal(
                principal, call, "this belongs to another application", of: application)
        }
        note(principal, call, of: application, isChange: isChange)
    }

    /// What only the owner may do.
    package func admitOwner(
        _ principal: Principal, to call: StaticString, of application: String?
    ) throws(Failure) {
        guard principal.isOwner else {
            throw refusal(principal, call, "only the owner may do that", of: application)
        }
        note(principal, call, of: application, isChange: true)
    }

    /// A call that came in.
    package func note(
        _ principal: Principal, _ call: StaticString, of application: String? = nil,
        isChange: Bool = false
    ) {
        write(principal, call, application, isChange ? .info : .debug, "admitted")
    }

    /// What a call that came in is refused by; the log has it.
    package func refusal(
        _ principal: Principal, _ call: StaticString, _ sentence: String,
        of application: String? = nil
    ) -> Failure {
        write(principal, call, application, .warning, "refused")
        return Failure(.refused, sentence)
    }

    private func write(
        _ principal: Principal, _ call: StaticString, _ application: String?,
        _ level: Logger.Level, _ outcome: String
    ) {
        logger.log(
            level: level, "access",
            metadata: [
                "by": "\(principal.text)", "call": "\(call)",
                "application": "\(escapedForDisplay((application ?? "").utf8.prefix(80)))",
                "outcome": "\(outcome)",
            ])
    }
}
