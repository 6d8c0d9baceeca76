import PromiseAccess
import PromiseCore

/// How many lines of the audit log an application may fill: the log has an end, and whoever fills it
/// makes it forget.
struct AuditAllowance {
    private struct Hour {
        var began: Timestamp
        var count = 0
    }

    static let countMax = 1_000
    private static let window: Int64 = 3_600 * 1_000_000_000
    private var hours: [String: Hour] = [:]

    /// What is written for a line: itself, before it how many were left out until now, or nothing.
    mutating func admit(_ line: AuditLine) -> [AuditLine] {
        guard case .application(let name, _) = line.principal else { return [line] }
        var hour = hours[name] ?? Hour(began: line.time)
        var left = 0
        if line.time.nanoseconds(since: hour.began) >= AuditAllowance.window {
            left = max(0, hour.count - AuditAllowance.countMax)
            hour = Hour(began: line.time)
        }
        hour.count += 1
        // Names are the owner's to give, one for each launch.
        hours[name] = hour
        var admitted: [AuditLine] = []
        if left > 0 { admitted.append(AuditAllowance.more(line, "\(left) lines of an hour were left out")) }
        if hour.count < AuditAllowance.countMax { return admitted + [line] }
        if hour.count == AuditAllowance.countMax {
            admitted.append(AuditAllowance.more(line, "what follows within an hour is counted, not written"))
        }
        return admitted
    }

    private static func more(_ line: AuditLine, _ sentence: String) -> AuditLine {
        AuditLine(
            time: line.time, principal: line.principal, call: "audit.more",
            application: line.application, detail: sentence, isRefused: false)
    }
}
