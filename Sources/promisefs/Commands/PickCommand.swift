import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromisePicker
import PromiseSystem
import PromiseWire

struct PickCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pick",
        abstract: "Let a person pick documents of the mounted domains, without fetching them.",
        discussion: """
            open gives the document itself, import a temporary copy of it. move brings the SOURCES to the place that is picked \
            and leaves a reference to each where it was, export brings a copy there; create makes an empty document there. What \
            was picked is printed as absolute paths, one a line, with -0 separated by NUL, with --json as one object. Exit \
            status 1: cancelled. The picker is on the terminal, so stdout can be captured; with --plain it is lines on stderr \
            and stdin, with --web a page in the browser. With --app that application gets what it needs to find the document \
            again: a bookmark (with --json), and a reference in its container.

            Example:
              file=$(promisefs pick --mode open --type public.text) && less "$file"
              promisefs pick --mode export report.pdf
            """)

    @Option(
        name: .long, help: ArgumentHelp("open, import, move, export or create.", valueName: "mode"),
        transform: { text in
            guard let mode = PickerRequest.Mode(rawValue: text) else {
                throw ValidationError(
                    "--mode is open, import, move, export or create, not '\(text)'")
            }
            return mode
        })
    var mode: PickerRequest.Mode = .open
    @Option(
        name: .long,
        help: ArgumentHelp(
            "A uniform type identifier or MIME type; can be given again.", valueName: "type"))
    var type: [String] = []
    @Flag(name: .long, help: "Several can be picked.")
    var multiple = false
    @Flag(name: .long, help: "Folders are picked.")
    var folders = false
    @Option(
        name: [.long, .customLong("start")],
        help: ArgumentHelp("Begin in this folder.", valueName: "path"))
    var at: PathArgument?
    @Option(
        name: [.customLong("suggest"), .long],
        help: ArgumentHelp("What is made is called so at first.", valueName: "name"))
    var name: PathArgument?
    @Option(name: .long, help: ArgumentHelp("Who gets it, as com.example.editor.", valueName: "id"))
    var app: String?
    @Flag(name: .long, help: "On the terminal; the default.")
    var terminal = false
    @Flag(name: .long, help: "By lines on stderr and stdin, for screen readers.")
    var plain = false
    @Flag(name: .long, help: "By a page in the browser.")
    var web = false
    @Flag(name: .long, help: "With --web: print the address on stderr, and open no browser.")
    var noBrowser = false
    @Flag(name: .customShort("0"), help: "Separate paths by NUL.")
    var separatesByNul = false
    @Argument(help: ArgumentHelp("What is to be moved or exported.", valueName: "source"))
    var sources: [PathArgument] = []
    @OptionGroup var output: OutputOptions

    /// What `--json` shows.
    private struct Document: Encodable {
        struct Picked: Encodable {
            var path: String
            var pathBytes: String
            var bookmark: String?
            var reference: String?
        }

        var picked: [Picked]
    }

    func validate() throws {
        let brings = mode == .move || mode == .export
        if brings, sources.isEmpty {
            throw ValidationError("--mode \(mode.rawValue) needs at least one SOURCE")
        }
        if !brings, !sources.isEmpty {
            throw ValidationError("--mode \(mode.rawValue) takes no SOURCE")
        }
        if web, terminal || plain {
            throw ValidationError("--web and the terminal are two places; give one of them")
        }
        if noBrowser, !web { throw ValidationError("--no-browser is about --web") }
        if name != nil, !(mode == .create || brings && sources.count == 1) {
            throw ValidationError("--suggest is the name of one thing that is made")
        }
        if let name, let problem = PickerMachine.problem(withName: name.bytes) {
            throw ValidationError(problem)
        }
        if folders, mode == .import { throw ValidationError("folders are not imported") }
    }

    func run() async throws {
        let mounts = try await Targets.table().promiseMounts
        guard !mounts.isEmpty else {
            throw CommandFailure(
                "no domain is mounted; try: promisefs mount --help",
                exitStatus: ExitStatus.notPromiseFS)
        }
        let request = try await request()
        let data = MountedData(mounts, application: app)
        let session = PickerSession(
            data, MountedConsequences(data, application: app), hasLists: !web)
        switch try await outcome(of: request, session, data) {
        case .cancelled: throw CommandFailure(output.json ? "cancelled" : nil)
        case .picked(let documents): show(documents)
        }
    }

    private func outcome(
        of request: PickerRequest, _ session: PickerSession, _ data: MountedData
    ) async throws -> PickerOutcome {
        if web {
            defer { Browser.forget() }
            return try await PickerSite(session, data, request).run(idleMax: .seconds(600)) {
                address in
                await Browser.show(address, opens: !noBrowser)
            }
        }
        if plain { return await PlainPicker(session).run(request) }
        // Whether there are colours is a matter of the terminal, not of stdout.
        let hasColours = environment("NO_COLOR") == nil && environment("TERM") != "dumb"
        return try await TerminalPicker(session).run(request, hasColours: hasColours)
    }

    private func request() async throws -> PickerRequest {
        var request = PickerRequest(mode)
        request.types = type
        request.allowsMultiple = multiple
        request.picksFolders = folders
        request.application = app
        request.suggestedName = name?.bytes ?? []
        if let at {
            let location = try await Targets.location(of: at)
            request.start = PickerFolder(domain: location.domain, path: location.path)
        }
        for source in sources {
            let path = try await Blocking.run { () throws(PromiseError) in
                try resolveParent(of: source.bytes)
            }
            guard access(RawArguments.text(of: path), R_OK) == 0 || mode == .move else {
                throw CommandFailure(
                    "\(escapedForDisplay(source.bytes)) cannot be read: \(String(cString: strerror(errno)))"
                )
            }
            request.sources.append(PickerRequest.Source(path: path))
        }
        return request
    }

    private func show(_ documents: [PickedDocument]) {
        if output.json {
            return Output.json(
                Document(
                    picked: documents.map {
                        .init(
                            path: escapedForDisplay($0.path),
                            pathBytes: PercentCoding.encode($0.path), bookmark: $0.bookmark,
                            reference: $0.reference.map { escapedForDisplay($0) })
                    }))
        }
        for document in documents {
            separatesByNul ? Output.separated(document.path) : Output.bytes(document.path)
        }
    }
}
