import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Send nothing and fetch nothing by itself, until it is resumed.",
        discussion: """
            For a line that somebody else needs, or that costs by the byte. What programs open is \
            still fetched, with what is fetched ahead of it, what others change is still seen, and \
            all work is kept. It stays so over restarts and the next mount; 'promisefs status' says \
            it. Without DOMAIN all mounted domains of this user are paused. With --json it is one \
            object for a DOMAIN, an array without.

            Example:
              promisefs pause documents
              promisefs resume documents
            """)

    @Argument(help: ArgumentHelp("The name of a domain, or a path on its mount.", valueName: "domain"))
    var domain: PathArgument?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        Output.goesOnWithoutReader()
        try await Pausing(domain: domain, isJSON: output.json).set(true)
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Send and fetch by itself again, after a pause.",
        discussion: """
            Without DOMAIN all mounted domains of this user go on. With --json it is one object for a DOMAIN, an array without.

            Example:
              promisefs resume documents
            """)

    @Argument(help: ArgumentHelp("The name of a domain, or a path on its mount.", valueName: "domain"))
    var domain: PathArgument?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        Output.goesOnWithoutReader()
        try await Pausing(domain: domain, isJSON: output.json).set(false)
    }
}

/// What both commands do.
private struct Pausing {
    private struct Document: Encodable {
        var domain: String
        /// Missing: it is not.
        var pausedSince: String?
        var pending: Int
    }

    let domain: PathArgument?
    let isJSON: Bool

    func set(_ isPaused: Bool) async throws {
        var failures = FailureCollector()
        var documents: [Document] = []
        for (mount, _) in try await scope(domain, namesDomain: true) {
            do throws(PromiseError) {
                let client = try PromiseClient(mount: mount)
                let status = isPaused ? try await client.pause() : try await client.resume()
                documents.append(
                    Document(
                        domain: mount.domain, pausedSince: status.pausedSince, pending: status.pending))
                let state = status.pausedSince == nil ? "goes on" : "is paused"
                let work = SyncCommand.sentence(status.pending)
                if !isJSON { Output.line("\(mount.domain) \(state): \(work)") }
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        if isJSON {
            if domain == nil { Output.json(documents) } else if let one = documents.first { Output.json(one) }
        }
        try failures.finish()
        guard documents.isEmpty else { return }
        throw CommandFailure(
            "no domain is mounted; try: promisefs mount --help", exitStatus: ExitStatus.notPromiseFS)
    }
}
