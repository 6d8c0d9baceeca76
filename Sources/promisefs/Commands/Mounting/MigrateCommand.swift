import ArgumentParser
import Logging
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseMigration
import PromiseSystem
import PromiseWire

struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Move a domain to another storage.",
        discussion: """
            DOMAIN is not to be mounted, and PROVIDER is to be empty. Everything that the old storage has is brought to the new \
            one and compared there; then the domain goes on there: what is on this machine stays, what waits to be sent is sent \
            to the new storage, references and bookmarks lead to the same documents. The old storage stays as it is. The same \
            command goes on with a migration that was cut off. Nothing is switched when an item cannot be brought; they are \
            named.

            Where another machine has moved the domain to PROVIDER already, nothing is brought: this one goes on there, too, and \
            what waits here is sent there.

            Who you are at the new storage is said as for mount; at the old one by the credentials file, or by the variables \
            PROMISEFS_OLD_USER and PROMISEFS_OLD_PASSWORD.

            Example:
              promisefs unmount --wait /mnt/documents
              promisefs migrate documents webdav+https://ann@example.com/documents
              promisefs mount --domain documents webdav+https://ann@example.com/documents /mnt/documents
            """)

    @Argument(help: "The domain's name.") var domain: String
    @Argument(help: "The new storage, as for mount; left out with --abandon.") var provider: String?
    @Flag(
        name: .long,
        help: "Do not fetch what was sent to compare it; sizes and versions are compared.")
    var noReadBack = false
    @Flag(name: .long, help: "Give up a migration that was begun. What was brought stays there.")
    var abandon = false
    @Option(name: .long, help: CertificateArgument.help)
    var certificate: CertificateArgument?
    @Option(name: .long, help: "As --certificate, for the old server.")
    var oldCertificate: CertificateArgument?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "The domain's state folder, where it was mounted with one.", valueName: "dir"))
    var stateDir: PathArgument?
    @OptionGroup var output: OutputOptions

    private static let shownTroublesMax = 20

    /// What `--json` prints at the end.
    private struct Document: Encodable {
        struct Trouble: Encodable {
            var path: String
            var problem: String
        }

        var domain: String
        var from: String
        var to: String
        /// The domain is at the new storage now.
        var isMoved: Bool
        /// Another machine had brought everything there.
        var isFollowing: Bool
        var items: Int
        /// Of this run.
        var brought: Int
        var bytesBrought: UInt64
        /// Of these bytes, those that were on this machine.
        var bytesFromHere: UInt64
        var limitations: [String]
        var troubles: [Trouble]
        /// The configuration file, where its section of the domain is to be changed.
        var outdatedConfiguration: String?
    }

    func validate() throws {
        guard DomainName.isValid(domain) else {
            throw ValidationError("'\(domain)' is no name of a domain")
        }
        guard (provider == nil) == abandon else {
            throw ValidationError("give DOMAIN and PROVIDER, or DOMAIN and --abandon")
        }
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        let wanted = domain
        if let mount = try await Targets.ownMounts().first(where: { $0.domain == wanted })
        {
            let place = escapedForDisplay(mount.mountPoint)
            throw CommandFailure(
                "'\(domain)' is mounted on \(place): unmount it first, with --wait")
        }
        let given = stateDir?.bytes
        let folder = try await Blocking.run { () throws(CommandFailure) in
            if let given { return given }
            return try UnmountedDomains.place(of: wanted, in: nil).folder
        }
        FaultInjection.arm(from: environment("PROMISEFS_FAULT"))
        let logins = LoginVariables.takeBoth()
        guard let provider else {
            var migration = DomainMigration(domain: domain, stateFolder: folder, provider: "")
            let places = await keptLogins(migration)
            // Most are given up without a word to the old storage.
            let kept = try? await completed(logins.old, places.isOfOld)
            migration.oldLogin = kept ?? logins.old
            migration.credentialsFile = BaseFolders.credentials()
            migration.oldCertificate = oldCertificate?.text
            return try await giveUp(migration)
        }
        let level = try DaemonLog.level(environment("PROMISEFS_LOG") ?? "error")
        LoggingSystem.bootstrap { _ in DaemonLog(logLevel: level) }
        let name = try await Blocking.run { () throws(CommandFailure) in
            try ProviderName(parsing: provider)
        }
        var migration = DomainMigration(domain: domain, stateFolder: folder, provider: name.text)
        let places = await keptLogins(migration)
        migration.login = try await completed(logins.new, places.isOfNew)
        migration.oldLogin = try await completed(logins.old, places.isOfOld)
        migration.hasKeptLogin = places.isOfNew
        migration.credentialsFile = BaseFolders.credentials()
        migration.certificate = certificate?.text
        migration.oldCertificate = oldCertificate?.text
        migration.readsBack = !noReadBack
        let showsProgress = Terminal.isOutput && !output.json
        let report: DomainMigration.Report
        do throws(Domain.StartFailure) {
            report = try await migration.run(logger: Logger(label: "promisefs")) { progress in
                guard showsProgress else { return }
                Output.clearLine()
                Output.text(MigrateCommand.line(progress))
            }
        } catch {
            if showsProgress { Output.clearLine() }
            throw CommandFailure(error.message, exitStatus: error.exitStatus)
        }
        if showsProgress { Output.clearLine() }
        let outdated = await Blocking.run { () throws(Never) -> ConfigurationFile? in
            let file = try? ConfigurationFile.readLeniently()
            let isOutdated = file.map { MigrateCommand.isOutdated($0, of: wanted, at: report.to) }
            return isOutdated == true ? file : nil
        }
        if report.isMoved, places.needsLogin, !output.json {
            Output.line(
                "a password that is kept for '\(domain)' is that of the old storage; "
                    + "keep the new one's before you mount it: promisefs login \(domain)")
        }
        try show(report, outdated?.path)
    }

    private func keptLogins(_ migration: DomainMigration) async -> KeptLogins {
        await Blocking.run { () throws(Never) in
            KeptLogins(old: migration.formerProvider, new: migration.provider)
        }
    }

    /// Where the password is another storage's, or none is wanted, the keyring is not asked: it may
    /// be locked.
    private func completed(_ login: Login?, _ isKept: Bool) async throws(CommandFailure) -> Login? {
        isKept ? try await SecretService.completed(login, ofDomain: domain) : login
    }

    /// Whether a section of the configuration leads to the storage that the domain has left.
    static func isOutdated(
        _ file: ConfigurationFile, of domain: String, at provider: String
    ) -> Bool {
        guard let entry = file.domains[domain] else { return false }
        guard let known = entry.provider else { return true }
        return known != provider && (try? ProviderName(parsing: known))?.text != provider
    }

    private struct AbandonedDocument: Encodable {
        var domain: String
        /// False when no migration was begun, or the domain was moved.
        var wasBegun: Bool
        /// The old storage said already that the domain is at the new one.
        var wasTold: Bool
        var isMoved: Bool
    }

    private func giveUp(_ migration: DomainMigration) async throws {
        let abandoned: DomainMigration.Abandonment
        do throws(Domain.StartFailure) {
            abandoned = try await migration.abandon()
        } catch {
            throw CommandFailure(error.message, exitStatus: error.exitStatus)
        }
        var document = AbandonedDocument(domain: domain, wasBegun: true, wasTold: false, isMoved: false)
        let givenUp = "the migration of '\(domain)' is given up; what was brought stays there"
        let sentence: String
        switch abandoned {
        case .nothing:
            document.wasBegun = false
            sentence = "no migration of '\(domain)' was begun"
        case .begun: sentence = givenUp
        case .told(let from, let to):
            document.wasTold = true
            sentence =
                givenUp + "; '\(from)' had said to other machines that the domain is at '\(to)': "
                + "one that has followed meanwhile is there"
        case .moved(let to):
            (document.wasBegun, document.isMoved) = (false, true)
            sentence = "'\(domain)' is at '\(to)': there is nothing to give up"
        }
        if output.json { return Output.json(document) }
        Output.line(sentence)
    }

    static func line(_ progress: Migration.Progress) -> String {
        "\(counted(progress.looked, "item")) looked at, \(progress.brought) brought, "
            + ByteSize.text(progress.bytesBrought)
    }

    /// `outdated`: the configuration file that leads elsewhere.
    private func show(_ report: DomainMigration.Report, _ outdated: String?) throws {
        let progress = report.progress
        let outdated = report.troubles.isEmpty ? outdated : nil
        if output.json {
            Output.json(
                Document(
                    domain: domain, from: report.from, to: report.to, isMoved: report.isMoved,
                    isFollowing: report.isFollowing, items: report.itemCount, brought: progress.brought,
                    bytesBrought: progress.bytesBrought, bytesFromHere: progress.bytesFromHere,
                    limitations: report.limitations,
                    troubles: report.troubles.map {
                        Document.Trouble(path: path($0), problem: $0.message)
                    },
                    outdatedConfiguration: outdated))
        } else if report.isMoved {
            Output.line(
                report.isFollowing
                    ? "'\(domain)' is at \(report.to), where another machine has brought it: what waits here is sent there"
                    : "\(counted(report.itemCount, "item")) at \(report.to), \(ByteSize.text(progress.bytesBrought)) sent, "
                    + "\(ByteSize.text(progress.bytesFromHere)) of it from this machine")
            for sentence in report.limitations { Output.line("  - \(sentence)") }
            Output.line("mount it: promisefs mount --domain \(domain) \(report.to) MOUNTPOINT")
        } else if report.troubles.isEmpty {
            Output.line("'\(domain)' is at \(report.to) already")
        } else {
            for trouble in report.troubles.prefix(MigrateCommand.shownTroublesMax) {
                Output.line("\(path(trouble)): \(trouble.message)")
            }
        }
        if !output.json, let outdated {
            Output.line(
                "\(outdated) leads to the old storage: "
                    + "change 'provider' of 'domains.\(domain)' there to \(report.to)")
        }
        guard report.troubles.isEmpty else {
            throw CommandFailure(
                "\(counted(report.troubles.count, "item")) cannot be brought, so '\(domain)' stays at \(report.from)"
            )
        }
    }

    private func path(_ trouble: Migration.Trouble) -> String {
        "/" + trouble.path.map { escapedForDisplay($0.bytes) }.joined(separator: "/")
    }
}
