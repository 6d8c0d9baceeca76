import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show domains: connection, transport, pending work, cache and quota.",
        discussion: """
            Without PATH all mounted domains are shown; the name of a domain stands for its mount. \
            With --json it is one object for a PATH, an array without; with --watch \
            one object a line for each domain.

            Example:
              promisefs status
              promisefs status /mnt --json
              promisefs status documents
            """)

    @Argument(help: "A path on a mount, or a domain's name.")
    var path: PathArgument?
    @Flag(name: [.customShort("w"), .long], help: "Repeat every second until interrupted.")
    var watch = false
    @OptionGroup var output: OutputOptions

    private static let hydrationsShownMax = 5
    /// Room on the state folder's disk, in bytes.
    private static let smallRoom: UInt64 = 64 << 20
    private static let noRoom: UInt64 = 1 << 20

    func run() async throws {
        if let path {
            try await show { [try await Targets.location(of: path, namesDomain: true).mount] }
        } else {
            try await show { try await Targets.mounts() }
            if !output.json {
                try await UnmountedDomains.showWaiting()
                try await showOthers()
            }
        }
    }

    private func show(_ mounts: () async throws -> [MountEntry]) async throws {
        if watch { Interruption.ends() }
        var watched = StatusWatch()
        repeat {
            var failures = FailureCollector()
            var documents: [StatusDocument] = []
            var owners: [String?] = []
            var more: [[[String]]] = []
            for mount in try await mounts() {
                do throws(PromiseError) {
                    let client = try PromiseClient(mount: mount)
                    let status = try await client.status()
                    let pending = watch && !output.json ? try await client.pending().items : []
                    let now = SystemClock().uptime()
                    more.append(watch ? watched.rows(status, pending, at: now) { shownPath($0.path, on: mount) } : [])
                    documents.append(status)
                    owners.append(mount.user == geteuid() ? nil : mount.userName)
                } catch {
                    let place = escapedForDisplay(mount.mountPoint)
                    let prefix = error.message.hasPrefix(place) ? "" : "\(place): "
                    failures.note(CommandFailure(prefix + error.message, exitStatus: error.exitStatus))
                }
            }
            printDocuments(documents, of: owners, more, hasFailed: failures.first != nil)
            guard watch else { return try failures.finish() }
            try await Task.sleep(for: .seconds(1))
        } while true
    }

    /// They are left alone, and are there.
    private func showOthers() async throws {
        guard geteuid() != 0 else { return }
        for mount in try await Targets.table().promiseMounts where mount.user != geteuid() {
            Output.line("\(escapedForDisplay(mount.mountPoint)) is '\(mount.domain)' of \(mount.userName)")
        }
    }

    private func printDocuments(
        _ documents: [StatusDocument], of owners: [String?], _ more: [[[String]]], hasFailed: Bool
    ) {
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
        if watch && Terminal.isOutput { Output.clearScreen() }
        if documents.isEmpty && !hasFailed { Output.line("no domain is mounted; try: promisefs mount --help") }
        let texts = documents.indices.map { StatusCommand.text(documents[$0], of: owners[$0], more[$0]) }
        Output.text(texts.joined(separator: "\n"))
        if watch && !Terminal.isOutput && !documents.isEmpty { Output.line("") }
    }

    /// `owner`: somebody else, whose mount it is.
    static func text(_ status: StatusDocument, of owner: String? = nil, _ more: [[String]] = []) -> String {
        let connection = StatusCommand.connection(status)
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
            ["  conflicts", "\(status.conflicts ?? 0)"],
            ["  stay here", "\(counted(status.excluded ?? 0, "item")); 'promisefs pending --excluded' lists them"],
            ["  attributes", "of \(counted(status.localAttributes ?? 0, "item")) stay here, as ACLs do"],
            ["  cache", ByteSize.text(status.cacheBytes) + limit],
            ["  transferred", "\(ByteSize.text(status.bytesFetched)) fetched, \(ByteSize.text(status.bytesUploaded)) uploaded"],
        ]
        let rates = [("up", status.uploadLimit), ("down", status.downloadLimit)].compactMap { way, rate in
            rate.map { "\(ByteSize.text($0)) a second \(way)" }
        }
        if !rates.isEmpty { rows.append(["  at most", rates.joined(separator: ", ")]) }
        if let moved = MovedDomain(status) { rows.insert(["  moved", moved.sentence], at: 1) }
        if let problem = status.configurationProblem { rows.insert(["  settings", problem], at: 1) }
        rows += more
        if let silence = StatusCommand.silence(status.silentSince) { rows.append(["  under way", silence]) }
        if let count = status.unlisted, count > 0 {
            rows.append(["  not listed", "\(counted(count, "folder")); 'promisefs pending' says why"])
        }
        if let room = status.diskAvailable, room < StatusCommand.smallRoom {
            let what = room < StatusCommand.noRoom ? "full" : "nearly full"
            rows.append(["  local disk", "\(what): \(ByteSize.text(room)) are free; 'promisefs evict' makes room"])
        }
        if let count = status.unsentRecords, count > 0 {
            rows.append(["  not sent yet", counted(count, "record") + " of containers, values and attributes"])
        }
        let since = status.transfersSince.map { " since \($0.prefix(10))" } ?? ""
        for line in (status.hydrations ?? []).prefix(StatusCommand.hydrationsShownMax) {
            let refusals = line.refusals > 0 ? ", refused \(counted(Int(clamping: line.refusals), "time"))" : ""
            rows.append(["  fetched for", "\(line.program): \(ByteSize.text(line.bytes))\(refusals)\(since)"])
        }
        if let total = status.quotaTotal, let available = status.quotaAvailable {
            rows.append(["  quota", "\(ByteSize.text(available)) free of \(ByteSize.text(total))"])
        }
        for sentence in status.limitations ?? [] { rows.append(["  limitation", sentence]) }
        rows.append(["  open files", "\(status.openFiles)"])
        rows.append(["  state", status.stateFolder])
        if let log = status.logFile { rows.append(["  log", log]) }
        let age = status.uptimeSeconds.map { ", running for \(StatusCommand.age($0))" } ?? ""
        rows.append(["  process", "\(status.processID)\(age)" + (status.version.map { ", version \($0)" } ?? "")])
        rows.append(["  supervision", supervision(status)])
        let mark = (status.isReadOnly ? " (read-only)" : "") + (owner.map { ", of \($0)" } ?? "")
        return "\(Terminal.styled(status.name, .bold)) on \(status.mountPoint)\(mark)\n" + table(rows)
    }

    /// `offline (the provider does not answer) since 2024-02-29 12:00:00 UTC, next try at 12:00:30`
    static func connection(_ status: StatusDocument) -> String {
        var text = status.connection + (status.connectionMessage.map { " (\($0))" } ?? "")
        if let since = status.connectionSince, since.count > 19 {
            text += " since \(since.prefix(10)) \(since.dropFirst(11).prefix(8)) UTC"
        }
        if let next = status.nextTry, next.count > 19 { text += ", next try at \(next.dropFirst(11).prefix(8))" }
        if let since = status.pausedSince, since.count > 19 {
            text += ", paused since \(since.prefix(10)) \(since.dropFirst(11).prefix(8)) UTC"
        }
        return text
    }

    /// `not answering since 2024-02-29 12:00:00 UTC`
    static func silence(_ since: String?) -> String? {
        guard let since, since.count > 19 else { return nil }
        return "not answering since \(since.prefix(10)) \(since.dropFirst(11).prefix(8)) UTC"
    }

    /// `3 d 4 h`, `5 min`, `12 s`.
    static func age(_ seconds: Int) -> String {
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(seconds % 3600 / 60) min" }
        return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
    }

    private static func supervision(_ status: StatusDocument) -> String {
        guard status.isSupervised else { return "no: the mount ends with its daemon" }
        let promise = status.outlivesDaemon ? "the mount outlives its daemon" : "the mount is made anew when its daemon ends"
        guard status.restarts > 0 else { return promise }
        let last = status.lastEnd.map { ", the last one ended by \($0)" } ?? ""
        return promise + " (\(counted(status.restarts, "daemon")) before\(last))"
    }
}
