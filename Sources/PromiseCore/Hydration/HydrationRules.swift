/// What is known of a process that asks for content. Empty or nil: not known, which no rule matches.
package struct CallerFacts: Sendable, Hashable {
    /// The path of its executable.
    package var program: [UInt8] = []
    /// Its place in the hierarchy of control groups.
    package var cgroup: [UInt8] = []
    /// Its I/O is only done when nobody else's is (ioprio_set(2), IOPRIO_CLASS_IDLE).
    package var isIdle = false
    /// It opens the file with O_NOATIME, so as not to be taken for somebody who reads it.
    package var sparesAccessTime = false
    /// `PROMISEFS_HYDRATE` in its environment: yes or no.
    package var wish: Bool?
    /// `PROMISEFS_RECORDING` in its environment: which recording of opened files it belongs to.
    package var recording: [UInt8]?

    package init() {}

    package init(
        program: String, cgroup: String = "", isIdle: Bool = false, sparesAccessTime: Bool = false, wish: Bool? = nil
    ) {
        self.program = Array(program.utf8)
        self.cgroup = Array(cgroup.utf8)
        self.isIdle = isIdle
        self.sparesAccessTime = sparesAccessTime
        self.wish = wish
    }

    /// The last component of the executable's path, for people and for the ledger.
    package var programName: [UInt8] { program.lastIndex(of: 0x2F).map { Array(program[($0 + 1)...]) } ?? program }
}

/// Who may cause content to be fetched. Pure: facts in, a decision out.
///
/// A rule is `ACTION:FIELD=PATTERN[,FIELD=PATTERN…]`. ACTION is `refuse`, `allow` or `budget`; FIELD is `program` (the
/// executable: its path where the pattern has a slash, else the last component), `cgroup` (its path), `io` with the one
/// pattern `idle`, or `open` with the one pattern `noatime` (O_NOATIME of open(2)). `*` and `?` are wildcards. `budget` also has
/// `bytes=SIZE` and may have `per=DURATION` (a day): each program that it matches may fetch so much in such a time. The first
/// rule whose fields all match decides; where none does, fetching is allowed. What the caller's environment says goes before
/// every rule.
package struct HydrationRules: Sendable, Hashable {
    package enum Action: Sendable, Hashable { case allow, refuse, budget(HydrationBudget) }

    package struct Rule: Sendable, Hashable {
        package var action: Action
        package var program: [UInt8]?
        package var cgroup: [UInt8]?
        package var isIdle = false
        package var sparesAccessTime = false

        package init(
            _ action: Action, program: String? = nil, cgroup: String? = nil, isIdle: Bool = false, sparesAccessTime: Bool = false
        ) {
            self.action = action
            self.program = program.map { Array($0.utf8) }
            self.cgroup = cgroup.map { Array($0.utf8) }
            self.isIdle = isIdle
            self.sparesAccessTime = sparesAccessTime
        }

        func matches(_ facts: CallerFacts) -> Bool {
            if isIdle && !facts.isIdle || sparesAccessTime && !facts.sparesAccessTime { return false }
            if let cgroup, !wildcardMatch(pattern: cgroup[...], name: facts.cgroup[...]) { return false }
            if let program {
                let name = program.contains(0x2F) ? facts.program : facts.programName
                if name.isEmpty || !wildcardMatch(pattern: program[...], name: name[...]) { return false }
            }
            return true
        }
    }

    package var rules: [Rule]

    /// `own` go before the built-in ones.
    package init(own: [Rule] = []) { rules = own + HydrationRules.builtIn }

    /// Programs that open every file they find, for themselves and not because somebody wants to see it.
    package static let builtIn: [Rule] =
        [
            // GNOME's indexer, under its old and its new name, and the processes that read files for it.
            "tracker-miner-fs*", "tracker-extract*", "tracker-store", "localsearch-*",
            // KDE's.
            "baloo_file", "baloo_file_extractor", "baloorunner",
            // locate(1) and man(1) update their databases.
            "updatedb", "updatedb.*", "mandb",
            // Further indexers.
            "recollindex", "zeitgeist-*", "beagled", "docfetcher*",
            // Thumbnailers.
            "tumblerd", "*-thumbnailer", "ffmpegthumbnailer", "glycin-thumbnailer*",
        ].map { Rule(.refuse, program: $0) } + [
            // File managers that look at the first bytes of what has no telling name, to choose an icon: GLib opens files with
            // O_NOATIME for that, and without when it copies or shows them. Not for every program: backups do it, too.
            "nautilus", "nautilus-desktop", "thunar", "xfdesktop", "nemo", "nemo-desktop", "caja", "pcmanfm", "pcmanfm-qt",
            "io.elementary.files", "xdg-desktop-portal-*",
        ].map { Rule(.refuse, program: $0, sparesAccessTime: true) } + [
            // Where systemd puts what nobody waits for (systemd.special(7)).
            Rule(.refuse, cgroup: "*/background.slice/*"),
            Rule(.refuse, isIdle: true),
        ]

    package func decision(on facts: CallerFacts) -> Action {
        if let wish = facts.wish { return wish ? .allow : .refuse }
        return rules.first { $0.matches(facts) }?.action ?? .allow
    }
}

extension HydrationRules.Rule {
    /// Why a text is no rule.
    package struct Problem: Error, Sendable {
        package let message: String
    }

    package init(parsing text: String) throws(Problem) {
        let parts = text.split(separator: ":", maxSplits: 1)
        let actions: [Substring: HydrationRules.Action] = [
            "allow": .allow, "refuse": .refuse, "budget": .budget(HydrationBudget(bytes: 0)),
        ]
        guard parts.count == 2, let action = actions[parts[0]] else {
            throw Problem(message: "'\(text)' is no rule: it is 'refuse:', 'allow:' or 'budget:' and what it is about")
        }
        self.init(action)
        var budget = (bytes: UInt64?.none, period: Duration?.none)
        for field in parts[1].split(separator: ",") {
            let words = field.split(separator: "=", maxSplits: 1)
            guard words.count == 2 else { throw Problem(message: "'\(field)' is no FIELD=PATTERN in the rule '\(text)'") }
            switch (words[0], words[1]) {
            case ("program", let pattern): program = Array(pattern.utf8)
            case ("cgroup", let pattern): cgroup = Array(pattern.utf8)
            case ("io", "idle"): isIdle = true
            case ("open", "noatime"): sparesAccessTime = true
            case ("open", _): throw Problem(message: "the rule '\(text)' knows no open but 'noatime'")
            case ("io", _): throw Problem(message: "the rule '\(text)' knows no io but 'idle'")
            case ("bytes", let size): budget.bytes = try Self.value(Quantity.bytes(String(size)), field, of: text)
            case ("per", let time): budget.period = try Self.value(Quantity.duration(String(time)), field, of: text)
            default: throw Problem(message: "the rule '\(text)' has a field that is not program, cgroup, io, open, bytes or per")
            }
        }
        guard case .budget = action else {
            guard budget == (nil, nil) else { throw Problem(message: "only a budget has bytes and per: '\(text)'") }
            return
        }
        guard let bytes = budget.bytes else { throw Problem(message: "the budget '\(text)' needs bytes=SIZE") }
        self.action = .budget(HydrationBudget(bytes: bytes, period: budget.period ?? HydrationBudget.day))
    }

    private static func value<Value>(_ value: Value?, _ field: Substring, of text: String) throws(Problem) -> Value {
        guard let value else { throw Problem(message: "'\(field)' is no size or time, in the rule '\(text)'") }
        return value
    }
}
