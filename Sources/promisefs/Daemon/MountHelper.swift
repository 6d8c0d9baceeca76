import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// `mount.promisefs`, which mount(8) and the units made from fstab(5) call as
/// `mount.promisefs SOURCE DIR [-sfnv] [-t TYPE] [-o OPTION[,OPTION…]]`. It is this program under another name.
enum MountHelper {
    /// The exit statuses of mount(8).
    private enum Status {
        static let usage: Int32 = 1
        static let failed: Int32 = 32
    }

    /// What is asked for. `words` are options of `promisefs mount`, `options` what it takes after `-o`.
    struct Call: Equatable {
        var source = ""
        var place = ""
        var words: [String] = []
        var options: [String] = []
        var domain: String?
        var isVerbose = false
        /// Look at everything, mount nothing.
        var isDry = false
    }

    static func isMeant(by name: String?) -> Bool {
        let last = name?.split(separator: "/").last
        return last == "mount.promisefs" || last == "mount.fuse.promisefs"
    }

    /// Options of `promisefs mount` that may stand in fstab(5), without their dashes.
    private static let valued: Set = [
        "state-dir", "cache-limit", "upload-delay", "poll-interval", "request-deadline", "coordination", "name-deadline",
        "certificate", "hydration-rule", "ignore", "values-limit", "values-keys", "trash",
    ]
    private static let switches: Set = [
        "read-only", "no-passthrough", "io-uring", "no-io-uring", "no-latency-limit", "no-supervision",
    ]
    /// For mount(8), systemd and others that read fstab(5); `promisefs mount` knows some of them.
    private static let foreign: Set = [
        "auto", "noauto", "user", "nouser", "users", "owner", "group", "defaults", "nofail", "_netdev", "rw", "async",
        "dirsync", "relatime", "strictatime", "lazytime", "nolazytime", "iversion", "noiversion", "silent", "loud", "mand",
        "nomand", "nodiratime", "diratime", "norelatime", "helper", "uhelper", "comment",
    ]
    /// What `-o` of `promisefs mount` takes.
    private static let known: Set = [
        "ro", "allow_other", "noallow_other", "default_permissions", "nonempty", "fsname", "uid", "gid", "umask", "dmask",
        "fmask", "suid", "nosuid",
        "dev", "nodev", "exec", "noexec", "atime", "noatime", "sync",
    ]

    static func parse(_ arguments: [String]) throws(CommandFailure) -> Call {
        var call = Call()
        var places: [String] = []
        var texts: [String] = []
        var isSloppy = false
        var rest = arguments[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("-"), word.count > 1 else {
                places.append(word)
                continue
            }
            for (index, letter) in word.enumerated().dropFirst() {
                switch letter {
                case "s": isSloppy = true
                case "f": call.isDry = true
                case "n": break
                case "v": call.isVerbose = true
                case "o", "t":
                    let glued = String(word.dropFirst(index + 1))
                    guard let value = glued.isEmpty ? rest.popFirst() : glued else { throw usage("-\(letter) needs a value") }
                    if letter == "o" { texts.append(value) }
                default: throw usage("-\(letter) is not known")
                }
                if letter == "o" || letter == "t" { break }
            }
        }
        guard places.count == 2 else { throw usage("give SOURCE and DIR") }
        (call.source, call.place) = (places[0], places[1])
        for text in texts {
            for option in try split(text) { try add(option, to: &call, isSloppy: isSloppy) }
        }
        return call
    }

    private static func usage(_ sentence: String) -> CommandFailure {
        CommandFailure(
            "\(sentence); usage: mount.promisefs SOURCE DIR [-sfnv] [-o OPTION,…]", exitStatus: ExitStatus.usage)
    }

    /// At commas outside of double quotes, which mount(8) has for values with commas; the quotes go.
    private static func split(_ text: String) throws(CommandFailure) -> [String] {
        var result = [""]
        var isQuoted = false
        for character in text {
            if character == "\"" {
                isQuoted.toggle()
            } else if character == ",", !isQuoted {
                result.append("")
            } else {
                result[result.count - 1].append(character)
            }
        }
        // What follows would be taken for a part of the value, and a read-only mount could be written.
        guard !isQuoted else { throw usage("-o has a quote without its end") }
        return result.filter { !$0.isEmpty }
    }

    private static func add(_ option: String, to call: inout Call, isSloppy: Bool) throws(CommandFailure) {
        let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let (name, value) = (parts[0], parts.count > 1 ? parts[1] : nil)
        if name == "domain", let value {
            call.domain = value
        } else if valued.contains(name), let value {
            call.words += ["--\(name)", value]
        } else if switches.contains(name), value == nil {
            call.words.append("--\(name)")
        } else if foreign.contains(name) || name.lowercased().hasPrefix("x-") {
            return
        } else if known.contains(name) {
            call.options.append(option)
        } else if name == "remount" {
            throw CommandFailure(
                "a mount cannot be changed; unmount it, and mount it with the other options", exitStatus: ExitStatus.usage)
        } else if !isSloppy {
            throw CommandFailure(
                "mount option '\(option)' is not known; 'man mount.promisefs' lists them", exitStatus: ExitStatus.usage)
        }
    }

    // MARK: - Running

    /// Returns an exit status of mount(8).
    static func run(_ arguments: [String]) async -> Int32 {
        if arguments == ["--help"] || arguments == ["-h"] {
            Output.line("usage: mount.promisefs SOURCE DIR [-sfnv] [-o OPTION,…]; 'man mount.promisefs' has the options")
            return 0
        }
        do throws(CommandFailure) {
            let call = try parse(arguments)
            SystemSettings.use()
            guard try await !isMounted(call) else { return 0 }
            let words = try await Blocking.run { () throws(CommandFailure) in try command(for: call) }
            if call.isVerbose { Output.line("promisefs " + words.joined(separator: " ")) }
            if call.isDry { return 0 }
            if !call.isVerbose { keepQuiet() }
            // Somebody looked, and systemd mounts: whoever is not of its process group would wait for that mount, too.
            if await isAutomount(call) { setenv("PROMISEFS_STAY_IN_GROUP", "yes", 1) }
            return status(of: await PromiseFS.execute(words))
        } catch {
            if let message = error.message { Output.problem(message) }
            return status(of: error.exitStatus)
        }
    }

    private static func isAutomount(_ call: Call) async -> Bool {
        let place = RawArguments.bytes(of: call.place)
        return await Blocking.run { () throws(Never) in
            (try? MountTable.current())?.entries.last { $0.mountPoint == place }?.type == "autofs"
        }
    }

    /// mount(8) says nothing when all went well.
    private static func keepQuiet() {
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard null >= 0 else { return }
        dup2(null, STDOUT_FILENO)
        close(null)
    }

    private static func status(of own: Int32) -> Int32 {
        switch own {
        case 0: 0
        case ExitStatus.usage, ExitStatus.refused: Status.usage
        default: Status.failed
        }
    }

    /// The words of the command line that does it. SOURCE is a provider; or the name of a domain of the configuration
    /// file, whose own mount point is not asked for; or `none`: the embedded folder. Blocking.
    static func command(for call: Call) throws(CommandFailure) -> [String] {
        let options = call.words + call.options.flatMap { ["-o", $0] }
        let given = options + (call.domain.map { ["--domain", $0] } ?? [])
        if call.source == "none" { return ["mount"] + given + ["--", call.place] }
        guard !call.source.contains(":") else { return ["mount"] + given + ["--", call.source, call.place] }
        guard let file = try ConfigurationFile.readLeniently(), ConfiguredMount.isConfigured(call.source, in: file) else {
            throw CommandFailure(
                "'\(call.source)' is neither a provider, as folder:/PATH, nor a domain of the configuration file",
                exitStatus: ExitStatus.usage)
        }
        return ["mount"] + given + ["--place", call.place, "--", call.source]
    }

    /// `mount -a` asks for everything in fstab(5) each time, and knows a mount by a source that ours does not have.
    private static func isMounted(_ call: Call) async throws(CommandFailure) -> Bool {
        try await Blocking.run { () throws(CommandFailure) in
            let table: MountTable
            do throws(PromiseError) { table = try MountTable.current() } catch { throw CommandFailure(error) }
            let path = RawArguments.bytes(of: call.place)
            let place = realPath(path) ?? path
            guard let entry = table.entries.last(where: { $0.mountPoint == place }), entry.isPromiseFS else { return false }
            let name: String
            if let domain = call.domain {
                name = domain
            } else if call.source.contains(":") {
                name = try ProviderName(parsing: call.source).derivedDomain
            } else {
                name = call.source == "none" ? "cloud" : call.source
            }
            return entry.domain == name && SystemMounts.probe(place) == .alive
        }
    }
}

/// Our own settings are where `BaseFolders` says. Programs of others that root's domains use, as
/// rclone, find theirs in `/etc`, too, as units have it: root at the start of the machine has no
/// home. A domain that is set up, looked at or mounted by hand is to find the same as its unit.
enum SystemSettings {
    static func use() {
        if geteuid() == 0, environment("XDG_CONFIG_HOME") == nil { setenv("XDG_CONFIG_HOME", "/etc", 1) }
    }
}
