import ArgumentParser
import Glibc
import PromiseCore
import PromiseSystem
import PromiseWire
import TOMLKit

/// The file of named domains and of defaults, in TOML: `PROMISEFS_CONFIG`, or
/// `$XDG_CONFIG_HOME/promisefs/config.toml`, and for root `/etc/promisefs/config.toml`.
///
/// A key is an option of `mount` without its dashes, so that each value is checked where those of the command line are.
struct ConfigurationFile: Sendable, Equatable {
    struct Domain: Sendable, Equatable, Codable {
        var provider: String?
        var mountPoint: String?
        /// Options of `mount`; what comes later on a command line wins, also among those of `-o` and
        /// patterns of what stays here.
        var options: [String] = []
        /// Rules of who may fetch, which add up: what comes first on a command line wins.
        var rules: [String] = []
        /// Options that are not to hold although they do for all.
        var switchedOff: [String]?
        /// Whether the desktop is told of what happens in it; nil: as for all, or else it is.
        var notifies: Bool?

        /// As `mount` understands it, whatever else is wrong in them.
        var isReadOnly: Bool {
            var (access, isReadOnly) = ("rw", false)
            var rest = options[...]
            while let word = rest.popFirst() {
                if word == "-o" {
                    let parts = (rest.popFirst() ?? "").split(separator: ",").map(String.init)
                    access = parts.last { $0 == "ro" || $0 == "rw" } ?? access
                } else if word == "--read-only" {
                    isReadOnly = true
                } else if ConfigurationFile.isValued(word) {
                    _ = rest.popFirst()
                }
            }
            return isReadOnly || access == "ro"
        }

        /// The last one, which wins.
        func value(of option: String) -> String? {
            guard let place = options.lastIndex(of: option), place + 1 < options.count else { return nil }
            return options[place + 1]
        }
    }

    /// Something that cannot be read.
    struct Problem: Sendable, Equatable {
        /// Nil: it is every domain's.
        var domain: String?
        /// Nil: it is more than one value.
        var key: String?
        var failure: CommandFailure
    }

    private enum Form { case value, switched, access, list }

    private static let keys: [String: (option: String, form: Form)] = [
        "state-dir": ("--state-dir", .value), "cache-limit": ("--cache-limit", .value),
        "upload-delay": ("--upload-delay", .value), "poll-interval": ("--poll-interval", .value),
        "request-deadline": ("--request-deadline", .value), "coordination": ("--coordination", .value),
        "certificate": ("--certificate", .value), "values-limit": ("--values-limit", .value),
        "values-keys": ("--values-keys", .value), "trash": ("--trash", .value),
        "read-only": ("-o", .access), "no-passthrough": ("--no-passthrough", .switched),
        "io-uring": ("--io-uring", .switched), "no-io-uring": ("--no-io-uring", .switched),
        "no-supervision": ("--no-supervision", .switched),
        "no-latency-limit": ("--no-latency-limit", .switched),
        "hydration-rules": ("--hydration-rule", .list), "options": ("-o", .list), "ignore": ("--ignore", .list),
    ]

    private static func isValued(_ option: String) -> Bool {
        keys.values.contains { $0.option == option && $0.form == .value }
    }

    /// No option of `mount`: `promisefs notify` heeds it.
    private static let notifications = "notifications"

    /// For people.
    let path: String
    /// For every domain, also for those that have no name here.
    private(set) var defaults = Domain()
    private(set) var domains: [String: Domain] = [:]
    /// As they come in the file.
    private(set) var problems: [Problem] = []
    /// It is TOML, so that what it does not name is not configured.
    private(set) var isReadable = true

    private static let byteCountMax = 1 << 20

    /// Nil when there is none. Blocking. Throws a sentence when the one that `PROMISEFS_CONFIG` names is
    /// missing, or it cannot be read. What is wrong in it is kept as `problems`: a slip is no obstacle
    /// to whom it does not concern.
    static func readLeniently() throws(CommandFailure) -> ConfigurationFile? {
        let named = environment("PROMISEFS_CONFIG").map { Array($0.utf8) }
        guard let path = named ?? BaseFolders.configuration() else { return nil }
        let shown = escapedForDisplay(path)
        let isThere = withCPath(path) { access($0, F_OK) } == 0
        guard isThere || named != nil else { return nil }
        let bytes: [UInt8]
        switch TrustedFile.read(path, countMax: byteCountMax + 1) {
        // What is behind it would be no domain, without a word.
        case .content(let found) where found.count > byteCountMax:
            throw CommandFailure("the configuration file \(shown) is larger than 1 MiB", exitStatus: ExitStatus.usage)
        case .content(let found): bytes = found
        case .unreadable:
            throw CommandFailure("the configuration file \(shown) cannot be read", exitStatus: ExitStatus.usage)
        case .stranger(let hand):
            throw CommandFailure("the configuration file \(shown) \(hand)", exitStatus: ExitStatus.refused)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("the configuration file \(shown) is not UTF-8", exitStatus: ExitStatus.usage)
        }
        return ConfigurationFile(lenient: text, path: shown)
    }

    init(_ text: String, path: String) throws(CommandFailure) {
        self.init(lenient: text, path: path)
        if let first = problems.first { throw first.failure }
    }

    init(lenient text: String, path: String) {
        self.path = path
        do throws(CommandFailure) {
            let table = try ConfigurationFile.table(text, path)
            for key in table.keys where key != "domains" {
                note(nil, key) { file throws(CommandFailure) in try file.add(table, key, to: &file.defaults, "") }
            }
            try addDomains(table)
        } catch {
            isReadable = false
            problems.append(Problem(failure: error))
        }
    }

    private static func table(_ text: String, _ path: String) throws(CommandFailure) -> TOMLTable {
        do {
            return try TOMLTable(string: text)
        } catch let error as TOMLParseError {
            let line = Int(error.source.begin.line)
            throw CommandFailure(
                "\(path), line \(line): \(sentence(error.description, text, line))", exitStatus: ExitStatus.usage)
        } catch {
            throw CommandFailure("\(path) is no TOML: \(error)", exitStatus: ExitStatus.usage)
        }
    }

    /// The library's own words are about its parsing.
    private static func sentence(_ words: String, _ text: String, _ number: Int) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let line = number >= 1 && number <= lines.count ? lines[number - 1].trimmed : ""
        let shown = escapedForDisplay(line.prefix(80).utf8)
        if words.contains("redefine existing") { return "'\(shown)' gives a second time what is there already" }
        return "'\(shown)' is no TOML; a text is in quotes and on one line, as in KEY = \"VALUE\", a list in brackets"
    }

    /// What comes of one table concerns one domain (nil: all).
    private mutating func note(
        _ domain: String?, _ key: String?,
        _ body: (inout ConfigurationFile) throws(CommandFailure) -> Void
    ) {
        do throws(CommandFailure) {
            try body(&self)
        } catch {
            problems.append(Problem(domain: domain, key: key, failure: error))
        }
    }

    private mutating func addDomains(_ table: TOMLTable) throws(CommandFailure) {
        guard let value = table["domains"] else { return }
        guard let named = value.table else { throw wrong("'domains' is no table; write [domains.NAME]") }
        for name in named.keys {
            note(name, nil) { file throws(CommandFailure) in
                guard DomainName.isValid(name) else { throw file.wrong("'\(name)' cannot name a domain") }
                guard let entries = named[name]?.table else { throw file.wrong("'domains.\(name)' is no table") }
                file.domains[name] = Domain()
                for key in entries.keys {
                    file.note(name, key) { file throws(CommandFailure) in
                        try file.add(entries, key, to: &file.domains[name, default: Domain()], "domains.\(name).")
                    }
                }
            }
        }
    }

    /// What keeps a domain from being what the file says.
    func problem(of domain: String) -> CommandFailure? {
        problems.first { $0.domain == nil || $0.domain == domain }?.failure
    }

    /// The same for who needs these keys of the domain alone.
    func problem(of domain: String, in keys: Set<String>) -> CommandFailure? {
        problems.first {
            ($0.domain == nil || $0.domain == domain) && ($0.key.map(keys.contains) ?? true)
        }?.failure
    }

    private func wrong(_ sentence: String) -> CommandFailure {
        CommandFailure("\(path): \(sentence)", exitStatus: ExitStatus.usage)
    }

    private func add(_ table: TOMLTable, _ key: String, to domain: inout Domain, _ above: String) throws(CommandFailure) {
        guard let value = table[key] else { return }
        if !above.isEmpty, key == "provider" || key == "mountpoint" {
            guard let text = value.string, !text.isEmpty else { throw wrong("'\(above)\(key)' is no text") }
            if key == "provider" { domain.provider = text } else { domain.mountPoint = ConfigurationFile.fromHome(text) }
            return
        }
        if key == ConfigurationFile.notifications {
            guard let isOn = value.bool else { throw wrong("'\(above)\(key)' is neither true nor false") }
            domain.notifies = isOn
            return
        }
        guard let (option, form) = ConfigurationFile.keys[key] else {
            let names = ConfigurationFile.keys.keys + [ConfigurationFile.notifications]
            let known = names.sorted() + (above.isEmpty ? ["domains"] : ["mountpoint", "provider"])
            throw wrong("there is no key '\(above)\(key)'; known are \(known.joined(separator: ", "))")
        }
        switch form {
        case .value:
            guard let text = value.string ?? value.int.map({ "\($0)" }) else { throw wrong("'\(above)\(key)' is no text") }
            domain.options += [option, ["state-dir", "certificate"].contains(key) ? ConfigurationFile.fromHome(text) : text]
        case .switched:
            guard let isOn = value.bool else { throw wrong("'\(above)\(key)' is neither true nor false") }
            if isOn {
                domain.options.append(option)
            } else {
                domain.switchedOff = (domain.switchedOff ?? []) + [option]
            }
        case .access:
            guard let isOn = value.bool else { throw wrong("'\(above)\(key)' is neither true nor false") }
            // As mount(8) has it, so that `-o rw` on a command line can undo it.
            domain.options += [option, isOn ? "ro" : "rw"]
        case .list:
            guard let list = value.array else { throw wrong("'\(above)\(key)' is no list") }
            for element in list {
                guard let text = element.string else { throw wrong("'\(above)\(key)' holds something that is no text") }
                switch option {
                // A pattern may begin with a dash.
                case "--ignore": domain.options.append("\(option)=\(text)")
                case "-o": domain.options += [option, text]
                default: domain.rules += [option, text]
                }
            }
        }
    }

    /// `~/` is the user's own folder, as in a shell.
    private static func fromHome(_ path: String) -> String {
        guard path.hasPrefix("~/"), let home = environment("HOME") else { return path }
        return home + path.dropFirst()
    }

    /// The words of the command line that mounts `operands`: a domain's name, or what `mount` takes otherwise. `given` are the
    /// options that the user wrote; they win.
    func words(for operands: [String], given: [String]) throws(CommandFailure) -> [String] {
        guard operands.count == 1, let domain = domains[operands[0]] else {
            return defaults.options + given + defaults.rules + ["--"] + operands
        }
        return try words(for: operands[0], whole(domain), given: given)
    }

    func notifies(of domain: String) -> Bool { domains[domain]?.notifies ?? defaults.notifies ?? true }

    /// With what holds for every domain.
    func whole(_ domain: Domain) -> Domain {
        var result = domain
        let off = domain.switchedOff ?? []
        result.options = defaults.options.filter { !off.contains($0) } + domain.options
        result.switchedOff = nil
        result.rules = domain.rules + defaults.rules
        return result
    }

    /// `domain` is whole; it is mounted at `place`, if any.
    func words(
        for name: String, _ domain: Domain, given: [String], at place: String? = nil
    ) throws(CommandFailure) -> [String] {
        guard let mountPoint = place ?? domain.mountPoint else {
            throw wrong("the domain '\(name)' has no 'mountpoint'")
        }
        let operands = (domain.provider.map { [$0] } ?? []) + [mountPoint]
        return domain.options + ["--domain", name] + given + domain.rules + ["--"] + operands
    }
}
