import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire
import Synchronization

struct FetchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Bring content here, of everything below a folder.",
        discussion: """
            Shows a progress bar on a terminal. With --json it prints one object a line: event 'progress' now and then, and \
            'done' for each domain. With --list the paths in a file are meant, too, one a line; '-' is the standard input.

            Example:
              promisefs fetch /mnt/photos
              promisefs fetch --list ~/.cache/build.profile
            """)

    @Argument(help: "Paths on a mount. Of a link, what it leads to is meant.")
    var paths: [PathArgument] = []
    @Option(name: .long, help: ArgumentHelp("A file with paths, one a line.", valueName: "file"))
    var list: PathArgument?
    @OptionGroup var output: OutputOptions

    /// A line of `--json`.
    private struct Line: Encodable {
        var event: String
        var domain: String
        var filesDone: Int
        var filesTotal: Int
        var bytesDone: UInt64
        var bytesTotal: UInt64
        var failures: [ItemFailureDocument]

        init(_ event: String, _ domain: String, _ progress: ProgressDocument) {
            self.event = event
            self.domain = domain
            filesDone = progress.filesDone
            filesTotal = progress.filesTotal
            bytesDone = progress.bytesDone
            bytesTotal = progress.bytesTotal
            failures = progress.failures
        }
    }

    func validate() throws {
        if paths.isEmpty && list == nil { throw ValidationError("give a path, or a list of paths with --list") }
    }

    func run() async throws {
        var failures = FailureCollector()
        var paths = paths
        if let list { paths += try PathList(of: list.bytes).paths.map { PathArgument(bytes: $0) } }
        let bar = Terminal.isOutput && !output.json ? ProgressBar() : nil
        let found = await Targets.documentsByDomain(paths, keepsOthers: false, &failures)
        for (mount, locations) in found {
            let isJSON = output.json
            do throws(PromiseError) {
                let result = try await PromiseClient(mount: mount).fetch(locations.map(\.path)) { progress in
                    if isJSON { Output.json(Line("progress", mount.domain, progress)) }
                    bar?.show(progress)
                }
                bar?.clear()
                if isJSON {
                    Output.json(Line("done", mount.domain, result))
                } else {
                    let isHere = result.filesTotal == 0 && result.failures.isEmpty
                    let done = "\(counted(result.filesDone, "file")) here, \(ByteSize.text(result.bytesDone)) fetched"
                    Output.line(isHere ? "everything was here already" : done)
                }
                noteFailures(result.failures, on: mount, &failures)
            } catch {
                bar?.clear()
                failures.note(CommandFailure(error))
            }
        }
        try failures.finish()
    }
}

/// One line that is drawn again and again.
final class ProgressBar: Sendable {
    private static let byteRateWindow: Duration = .seconds(1)
    private let started = SystemClock().uptime()

    /// Ctrl-C leaves no half of a bar behind.
    init() {
        if Interruption.isIgnored { return }
        signal(SIGINT) { number in
            // Nothing that a signal handler may not do.
            _ = Glibc.write(STDOUT_FILENO, "\r\u{1B}[K", 4)
            signal(number, SIG_DFL)
            raise(number)
        }
    }

    func show(_ progress: ProgressDocument) {
        let text = ProgressBar.line(progress, elapsed: SystemClock().uptime() - started, width: Terminal.width)
        Output.clearLine()
        Output.text(text)
    }

    func clear() { Output.clearLine() }

    /// `[=====>    ]  52 %  3/10 files  1.2 MiB of 4.0 MiB  600 KiB/s`, cut to the width.
    static func line(_ progress: ProgressDocument, elapsed: Duration, width: Int) -> String {
        let fraction = progress.bytesTotal == 0 ? 0 : min(Double(progress.bytesDone) / Double(progress.bytesTotal), 1)
        let percent = Int(fraction * 100)
        let seconds = max(Double(elapsed.nanoseconds) / 1e9, 0.001)
        let rate = elapsed < byteRateWindow ? "" : "  \(ByteSize.text(UInt64(Double(progress.bytesDone) / seconds)))/s"
        let numbers = "  \(String(repeating: " ", count: percent < 10 ? 2 : percent < 100 ? 1 : 0))\(percent) %"
        let files = "  \(progress.filesDone)/\(progress.filesTotal) files"
        let bytes = "  \(ByteSize.text(progress.bytesDone)) of \(ByteSize.text(progress.bytesTotal))"
        let tail = numbers + files + bytes + rate
        let room = min(width - 1 - tail.count - 2, 40)
        guard room >= 5 else { return String(tail.trimmed.prefix(max(width - 1, 0))) }
        let filled = Int(fraction * Double(room))
        let head = filled < room ? ">" : ""
        let bar = String(repeating: "=", count: filled) + head
        return "[" + bar + String(repeating: " ", count: room - bar.count) + "]" + tail
    }
}

struct EvictCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evict",
        abstract: "Drop local copies of content that the provider has, of everything below a folder.",
        discussion: """
            Modified, pinned and open items stay; each is listed with the reason. Of a file that was named itself that is a \
            failure, and status 7 says that it is not sent yet. With --json it is one object for one domain, an array for several.

            Example:
              promisefs evict /mnt/photos
            """)

    @Argument(help: "Paths on a mount. Of a link, what it leads to is meant.")
    var paths: [PathArgument]
    @OptionGroup var output: OutputOptions

    func run() async throws {
        Output.goesOnWithoutReader()
        var failures = FailureCollector()
        var documents: [EvictionDocument] = []
        let found = await Targets.documentsByDomain(paths, keepsOthers: false, &failures)
        for (mount, locations) in found {
            do throws(PromiseError) {
                let result = try await PromiseClient(mount: mount).evict(locations.map(\.path))
                documents.append(result)
                for item in result.kept {
                    let sentence = "kept \(shownPath(item.path, on: mount)): \(item.reason)"
                    if let status = item.exitStatus {
                        failures.note(CommandFailure(sentence, exitStatus: status))
                    } else if !output.json {
                        Output.line(sentence)
                    }
                }
                if !output.json {
                    Output.line("\(counted(result.evicted, "item")) evicted, \(ByteSize.text(result.bytesFreed)) freed")
                }
                noteFailures(result.failures, on: mount, &failures)
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        if output.json { printDocuments(documents) }
        try failures.finish()
    }
}

struct PinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Keep content local, of everything below a folder and of what will appear there.",
        discussion: """
            With --json it is one object for one domain, an array for several.

            Example:
              promisefs pin /mnt/contracts
              promisefs pin --online-only /mnt/archive
            """)

    @Argument(help: "Paths on a mount. Of a link, what it leads to is meant.")
    var paths: [PathArgument]
    @Flag(name: .long, help: "Never keep content local instead.")
    var onlineOnly = false
    @OptionGroup var output: OutputOptions

    func run() async throws { try await setPin(onlineOnly ? .onlineOnly : .pinned, of: paths, output) }
}

struct UnpinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Let content come and go again, of everything below a folder.",
        discussion: """
            With --json it is one object for one domain, an array for several.

            Example:
              promisefs unpin /mnt/contracts
            """)

    @Argument(help: "Paths on a mount. Of a link, what it leads to is meant.")
    var paths: [PathArgument]
    @OptionGroup var output: OutputOptions

    func run() async throws { try await setPin(.automatic, of: paths, output) }
}

private func setPin(_ pin: Pin, of paths: [PathArgument], _ output: OutputOptions) async throws {
    Output.goesOnWithoutReader()
    var failures = FailureCollector()
    var documents: [PinDocument] = []
    let found = await Targets.documentsByDomain(paths, keepsOthers: true, &failures)
    for (mount, locations) in found {
        do throws(PromiseError) {
            let result = try await PromiseClient(mount: mount).setPin(pin.name, of: locations.map(\.path))
            documents.append(result)
            if !output.json { Output.line("\(counted(result.items, "item")) set to \(pin.name)") }
            noteFailures(result.failures, on: mount, &failures)
        } catch {
            failures.note(CommandFailure(error))
        }
    }
    if output.json { printDocuments(documents) }
    try failures.finish()
}

/// One document for one domain, an array for several.
func printDocuments(_ documents: [some Encodable]) {
    if documents.count == 1 { Output.json(documents[0]) } else if !documents.isEmpty { Output.json(documents) }
}

func noteFailures(_ items: [ItemFailureDocument], on mount: MountEntry, _ failures: inout FailureCollector) {
    for item in items {
        failures.note(CommandFailure("\(shownPath(item.path, on: mount)): \(item.detail)", exitStatus: item.exitStatus))
    }
}
