import ArgumentParser
import Glibc
import PromiseCore
import PromiseDomain
import PromiseKit
import PromisePicker
import PromiseSystem
import PromiseWire
import Synchronization

struct PickCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pick",
        abstract: "Let a person pick documents of the mounted domains, without fetching them.",
        discussion: """
            open gives the document itself, import a temporary copy of it. move brings the SOURCES to \
            the place that is picked and leaves a reference to each where it was, export brings a copy \
            there; create makes an empty document there, save makes nothing, and gives the name of what \
            is to be. What was picked is printed as absolute paths, one a line, with -0 separated by NUL, \
            with --json as one object. Exit status 1: cancelled. The picker is on the terminal, so stdout \
            can be captured; with --plain it is lines on stderr and stdin, with --web a page in the \
            browser. With --app that application is given the document until that is revoked, and gets a \
            bookmark (with --json), and a reference in its container. With --serve it goes on, and shows \
            a picker whenever an application asks for one from inside its sandbox, as by 'promisefs pick' \
            there: what is picked is given to it until it ends.

            Example:
              file=$(promisefs pick --mode open --type public.text) && less "$file"
              promisefs pick --mode export report.pdf
            """)

    @Option(
        name: .long, help: ArgumentHelp("open, import, move, export, create or save.", valueName: "mode"),
        completion: .list(PickerRequest.Mode.allCases.map(\.rawValue)),
        transform: { text in
            guard let mode = PickerRequest.Mode(rawValue: text) else {
                throw ValidationError(
                    "--mode is open, import, move, export, create or save, not '\(text)'")
            }
            return mode
        })
    var mode: PickerRequest.Mode = .open
    @Option(
        name: .long,
        help: ArgumentHelp(
            "A uniform type identifier, a MIME type, or an end of names as *.txt; can be given again.",
            valueName: "type"),
        transform: { text in
            if let problem = PickerRequest.problem(withType: text) { throw ValidationError(problem) }
            return text
        })
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
    @Option(name: .long, help: ArgumentHelp("What the person is asked.", valueName: "text"))
    var title: String?
    @Option(name: .long, help: ArgumentHelp("Who asks, for people.", valueName: "name"))
    var requester: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Something to be chosen besides: a label, and options after TABs, each after a space or '*'.",
            valueName: "text"),
        transform: { text in
            guard let choice = PickerChoice(text) else {
                throw ValidationError(
                    "--choice is a label, and options after TABs, each after a space, or after '*' when it is chosen at first")
            }
            return choice
        })
    var choice: [PickerChoice] = []
    @Flag(name: .long, help: "On the terminal; the default.")
    var terminal = false
    @Flag(name: .long, help: "By lines on stderr and stdin, for screen readers.")
    var plain = false
    @Flag(name: .long, help: "By a page in the browser.")
    var web = false
    @Flag(name: .long, help: "By the desktop's own dialog for files, of which those on a mount can be picked.")
    var portal = false
    @Flag(name: .long, help: "With --web: print the address on stderr, and open no browser.")
    var noBrowser = false
    @Flag(name: .customShort("0"), help: "Separate paths by NUL.")
    var separatesByNul = false
    @Flag(name: .long, help: "Show pickers for applications that ask from inside their sandbox.")
    var serve = false
    @Option(
        name: .long, help: ArgumentHelp("With --serve: only of this launch, until it ends.", valueName: "id"))
    var launch: String?
    @Option(
        name: .customLong("while"),
        help: ArgumentHelp(
            "When this process has ended the picker is cancelled, and an import removed.",
            valueName: "pid"))
    var owner: Int32?
    /// Of the desktop's portal: where the application's views are; paths are those in them.
    @Option(name: .long, help: .hidden) var view: PathArgument?
    /// Of the portal: begin there, if that is on a mount and answers.
    @Option(name: .long, help: .hidden) var near: PathArgument?
    /// Of the portal: of the folder that is picked, where these can be made in it.
    @Option(name: .long, help: .hidden) var file: [PathArgument] = []
    /// Of tests: so many seconds after which a page that nobody uses is cancelled.
    @Option(name: .long, help: .hidden) var idle = 600
    /// Of this command alone: what it removes then.
    @Option(name: .long, help: .hidden) var forget: PathArgument?
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
            var grant: Int64?
        }

        var picked: [Picked]
        /// Of each `--choice`: the number of the option, from 0; without options 1 is yes.
        var choices: [Int]?
    }

    func validate() throws {
        let brings = mode == .move || mode == .export
        if launch != nil, !serve || at == nil {
            throw ValidationError("--launch goes with --serve, and with --at of the domain that it is of")
        }
        if serve {
            guard !plain, mode == .open, sources.isEmpty, app == nil else {
                throw ValidationError("--serve takes --web or --terminal: applications say the rest")
            }
        }
        if brings, sources.isEmpty {
            throw ValidationError("--mode \(mode.rawValue) needs at least one SOURCE")
        }
        if !brings, !sources.isEmpty {
            throw ValidationError("--mode \(mode.rawValue) takes no SOURCE")
        }
        if web, terminal || plain {
            throw ValidationError("--web and the terminal are two places; give one of them")
        }
        if portal, web || terminal || plain || serve || !choice.isEmpty {
            throw ValidationError("--portal goes with no other place, and the desktop's dialog has no --choice")
        }
        if noBrowser, !web { throw ValidationError("--no-browser is about --web") }
        if name != nil, !(mode == .create || mode == .save || brings && sources.count == 1) {
            throw ValidationError("--suggest is the name of one thing that is made")
        }
        if let name, let problem = PickerMachine.problem(withName: name.bytes) {
            throw ValidationError(problem)
        }
        if view != nil, app == nil || owner == nil { throw ValidationError("--view goes with --app and --while") }
        if folders, mode == .import { throw ValidationError("folders are not imported") }
        if !file.isEmpty, !folders || mode != .open { throw ValidationError("--file goes with --folders") }
        // Now, and not when somebody has picked.
        do throws(Failure) { try app.map(requireApplication) } catch { throw ValidationError(error.message) }
    }

    func run() async throws {
        if !serve, let view = ViewPick.ofThisProcess() {
            return show(try await view.pick(try viewRequest(view)))
        }
        if serve { return try await serveApplications() }
        if let forget { return await TemporaryImport.remove(forget.bytes, after: owner) }
        let mounts = try await Targets.ownMounts()
        guard !mounts.isEmpty else {
            throw CommandFailure(
                "no domain is mounted; try: promisefs mount --help",
                exitStatus: ExitStatus.notPromiseFS)
        }
        let request = try await request()
        let data = MountedData(mounts, application: app)
        let grants = view.flatMap { view in owner.map { SessionView(data: data, folder: view.bytes, owner: $0) } }
        let copies = TemporaryImport.Folders(for: owner)
        let consequences = MountedConsequences(
            data, application: app, grants: grants, importing: { copies.watch($0) })
        if portal { return try await pickByDialog(request, data, consequences, copies) }
        let session = PickerSession(data, consequences, hasLists: !web)
        switch try await outcome(of: request, session, data) {
        case .cancelled: throw CommandFailure(output.json ? "cancelled" : nil)
        case .picked(let documents):
            show(try await files(in: documents), choices: session.chosen)
            copies.confirm()
        }
    }

    private func pickByDialog(
        _ request: PickerRequest, _ data: MountedData, _ consequences: MountedConsequences,
        _ copies: TemporaryImport.Folders
    ) async throws {
        let dialog = PickDialog(request: request, data: data, owner: owner)
        guard let wanted = try await dialog.pick() else {
            throw CommandFailure(output.json ? "cancelled" : nil)
        }
        show(try await consequences.perform(wanted))
        copies.confirm()
    }

    /// What this process asks for from inside a sandbox.
    private func viewRequest(_ view: ViewPick) throws -> PickRequest {
        guard app == nil, at == nil, !web, !plain, !terminal, !portal else {
            throw CommandFailure(
                "from inside a sandbox the person's own picker is asked: leave out --app, --at and where it is shown",
                exitStatus: ExitStatus.usage)
        }
        return PickRequest(
            mode: mode.rawValue, types: type, multiple: multiple, folders: folders,
            name: name.map { String(decoding: $0.bytes, as: UTF8.self) },
            sources: try sources.map { try view.path($0.bytes) })
    }

    private func serveApplications() async throws {
        let turns = PickTurns()
        let server = PickServer { request, data, launch in
            let session = PickerSession(
                data, MountedConsequences(data, application: request.application, launch: launch),
                hasLists: !web)
            if web { return try await outcome(of: request, session, data) }
            return try await turns.take { try await outcome(of: request, session, data) }
        }
        guard let launch, let at else { return try await server.serve() }
        try await server.serve(try await Targets.location(of: at).mount, launch: launch)
    }

    private func outcome(
        of request: PickerRequest, _ session: PickerSession, _ data: MountedData
    ) async throws -> PickerOutcome {
        let watch = owner.map { owner in
            Task {
                if await TemporaryImport.end(of: owner) { session.post(.cancel) }
            }
        }
        defer { watch?.cancel() }
        if web { return try await outcomeOnPage(of: request, session, data) }
        // One that can only write lines, as an editor's, has no screen.
        let isDumb = environment("TERM") == "dumb"
        if plain || isDumb && !terminal && !serve && isatty(STDIN_FILENO) == 1 {
            return await PlainPicker(session).run(request)
        }
        // Whether there are colours is a matter of the terminal, not of stdout.
        let hasColours = environment("NO_COLOR") == nil && !isDumb
        return try await TerminalPicker(session).run(request, hasColours: hasColours)
    }

    private func outcomeOnPage(
        of request: PickerRequest, _ session: PickerSession, _ data: MountedData
    ) async throws -> PickerOutcome {
        defer { Browser.forget() }
        let isSeen = Mutex(true)
        let site = PickerSite(session, data, request)
        Interruption.ends { Browser.forget() }
        let outcome = try await site.run(
            idleMax: .seconds(idle),
            opened: { address in
                // Whoever reads the address can open it; else nobody would ever see the page.
                if await Browser.show(address, opens: !noBrowser) || isatty(STDERR_FILENO) == 1 {
                    return
                }
                isSeen.withLock { $0 = false }
                session.post(.cancel)
            }, entered: { Browser.forget() })
        if isSeen.withLock({ $0 }) { return outcome }
        guard !serve, let window = PickWindow(), let found = try await window.run() else {
            throw CommandFailure("neither a browser nor a terminal's window could be started", exitStatus: 9)
        }
        Output.bytes(asTheyAre: found.output)
        throw CommandFailure(nil, exitStatus: found.status)
    }

    private func request() async throws -> PickerRequest {
        var request = PickerRequest(mode)
        request.types = type
        request.allowsMultiple = multiple
        request.picksFolders = folders
        request.application = app
        request.title = title.map { String($0.prefix(200)) }
        request.requester = requester.map { String($0.prefix(100)) }
        request.choices = choice
        request.suggestedName = name?.bytes ?? []
        if let at {
            let location = try await Targets.location(of: at)
            let start = PickerFolder(domain: location.domain, path: location.path)
            let look = await Blocking.run { () throws(Never) in
                lookAtFolder(location.absolutePath, flags: openPathOnly)
            }
            // A document lies in the folder that is meant.
            if case .failed(let error) = look, error.errno == ENOTDIR {
                request.start = start.parent ?? start
            } else if case .found(let folder) = look, let table = try? MountTable.current(),
                let real = Location.ofResolved(folder, in: table)
            {
                // Of a link that the person names what it leads to is meant, now and later.
                request.start = PickerFolder(domain: real.domain, path: real.path)
            } else {
                request.start = start
            }
        }
        if let near, request.start == nil { request.start = await start(near: near.bytes) }
        for source in sources {
            let path = try await Blocking.run { () throws(PromiseError) in
                try resolveParent(of: source.bytes)
            }
            // By its bytes: as text, a name that is not UTF-8 is another one to the kernel.
            guard SystemMounts.isAccessible(path, R_OK) || mode == .move else {
                throw CommandFailure(
                    "\(escapedForDisplay(source.bytes)) cannot be read: \(String(cString: strerror(errno)))"
                )
            }
            request.sources.append(PickerRequest.Source(path: path))
        }
        return request
    }

    /// Nil for a place on no mount, or on one that is silent: the picker then begins elsewhere.
    private func start(near path: [UInt8]) async -> PickerFolder? {
        await Blocking.run {
            guard case .found(let folder) = lookAtFolder(path, flags: openPathOnly), let table = try? MountTable.current(),
                let location = Location.ofResolved(folder, in: table)
            else { return nil }
            return PickerFolder(domain: location.domain, path: location.path)
        }
    }

    /// Of the folder that was picked, the files that are to be made in it.
    private func files(in documents: [PickedDocument]) async throws -> [PickedDocument] {
        guard !file.isEmpty, let folder = documents.first?.path else { return documents }
        let names = file.map(\.bytes)
        return await Blocking.run { FreeNames.paths(of: names, in: folder).map { PickedDocument(path: $0) } }
    }

    private func show(_ documents: [PickedDocument], choices: [Int] = []) {
        if output.json {
            return Output.json(
                Document(
                    picked: documents.map {
                        .init(
                            path: escapedForDisplay($0.path),
                            pathBytes: PercentCoding.encode($0.path), bookmark: $0.bookmark,
                            reference: $0.reference.map { escapedForDisplay($0) },
                            grant: $0.grant)
                    }, choices: choice.isEmpty ? nil : choices))
        }
        for document in documents {
            separatesByNul ? Output.separated(document.path) : Output.bytes(document.path)
        }
        // What begins with '#' is no absolute path.
        guard separatesByNul else { return }
        for (index, option) in choices.enumerated() {
            Output.separated(Array("#\(index)=\(option)".utf8))
        }
    }
}
