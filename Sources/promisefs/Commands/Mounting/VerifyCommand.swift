import ArgumentParser
import Logging
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseWire

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check a domain's index against itself, the content kept here, and the provider.",
        discussion: """
            Exit status 1 when problems are left. Without PATH all mounted domains are checked; --domain or --state-dir checks \
            one whether it is mounted or not. What --repair does not trust and what may hold edits is kept in the folder \
            'kept' of the state folder. With --json it is one object for one domain, an array for several.

            Example:
              promisefs verify --repair /mnt
              promisefs verify --provider --domain work
            """)

    @Argument(help: "A path on a mount; its whole domain is checked.")
    var path: PathArgument?
    @Flag(name: .long, help: "Repair what can be repaired without losing content.")
    var repair = false
    @Flag(name: .long, help: "Compare with the provider, too, which reads all content that is both here and there.")
    var provider = false
    @Option(name: .long, help: "The domain to check, instead of PATH.")
    var domain: String?
    @Option(name: .long, help: ArgumentHelp("The state folder of a domain that is not mounted.", valueName: "dir"))
    var stateDir: PathArgument?
    @Option(name: .long, help: CertificateArgument.help)
    var certificate: CertificateArgument?
    @OptionGroup var output: OutputOptions

    /// A domain's part of `--json`.
    private struct Document: Encodable {
        var domain: String
        var nodes: Int
        var problems: [String]
        var repaired: [String]
    }

    func run() async throws {
        var failures = FailureCollector()
        var documents: [Document] = []
        for target in try await targets() {
            do {
                let document = try await check(target)
                documents.append(document)
                if !output.json { show(document) }
                guard !document.problems.isEmpty else { continue }
                let remedy =
                    repair ? "what is left needs a decision of yours" : "'promisefs verify --repair' repairs what it can"
                failures.note(
                    CommandFailure("\(document.domain) has \(counted(document.problems.count, "problem")); \(remedy)"))
            } catch let error as PromiseError {
                failures.note(CommandFailure(error))
            }
        }
        if output.json { printDocuments(documents) }
        try failures.finish()
    }

    /// A daemon is asked where there is one; else this process looks by itself.
    private enum Target {
        case mounted(MountEntry)
        case unmounted(name: String, stateFolder: [UInt8])
    }

    private func check(_ target: Target) async throws -> Document {
        switch target {
        case .mounted(let mount):
            let report = try await PromiseClient(mount: mount).verify(repair: repair, provider: provider)
            return Document(domain: mount.domain, nodes: report.nodes, problems: report.problems, repaired: report.repaired)
        case .unmounted(let name, let folder):
            let login = try await login(of: name)
            do throws(Domain.StartFailure) {
                let silent = Logger(label: "promisefs") { _ in SwiftLogNoOpLogHandler() }
                var configuration = DomainConfiguration(name: name, provider: "", stateFolder: folder, mountPoint: [])
                configuration.credentialsFile = BaseFolders.credentials()
                configuration.login = login
                configuration.certificate = certificate?.text
                let report = try await Verification.ofUnmounted(
                    configuration, repair: repair, provider: provider, logger: silent)
                return Document(domain: name, nodes: report.nodes, problems: report.problems, repaired: report.repaired)
            } catch {
                throw CommandFailure(error.message, exitStatus: error.exitStatus)
            }
        }
    }

    /// Of a domain whose provider is asked.
    private func login(of name: String) async throws(CommandFailure) -> Login? {
        let given = LoginVariables.take()
        guard provider else { return given }
        return try await SecretService.completed(given, ofDomain: name)
    }

    private func targets() async throws -> [Target] {
        if let path {
            return [.mounted(try await Targets.location(of: path, namesDomain: true).mount)]
        }
        let mounted = try await Targets.ownMounts()
        if domain == nil && stateDir == nil {
            if mounted.isEmpty {
                throw CommandFailure(
                    "no domain is mounted; say which with --domain or --state-dir",
                    exitStatus: ExitStatus.notPromiseFS)
            }
            return mounted.map { .mounted($0) }
        }
        if let domain, let mount = mounted.first(where: { $0.domain == domain }) { return [.mounted(mount)] }
        let folder: [UInt8]
        if let stateDir {
            folder = stateDir.bytes
        } else {
            let name = domain ?? ""
            folder = try await Blocking.run { () throws(CommandFailure) in try UnmountedDomains.place(of: name, in: nil).folder }
        }
        let absolute: [UInt8]
        do throws(PromiseError) { absolute = try absolutePath(folder) } catch { throw CommandFailure(error) }
        return [.unmounted(name: domain ?? escapedForDisplay(absolute), stateFolder: absolute)]
    }

    private func show(_ report: Document) {
        for problem in report.problems { Output.line("\(Terminal.styled("problem", .red))   \(problem)") }
        for repair in report.repaired { Output.line("\(Terminal.styled("repaired", .green))  \(repair)") }
        let found = report.problems.isEmpty ? "no problem" : counted(report.problems.count, "problem")
        Output.line("\(report.domain): \(counted(report.nodes, "node")) looked at, \(found) found")
    }
}
