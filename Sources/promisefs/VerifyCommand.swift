import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check a domain's index against itself and against the content kept here.",
        discussion: """
            Exit status 1 when problems are left. Without PATH all mounted domains are checked. With --json it is one object for \
            one domain, an array for several.

            Example:
              promisefs verify --repair /mnt
            """)

    @Argument(help: "A path on a mount; its whole domain is checked.")
    var path: PathArgument?
    @Flag(name: .long, help: "Repair what can be repaired without losing content.")
    var repair = false
    @Option(name: .long, help: "The domain to check, instead of PATH.")
    var domain: String?
    @Option(name: .long, help: ArgumentHelp("The state folder of a domain that is not mounted.", valueName: "dir"))
    var stateDir: PathArgument?
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
        for mount in try await mounts() {
            do throws(PromiseError) {
                let report = try await PromiseClient(mount: mount).verify(repair: repair)
                documents.append(
                    Document(domain: mount.domain, nodes: report.nodes, problems: report.problems, repaired: report.repaired))
                if !output.json { show(report, mount.domain) }
                let left = report.problems.count - report.repaired.count
                if left > 0 {
                    let remedy =
                        repair ? "what is left needs a look at the log" : "'promisefs verify --repair' repairs what it can"
                    failures.note(CommandFailure("\(mount.domain) has \(counted(left, "problem")); \(remedy)"))
                }
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        if output.json { printDocuments(documents) }
        try failures.finish()
    }

    private func mounts() async throws -> [MountEntry] {
        if let path { return [try await Targets.location(of: path).mount] }
        let mounted = try await Targets.table().promiseMounts
        guard domain != nil || stateDir != nil else {
            if mounted.isEmpty { throw CommandFailure("no domain is mounted; mount it first") }
            return mounted
        }
        if let domain, let mount = mounted.first(where: { $0.domain == domain }) { return [mount] }
        let name = domain.map { "the domain '\($0)'" } ?? "the domain of \(escapedForDisplay(stateDir?.bytes ?? []))"
        throw CommandFailure("\(name) is checked while it is mounted; mount it first and give its mount point")
    }

    private func show(_ report: VerifyDocument, _ domain: String) {
        for problem in report.problems { Output.line("\(Terminal.styled("problem", .red))   \(problem)") }
        for repair in report.repaired { Output.line("\(Terminal.styled("repaired", .green))  \(repair)") }
        let found = report.problems.isEmpty ? "no problem" : counted(report.problems.count, "problem")
        Output.line("\(domain): \(counted(report.nodes, "node")) looked at, \(found) found")
    }
}
