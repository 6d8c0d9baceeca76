import ArgumentParser
import Logging
import PromiseDomain

struct ProviderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provider",
        abstract: "What storages can be mounted.",
        discussion: """
            Example:
              promisefs provider list
              promisefs provider check webdav+https://example.com/files
            """,
        subcommands: [ProviderListCommand.self, ProviderCheckCommand.self])
}

struct ProviderListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the providers that this program has.",
        discussion: """
            Example:
              promisefs provider list --json
            """)

    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var scheme: String
        var form: String
        var description: String
    }

    func run() async throws {
        let providers = ProviderName.schemes.map { Document(scheme: $0.name, form: $0.form, description: $0.description) }
        if output.json { return Output.json(providers) }
        Output.text(table(providers.map { [$0.form, $0.description] }))
    }
}

struct ProviderCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check that a provider keeps the rules that mounts rely on, and say what its server lacks.",
        discussion: """
            Without --destructive-in it only reads. With it, everything is tried in a new folder \
            inside of that folder, and removed again: what was removed stays in the provider's own \
            bin, where it has one. Exits with 1 when a check failed.

            Example:
              promisefs provider check webdav+https://example.com/files
              promisefs provider check webdav+https://example.com/files --destructive-in scratch --json
            """)

    @Argument(help: "The provider, as for mount.")
    var provider: String
    @Option(help: ArgumentHelp("A folder of the provider in which to make, change and remove things.", valueName: "prefix"))
    var destructiveIn: String?
    @Option(help: ArgumentHelp("The domain whose entry of the credentials file is taken.", valueName: "name"))
    var domain: String?
    @Option(name: .long, help: CertificateArgument.help)
    var certificate: CertificateArgument?
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        struct Check: Encodable {
            var name: String
            var outcome: String
            var detail: String?
        }

        var provider: String
        var capabilities: [String]
        var limitations: [String]
        var passed: Int
        var failed: Int
        var skipped: Int
        var score: Int
        var checks: [Check]
    }

    func run() async throws {
        let login = LoginVariables.take()
        let level = try DaemonLog.level(environment("PROMISEFS_LOG") ?? "error")
        LoggingSystem.bootstrap { _ in DaemonLog(logLevel: level) }
        let argument = provider
        let name = try await Blocking.run { () throws(CommandFailure) in try ProviderName(parsing: argument) }
        var inspection = ProviderInspection(provider: name.text, domain: domain ?? name.derivedDomain)
        inspection.login = try await SecretService.completed(login, ofDomain: inspection.domain)
        inspection.certificate = certificate?.text
        inspection.credentialsFile = BaseFolders.credentials()
        inspection.writableFolder = destructiveIn.map { RawArguments.bytes(of: $0) }
        let report = try await inspection.run(logger: Logger(label: "promisefs"))
        show(report)
        if report.failedCount > 0 { throw CommandFailure(nil) }
    }

    private func show(_ report: ProviderInspection.Report) {
        if output.json {
            let checks = report.checks.map { Document.Check(name: $0.name, outcome: $0.outcome.rawValue, detail: $0.detail) }
            return Output.json(
                Document(
                    provider: report.provider, capabilities: report.capabilities, limitations: report.limitations,
                    passed: report.passedCount, failed: report.failedCount, skipped: report.skippedCount, score: report.score,
                    checks: checks))
        }
        let rows = report.checks.map { check in
            let style: Terminal.Style = check.outcome == .passed ? .green : check.outcome == .failed ? .red : .yellow
            return [Terminal.styled(check.outcome.rawValue, style), check.name + (check.detail.map { ": \($0)" } ?? "")]
        }
        Output.text(table(rows))
        Output.line("\(report.provider): \(report.capabilities.joined(separator: ", "))")
        for sentence in report.limitations { Output.line("  - \(sentence)") }
        Output.line(
            "\(report.passedCount) passed, \(report.failedCount) failed, \(report.skippedCount) not applicable: "
                + "score \(report.score) of 100")
    }
}
