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
        let isAdmitted = principal.mayAct(for: application)
        logger.log(
            level: !isAdmitted ? .warning : isChange ? .info : .debug, "access",
            metadata: [
                "by": "\(principal.text)", "call": "\(call)",
                "application": "\(escapedForDisplay((application ?? "").utf8.prefix(80)))",
                "outcome": isAdmitted ? "admitted" : "refused",
            ])
        if isAdmitted { return }
        throw Failure(.refused, "this belongs to another application")
    }
}
