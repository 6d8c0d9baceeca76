import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseWire

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a command, and say for it and its children how mounts are to treat them.",
        usage: """
            promisefs run [--app ID [--domain NAME]... [--network] [--picker]] [--no-hydrate] [--profile FILE] [--json] \
            -- <command> ...
            """,
        discussion: """
            With --no-hydrate an open or a read that would have to fetch content fails at once with EDEADLK. It sets \
            PROMISEFS_HYDRATE=no in the command's environment. With --profile the files that the command and its children open \
            on mounts are noted in FILE, one a line, and the next time those are fetched while it runs. The exit status is the \
            command's, or 127 when there is no such command.

            With --app it runs in a sandbox of bubblewrap, as an ordinary user and without network: it sees the system's \
            programs, and in /documents its view of the domain. That has the application's container, what it was granted \
            in 'granted', and nothing else. Of several domains the first one is there, and the others are in \
            /domains, by their names. With --app, FILE has words for bwrap(1), one a line.

            Example:
              promisefs run --no-hydrate -- grep -r invoice /mnt
              promisefs run --profile ~/.cache/build.profile -- make -C /mnt/project
              promisefs run --app com.example.editor -- vim /documents/container/Documents/notes.txt
            """)

    @Flag(name: .long, help: "Fetch nothing for the command.")
    var noHydrate = false
    @Option(name: .long, help: ArgumentHelp("Note what is opened, and fetch what was opened the last time.", valueName: "file"))
    var profile: PathArgument?
    @Option(
        name: .long,
        help: ArgumentHelp("Run it as this application, in a sandbox with a view of its own.", valueName: "id"))
    var app: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Of which domain, or domains; needed where several are mounted.", valueName: "name"))
    var domain: [String] = []
    @Flag(name: .long, help: "The sandbox has the network.")
    var network = false
    @Flag(name: .long, help: "Show the person a picker in the browser when the application asks for documents.")
    var picker = false
    @OptionGroup var output: OutputOptions
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments.", valueName: "command"))
    var command: [String]

    func validate() throws {
        if command.isEmpty { throw ValidationError("say which command to run, after '--'") }
        if profile?.bytes == [UInt8(ascii: "-")] { throw ValidationError("a profile is read and written: name a file") }
        if app == nil && (!domain.isEmpty || network || picker) {
            throw ValidationError("--domain, --network and --picker go with --app")
        }
        if Set(domain).count < domain.count { throw ValidationError("each --domain is another one") }
        if noHydrate && profile != nil { throw ValidationError("give --no-hydrate or --profile: one fetches nothing") }
    }

    func run() async throws {
        let words = command.map { RawArguments.bytes(of: $0) }
        if let app {
            throw Spawn.become(try await launch(app, words))
        }
        if let profile {
            let status = try await ProfiledRun(profile: profile.bytes, command: words).run()
            if status != 0 { throw CommandFailure(nil, exitStatus: status) }
            return
        }
        if noHydrate { setenv("PROMISEFS_HYDRATE", "no", 1) }
        throw Spawn.become(words)
    }

    /// By a process of its own, which ends with the launch. What it says would be the application's to
    /// read, where that has the same streams.
    private func showPickers(of launch: String, _ mount: MountEntry) {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        let words = ["promisefs", "pick", "--serve", "--web", "--launch", launch, "--at"]
        _ = Spawn.start(
            Array("/proc/self/exe".utf8), arguments: words.map { Array($0.utf8) } + [mount.mountPoint],
            descriptors: (0...2).map { (from: nothing, to: $0) }, newSession: true)
        close(nothing)
    }

    /// The words that become the application.
    private func launch(_ application: String, _ command: [[UInt8]]) async throws -> [[UInt8]] {
        guard let helper = HelperPlace.view() else {
            throw CommandFailure("promisefs-view is missing; it is installed beside promisefs")
        }
        guard Sandbox.isInstalled else {
            throw CommandFailure("the sandbox needs bubblewrap: install the package 'bubblewrap'")
        }
        guard let place = Sandbox.place else {
            throw CommandFailure("this machine has none of the folders on which a view is mounted")
        }
        var sandbox = Sandbox(application: application, hasNetwork: network)
        if noHydrate { sandbox.additions += ["--setenv", "PROMISEFS_HYDRATE", "no"].map { Array($0.utf8) } }
        if let profile { sandbox.additions += try await Sandbox.words(ofProfile: profile.bytes) }
        var words: [String] = []
        var domains: [Sandbox.Domain] = []
        for name in domain.isEmpty ? [nil] : domain.map(Optional.some) {
            let mount = try await Targets.mount(ofDomain: name, saidBy: "--domain")
            let view = try await PromiseClient(mount: mount).openView(for: application, isOfCaller: true)
            if picker { showPickers(of: view.launch, mount) }
            let socket = view.socket ?? "-"
            words += domains.isEmpty ? [view.handover, place, socket] : ["+", view.handover, socket]
            domains.append(Sandbox.Domain(name: mount.domain, hasSocket: view.socket != nil))
        }
        // All else that is open here, the connection to the daemon first of all, is not for the application.
        let filter = SystemCallFilter.descriptor()
        if let filter { words = ["--with", "\(filter)"] + words }
        return [helper] + words.map { Array($0.utf8) }
            + sandbox.words(place: place, domains: domains, filter: filter, command: command)
    }
}
