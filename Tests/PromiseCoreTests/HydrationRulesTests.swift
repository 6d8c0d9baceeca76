import PromiseCore
import Testing

@Suite struct HydrationRulesTests {
    private func own(_ texts: String...) throws -> HydrationRules {
        HydrationRules(own: try texts.map { try HydrationRules.Rule(parsing: $0) })
    }

    /// > built-in rules: the indexers of GNOME and KDE, `updatedb`, `mandb`, thumbnailers, what runs in systemd's
    /// > everybody else may. So may a caller of whom nothing is known, as the kernel itself and processes of other pid
    @Test func indexersAndThumbnailersAreRefusedAndPeopleAreNot() {
        let rules = HydrationRules()
        for program in ["/usr/libexec/tracker-miner-fs-3", "/usr/bin/updatedb.plocate", "/usr/bin/totem-video-thumbnailer"] {
            #expect(rules.decision(on: CallerFacts(program: program)) == .refuse, "\(program)")
        }
        for program in ["/usr/bin/cat", "/usr/bin/nautilus", "/opt/my-tracker-miner-fs-3/cp", ""] {
            #expect(rules.decision(on: CallerFacts(program: program)) == .allow, "\(program)")
        }
        #expect(rules.decision(on: CallerFacts(program: "/bin/cp", isIdle: true)) == .refuse)
        #expect(rules.decision(on: CallerFacts(program: "/bin/x", cgroup: "/user.slice/background.slice/x.service")) == .refuse)
        #expect(rules.decision(on: CallerFacts(program: "/bin/x", cgroup: "/user.slice/app.slice/x.service")) == .allow)
    }

    @Test func fileManagersMayCopyAndMayNotLookAtEverything() throws {
        let looking = CallerFacts(program: "/usr/bin/thunar", sparesAccessTime: true)
        #expect(HydrationRules().decision(on: looking) == .refuse)
        #expect(HydrationRules().decision(on: CallerFacts(program: "/usr/bin/thunar")) == .allow)
        let backup = CallerFacts(program: "/usr/bin/restic", sparesAccessTime: true)
        #expect(HydrationRules().decision(on: backup) == .allow)
        #expect(try own("allow:program=thunar").decision(on: looking) == .allow)
        #expect(try own("refuse:open=noatime").decision(on: backup) == .refuse)
    }

    /// > the rules of `mount --hydration-rule`, in their order, see [OPERATIONS](OPERATIONS.md#who-may-fetch);
    @Test func ownRulesGoFirstAndTheFirstThatMatchesDecides() throws {
        let rules = try own("allow:program=/opt/*/indexer", "refuse:program=indexer", "allow:io=idle,program=backup")
        #expect(rules.decision(on: CallerFacts(program: "/opt/mine/indexer")) == .allow)
        #expect(rules.decision(on: CallerFacts(program: "/usr/bin/indexer")) == .refuse)
        #expect(rules.decision(on: CallerFacts(program: "/usr/bin/backup", isIdle: true)) == .allow)
        #expect(rules.decision(on: CallerFacts(program: "/usr/bin/other", isIdle: true)) == .refuse)
    }

    /// > `PROMISEFS_HYDRATE=no` or `=yes` in the environment the program was started with;
    @Test func theEnvironmentGoesBeforeEveryRule() throws {
        let rules = try own("refuse:program=a")
        #expect(rules.decision(on: CallerFacts(program: "/a", wish: true)) == .allow)
        #expect(rules.decision(on: CallerFacts(program: "/b", wish: false)) == .refuse)
    }

    @Test func aBudgetIsReadFromARule() throws {
        let rules = try own("budget:program=a*,bytes=2M,per=1h", "budget:io=idle,bytes=10")
        let hourly = HydrationBudget(bytes: 2 << 20, period: .seconds(3600))
        #expect(rules.decision(on: CallerFacts(program: "/bin/ab")) == .budget(hourly))
        let idle = CallerFacts(program: "/bin/x", isIdle: true)
        #expect(rules.decision(on: idle) == .budget(HydrationBudget(bytes: 10, period: .seconds(86_400))))
    }

    /// > A rule may be a budget: a program that has fetched so much is refused what is not here, until its time is over. What it
    @Test func aBudgetIsSpentByWhatComesAndIsFullAgainAfterItsTime() {
        var budgets = HydrationBudgets()
        let budget = HydrationBudget(bytes: 100, period: .seconds(10))
        func admits(_ program: String, at seconds: Int) -> Bool { budgets.admits(program, budget, at: .seconds(seconds)) }
        #expect(admits("a", at: 1))
        budgets.fetched(99, for: "a")
        #expect(admits("a", at: 2))
        budgets.fetched(50, for: "a")
        #expect(!admits("a", at: 10))
        #expect(admits("b", at: 10))
        #expect(admits("a", at: 11))
    }

    @Test func pursesAreBoundedAndLateProgramsShareOne() {
        var budgets = HydrationBudgets()
        let budget = HydrationBudget(bytes: 100, period: .seconds(10))
        func admits(_ program: String, at seconds: Int) -> Bool { budgets.admits(program, budget, at: .seconds(seconds)) }
        for number in 0..<HydrationBudgets.purseCountMax { #expect(admits("p\(number)", at: 0)) }
        #expect(admits("late", at: 1))
        budgets.fetched(100, for: "late")
        #expect(!admits("later", at: 2))
        #expect(admits("p1", at: 2))
        #expect(admits("later", at: 20))
    }

    @Test(arguments: [
        "", "refuse", "deny:program=a", "refuse:colour=a", "refuse:program", "refuse:io=busy", "budget:program=a",
        "budget:bytes=many", "allow:bytes=1", "budget:bytes=1,per=x", "refuse:open=sync",
    ])
    func whatIsNoRuleSaysSo(text: String) {
        #expect(throws: HydrationRules.Rule.Problem.self) { try HydrationRules.Rule(parsing: text) }
    }

    @Test func theLedgerAddsUpAndStaysSmall() {
        var ledger = HydrationLedger()
        for number in 0..<1_000 { ledger.fetched(UInt64(number), for: "p\(number)") }
        ledger.fetched(10_000, for: "cat")
        ledger.refused("updatedb")
        #expect(ledger.lines.count <= HydrationLedger.lineCountMax + 1)
        #expect(ledger.lines.reduce(0) { $0 + $1.bytes } == 499_500 + 10_000)
        #expect(ledger.lines.first { $0.program == "cat" }?.bytes == 10_000)
        #expect(ledger.lines.first { $0.program == "updatedb" }?.refusals == 1)
    }

    @Test func countsComeBackFromTheirText() {
        var counts = TransferCounts()
        counts.since = Timestamp(seconds: 1_700_000_000, nanoseconds: 5)
        counts.sent(12)
        counts.ledger.began(for: "Web Content")
        counts.ledger.fetched(1_000, for: "Web Content")
        counts.ledger.refused("updatedb")
        #expect(TransferCounts(text: counts.text) == counts)
    }

    /// Of a file that was damaged: sums of these numbers ended the daemon.
    @Test func numbersOfADamagedTextAreBounded() {
        let most = "\(UInt64.max)"
        var counts = TransferCounts(text: "since -1\nsent \(most)\n\(most) \(most) \(most) cat\n1 2 x\n\nsent\n-1 0 0 dog")
        counts.add(counts)
        counts.ledger.fetched(.max, for: "cat")
        counts.ledger.fetched(1, for: "cat")
        #expect(counts.since == nil)
        #expect(counts.ledger.lines.map(\.program) == ["cat"])
        #expect(TransferCounts(text: counts.text).ledger.lines.count == 1)
    }
}
