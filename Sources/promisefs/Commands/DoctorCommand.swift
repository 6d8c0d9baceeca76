import ArgumentParser
import PromiseCore

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check what PromiseFS needs of this machine, and say how to get what is missing.",
        discussion: """
            Looks at the machine, the configuration and its domains, credentials, the clock, mounts and units. \
            Exit status 0 when there is no problem; warnings are what works less well. Nothing is changed.

            Example:
              promisefs doctor
            """)

    @OptionGroup var output: OutputOptions

    func run() async throws {
        let findings = try await Blocking.run { () throws(CommandFailure) in try Doctor.examine() + DoctorSettings.examine() }
        if output.json {
            Output.json(findings)
        } else {
            Output.text(table(findings.map(DoctorCommand.row)))
        }
        let problems = findings.count { $0.level == .problem }
        guard problems == 0 else {
            throw CommandFailure("\(counted(problems, "problem")) found; the remedy is on its line")
        }
    }

    private static func row(_ finding: Finding) -> [String] {
        let style: Terminal.Style =
            switch finding.level {
            case .ok: .green
            case .warning: .yellow
            case .problem: .red
            }
        // Padded before it is coloured, because colour codes have no width.
        let level = finding.level.rawValue
        let padded = level + String(repeating: " ", count: 7 - level.count)
        return [
            "\(Terminal.styled(padded, style)) \(finding.subject): \(finding.message)" + (finding.remedy.map { "; \($0)" } ?? "")
        ]
    }
}

/// What one check found.
struct Finding: Encodable, Sendable, Equatable {
    enum Level: String, Encodable, Sendable { case ok, warning, problem }

    var level: Level
    var subject: String
    var message: String
    var remedy: String?

    static func ok(_ subject: String, _ message: String) -> Finding { Finding(level: .ok, subject: subject, message: message) }
    static func warning(_ subject: String, _ message: String, _ remedy: String?) -> Finding {
        Finding(level: .warning, subject: subject, message: message, remedy: remedy)
    }
    static func problem(_ subject: String, _ message: String, _ remedy: String?) -> Finding {
        Finding(level: .problem, subject: subject, message: message, remedy: remedy)
    }
}
