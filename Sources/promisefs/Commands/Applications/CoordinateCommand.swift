import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire
import Synchronization

struct CoordinateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coordinate",
        abstract: "Run a command while nobody else reads or writes some items.",
        discussion: """
            The command runs when every PATH is free: others that coordinate, and programs that know nothing of it, wait until \
            it ends. The exit status is the command's; 4 when the items were not free in time. With --json the claim is \
            printed before the command's output. With --option forUploading the command finds a copy that nobody writes, of a \
            folder as one ZIP archive, at $PROMISEFS_SNAPSHOT; of several paths at $PROMISEFS_SNAPSHOT_1, _2, … What the \
            command starts shares its purpose, by $PROMISEFS_PURPOSE: a script that coordinates, too, does not wait for \
            itself. What is to be written need not be there yet, as the place something is moved to. With --prepare nobody is \
            kept out: programs that show the items are asked at once, and not again by what COMMAND coordinates. Signals \
            go to the command, which ends with this process, and when the claim ends before it.

            Example:
              promisefs coordinate write /mnt/list.txt -- sh -c 'echo line >> /mnt/list.txt'
            """)

    enum Mode: String, ExpressibleByArgument, CaseIterable { case read, write }

    @Argument(help: "read or write.")
    var mode: Mode
    @Argument(help: ArgumentHelp("Items on one mount, --, and the command.", valueName: "PATH… -- COMMAND…"))
    var operands: [PathArgument]
    @Option(
        name: .customLong("option"),
        help: ArgumentHelp("withoutChanges, forDeleting, …: see docs/COORDINATION.md.", valueName: "name"))
    var claimOptions: [String] = []
    @Option(name: .long, help: ArgumentHelp("Claims of one purpose do not wait for each other.", valueName: "text"))
    var purpose: String?
    @Option(name: .long, help: ArgumentHelp("Wait no longer than this.", valueName: "duration"))
    var timeout: TimeSpan?
    @Flag(name: .long, help: "Only ask who shows the items, for all that the command coordinates.")
    var prepare = false
    @OptionGroup var output: OutputOptions
    /// What `Entry` makes of the `--` before the command.
    @Option(name: .customLong("command"), parsing: .remaining, help: .hidden)
    var command: [PathArgument] = []

    func validate() throws {
        if operands.isEmpty { throw ValidationError("give at least one path") }
        if command.isEmpty { throw ValidationError("give a command after '--'") }
    }

    func run() async throws {
        var locations: [Location] = []
        for path in operands { locations.append(try await Targets.location(of: path)) }
        guard let mount = locations.first?.mount, locations.allSatisfy({ $0.mount.isOfSameDomain(as: mount) }) else {
            throw CommandFailure("the paths are on different mounts; a claim is about one domain", exitStatus: ExitStatus.usage)
        }
        let intents = locations.map { FileAccessIntent(path: $0.path, isWriting: mode == .write, options: claimOptions) }
        let known = FileCoordinator(try PromiseClient(mount: mount), purpose: purpose)
        let shared = known.purpose ?? "coordinate-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let coordinator = FileCoordinator(known.client, purpose: shared)
        setenv(FileCoordinator.purposeVariable, shared, 1)
        let running = Running()
        let lost: @Sendable () -> Void = {
            let process = running.process.withLock { $0 }
            if process > 0 { Task { await ProcessTree.end(process) } }
        }
        let limit = timeout?.duration
        let status =
            if prepare {
                try await coordinator.prepare(intents, timeout: limit) { try await run(within: $0, of: mount, running) }
            } else {
                try await coordinator.coordinate(intents, timeout: limit, lost: lost) {
                    try await run(within: $0, of: mount, running)
                }
            }
        if status != 0 { throw CommandFailure(nil, exitStatus: status) }
    }

    /// The command's number while it runs.
    private final class Running: Sendable {
        let process = Mutex<pid_t>(0)
    }

    /// Runs the command within what was granted.
    private func run(
        within claim: GrantedClaimDocument, of mount: MountEntry, _ running: Running
    ) async throws -> Int32 {
        if output.json { Output.json(claim) }
        let around = getenv(FileCoordinator.claimsVariable).map { String(cString: $0) + " " } ?? ""
        setenv(FileCoordinator.claimsVariable, around + "\(mount.domain):\(claim.claim)", 1)
        for (index, item) in claim.items.enumerated() {
            guard let snapshot = item.snapshot else { continue }
            withCPath(snapshot) { path in
                setenv("PROMISEFS_SNAPSHOT_\(index + 1)", path, 1)
                if index == 0 { setenv("PROMISEFS_SNAPSHOT", path, 1) }
            }
        }
        let words = command.map(\.bytes)
        return try await Blocking.run { () throws(CommandFailure) in
            // Not after its end: its number may be another process's then.
            defer { running.process.withLock { $0 = 0 } }
            return try Spawn.runTied(words) { process in running.process.withLock { $0 = process } }
        }
    }
}

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Be a presenter of an item: print what is asked and told, and agree to everything.",
        discussion: """
            Goes on until interrupted. With --json it is one object a line.

            Example:
              promisefs watch /mnt/report.txt
            """)

    @Argument(help: "An item on a mount; of a folder everything below it is told.")
    var path: PathArgument
    @Option(name: .long, help: ArgumentHelp("Claims of this purpose do not ask.", valueName: "text"))
    var purpose: String?
    @Flag(name: .long, help: "Answer nothing: others wait for as long as they wait for a presenter.")
    var silent = false
    @OptionGroup var output: OutputOptions

    /// A line of `--json`.
    private struct Line: Encodable {
        var event: String
        var what: String
        var path: String?
        var pathBytes: String?
        /// Of what moved in a folder.
        var oldPath: String?
        var oldPathBytes: String?
    }

    func run() async throws {
        Interruption.ends()
        let location = try await Targets.location(of: path)
        let presenter = FilePresenter(try PromiseClient(mount: location.mount), purpose: purpose)
        var events = try await presenter.events(of: location.path).makeAsyncIterator()
        let place = (text: "/" + escapedForDisplay(location.path), bytes: "/" + PercentCoding.encode(location.path))
        show("presenting", "", place, location.mount)
        while let event = try await events.next() {
            switch event {
            case .asked(let question):
                show("ask", question.kind, question.path.map { ($0, question.pathBytes) }, location.mount)
                if !silent { try await question.answer() }
            case .told(let what, let about):
                let version = about.version.flatMap { PercentCoding.decode($0[...]) }.map { " " + escapedForDisplay($0) } ?? ""
                show(
                    "tell", what + version, about.path.map { ($0, about.pathBytes) }, location.mount,
                    was: about.oldPath.map { ($0, about.oldPathBytes) })
            }
        }
    }

    private typealias Place = (text: String, bytes: String?)

    private func show(_ event: String, _ what: String, _ path: Place?, _ mount: MountEntry, was old: Place? = nil) {
        if output.json {
            return Output.json(
                Line(
                    event: event, what: what, path: path?.text, pathBytes: path?.bytes, oldPath: old?.text,
                    oldPathBytes: old?.bytes))
        }
        let before = old.map { "(was \(shownPath($0.text, on: mount)))" } ?? ""
        let words = [event, what, path.map { shownPath($0.text, on: mount) } ?? "(gone)", before]
        Output.line(words.filter { !$0.isEmpty }.joined(separator: " "))
    }
}
