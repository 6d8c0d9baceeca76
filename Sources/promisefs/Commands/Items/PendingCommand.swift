import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct PendingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pending",
        abstract: "List uploads and downloads that are queued or running, with their last error.",
        discussion: """
            Without PATH all mounted domains are asked. With --json it is one object for a PATH, an array without.

            With --step one piece of the work that waits for the provider is carried out and printed, and nothing more goes by \
            itself until `promisefs sync`. Ends with status 1 when the provider refused it.

            With --excluded it lists what is never sent: editors' temporary files, companions of open databases, the desktop's \
            trash, and what no provider holds.

            Example:
              promisefs pending /mnt
              promisefs pending --step /mnt
            """)

    @Argument(help: "A path on a mount: only what is below it.")
    var path: PathArgument?
    @Flag(name: .long, help: "Carry out one piece of it, and hold the rest until the next sync.")
    var step = false
    @Flag(name: .long, help: "List what stays on this machine instead.")
    var excluded = false
    @Option(name: .long, help: "List no more than so many of each domain; the totals are of all.")
    var limit: Int?
    @Flag(name: [.customShort("w"), .long], help: "Repeat every second until interrupted.")
    var watch = false
    @OptionGroup var output: OutputOptions

    /// A domain's part of `--json`.
    private struct Document: Encodable {
        var domain: String
        var mountPoint: String
        var items: [PendingItemDocument]
        /// The storage to which another machine has moved the domain.
        var movedTo: String?
        /// Of all, whatever `--limit` says.
        var total: Int
        var totalBytes: UInt64
    }

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit is a number of items") }
        if step, watch { throw ValidationError("--step is one piece; nothing is watched") }
        if step, path == nil { throw ValidationError("--step needs the path of a mount") }
    }

    func run() async throws {
        if step, let path { return try await stepOnce(path) }
        if watch { Interruption.ends() }
        repeat {
            let failures = try await show()
            guard watch else { return try failures.finish() }
            try await Task.sleep(for: .seconds(1))
        } while true
    }

    private func show() async throws -> FailureCollector {
        var failures = FailureCollector()
        var documents: [Document] = []
        var rows: [[String]] = []
        var news: [String] = []
        for (mount, inner) in try await scope(path, namesDomain: true) {
            do throws(PromiseError) {
                let found = try await PromiseClient(mount: mount).pending(
                    path: inner, excluded: excluded)
                let shown = Array(found.items.prefix(limit ?? .max))
                var document = makeDocument(shown, of: found, mount)
                if let moved = MovedDomain(try await PromiseClient(mount: mount).status()) {
                    document.movedTo = moved.provider
                    news.append(moved.sentence)
                }
                documents.append(document)
                rows += shown.map { PendingCommand.row($0, on: mount) }
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        // Home and clear to the end, so that what is watched does not scroll.
        if watch && !output.json && Terminal.isOutput { Output.clearScreen() }
        if !output.json {
            let nothing = excluded ? "everything is sent\n" : "nothing is pending\n"
            let total = documents.reduce(0) { $0 + $1.total }
            Output.text(total == 0 && failures.first == nil ? nothing : table(rows))
            if total > 1 || rows.count < total {
                let bytes = ByteSize.text(documents.reduce(0) { $0 &+ $1.totalBytes })
                Output.line("\(counted(total, "item")), \(bytes)" + (rows.count < total ? "; \(rows.count) shown" : ""))
            }
            for sentence in news { Output.line(sentence) }
            if path == nil, !excluded { try await UnmountedDomains.showWaiting() }
        } else if path == nil {
            Output.json(documents)
        } else if let document = documents.first {
            Output.json(document)
        }
        return failures
    }

    private func makeDocument(
        _ shown: [PendingItemDocument], of all: PendingDocument, _ mount: MountEntry
    ) -> Document {
        Document(
            domain: mount.domain, mountPoint: escapedForDisplay(mount.mountPoint), items: shown,
            total: all.items.count + (all.moreCount ?? 0),
            totalBytes: all.items.reduce(all.moreByteCount ?? 0) { $0 &+ $1.size })
    }

    private func stepOnce(_ path: PathArgument) async throws {
        let mount = try await Targets.location(of: path).mount
        let item: PendingItemDocument?
        do throws(PromiseError) {
            item = try await PromiseClient(mount: mount).stepPending()
        } catch {
            throw CommandFailure(error)
        }
        let items = item.map { [$0] } ?? []
        let document = makeDocument(items, of: PendingDocument(items: items), mount)
        if output.json { Output.json(document) }
        guard let item else {
            if !output.json { Output.line("there is nothing that can be done now") }
            return
        }
        let place = shownPath(item.path, on: mount)
        if let error = item.error { throw CommandFailure("\(item.kind) \(place) was not done: \(error)") }
        if !output.json { Output.line("done: \(item.kind) \(place)") }
    }

    static func row(_ item: PendingItemDocument, on mount: MountEntry) -> [String] {
        let progress = item.progress.map { " \(Int($0 * 100)) %" } ?? ""
        if item.kind == "excluded" { return [item.kind, ByteSize.text(item.size), shownPath(item.path, on: mount)] }
        let waits = item.attempts == 0 ? "waits" : "failing"
        let state = item.isRunning ? "running\(progress)" : item.error == nil ? "queued" : waits
        let attempts = item.attempts == 0 ? "" : " (\(counted(item.attempts, "attempt")))"
        let silence = StatusCommand.silence(item.silentSince).map { "the provider is \($0)" }
        let error = (silence ?? item.error).map { "  \(Terminal.styled($0, .red))\(attempts)" } ?? ""
        return [item.kind, state, ByteSize.text(item.size), shownPath(item.path, on: mount) + error]
    }
}

struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Look at the provider now.",
        discussion: """
            Without PATH all mounted domains are synchronized. Ends with status 7 when the time given is over and work is \
            pending, with 4 when the provider is offline, with 5 when it refuses, with 3 when no domain is mounted. With --json \
            it is one object for a PATH, an array without.

            Example:
              promisefs sync /mnt --wait --timeout 5m
            """)

    @Argument(help: "A path on a mount: only what is below it is waited for.")
    var path: PathArgument?
    @Flag(name: [.customShort("w"), .long], help: "Return when nothing is pending.")
    var wait = false
    @Option(name: .long, help: ArgumentHelp("Wait no longer than this; implies --wait.", valueName: "duration"))
    var timeout: TimeSpan?
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var pending: Int
    }

    func run() async throws {
        var failures = FailureCollector()
        var documents: [Document] = []
        for (mount, inner) in try await scope(path, namesDomain: true) {
            do throws(PromiseError) {
                let (waits, timeout) = (wait || timeout != nil, timeout?.duration)
                let client = try PromiseClient(mount: mount)
                let isShown = waits && !output.json
                let result = try await WaitProgress.showing(of: mount, if: isShown) { () async throws(PromiseError) in
                    try await client.synchronize(path: inner, wait: waits, timeout: timeout)
                }
                documents.append(Document(domain: mount.domain, pending: result.pending))
                if !output.json { Output.line("\(mount.domain): \(SyncCommand.sentence(result.pending))") }
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        if output.json {
            if path == nil { Output.json(documents) } else if let document = documents.first { Output.json(document) }
        }
        try failures.finish()
        // Whoever goes on afterwards, as a script that removes the originals, must not take it for a look.
        guard documents.isEmpty else { return }
        throw CommandFailure("no domain is mounted; try: promisefs mount --help", exitStatus: ExitStatus.notPromiseFS)
    }

    static func sentence(_ pending: Int) -> String {
        switch pending {
        case 0: "nothing is pending"
        case 1: "1 item waits"
        default: "\(pending) items wait"
        }
    }
}

/// The domains a command is about, each with the path below it when one was given. `namesDomain`:
/// as of `Targets.location`.
func scope(
    _ path: PathArgument?, namesDomain: Bool = false
) async throws(PromiseError) -> [(mount: MountEntry, path: [UInt8]?)] {
    guard let path else { return try await Targets.ownMounts().map { ($0, nil) } }
    let location = try await Targets.location(of: path, namesDomain: namesDomain)
    return [(location.mount, location.path.isEmpty ? nil : location.path)]
}
