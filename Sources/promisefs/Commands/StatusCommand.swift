import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show domains: connection, transport, pending work, cache and quota.",
        discussion: """
            Without PATH all mounted domains are shown. With --json it is one object for a PATH, an array without; with --watch \
            one object a line for each domain.

            Example:
              promisefs status
              promisefs status /mnt --json
            """)

    @Argument(help: "A path on a mount.")
    var path: PathArgument?
    @Flag(name: .long, help: "Repeat every second until interrupted.")
    var watch = false
    @OptionGroup var output: OutputOptions

    private static let hydrationsShownMax = 5

    func run() async throws {
        if let path {
            let location = try await Targets.location(of: path)
            try await show { [location.mount] }
        } else {
            try await show { try await Targets.table().promiseMounts }
        }
    }

    private func show(_ mounts: () async throws -> [MountEntry]) async throws {
        repeat {
            var failures = FailureCollector()
            var documents: [StatusDocument] = []
            for mount in try await mounts() {
                do throws(PromiseError) {
                    documents.append(try await PromiseClient(mount: mount).status())
                } catch {
                    let place = escapedForDisplay(mount.mountPoint)
                    failures.note(CommandFailure("\(place): \(error.message)", exitStatus: error.exitStatus))
                }
            }
            printDocuments(documents, hasFailed: failures.first != nil)
            guard watch else { return try failures.finish() }
            try await Task.sleep(for: .seconds(1))
        } while true
    }

    private func printDocuments(_ documents: [StatusDocument], hasFailed: Bool) {
        if output.json {
            if watch {
                for document in documents { Output.json(document) }
            } else if path != nil {
                if let document = documents.first { Output.json(document) }
            } else {
                Output.json(documents)
            }
            return
        }
        // Home and clear to the end, so that a watched status does not scroll.
        if watch && Terminal.isOutput { Output.text("\u{1B}[H\u{1B}[J") }
        if documents.isEmpty && !hasFailed { Output.line("no domain is mounted; try: promisefs mount --help") }
        Output.text(documents.map(StatusCommand.text).joined(separator: "\n"))
        if watch && !Terminal.isOutput && !documents.isEmpty { Output.line("") }
    }

    static func text(_ status: StatusDocument) -> String {
        let connection = status.connection + (status.connectionMessage.map { " (\($0))" } ?? "")
        let passthrough = status.hasPassthrough ? "yes" : "no" + (status.passthroughMessage.map { " (\($0))" } ?? "")
        let running = "\(status.uploading) uploading, \(status.downloading) downloading, \(status.failing) failing"
        let limit = status.cacheLimit.map { " of \(ByteSize.text($0))" } ?? ""
        var rows = [
            ["  provider", status.provider],
            ["  connection", connection],
            ["  transport", status.transport + (status.transportMessage.map { " (\($0))" } ?? "")],
            ["  passthrough", passthrough],
            ["  items", "\(status.nodes), \(counted(status.placeholders, "placeholder"))"],
            ["  pending", "\(status.pending) (\(running))"],
            ["  errors", "\(status.failing)"],
            ["  stay here", "\(counted(status.excluded ?? 0, "item")); 'promisefs pending --excluded' lists them"],
            ["  cache", ByteSize.text(status.cacheBytes) + limit],
            ["  transferred", "\(ByteSize.text(status.bytesFetched)) fetched, \(ByteSize.text(status.bytesUploaded)) uploaded"],
        ]
        for line in (status.hydrations ?? []).prefix(StatusCommand.hydrationsShownMax) {
            let refusals = line.refusals > 0 ? ", refused \(counted(Int(clamping: line.refusals), "time"))" : ""
            rows.append(["  fetched for", "\(line.program): \(ByteSize.text(line.bytes))\(refusals)"])
        }
        if let total = status.quotaTotal, let available = status.quotaAvailable {
            rows.append(["  quota", "\(ByteSize.text(available)) free of \(ByteSize.text(total))"])
        }
        for sentence in status.limitations ?? [] { rows.append(["  limitation", sentence]) }
        rows.append(["  open files", "\(status.openFiles)"])
        rows.append(["  state", status.stateFolder])
        rows.append(["  process", "\(status.processID)"])
        rows.append(["  supervision", supervision(status)])
        let mark = status.isReadOnly ? " (read-only)" : ""
        return "\(Terminal.styled(status.name, .bold)) on \(status.mountPoint)\(mark)\n" + table(rows)
    }

    private static func supervision(_ status: StatusDocument) -> String {
        guard status.isSupervised else { return "no: the mount ends with its daemon" }
        let promise = status.outlivesDaemon ? "the mount outlives its daemon" : "the mount is made anew when its daemon ends"
        guard status.restarts > 0 else { return promise }
        let last = status.lastEnd.map { ", the last one ended by \($0)" } ?? ""
        return promise + " (\(counted(status.restarts, "daemon")) before\(last))"
    }
}
