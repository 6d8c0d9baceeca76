import ArgumentParser
import Glibc
import Logging
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseSystem
import PromiseWire

struct SetupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup",
        abstract: "Set up a domain: ask for what is needed, try it, write it down, mount it, and have it mounted by itself.",
        discussion: """
            Asks on a terminal for what no option says; an empty answer is the default in brackets. Elsewhere, and with --yes, \
            the defaults are taken. The password is read from --password-file, PROMISEFS_PASSWORD or the terminal, and kept by \
            the desktop's Secret Service where one answers to secret-tool, else in the credentials file. Nothing is written when \
            the provider cannot be reached or refuses.

            Example:
              promisefs setup
              promisefs setup --yes --provider webdav+https://ann@example.com/files --name work --password-file secret
            """)

    @Option(help: ArgumentHelp("What to mount, as for mount. (default: a folder of its own)", valueName: "provider"))
    var provider: String?
    @Option(help: ArgumentHelp("What to call the domain. (default: made from the provider)", valueName: "name"))
    var name: String?
    @Option(help: ArgumentHelp("Where to mount it; made when it is missing. (default: ~/NAME)", valueName: "dir"))
    var mountpoint: PathArgument?
    @Option(help: ArgumentHelp("Who logs in, or an access key. (default: as the provider says)", valueName: "user"))
    var user: String?
    @Option(help: ArgumentHelp("A file whose first line is the password, or the secret key.", valueName: "file"))
    var passwordFile: PathArgument?
    @Option(name: .long, help: CertificateArgument.help)
    var certificate: CertificateArgument?
    @Flag(help: "Ask nothing.")
    var yes = false
    @Flag(help: "Keep the password in the credentials file, whoever else could.")
    var noSecretService = false
    @Flag(help: "Do not try the provider.")
    var noCheck = false
    @Flag(help: "Write the settings, and mount nothing.")
    var noMount = false
    @Flag(help: "Mount now, but not by itself the next time.")
    var noEnable = false
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var provider: String?
        var mountPoint: String
        var configuration: String
        var limitations: [String]
        var enabled: Bool
        var mounted: Bool
        /// Missing without a password.
        var isInSecretService: Bool?
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        SystemSettings.use()
        let environmentLogin = (user: environment("PROMISEFS_USER"), password: environment("PROMISEFS_PASSWORD"))
        _ = LoginVariables.take()
        let this = self
        let asked = try await Blocking.run { () throws(CommandFailure) in
            try SetupAnswers(asking: this, environmentLogin)
        }
        let (answers, limitations) = noCheck ? (asked, []) : try await checked(asked)
        let isInService = try await Blocking.run { () throws(CommandFailure) in try SetupWriter(answers).write() }
        let shown = escapedForDisplay(answers.mountPoint)
        say("wrote the domain '\(answers.name)' to \(answers.configurationPath)")
        if let isInService { say("the password is " + (isInService ? "in the Secret Service" : "in the credentials file")) }
        var isEnabled = false
        if !noMount {
            let isDone = await Blocking.run { () throws(Never) in answers.areCarriedOut }
            if !noEnable && ServiceUnit.isManaged {
                let name = answers.name
                try await Blocking.run { () throws(CommandFailure) in
                    try ServiceUnit.run(["enable"] + (isDone ? [] : ["--now"]), name)
                }
                isEnabled = true
            } else if !isDone {
                let words = ["mount", answers.name]
                let status =
                    output.json
                    ? await Output.withoutResults { await PromiseFS.execute(words + ["--json"]) }
                    : await PromiseFS.execute(words)
                guard status == 0 else { throw CommandFailure(nil, exitStatus: status) }
            }
            say(
                "\(answers.name) is on \(shown)"
                    + (isEnabled ? ", and will be again by itself" : "; 'promisefs enable \(answers.name)' mounts it by itself"))
        }
        guard output.json else { return }
        Output.json(
            Document(
                domain: answers.name, provider: answers.provider, mountPoint: shown,
                configuration: answers.configurationPath, limitations: limitations, enabled: isEnabled, mounted: !noMount,
                isInSecretService: isInService))
    }

    private func say(_ sentence: String) { if !output.json { Output.line(sentence) } }

    /// The answers with which the provider lets this user in, and what it cannot do. Of a server that
    /// refuses who has no password that is asked for.
    private func checked(_ asked: SetupAnswers) async throws -> (SetupAnswers, [String]) {
        let level = try DaemonLog.level(environment("PROMISEFS_LOG") ?? "error")
        LoggingSystem.bootstrap { _ in DaemonLog(logLevel: level) }
        do {
            return (asked, try await check(asked))
        } catch let failure as Domain.StartFailure
            where failure.exitStatus == ExitStatus.refused && asked.lacksPassword
        {
            let answers = try await Blocking.run { () throws(CommandFailure) in
                try asked.withPassword(after: failure.message)
            }
            return (answers, try await check(answers))
        }
    }

    /// Connects and reads, and says what the server cannot do.
    private func check(_ answers: SetupAnswers) async throws -> [String] {
        guard let provider = answers.provider else { return [] }
        var inspection = ProviderInspection(provider: provider, domain: answers.name)
        inspection.login = Login(user: answers.user, password: answers.password)
        inspection.credentialsFile = BaseFolders.credentials()
        inspection.certificate = certificate?.text
        let report = try await inspection.run(logger: Logger(label: "promisefs"))
        let failed = report.checks.filter { $0.outcome == .failed }
        for check in failed { say("failed: \(check.name)" + (check.detail.map { ": \($0)" } ?? "")) }
        guard failed.isEmpty else {
            throw CommandFailure("the provider does not keep the rules; --no-check sets it up all the same")
        }
        say("\(provider) answers" + (report.limitations.isEmpty ? "" : "; what it cannot do:"))
        for sentence in report.limitations { say("  - \(sentence)") }
        return report.limitations
    }
}

/// What `setup` was told, by options or on the terminal; each has a default.
struct SetupAnswers: Sendable {
    /// Resolved, as the daemon is told; nil: the embedded folder.
    var provider: String?
    var name: String
    var mountPoint: [UInt8]
    var user: String?
    var password: String?
    var certificate: String?
    var mayUseService = true
    /// Somebody is there to be asked.
    private var isAsking: Bool
    /// It is mounted at once.
    var isMounted: Bool
    /// For people.
    var configurationPath: String

    /// Blocking, until somebody has answered.
    init(asking command: SetupCommand, _ login: (user: String?, password: String?)) throws(CommandFailure) {
        isAsking = !command.yes && isatty(STDIN_FILENO) == 1
        let questions = SetupQuestions(isAsking: isAsking)
        let forms = "folder:/PATH, webdav+https://…, s3://…, or empty for a folder of its own"
        // As of a variable that a script has not set.
        if command.provider?.isEmpty == true {
            throw CommandFailure("--provider is empty; leave it out for a folder of its own", exitStatus: ExitStatus.usage)
        }
        let parsed = try questions.ask("What to mount (\(forms))", "", given: command.provider) {
            text throws(CommandFailure) in
            text.isEmpty ? nil : try ProviderName(parsing: text)
        }
        let text = parsed?.text
        provider = text
        let taken = try ConfigurationFile.readLeniently()
        name = try questions.ask("What to call it", parsed?.derivedDomain ?? "cloud", given: command.name) {
            name throws(CommandFailure) in
            try SetupAnswers.check(name: name, text, taken)
            return name
        }
        let home = environment("HOME") ?? "/mnt"
        let place: [UInt8]
        if let given = command.mountpoint {
            place = given.bytes
        } else {
            place = RawArguments.bytes(of: try questions.ask("Where to mount it", "~/\(name)"))
        }
        // No shell has done so in an answer, nor behind `--mountpoint=`.
        let isInHome = place.first == UInt8(ascii: "~") && (place.count == 1 || place[1] == 0x2F)
        mountPoint = isInHome ? RawArguments.bytes(of: home) + place.dropFirst() : place
        do throws(PromiseError) { mountPoint = simplified(try absolutePath(mountPoint)) } catch { throw CommandFailure(error) }
        certificate = command.certificate?.text
        guard let path = BaseFolders.configuration() else {
            throw CommandFailure("there is no home folder; set HOME or XDG_CONFIG_HOME")
        }
        configurationPath = environment("PROMISEFS_CONFIG") ?? escapedForDisplay(path)
        user = command.user ?? login.user
        mayUseService = !command.noSecretService
        isMounted = !command.noMount
        if let file = command.passwordFile {
            password = try SetupAnswers.firstLine(of: file)
        } else if let known = login.password {
            password = known
        } else if isAsking, isOfServer {
            try askLogin(questions)
        }
        // It would be dropped without a word, and nobody tries whether one is wanted.
        if command.noCheck, let user, lacksPassword {
            throw CommandFailure(
                "there is no password for '\(user)'; give --password-file or PROMISEFS_PASSWORD",
                exitStatus: ExitStatus.usage)
        }
    }

    private var isOfServer: Bool { provider.map(DoctorServers.isAServer) ?? false }

    var lacksPassword: Bool { password == nil && isOfServer }

    private mutating func askLogin(_ questions: SetupQuestions) throws(CommandFailure) {
        if user == nil, provider?.contains("@") == false {
            let name = try questions.ask("Who logs in, or the access key (empty: nobody)", "")
            user = name.isEmpty ? nil : name
        }
        password = HiddenLine.ask("Password, or the secret key (empty: none)")
    }

    /// For a server that has refused who has none, as it said. Blocking, until somebody has answered.
    func withPassword(after refusal: String) throws(CommandFailure) -> SetupAnswers {
        var result = self
        if isAsking {
            Output.problem(refusal)
            try result.askLogin(SetupQuestions(isAsking: true))
        }
        if !result.lacksPassword { return result }
        let whose = result.user.map { " for '\($0)'" } ?? ""
        throw CommandFailure(
            "\(refusal); no password was given\(whose): give --password-file or PROMISEFS_PASSWORD",
            exitStatus: ExitStatus.refused)
    }

    private static func check(
        name: String, _ provider: String?, _ file: ConfigurationFile?
    ) throws(CommandFailure) {
        guard DomainName.isValid(name) else {
            throw CommandFailure(
                "'\(name)' cannot name a domain; use up to \(DomainName.byteCountMax) of A-Z a-z 0-9 . _ -, "
                    + "with no dot or - first",
                exitStatus: ExitStatus.usage)
        }
        // The same once more goes on with what is not done yet, which is seen later.
        guard let file, let known = file.domains[name], known.provider != provider else { return }
        throw CommandFailure(
            "\(file.path) has a domain '\(name)' already; give another --name, or edit it", exitStatus: ExitStatus.usage)
    }

    /// Whether a domain of the configuration file is what they say.
    func say(_ domain: ConfigurationFile.Domain) -> Bool {
        domain.provider == provider && domain.mountPoint == String(validating: mountPoint, as: UTF8.self)
            && domain.value(of: "--certificate") == certificate
    }

    /// It is mounted there, and its daemon answers. Blocking.
    var areCarriedOut: Bool {
        let mounts = (try? MountTable.current())?.promiseMounts(of: geteuid()) ?? []
        return mounts.contains { $0.domain == name && $0.mountPoint == mountPoint }
            && SystemMounts.probe(mountPoint) == .alive
    }

    static func firstLine(of file: PathArgument) throws(CommandFailure) -> String {
        let shown = escapedForDisplay(file.bytes)
        guard let bytes = readSmallFile(file.bytes) else {
            throw CommandFailure("the password file \(shown) cannot be read")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("the password file \(shown) is not UTF-8")
        }
        // Also of a file written on Windows: CR and LF together are one character.
        guard let line = text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }).first.map(String.init) else {
            throw CommandFailure("the password file \(shown) is empty")
        }
        return line
    }
}

/// What a person is asked on a terminal; elsewhere each answer is the default. Blocking.
private struct SetupQuestions {
    let isAsking: Bool

    func ask(_ question: String, _ standard: String) throws(CommandFailure) -> String {
        guard isAsking else { return standard }
        Output.text("\(question) [\(standard)]: ")
        guard let line = readLine()?.trimmed else {
            // Ctrl-D.
            Output.line("")
            throw CommandFailure("nothing was set up")
        }
        return line.isEmpty ? standard : line
    }

    /// An answer that is of no use is asked for again; `given` was said by an option.
    func ask<Answer>(
        _ question: String, _ standard: String, given: String?,
        _ use: (String) throws(CommandFailure) -> Answer
    ) throws(CommandFailure) -> Answer {
        if let given { return try use(given) }
        while true {
            let answer = try ask(question, standard)
            do throws(CommandFailure) {
                return try use(answer)
            } catch {
                guard isAsking, let message = error.message else { throw error }
                Output.problem(message)
            }
        }
    }
}
