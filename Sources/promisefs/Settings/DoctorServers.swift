import Glibc
import Logging
import PromiseCore
import PromiseDomain
import PromiseSystem

/// What `doctor` asks the servers of the configured domains: whether they answer, whether they let this user in, and what time
/// it is there. Nothing is written there.
enum DoctorServers {
    /// More than this, and servers of S3 refuse what is signed.
    private static let secondsMax = 900
    /// Times of files are told wrongly by so much.
    private static let secondsNoticed = 60
    private static let patience = Duration.seconds(10)

    static func examine(_ file: ConfigurationFile) async -> [Finding] {
        LoggingSystem.bootstrap { _ in DaemonLog(logLevel: .critical) }
        let domains = file.domains.filter { $0.value.provider.map(isAServer) ?? false }
        return await withTaskGroup(of: (String, [Finding]).self) { group in
            for (name, domain) in domains {
                let whole = file.whole(domain)
                group.addTask { (name, await examine(name, whole)) }
            }
            var found: [(String, [Finding])] = []
            for await one in group { found.append(one) }
            return found.sorted { $0.0 < $1.0 }.flatMap(\.1)
        }
    }

    /// Who has passwords, or keys, of its own.
    static func isAServer(_ provider: String) -> Bool {
        provider.hasPrefix("webdav+") || provider.hasPrefix("s3:")
    }

    private static func examine(_ name: String, _ domain: ConfigurationFile.Domain) async
        -> [Finding]
    {
        guard let provider = domain.provider else { return [] }
        let subject = "server of \(name)"
        var inspection = ProviderInspection(provider: provider, domain: name)
        inspection.credentialsFile = BaseFolders.credentials()
        inspection.certificate = domain.value(of: "--certificate")
        inspection.patience = patience
        do throws(CommandFailure) {
            inspection.login = try await SecretService.login(ofDomain: name)
        } catch {
            return [
                .problem(
                    subject, error.message ?? "there is no password", run: "promisefs login \(name)"
                )
            ]
        }
        var findings: [Finding] = []
        // First, as it is why others fail.
        if let ahead = await inspection.secondsAhead() {
            if let finding = clock(ahead, subject) { findings.append(finding) }
        }
        do throws(Domain.StartFailure) {
            try await inspection.connect(logger: Logger(label: "promisefs"))
            findings.append(.ok(subject, "answers, and lets you in"))
        } catch {
            findings.append(problem(error, name, subject))
        }
        return findings
    }

    static func problem(_ failure: Domain.StartFailure, _ name: String, _ subject: String)
        -> Finding
    {
        switch failure.exitStatus {
        case ExitStatus.offline:
            .problem(
                subject, failure.message,
                "look at its address in the configuration, at the network, and whether it runs")
        case ExitStatus.refused:
            .problem(
                subject, failure.message, run: "promisefs login \(name)",
                " asks for the password and tries it")
        default:
            .problem(subject, failure.message, "mend 'provider' or 'certificate' of the domain")
        }
    }

    /// `ahead`: by how many seconds this machine is ahead of the server.
    static func clock(_ ahead: Int, _ subject: String) -> Finding? {
        let seconds = abs(ahead)
        guard seconds >= secondsNoticed else { return nil }
        let by = seconds >= 7200 ? counted(seconds / 3600, "hour") : counted(seconds / 60, "minute")
        let message =
            "this machine's clock is \(by) \(ahead > 0 ? "ahead of" : "behind") the server's"
        let (command, more) = (
            "timedatectl set-ntp true", " as root sets this machine's, if that is the wrong one"
        )
        return seconds >= secondsMax
            ? .problem(subject, message, run: command, more)
            : .warning(subject, message, run: command, more)
    }
}
