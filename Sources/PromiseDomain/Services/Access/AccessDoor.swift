package import Logging
package import PromiseAccess
package import PromiseCore
package import PromiseSystem

/// Where every call of a service comes in: whoever may not is refused. What changes something, what
/// is refused and what an application does has a line in the audit log.
package struct AccessDoor: Sendable {
    private let logger: Logger
    private let audit: AuditLog?
    private let clock: any TimeSource

    package init(logger: Logger, audit: AuditLog? = nil, clock: any TimeSource = SystemClock()) {
        self.logger = logger
        self.audit = audit
        self.clock = clock
    }

    package func admit(
        _ principal: Principal, to call: StaticString, of application: String?,
        isChange: Bool = false
    ) throws(Failure) {
        guard principal.mayAct(for: application) else {
            throw refusal(principal, call, "this belongs to another application", of: application)
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

    /// A call that is admitted. What the owner only looks at has no line.
    package func note(
        _ principal: Principal, _ call: StaticString, of application: String? = nil,
        grant: GrantID? = nil, detail: String? = nil, isChange: Bool = false
    ) {
        log(principal, call, application, isChange ? .info : .debug, "admitted")
        if principal.isOwner && !isChange { return }
        add(principal, call, application, grant, detail, isRefused: false)
    }

    /// What a call is refused by.
    package func refusal(
        _ principal: Principal, _ call: StaticString, _ sentence: String,
        of application: String? = nil, grant: GrantID? = nil, detail: String? = nil,
        code: Failure.Code = .refused
    ) -> Failure {
        log(principal, call, application, .warning, "refused")
        add(principal, call, application, grant, detail ?? sentence, isRefused: true)
        return Failure(code, sentence)
    }

    /// Returns when the lines there are are in the file.
    package func flush() async { await audit?.flush() }

    private func add(
        _ principal: Principal, _ call: StaticString, _ application: String?, _ grant: GrantID?,
        _ detail: String?, isRefused: Bool
    ) {
        audit?.add(
            AuditLine(
                time: clock.now(), principal: principal, call: "\(call)", application: application,
                grant: grant, detail: detail, isRefused: isRefused))
    }

    private func log(
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
