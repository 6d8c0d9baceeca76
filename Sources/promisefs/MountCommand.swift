import ArgumentParser
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
        usage: "promisefs mount [<options>] [<provider>] <mountpoint>",
        discussion: """
            Returns once the mount serves requests; with --foreground it stays until unmounted. Without PROVIDER it mounts the \
            embedded folder provider under $XDG_DATA_HOME/promisefs/cloud. When the daemon dies or is restarted, \
            promisefs-holder keeps the mount and starts a successor, and programs wait meanwhile.

            Example:
              promisefs mount folder:/srv/documents /mnt
              promisefs mount --foreground --cache-limit 10G folder:/srv/documents /mnt
              promisefs mount webdav+https://ann@example.com/files /mnt
            """)

    @Argument(help: ArgumentHelp("PROVIDER, which may be left out, and MOUNTPOINT.", valueName: "provider-mountpoint"))
    var operands: [String]
    @OptionGroup var options: DomainOptions
    @Flag(name: .long, help: "Stay and log to stderr.")
    var foreground = false
    @OptionGroup var output: OutputOptions
    /// For the process that `mount` itself starts: where to say that it is ready, or why not.
    @Option(name: .long, help: .hidden)
    var readyDescriptor: Int32?

    func validate() throws {
        guard operands.count <= 2 else { throw ValidationError("give PROVIDER and MOUNTPOINT, and nothing else") }
        if let domain = options.domain, !DomainName.isValid(domain) {
            throw ValidationError(
                "'\(domain)' cannot name a domain; use up to \(DomainName.byteCountMax) of A-Z a-z 0-9 . _ -, with no dot first"
            )
        }
    }

    func run() async throws {
        let level = try DaemonLog.level(environment("PROMISEFS_LOG"))
        let plan = try await Blocking.run { [self] () throws(CommandFailure) in
            try MountPlan(operands: operands, domain: options.domain, stateFolder: options.stateDir?.bytes)
        }
        let holder = try foundHolder()
        let isStartedByMount = readyDescriptor != nil || holder != nil
        let notice = try await Blocking.run { [options] () throws(CommandFailure) in
            if isStartedByMount {
                // The process that started this one has looked at everything; a mount that could not be kept is in the way.
                return holder.map { $0.restarts > 0 && $0.device == nil } == true ? try plan.clearMountPoint() : nil
            }
            return try plan.prepare(mountOptions: options.splitMountOptions)
        }
        if let notice, !output.json { Output.line(notice) }
        if isStartedByMount || foreground && !isSupervised {
            // Whoever started the first daemon has heard of it.
            let isFirst = holder.map { $0.restarts == 0 } ?? true
            let ready = isFirst ? readyDescriptor.map { ReadyChannel(descriptor: $0) } : nil
            return try await serve(plan, level, holder, ready)
        }
        let (arguments, isSupervised) = (options.forwarded, isSupervised)
        if foreground { throw try DaemonLauncher.becomeHolder(plan, forwarded: arguments) }
        let process = try await Blocking.run { () throws(CommandFailure) in
            try DaemonLauncher.start(plan, forwarded: arguments, isSupervised: isSupervised)
        }
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
        var configuration = plan.configuration
        options.apply(to: &configuration)
        configuration.login = LoginVariables.take()
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
        Output.line("mounted \(plan.name) on \(place) (\(plan.provider.text)); try: ls \(place)")
    }
}
