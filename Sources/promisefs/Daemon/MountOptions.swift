import ArgumentParser
import PromiseCore
import PromiseDomain
import PromiseFilesystem

/// The options of `mount` that say how the domain works.
struct DomainOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Name of the domain. (default: derived from PROVIDER, stable)", valueName: "name"))
    var domain: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Folder for the index and the content. (default: below $XDG_STATE_HOME/promisefs, or /var/lib/promisefs for root)",
            valueName: "dir"))
    var stateDir: PathArgument?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Keep at most so much content, e.g. 10G. (default: as much as the disk has room for)", valueName: "size"))
    var cacheLimit: ByteSize?
    @Option(
        name: .long,
        help: ArgumentHelp("Quiet time before a change is uploaded, e.g. 500ms. (default: 2s)", valueName: "duration"))
    var uploadDelay: TimeSpan?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "How long what is removed can come back, e.g. 7d; off: not at all. (default: 30d)", valueName: "duration"))
    var trash: RemovedAge?
    @Option(
        name: .long,
        help: ArgumentHelp("Time between two looks at a provider that pushes no changes. (default: 30s)", valueName: "duration"))
    var pollInterval: TimeSpan?
    @Option(
        name: .long,
        help: ArgumentHelp("How long a request on the mount waits for the provider. (default: 30s)", valueName: "duration"))
    var requestDeadline: TimeSpan?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Who may cause content to be fetched, e.g. refuse:program=a*, allow:io=idle, budget:program=b,bytes=1G; repeatable.",
            valueName: "rule"),
        transform: HydrationRule.init(argument:))
    var hydrationRule: [HydrationRule] = []
    @Option(
        name: .long,
        help: ArgumentHelp(
            "What stays on this machine, in the syntax of gitignore(5); may be given again.", valueName: "pattern"))
    var ignore: [String] = []
    @Option(
        name: .long,
        help: ArgumentHelp("What the values of one application may have together. (default: 64K)", valueName: "size"))
    var valuesLimit: ByteSize?
    @Option(name: .long, help: ArgumentHelp("How many values an application may have. (default: 1024)", valueName: "number"))
    var valuesKeys: Int?
    @Flag(name: .long, help: "Refuse changes on the mount.")
    var readOnly = false
    @Flag(name: .long, help: "Do not let the kernel read and write content files itself.")
    var noPassthrough = false
    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Use FUSE over io_uring: open files and calls under way end with the daemon then.")
    var ioUring = false
    @Flag(name: .long, help: "Let processors sleep between requests, also while many come: saves power, costs speed.")
    var noLatencyLimit = false
    @Flag(name: .long, help: "Let the mount end with its daemon, instead of keeping it for a successor.")
    var noSupervision = false
    @Option(
        name: .long,
        help: ArgumentHelp(
            "What programs that know nothing of claims do when they meet one: advisory, wait or refuse. (default: wait)",
            valueName: "mode"))
    var coordination: CoordinationMode?
    @Option(
        name: .long,
        help: ArgumentHelp("How long removing and renaming wait for claims. (default: 2s)", valueName: "duration"))
    var nameDeadline: TimeSpan?
    @Option(name: .long, help: CertificateArgument.help)
    var certificate: CertificateArgument?
    @Option(
        name: .customShort("o"),
        help: ArgumentHelp("As mount(8): allow_other, default_permissions, uid=, gid=, …", valueName: "opt[,opt…]"))
    var mountOptions: [String] = []

    func validate() throws {
        if let valuesLimit, !(1...DomainConfiguration.valueByteCountMax).contains(valuesLimit.bytes) {
            throw ValidationError("--values-limit is at most \(ByteSize.text(DomainConfiguration.valueByteCountMax))")
        }
        if let valuesKeys, !(1...DomainConfiguration.valueCountMax).contains(valuesKeys) {
            throw ValidationError("--values-keys is 1 to \(DomainConfiguration.valueCountMax)")
        }
        // Without a pause the provider would be asked all the time, and without time nothing answers.
        for (name, value) in [("--poll-interval", pollInterval), ("--request-deadline", requestDeadline)] {
            if let value, value.duration < Self.shortest {
                throw ValidationError("\(name) is 100ms or more")
            }
        }
    }

    private static let shortest = Duration.milliseconds(100)

    /// `-o` split at commas; `ro` and `rw` are ours.
    var splitMountOptions: [String] {
        mountOptions.flatMap { $0.split(separator: ",") }.map(String.init).filter { $0 != "ro" && $0 != "rw" }
    }

    /// `ro` or `rw`; the later one wins.
    private var access: String? {
        mountOptions.flatMap { $0.split(separator: ",") }.map(String.init)
            .last { $0 == "ro" || $0 == "rw" }
    }

    var isReadOnly: Bool { readOnly || access == "ro" }

    func apply(to configuration: inout DomainConfiguration) {
        configuration.cacheLimit = cacheLimit?.bytes
        if let uploadDelay { configuration.uploadDelay = uploadDelay.duration }
        if let trash { configuration.removedAge = trash.duration }
        if let pollInterval { configuration.pollInterval = pollInterval.duration }
        if let requestDeadline { configuration.requestDeadline = requestDeadline.duration }
        configuration.hydrationRules = hydrationRule.map(\.rule)
        configuration.ignoredPatterns = ignore
        if let valuesLimit { configuration.valueByteCount = Int(valuesLimit.bytes) }
        if let valuesKeys { configuration.valueCount = valuesKeys }
        if let coordination { configuration.coordination = coordination }
        if let nameDeadline { configuration.nameDeadline = nameDeadline.duration }
        configuration.certificate = certificate?.text
        configuration.isReadOnly = isReadOnly
        configuration.allowsPassthrough = !noPassthrough
        configuration.backingHelper = HelperPlace.backing()
        configuration.echoProgram = HelperPlace.echo()
        configuration.lockProgram = HelperPlace.locks()
        configuration.wantsRings = ioUring
        configuration.allowsLatencyLimit = !noLatencyLimit
        configuration.mountOptions = splitMountOptions
    }

    /// The same options for another process; the name and the folder are given resolved, by the caller.
    var forwarded: [String] {
        var result: [String] = []
        if let cacheLimit { result += ["--cache-limit", "\(cacheLimit.bytes)"] }
        if let uploadDelay { result += ["--upload-delay", TimeSpan.argument(uploadDelay.duration)] }
        if let trash { result += ["--trash", trash.argument] }
        if let pollInterval { result += ["--poll-interval", TimeSpan.argument(pollInterval.duration)] }
        if let requestDeadline { result += ["--request-deadline", TimeSpan.argument(requestDeadline.duration)] }
        for rule in hydrationRule { result += ["--hydration-rule", rule.text] }
        for pattern in ignore { result += ["--ignore=" + pattern] }
        if let valuesLimit { result += ["--values-limit", "\(valuesLimit.bytes)"] }
        if let valuesKeys { result += ["--values-keys", "\(valuesKeys)"] }
        if let coordination { result += ["--coordination", coordination.rawValue] }
        if let nameDeadline { result += ["--name-deadline", TimeSpan.argument(nameDeadline.duration)] }
        if let certificate { result += ["--certificate", certificate.text] }
        if isReadOnly {
            result.append("--read-only")
        } else if access != nil {
            // The configuration may say the opposite.
            result += ["-o", "rw"]
        }
        if noPassthrough { result.append("--no-passthrough") }
        if ioUring { result.append("--io-uring") }
        if noLatencyLimit { result.append("--no-latency-limit") }
        if noSupervision { result.append("--no-supervision") }
        for option in splitMountOptions { result += ["-o", option] }
        return result
    }
}

extension CoordinationMode: ExpressibleByArgument {}
/// A rule as it was written, and what it says.
struct HydrationRule {
    let text: String
    let rule: HydrationRules.Rule

    /// Throws what is wrong with the text, for the user.
    init(argument: String) throws {
        do throws(HydrationRules.Rule.Problem) {
            (text, rule) = (argument, try HydrationRules.Rule(parsing: argument))
        } catch {
            throw ValidationError(error.message)
        }
    }
}
