import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseWire

struct EnableCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enable",
        abstract: "Mount a domain of the configuration file by itself: when you log in, or for root when the machine starts.",
        discussion: """
            It is mounted now, too, as the unit promisefs@NAME.service of systemd. Root's domains are those of \
            /etc/promisefs/config.toml.

            Example:
              promisefs enable work
            """)

    @Argument(help: "The name of a domain of the configuration file.")
    var domain: String
    @Flag(name: .long, help: "Not now, only from the next time on.")
    var later = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let (name, isLater) = (domain, later)
        let isMounted = try await Targets.ownMounts().contains { $0.domain == name }
        let isStarted = try await Blocking.run { () throws(CommandFailure) in
            try ServiceUnit.checkConfiguration(name)
            return try ServiceUnit.change("enable", isNow: !isLater && !isMounted, name)
        }
        let document = ServiceUnit.Document(domain: name, unit: ServiceUnit.name(name), enabled: true)
        if output.json { return Output.json(document) }
        let when = geteuid() == 0 ? "when the machine starts" : "when you log in"
        Output.line("\(name) is mounted \(when)" + (isStarted ? ", and is mounted now" : ""))
    }
}

struct DisableCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disable",
        abstract: "Mount a domain no longer by itself, and unmount it where that was done.",
        discussion: """
            Example:
              promisefs disable work
            """)

    @Argument(help: "The name of a domain.")
    var domain: String
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let name = domain
        guard DomainName.isValid(name) else { throw ValidationError("'\(name)' cannot name a domain") }
        try await Blocking.run { () throws(CommandFailure) in
            try ServiceUnit.checkIsKnown(name)
            _ = try ServiceUnit.change("disable", isNow: true, name)
        }
        let document = ServiceUnit.Document(domain: name, unit: ServiceUnit.name(name), enabled: false)
        if output.json { return Output.json(document) }
        Output.line("\(name) is mounted by itself no longer")
    }
}

/// The unit of a domain, `promisefs@NAME.service`, of the user's own systemd, or for root of the machine's. Blocking.
enum ServiceUnit {
    struct Document: Encodable {
        var domain: String
        var unit: String
        var enabled: Bool
    }

    static func name(_ domain: String) -> String { "promisefs@\(domain).service" }

    static var noConfiguration: CommandFailure {
        let place = BaseFolders.configuration().map { escapedForDisplay($0) } ?? "config.toml"
        return CommandFailure(
            "there is no configuration file; 'promisefs setup' writes \(place)"
                + FormerSettings.hint,
            exitStatus: ExitStatus.usage)
    }

    /// A unit that cannot start is noticed by nobody.
    static func checkConfiguration(_ domain: String) throws(CommandFailure) {
        guard let file = try ConfigurationFile.readLeniently() else {
            throw noConfiguration
        }
        try check(domain, in: file)
    }

    /// What is wrong with other domains of the file is theirs.
    static func check(_ domain: String, in file: ConfigurationFile) throws(CommandFailure) {
        if let problem = file.problem(of: domain) { throw problem }
        guard let entry = file.domains[domain] else {
            throw CommandFailure(
                "\(file.path) has no domain '\(domain)'" + FormerSettings.hint,
                exitStatus: ExitStatus.usage)
        }
        guard entry.mountPoint != nil else {
            throw CommandFailure("\(file.path): the domain '\(domain)' has no 'mountpoint'", exitStatus: ExitStatus.usage)
        }
    }

    /// A name that nobody knows is a slip: nothing would be done for it, without a word. One that has gone from the
    /// configuration may still have its unit.
    static func checkIsKnown(_ domain: String) throws(CommandFailure) {
        let read: Result<ConfigurationFile?, CommandFailure>
        do throws(CommandFailure) {
            read = .success(try ConfigurationFile.readLeniently())
        } catch {
            read = .failure(error)
        }
        if case .success(let file?) = read,
            ConfiguredMount.isConfigured(domain, in: file)
        {
            return
        }
        for question in ["is-enabled", "is-active"] where isAvailable {
            if try listen([question], domain).status == 0 { return }
        }
        // What cannot be read may well name it.
        let file = try read.get()
        if let file, !file.isReadable, let problem = file.problem(of: domain) { throw problem }
        let place = file?.path ?? BaseFolders.configuration().map { escapedForDisplay($0) } ?? "config.toml"
        throw CommandFailure(
            "\(place) has no domain '\(domain)', and nothing mounts one of this name by itself"
                + FormerSettings.hint, exitStatus: ExitStatus.usage)
    }

    /// A service manager runs for this user: in a container or over ssh without a session there may be none.
    static var isManaged: Bool {
        guard isAvailable else { return false }
        if geteuid() == 0 { return SystemMounts.isAccessible(Array("/run/systemd/system".utf8), F_OK) }
        guard let runtime = environment("XDG_RUNTIME_DIR") else { return false }
        return SystemMounts.isAccessible(Array("\(runtime)/systemd".utf8), F_OK)
    }

    static var isAvailable: Bool { SystemMounts.program("systemctl") != nil }

    /// Returns whether it was done now. Where systemd does not run, it can still be told for the next time.
    static func change(_ word: String, isNow: Bool, _ domain: String) throws(CommandFailure) -> Bool {
        do throws(CommandFailure) {
            try run([word] + (isNow ? ["--now"] : []), domain)
            return isNow
        } catch {
            guard isNow, isAvailable, !isManaged else { throw error }
            try run([word], domain)
            return false
        }
    }

    static func run(_ words: [String], _ domain: String) throws(CommandFailure) {
        guard isAvailable else {
            throw CommandFailure("there is no systemctl here; have 'promisefs mount \(domain)' run by what starts things")
        }
        let (command, status, said) = try listen(words, domain)
        let lines = said.split(separator: "\n")
        guard status == 0 else {
            let journal = "'journalctl \(scope.map { $0 + " " }.joined())-u \(name(domain))'"
            // The first line is the reason, what follows advice.
            let reason = lines.first.map { ": \($0.hasSuffix(".") ? $0.dropLast() : $0)" } ?? ""
            throw CommandFailure(
                "'\(command.joined(separator: " "))' ended with status \(status)\(reason); \(journal) and 'promisefs doctor' say "
                    + "more")
        }
        for line in lines { Output.note(String(line)) }
    }

    private static var scope: [String] { geteuid() == 0 ? [] : ["--user"] }

    private static func listen(
        _ words: [String], _ domain: String
    ) throws(CommandFailure) -> (command: [String], status: Int32, said: String) {
        let command = ["systemctl"] + scope + ["--quiet"] + words + [name(domain)]
        // It may be in a folder that PATH leaves out.
        let program = SystemMounts.program("systemctl") ?? "systemctl"
        do throws(CommandFailure) {
            let (status, said) = try Spawn.listen(to: ([program] + command.dropFirst()).map { Array($0.utf8) })
            return (command, status, said)
        } catch {
            // Its status is for whoever asked for that command.
            throw CommandFailure(error.message)
        }
    }
}
