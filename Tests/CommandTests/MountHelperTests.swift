import ArgumentParser
import Testing

@testable import promisefs

/// What mount(8) says to `mount.promisefs` becomes words of `promisefs mount`.
@Suite struct MountHelperTests {
    @Test func itIsMeantByItsTwoNames() {
        #expect(MountHelper.isMeant(by: "/sbin/mount.promisefs") && MountHelper.isMeant(by: "mount.fuse.promisefs"))
        #expect(!MountHelper.isMeant(by: "promisefs") && !MountHelper.isMeant(by: nil))
    }

    @Test func aLineOfFstabIsUnderstoodAndWhatIsForOthersIsDropped() throws {
        let call = try MountHelper.parse([
            "folder:/srv", "/mnt/a b", "-s", "-v", "-n", "-t", "fuse.promisefs", "-o",
            "rw,nosuid,noexec,_netdev,nofail,user=ann,x-systemd.automount,X-mount.mkdir,comment=a,"
                + "cache-limit=10G,read-only,uid=5,"
                + "hydration-rule=\"budget:program=a,bytes=1G\",domain=docs,ignore=\"*.o\"",
        ])
        #expect(call.source == "folder:/srv" && call.place == "/mnt/a b" && call.domain == "docs" && call.isVerbose)
        #expect(
            call.words == [
                "--cache-limit", "10G", "--read-only", "--hydration-rule", "budget:program=a,bytes=1G", "--ignore", "*.o",
            ])
        #expect(call.options == ["nosuid", "noexec", "uid=5"])
        let words = try MountHelper.command(for: call)
        let command = try #require(try PromiseFS.parseAsRoot(words) as? MountCommand)
        #expect(command.operands == ["folder:/srv", "/mnt/a b"] && command.options.domain == "docs")
        #expect(command.options.cacheLimit == ByteSize(bytes: 10 << 30) && command.options.isReadOnly)
        #expect(try MountHelper.command(for: try MountHelper.parse(["none", "/mnt"])) == ["mount", "--", "/mnt"])
        #expect(try MountHelper.parse(["-oro", "none", "/mnt", "-fv"]).options == ["ro"])
    }

    @Test(arguments: [
        (["/mnt"], "give SOURCE and DIR"), (["a", "b", "c"], "give SOURCE and DIR"), (["a", "b", "-o"], "needs a value"),
        (["a", "b", "-x"], "not known"), (["a", "b", "-o", "what=ever"], "'what=ever' is not known"),
        (["a", "b", "-o", "remount,ro"], "cannot be changed"), (["a", "b", "-o", "comment=\"x,ro"], "without its end"),
    ])
    func whatIsWrongIsSaid(arguments: [String], sentence: String) throws {
        let failure = #expect(throws: CommandFailure.self) { try MountHelper.parse(arguments) }
        #expect(failure?.message?.contains(sentence) == true && failure?.exitStatus == ExitStatus.usage)
        let isSloppy = arguments.contains("what=ever")
        if isSloppy { #expect(try MountHelper.parse(arguments + ["-s"]).options == []) }
    }

    @Test func aServiceManagerIsFoundByItsSocket() throws {
        #expect(ServiceManager(socket: nil, watchdogMicroseconds: "5") == nil)
        #expect(ServiceManager(socket: "relative", watchdogMicroseconds: nil) == nil)
        #expect(ServiceManager(socket: "/" + String(repeating: "x", count: 200), watchdogMicroseconds: nil) == nil)
        let abstract = try #require(ServiceManager(socket: "@name", watchdogMicroseconds: "60000000"))
        #expect(abstract.address == [0] + Array("name".utf8) && abstract.patience == .seconds(60))
        #expect(ServiceManager(socket: "/run/x", watchdogMicroseconds: "-1")?.patience == nil)
        #expect(ServiceManager(socket: "/nowhere/x", watchdogMicroseconds: nil)?.tell(["READY=1"]) == false)
    }
}

/// What `doctor` says of settings, and what `setup` writes, without a mount.
@Suite struct SettingsTests {
    @Test func aClockBeforeTheProgramIsAProblem() {
        #expect(DoctorSettings.clock(now: 1_000_000, program: 1_000_000 + 86_400 * 3).level == .problem)
        #expect(DoctorSettings.clock(now: 1_000_000, program: 1_000_000 + 3_600).level == .ok)
        #expect(DoctorSettings.clock(now: 1_000_000, program: nil).level == .ok)
    }

    @Test func whatSetupWritesIsReadBackWhateverIsInIt() throws {
        var answers = try SetupAnswers(
            asking: try SetupCommand.parse(["--yes", "--name", "work", "--mountpoint", "/m \"x\"\\\u{1}ü"]), (nil, nil))
        answers.provider = "folder:/srv/\"a\"\\b"
        let file = try ConfigurationFile(try SetupWriter.table(answers), path: "config.toml")
        #expect(file.domains["work"]?.provider == answers.provider)
        #expect(file.domains["work"]?.mountPoint == "/m \"x\"\\\u{1}ü")
    }

    /// The user was dropped, and what the server said of that was about a file that was not asked for.
    @Test func aUserWithoutAPasswordIsSaidSo() throws {
        func answers(_ words: [String]) throws -> SetupAnswers {
            let words = ["--yes", "--name", "work", "--mountpoint", "/m"] + words
            return try SetupAnswers(asking: try SetupCommand.parse(words), (nil, nil))
        }
        let server = ["--provider", "webdav+https://example.com/files"]
        let unchecked = #expect(throws: CommandFailure.self) {
            try answers(server + ["--user", "ann", "--no-check"])
        }
        #expect(unchecked?.exitStatus == ExitStatus.usage)
        #expect(unchecked?.message?.contains("no password for 'ann'; give --password-file") == true)
        // It may be in the credentials file, which shows when the server is asked.
        let asked = try answers(server + ["--user", "ann"])
        #expect(asked.lacksPassword)
        let refused = #expect(throws: CommandFailure.self) { try asked.withPassword(after: "401") }
        #expect(refused?.exitStatus == ExitStatus.refused)
        #expect(refused?.message?.hasPrefix("401; no password was given for 'ann': give --pass") == true)
        #expect(try !answers(["--provider", "folder:/", "--user", "ann", "--no-check"]).lacksPassword)
    }

    @Test func aLoginTakesThePlaceOfTheOldOneAndOfNothingElse() throws {
        #expect(throws: CommandFailure.self) {
            try LoginWriter(domain: "work", user: "ann", password: " spaces ").section(isInService: false)
        }
        let token = try LoginWriter(domain: "work", user: nil, password: "a bearer token").section(isInService: false)
        #expect(token == "[work]\npassword = a bearer token\n")
        let kept = try LoginWriter(domain: "work", user: "ann", password: "x").section(isInService: true)
        #expect(kept == "[work]\nuser = ann\nsecret-service = true\n")
        // A file written on Windows got a second entry, which was mixed with the first.
        let windows = LoginWriter.replaced("# mine\r\n[work]\r\ntoken = old\r\n[home]\r\n", "work", by: token)
        #expect(windows == "# mine\n" + token + "[home]\n")
        let old = "# mine\n[a]\npassword = 1\n\n[work]\nuser = bob\n# why\npassword = 2\n\n[b]\npassword = 3\n"
        #expect(
            LoginWriter.replaced(old, "work", by: kept)
                == "# mine\n[a]\npassword = 1\n\n[work]\nuser = ann\nsecret-service = true\n# why\n\n[b]\npassword = 3\n")
        #expect(LoginWriter.replaced("[a]\npassword = 1", "work", by: token) == "[a]\npassword = 1\n\n" + token)
        #expect(LoginWriter.replaced("", "work", by: token) == token)
    }

    @Test func aCommandThatMendsIsOneWordForEachPath() {
        #expect(shellWord(Array("/srv/a-b".utf8)) == "/srv/a-b")
        #expect(shellWord(Array("/a $b's \"c\"".utf8)) == "\"/a \\$b's \\\"c\\\"\"")
        #expect(shellWord([0x2F, 0xFF, 0x0A]) == "$'/\\xff\\x0a'")
        let finding = Finding.problem("x", "is wrong", run: "mend it", " as root")
        #expect(finding.remedy == "'mend it' as root" && finding.command == "mend it")
    }

    @Test func clocksOfServersAreComparedByTheMinute() {
        #expect(DoctorServers.clock(59, "s") == nil)
        #expect(DoctorServers.clock(-120, "s")?.level == .warning)
        #expect(DoctorServers.clock(7200, "s")?.message == "this machine's clock is 2 hours ahead of the server's")
        #expect(DoctorServers.clock(7200, "s")?.level == .problem)
        #expect(Doctor.limits(instances: "8\n", files: 256).count == 2 && Doctor.limits(instances: "128\n", files: 4096).isEmpty)
        #expect(Doctor.sandbox(view: Array("/v".utf8), locks: nil, bubblewrap: nil).command == "apt install bubblewrap")
    }
}
