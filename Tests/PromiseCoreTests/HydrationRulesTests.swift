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
            #expect(!rules.allows(CallerFacts(program: program)), "\(program)")
        }
        for program in ["/usr/bin/cat", "/usr/bin/nautilus", "/opt/my-tracker-miner-fs-3/cp", ""] {
            #expect(rules.allows(CallerFacts(program: program)), "\(program)")
        }
        #expect(!rules.allows(CallerFacts(program: "/bin/cp", isIdle: true)))
        #expect(!rules.allows(CallerFacts(program: "/bin/x", cgroup: "/user.slice/background.slice/x.service")))
        #expect(rules.allows(CallerFacts(program: "/bin/x", cgroup: "/user.slice/app.slice/x.service")))
    }

    @Test func fileManagersMayCopyAndMayNotLookAtEverything() throws {
        let looking = CallerFacts(program: "/usr/bin/thunar", sparesAccessTime: true)
        #expect(!HydrationRules().allows(looking))
        #expect(HydrationRules().allows(CallerFacts(program: "/usr/bin/thunar")))
        #expect(HydrationRules().allows(CallerFacts(program: "/usr/bin/restic", sparesAccessTime: true)))
        #expect(try own("allow:program=thunar").allows(looking))
        #expect(try !own("refuse:open=noatime").allows(CallerFacts(program: "/usr/bin/gedit", sparesAccessTime: true)))
    }

    /// > the rules of `mount --hydration-rule`, in their order, see [OPERATIONS](OPERATIONS.md#who-may-fetch);
    @Test func ownRulesGoFirstAndTheFirstThatMatchesDecides() throws {
        let rules = try own("allow:program=/opt/*/indexer", "refuse:program=indexer", "allow:io=idle,program=backup")
        #expect(rules.allows(CallerFacts(program: "/opt/mine/indexer")))
        #expect(!rules.allows(CallerFacts(program: "/usr/bin/indexer")))
        #expect(rules.allows(CallerFacts(program: "/usr/bin/backup", isIdle: true)))
        #expect(!rules.allows(CallerFacts(program: "/usr/bin/other", isIdle: true)))
    }

    /// > `PROMISEFS_HYDRATE=no` or `=yes` in the environment the program was started with;
    @Test func theEnvironmentGoesBeforeEveryRule() throws {
        let rules = try own("refuse:program=a")
        #expect(rules.allows(CallerFacts(program: "/a", wish: true)))
        #expect(!rules.allows(CallerFacts(program: "/b", wish: false)))
    }

    @Test(arguments: ["", "refuse", "deny:program=a", "refuse:colour=a", "refuse:program", "refuse:io=busy", "refuse:open=sync"])
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
}
