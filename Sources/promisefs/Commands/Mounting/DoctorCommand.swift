import ArgumentParser
import PromiseCore

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check what PromiseFS needs of this machine, and say how to get what is missing.",
        discussion: """
            Looks at the machine, the configuration and its domains, their servers, credentials, the clock, mounts and units. \
            Exit status 0 when there is no problem; warnings are what works less well. Nothing is changed. Where a command \
            mends it, that is in quotes, and with --json under 'command'.

            Example:
              promisefs doctor
            """)

    @Flag(help: "Do not try the servers.")
    var noCheck = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        SystemSettings.use()
        var (findings, file) = await Blocking.run { () throws(Never) in
            let settings = DoctorSettings.examine()
            return (Doctor.examine() + settings.findings, settings.file)
        }
        if let file, !noCheck { findings += await DoctorServers.examine(file) }
        findings += await DoctorMounts.versions()
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
