import ArgumentParser
import Glibc
import Logging
import PromiseCore
import PromiseDomain
import PromiseKit

struct LoginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract:
            "Give a domain another password: it is tried, and kept where the old one was not or was wrong.",
        discussion: """
            It is read from --password-file, PROMISEFS_PASSWORD or the terminal, and kept by the desktop's Secret Service where \
            one answers to secret-tool, else in the credentials file. Nothing is kept when the provider refuses it.

            Example:
              promisefs login work
            """)

    @Argument(help: "The name of a domain of the configuration file.")
    var domain: String
    @Option(
        help: ArgumentHelp(
            "Who logs in, or an access key. (default: as before, or as the provider says)",
            valueName: "user"))
    var user: String?
    @Option(
        help: ArgumentHelp(
            "A file whose first line is the password, or the secret key.", valueName: "file"))
    var passwordFile: PathArgument?
    @Flag(help: "Keep the password in the credentials file, whoever else could.")
    var noSecretService = false
    @Flag(help: "Do not try it.")
    var noCheck = false
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var user: String?
        var isInSecretService: Bool
    }

    func run() async throws {
        SystemSettings.use()
        let known = environment("PROMISEFS_PASSWORD")
        _ = LoginVariables.take()
        let (this, name) = (self, domain)
        let entry = try await Blocking.run { () throws(CommandFailure) in
            try LoginCommand.entry(of: name, in: try ConfigurationFile.readLeniently())
        }
        guard let provider = entry.provider, !provider.hasPrefix("folder:") else {
            throw CommandFailure(
                "the domain '\(domain)' is a folder, and nobody logs in there",
                exitStatus: ExitStatus.usage)
        }
        let login = try await Blocking.run { () throws(CommandFailure) in
            LoginWriter(
                domain: name, user: this.user ?? LoginCommand.user(of: name, provider),
                password: try this.password(known), mayUseService: !this.noSecretService)
        }
        if !noCheck {
            LoggingSystem.bootstrap { _ in DaemonLog(logLevel: .critical) }
            var inspection = ProviderInspection(provider: provider, domain: name)
            inspection.login = Login(user: login.user, password: login.password)
            inspection.certificate = entry.value(of: "--certificate")
            try await inspection.connect(logger: Logger(label: "promisefs"))
        }
        let isInService = try await Blocking.run { () throws(CommandFailure) in try login.write() }
        if output.json {
            return Output.json(
                Document(domain: domain, user: login.user, isInSecretService: isInService))
        }
        let place = isInService ? "in the Secret Service" : "in the credentials file"
        let isMounted = try await Targets.ownMounts().first { $0.domain == name }
        Output.line(
            "the password of '\(domain)' is \(place)"
                + (isMounted.map {
                    "; 'promisefs restart \(escapedForDisplay($0.mountPoint))' has it used"
                } ?? ""))
    }

    /// What a login needs of a domain; what is wrong elsewhere in the file does not concern it.
    static func entry(
        of domain: String, in file: ConfigurationFile?
    ) throws(CommandFailure) -> ConfigurationFile.Domain {
        guard let file else { throw ServiceUnit.noConfiguration }
        if let problem = file.problem(of: domain, in: ["provider", "certificate"]) { throw problem }
        guard let entry = file.domains[domain] else {
            throw CommandFailure(
                "\(file.path) has no domain '\(domain)'" + FormerSettings.hint,
                exitStatus: ExitStatus.usage)
        }
        return file.whole(entry)
    }

    /// As the provider's name says, or the entry that there was. Blocking.
    private static func user(of domain: String, _ provider: String) -> String? {
        if let file = BaseFolders.credentials(),
            let user = CredentialsLook.entries(file).first(where: { $0.name == domain })?.user
        {
            return user
        }
        let authority = provider.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
        guard provider.hasPrefix("webdav"), let end = authority.lastIndex(of: "@") else {
            return nil
        }
        return String(authority[..<end])
    }

    private func password(_ known: String?) throws(CommandFailure) -> String {
        if let file = passwordFile { return try SetupAnswers.firstLine(of: file) }
        if let known { return known }
        if isatty(STDIN_FILENO) == 1,
            let answer = HiddenLine.ask("Password, or the secret key")
        {
            return answer
        }
        throw CommandFailure(
            "there is no password; give --password-file or PROMISEFS_PASSWORD",
            exitStatus: ExitStatus.usage)
    }
}
