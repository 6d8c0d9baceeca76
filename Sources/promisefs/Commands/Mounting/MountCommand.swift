import ArgumentParser
import Glibc
import Logging
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseSystem
import PromiseWire

struct MountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mount",
        abstract: "Mount a provider.",
        usage: "promisefs mount [<options>] [<provider>] <mountpoint> | <name> | --all",
        discussion: """
            Returns once the mount serves requests; with --foreground it stays until unmounted. Without PROVIDER it mounts the \
            embedded folder provider under $XDG_DATA_HOME/promisefs/cloud. NAME is a domain of the configuration file. \
            When the daemon dies or is restarted, promisefs-holder keeps the mount and starts a successor, and programs wait \
            meanwhile.

            Example:
              promisefs mount folder:/srv/documents /mnt
              promisefs mount --foreground --cache-limit 10G folder:/srv/documents /mnt
              promisefs mount webdav+https://ann@example.com/files /mnt
              promisefs mount work
            """)

    @Argument(
        help: ArgumentHelp(
            "PROVIDER, which may be left out, and MOUNTPOINT; or the name of a domain of the configuration file.",
            valueName: "provider-mountpoint"))
    var operands: [String] = []
    @OptionGroup var options: DomainOptions
    @Flag(name: [.customShort("f"), .long], help: "Stay and log to stderr.")
    var foreground = false
    @Flag(name: .long, help: "Mount every domain of the configuration file that is not mounted.")
    var all = false
    @OptionGroup var output: OutputOptions
    /// For the process that `mount` itself starts: where to say that it is ready, or why not.
    @Option(name: .long, help: .hidden)
    var readyDescriptor: Int32?
    /// For the daemon: what keeps it from having the settings that the configuration file says.
    @Option(name: .long, help: .hidden)
    var configurationProblem: String?
    /// For `mount.promisefs`: where a configured domain is mounted instead.
    @Option(name: .long, help: .hidden)
    var place: String?

    func validate() throws {
        guard operands.count <= 2 else { throw ValidationError("give PROVIDER and MOUNTPOINT, and nothing else") }
        guard all || !operands.isEmpty else { throw ValidationError("give MOUNTPOINT, or the name of a configured domain") }
        guard !all || operands.isEmpty && !foreground else {
            throw ValidationError("--all mounts what is configured, in the background; give nothing else")
        }
        if let domain = options.domain, !DomainName.isValid(domain) {
            throw ValidationError(
                "'\(domain)' cannot name a domain; use up to \(DomainName.byteCountMax) of A-Z a-z 0-9 . _ -, "
                    + "with no dot or - first"
            )
        }
    }

    func run() async throws {
        let holder = try foundHolder()
        // Whoever started this process has looked at the configuration.
        if readyDescriptor != nil || holder != nil { return try await mount(holder) }
        let file = try await Blocking.run { () throws(CommandFailure) in try ConfigurationFile.readLeniently() }
        guard let file else {
            let hint = await Blocking.run { () throws(Never) in FormerSettings.hint }
            if all {
                throw CommandFailure(
                    "there is no configuration file, so nothing to mount" + hint,
                    exitStatus: ExitStatus.usage)
            }
            // The name of a domain there is taken for a folder.
            if !hint.isEmpty { Output.note("there is no configuration file" + hint) }
            return try await mount(nil)
        }
        if all { return try await mountAll(file) }
        let name = operands[0]
        let isConfigured = await Blocking.run { [operands] () throws(Never) in
            operands.count <= 2 && !name.contains(":") && ConfiguredMount.isConfigured(name, in: file)
        }
        if isConfigured { return try await mount(configured: name, file, at: operands.count == 2 ? operands[1] : place) }
        if let problem = file.problems.first(where: { $0.domain == nil }) { throw problem.failure }
        try await command(try file.words(for: operands, given: given), file).mount(nil)
    }

    private func mountAll(_ file: ConfigurationFile) async throws {
        var failures = FailureCollector()
        let (table, names) = try await Blocking.run { () throws(PromiseError) in
            (try MountTable.current(), ConfiguredMount.names(in: file))
        }
        if names.isEmpty, let problem = file.problems.first { throw problem.failure }
        for name in names {
            if table.promiseMounts(of: geteuid()).contains(where: { $0.domain == name }) { continue }
            do {
                try await mount(configured: name, file, at: nil)
            } catch {
                let failure = CommandFailure(known: error) ?? CommandFailure("\(error)")
                failures.note(CommandFailure("\(name): \(failure.message ?? "")", exitStatus: failure.exitStatus))
            }
        }
        if let first = failures.first { throw CommandFailure(nil, exitStatus: first) }
    }

    /// `place`: instead of the mount point that it has there.
    private func mount(configured name: String, _ file: ConfigurationFile, at place: String?) async throws {
        SystemSettings.use()
        let given = given
        let found = try await Blocking.run { () throws(CommandFailure) in
            try ConfiguredMount(name, in: file, given: given, at: place)
        }
        var words = found.words
        if let problem = found.problem {
            Output.note(problem)
            words.insert("--configuration-problem=" + problem, at: 0)
        }
        try await command(words, file).mount(nil, keeping: found.settings)
    }

    /// What the user wrote, with what has been resolved.
    private var given: [String] {
        var given = options.forwarded
        if let domain = options.domain { given += ["--domain", domain] }
        if let folder = options.stateDir { given += ["--state-dir", RawArguments.text(of: folder.bytes)] }
        if foreground { given.append("--foreground") }
        if output.json { given.append("--json") }
        return given
    }

    /// This command with what the configuration file adds.
    private func command(_ words: [String], _ file: ConfigurationFile) throws -> MountCommand {
        do {
            return try MountCommand.parse(words)
        } catch {
            let lines = MountCommand.message(for: error).split(separator: "\n")
            throw CommandFailure("\(file.path): \(lines.first ?? "")", exitStatus: ExitStatus.usage)
        }
    }

    /// `settings`: of a configured domain, kept when nothing is wrong with them.
    private func mount(_ holder: Holder?, keeping settings: LastSettings? = nil) async throws {
        let level = try DaemonLog.level(environment("PROMISEFS_LOG"))
        let isStartedByMount = readyDescriptor != nil || holder != nil
        let plan = try await Blocking.run { [self] () throws(CommandFailure) in
            try MountPlan(
                operands: operands, domain: options.domain, stateFolder: options.stateDir?.bytes,
                isResolved: isStartedByMount)
        }
        let first = isStartedByMount || foreground ? nil : FirstMount(plan)
        let notice = try await Blocking.run { [options] () throws(CommandFailure) -> String? in
            // The process that started this one has looked at everything.
            if isStartedByMount { return nil }
            do throws(CommandFailure) {
                return try plan.prepare(mountOptions: options.splitMountOptions)
            } catch {
                first?.undo()
                throw error
            }
        }
        if let notice, !output.json { Output.line(notice) }
        if let settings { await Blocking.run { () throws(Never) in settings.write() } }
        if isStartedByMount || foreground && !isSupervised {
            // Whoever started the first daemon has heard of it.
            let isFirst = holder.map { $0.restarts == 0 } ?? true
            let ready = isFirst ? readyDescriptor.map { ReadyChannel(descriptor: $0) } : nil
            return try await serve(plan, level, holder, ready)
        }
        let told = configurationProblem.map { ["--configuration-problem=" + $0] } ?? []
        let (arguments, isSupervised) = (told + options.forwarded, isSupervised)
        if foreground { throw try DaemonLauncher.becomeHolder(plan, forwarded: arguments) }
        let process = try await Blocking.run { () throws(CommandFailure) in
            try DaemonLauncher.start(plan, forwarded: arguments, isSupervised: isSupervised, first)
        }
        // It is mounted, whoever hears of it.
        Output.goesOnWithoutReader()
        report(plan, process)
    }

    private var isSupervised: Bool { !options.noSupervision && HelperPlace.holder() != nil }

    private func foundHolder() throws(CommandFailure) -> Holder? {
        do throws(SystemError) { return try Holder.find() } catch {
            throw CommandFailure("there is no memory for the record of the mount: \(error.reason)")
        }
    }

    private func serve(
        _ plan: MountPlan, _ level: Logger.Level, _ holder: Holder?, _ ready: ReadyChannel?
    ) async throws(CommandFailure) {
        Output.goesOnWithoutReader()
        var configuration = plan.configuration
        options.apply(to: &configuration)
        configuration.login = LoginVariables.take()
        configuration.problem = configurationProblem
        if configuration.login == nil { configuration.keptLogin = SecretService.keptLogin(ofDomain: plan.name) }
        let isKnown = await Blocking.run { [configuration] () throws(Never) in configuration.isKnown }
        do throws(CommandFailure) {
            if configuration.login == nil { configuration.login = try await SecretService.login(ofDomain: plan.name) }
        } catch where isKnown {
            // The provider says it, and the mount is there.
            configuration.login = nil
        } catch {
            _ = ready?.send(ReadyMessage(ready: false, error: error.message, exitStatus: error.exitStatus))
            throw ready == nil ? error : CommandFailure(nil, exitStatus: error.exitStatus)
        }
        try await Daemon.run(configuration, plan: plan, level: level, holder: holder, ready: ready)
    }

    private struct Document: Encodable {
        var domain: String
        var provider: String
        var mountPoint: String
        var mountPointBytes: String
        var processID: Int32
        var log: String
    }

    private func report(_ plan: MountPlan, _ process: Int32) {
        let place = escapedForDisplay(plan.mountPoint)
        if output.json {
            return Output.json(
                Document(
                    domain: plan.name, provider: plan.provider.text, mountPoint: place,
                    mountPointBytes: PercentCoding.encode(plan.mountPoint), processID: process,
                    log: escapedForDisplay(plan.logFile)))
        }
        Output.line("mounted \(plan.name) on \(place) (\(plan.provider.text)); try: ls \(shellWord(plan.mountPoint))")
    }
}
