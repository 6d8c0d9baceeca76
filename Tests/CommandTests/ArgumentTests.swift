import ArgumentParser
import Glibc
import Logging
import PromiseCore
import PromiseKit
import PromiseWire
import Testing

@testable import promisefs

@Suite struct ArgumentTests {
    @Test func argumentsKeepEveryByte() {
        let all: [[UInt8]] = [
            Array("plain".utf8), Array("é/e\u{301}".utf8), [0xFF], Array("caf".utf8) + [0xE9], [0xF0, 0x9F, 0x98], [0xC3],
            (1...255).map { UInt8($0) },
            Array("\u{10FF80}\u{10FFFF}".utf8), Array("\u{1F600}".utf8) + [0x80],
        ]
        for bytes in all { #expect(RawArguments.bytes(of: RawArguments.text(of: bytes)) == bytes) }
        #expect(RawArguments.text(of: [0xFF]) != RawArguments.text(of: [0xFE]))
        #expect(RawArguments.text(of: Array("é".utf8)) == "é")
    }

    @Test(arguments: [
        ["mount"], ["mount", "a", "b", "c"], ["mount", "--cache-limit", "lots", "/x"], ["mount", "--upload-delay", "soon", "/x"],
        ["mount", "--hydration-rule", "refuse:color=red", "/x"], ["run"], ["run", "--no-hydrate", "--"],
        ["run", "--no-hydrate", "--profile", "x", "--", "true"], ["run", "--profile", "-", "--", "true"],
        ["nonsense"], ["pick", "--mode", "export"], ["pick", "file"], ["pick", "--mode", "none"], ["pick", "--web", "--plain"],
        ["pick", "--mode", "create", "--suggest", "a/b"],
        ["mount", "--domain", "a/b", "/x"], ["info"], ["fetch"], ["unmount"], ["status", "--bogus"],
        ["unmount", "/x", "--timeout", "1y"],
        ["mount", "webdav:/x", "/tmp"], ["mount", "/srv/x", "/tmp"], ["mount", "folder:", "/tmp"],
    ])
    func wrongUsageExitsWithTwo(arguments: [String]) async {
        #expect(await PromiseFS.execute(arguments) == 2)
    }

    @Test(arguments: [
        ("stauts", "status"), ("umount", "unmount"), ("Mount", "mount"), ("fecth", "fetch"), ("syn", "sync"),
        ("frobnicate", nil), ("x", nil),
    ] as [(String, String?)])
    func theNearCommandIsSuggested(word: String, near: String?) {
        let known = PromiseFS.configuration.subcommands.compactMap { $0.configuration.commandName }
        #expect(Suggestion.nearest(to: word, among: known) == near)
    }

    @Test func severalMountsAreUnmountedAtOnce() throws {
        let command = try #require(try PromiseFS.parseAsRoot(["unmount", "/a", "documents", "-w"]) as? UnmountCommand)
        #expect(command.mountPoints.count == 2 && command.wait)
        #expect(throws: (any Error).self) { try PromiseFS.parseAsRoot(["unmount", "--all", "/a"]) }
        #expect((try PromiseFS.parseAsRoot(["unmount", "--all"]) as? UnmountCommand)?.all == true)
    }

    @Test func helpAndVersionExitWithNought() async {
        for arguments in [["--help"], ["mount", "--help"], ["--version"], ["help", "status"]] {
            #expect(await PromiseFS.execute(arguments) == 0)
        }
    }

    @Test func everyCommandHasHelpWithAnExample() {
        func check(_ command: any ParsableCommand.Type) {
            let help = PromiseFS.helpMessage(for: command, columns: 120)
            #expect(help.contains("Example:"), "\(command)")
            #expect(!command.configuration.abstract.isEmpty, "\(command)")
            for subcommand in command.configuration.subcommands { check(subcommand) }
        }
        check(PromiseFS.self)
        #expect(PromiseFS.configuration.subcommands.count == 48)
    }

    @Test func everyWorkingCommandTakesJSON() throws {
        let commands = [
            ["mount", "/m"], ["unmount", "/m"], ["status"], ["info", "/m"], ["fetch", "/m"], ["evict", "/m"], ["pin", "/m"],
            ["unpin", "/m"],
            ["pending"], ["sync"], ["verify"], ["doctor"], ["provider", "list"], ["provider", "check", "folder:/x"],
            ["restart", "/m"], ["find", "TRUEPREDICATE"], ["changes", "--since", "0"], ["watch", "/m"],
            ["versions", "/m"], ["conflicts", "/m"], ["resolve", "/m", "--keep", "both"], ["thumbnail", "/m"], ["trace", "/m"],
            ["pick"], ["web"], ["setup", "--yes"], ["enable", "work"], ["disable", "work"], ["login", "work"],
            ["notify"], ["limit", "work", "--upload", "500k/s"],
        ]
        for command in commands { _ = try PromiseFS.parseAsRoot(command + ["--json"]) }
        _ = try PromiseFS.parseAsRoot(["run", "--json", "--", "true"])
        _ = try PromiseFS.parseAsRoot(["try", "--json", "--", "true"])
        let coordinate = ["coordinate", "write", "/m/a", "/m/b", "--json", "--", "cp", "--", "-x"]
        let command = try #require(try PromiseFS.parseAsRoot(PromiseFS.separated(coordinate)) as? CoordinateCommand)
        #expect(command.operands.count == 2 && command.command.count == 3 && command.output.json)
    }

    @Test func mountOptionsAreReadAndHandedOn() throws {
        let arguments = [
            "mount", "--cache-limit", "1G", "--upload-delay", "500ms", "--io-uring", "-o", "ro,allow_other", "-ouid=5", "--",
            "folder:/x", "/m",
        ]
        let command = try #require(try PromiseFS.parseAsRoot(PromiseFS.separated(arguments)) as? MountCommand)
        #expect(command.operands == ["folder:/x", "/m"])
        #expect(command.options.isReadOnly)
        #expect(command.options.splitMountOptions == ["allow_other", "uid=5"])
        let forwarded = ["mount"] + command.options.forwarded + ["--ready-descriptor", "3", "--foreground", "/m"]
        let again = try #require(try PromiseFS.parseAsRoot(forwarded) as? MountCommand)
        #expect(again.options.forwarded == command.options.forwarded)
        #expect(again.options.cacheLimit == ByteSize(bytes: 1 << 30) && again.options.ioUring && again.readyDescriptor == 3)
    }

    @Test func statusOfAPathThatIsNotOursExitsWithThree() async {
        #expect(await PromiseFS.execute(["status", "/proc"]) == 3)
        #expect(await PromiseFS.execute(["info", "/no/such/path"]) == 3)
        #expect(await PromiseFS.execute(["unmount", "/"]) == 3)
    }

    @Test func failuresKeepTheirExitStatus() {
        #expect(CommandFailure(known: PromiseError(.notAnswering, "x", exitStatus: 4))?.exitStatus == 4)
        #expect(CommandFailure(known: CancellationError())?.exitStatus == 1)
        #expect(CommandFailure(known: ValidationError("x")) == nil)
        var collector = FailureCollector()
        collector.note(CommandFailure(nil, exitStatus: 5))
        collector.note(CommandFailure(nil, exitStatus: 1))
        #expect(throws: CommandFailure(nil, exitStatus: 5)) { try collector.finish() }
    }
}

@Suite struct MountPlanTests {
    @Test func domainNamesAreDerivedStablyAndLegally() throws {
        let first = try ProviderName(parsing: "folder:/srv/My Documents")
        #expect(first.text == "folder:/srv/My Documents")
        #expect(first.derivedDomain.hasPrefix("My_Documents-"))
        #expect(try ProviderName(parsing: "folder:/srv//x/../My Documents/").derivedDomain == first.derivedDomain)
        #expect(try ProviderName(parsing: "folder:/other/My Documents").derivedDomain != first.derivedDomain)
        for path in ["/", "/.hidden", "/" + String(repeating: "n", count: 200), "/é", "/..."] {
            let name = try ProviderName(parsing: "folder:" + path).derivedDomain
            #expect(DomainName.isValid(name), "\(path) gives \(name)")
        }
        // The value is on people's disks: it must not change.
        #expect(try ProviderName(parsing: "folder:/srv/documents").derivedDomain == "documents-22a877")
    }

    @Test func foldersInsideEachOtherAreNoticed() {
        func overlaps(_ left: String, _ right: String) -> Bool { MountPlan.overlaps(Array(left.utf8), Array(right.utf8)) }
        #expect(overlaps("/a", "/a") && overlaps("/a", "/a/b") && overlaps("/a/b", "/a") && overlaps("/", "/x"))
        #expect(!overlaps("/a", "/ab") && !overlaps("/a/b", "/a/c"))
    }

    @Test func badMountPointsAreRefusedInOneSentence() async throws {
        let folder = try makeFolder()
        defer { clear(folder) }
        let provider = "folder:\(folder)/cloud"
        let state = ["--state-dir", folder + "/state"]
        for name in ["cloud", "full", "full/x"] { mkdir(folder + "/" + name, 0o700) }
        fclose(fopen(folder + "/file", "w"))
        for (operand, part) in [
            ("missing", "does not exist"), ("file", "not a directory"), ("full", "not empty"), ("cloud", "inside each other"),
        ] {
            let plan = try MountPlan(
                operands: [provider, "\(folder)/\(operand)"], domain: "t", stateFolder: Array((folder + "/state").utf8))
            let failure = #expect(throws: CommandFailure.self) { _ = try plan.prepare(mountOptions: []) }
            #expect(failure?.message?.contains(part) ?? false, "\(failure?.message ?? "")")
            #expect(await PromiseFS.execute(["mount"] + state + [provider, "\(folder)/\(operand)"]) == 1)
        }
        let named = try MountPlan(
            operands: [provider, "\(folder)/missing"], domain: "t", stateFolder: Array((folder + "/s").utf8))
        for (source, part) in [("b", "another domain's name"), ("t", "does not exist"), ("/dev/b", "does not exist")] {
            let options = ["dev", "fsname=" + source]
            let failure = #expect(throws: CommandFailure.self) { _ = try named.prepare(mountOptions: options) }
            #expect(failure?.message?.contains(part) ?? false, "\(source): \(failure?.message ?? "")")
        }
        mkdir(folder + "/m", 0o700)
        let plan = try MountPlan(
            operands: ["folder:\(folder)/none", "\(folder)/m"], domain: nil, stateFolder: Array((folder + "/s").utf8))
        let failure = #expect(throws: CommandFailure.self) { _ = try plan.prepare(mountOptions: []) }
        #expect(failure?.message?.contains("provider's folder") ?? false)
        #expect(access(folder + "/s", F_OK) != 0, "nothing is made for a mount that cannot be")
    }

    private func makeFolder() throws -> String {
        var template = Array("/tmp/promisefs-plan-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil }
        try #require(made)
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func clear(_ folder: String) {
        unlink(folder + "/file")
        for name in ["full/x", "full", "cloud", "m", ""] { rmdir(folder + "/" + name) }
    }
}

@Suite struct DisplayTests {
    @Test func logLinesThatComeAgainAreCounted() {
        var lines = RepeatedLines()
        func time(_ seconds: Int) -> Timestamp { Timestamp(seconds: seconds, nanoseconds: 0) }
        #expect(lines.take("a", at: time(1000)) == 0 && lines.take("b", at: time(1000)) == 0)
        for second in 1001..<1060 { #expect(lines.take("a", at: time(second)) == nil) }
        #expect(lines.take("a", at: time(1060)) == 59 && lines.take("b", at: time(1061)) == 0)
        #expect(lines.take("a", at: time(500)) == 0, "a clock that was set back")
        for number in 0..<10_000 { #expect(lines.take("line \(number)", at: time(1062)) == 0) }
    }

    /// A server that says of each file what it said of the last one filled the log, and a storm that ended was never counted.
    @Test func logLinesThatSayTheSameOfOneThingAfterTheOtherAreCounted() {
        var lines = RepeatedLines()
        func time(_ seconds: Int) -> Timestamp { Timestamp(seconds: seconds, nanoseconds: 0) }
        _ = lines.due(at: time(1000))
        var writtenCount = 0
        for number in 0..<10_000 where lines.take("refused \(number)", of: "refused", at: time(1001)) != nil { writtenCount += 1 }
        #expect(writtenCount == RepeatedLines.differingMax)
        #expect(lines.take("another", of: "another", at: time(1001)) == 0)
        for second in 1002..<1010 { #expect(lines.take("another", of: "another", at: time(second)) == nil) }
        #expect(lines.due(at: time(1030)).messages.isEmpty)
        let due = lines.due(at: time(1070))
        #expect(due.messages.map(\.text) == ["refused"] && due.messages.map(\.count) == [10_000 - writtenCount])
        #expect(due.lines.map(\.text) == ["another"] && due.lines.map(\.count) == [8])
        #expect(lines.take("refused 1", of: "refused", at: time(1071)) == 0 && lines.due(at: time(1200)).lines.isEmpty)
    }

    @Test func logLinesAreOneLineWithQuotedValues() {
        let line = DaemonLog.line(
            time: Timestamp(nanoseconds: 0), level: .notice, message: "two\nlines",
            metadata: [("b", "x y"), ("a", "1"), ("c", "say \"hi\"")],
            error: nil)
        #expect(line == "1970-01-01T00:00:00.000000000Z notice two\\nlines a=1 b=\"x y\" c=\"say \\\"hi\\\"\"\n")
    }

    @Test func logLevelsAreRead() throws {
        #expect(try DaemonLog.level(nil) == .notice)
        #expect(try DaemonLog.level("TRACE") == .trace)
        #expect(throws: CommandFailure.self) { try DaemonLog.level("loud") }
    }

    @Test func theProgressBarFitsItsLine() {
        let progress = ProgressDocument(filesDone: 3, filesTotal: 10, bytesDone: 52, bytesTotal: 100, failures: [])
        for width in [0, 10, 40, 80, 200] {
            #expect(ProgressBar.line(progress, elapsed: .seconds(2), width: width).count <= max(width, 0))
        }
        let line = ProgressBar.line(progress, elapsed: .seconds(2), width: 100)
        #expect(line.contains("52 %") && line.contains("3/10 files") && line.contains("26 B/s") && line.hasPrefix("[=="))
    }

    @Test func plainWordsAndNamesArePredicates() {
        let words = #"kMDItemFSName CONTAINS[cd] "report" AND kMDItemFSName CONTAINS[cd] "2024""#
        #expect(PlainPredicate.predicate("report 2024", name: nil) == words)
        #expect(PlainPredicate.predicate(nil, name: #"a"*.txt"#) == #"kMDItemFSName LIKE[c] "a\"*.txt""#)
        // As queries show such a name.
        #expect(PlainPredicate.predicate(nil, name: "new\nline") == #"kMDItemFSName LIKE[c] "new\\\\nline""#)
        #expect(PlainPredicate.predicate(nil, name: #"a\*b"#) == #"kMDItemFSName LIKE[c] "a\\*b""#)
        for predicate in ["TRUEPREDICATE", "kMDItemFSSize > 1", "not isUploaded", #"a CONTAINS "b""#] {
            #expect(PlainPredicate.predicate(predicate, name: nil) == predicate)
        }
        #expect(PlainPredicate.predicate("a = 1", name: "x") == #"kMDItemFSName LIKE[c] "x" AND (a = 1)"#)
    }

    @Test func aWatchedStatusTellsRatesAndTheTimeLeft() {
        func item(_ kind: String, _ size: UInt64, _ progress: Double?, isRunning: Bool) -> PendingItemDocument {
            PendingItemDocument(
                kind: kind, node: 1, path: "/a", pathBytes: "/a", isRunning: isRunning, size: size, progress: progress, since: "",
                attempts: 0, error: nil)
        }
        func status(_ fetched: UInt64, _ sent: UInt64) -> StatusDocument {
            StatusDocument(
                name: "d", provider: "folder:/x", capabilities: [], mountPoint: "/m", mountPointBytes: "/m", stateFolder: "/s",
                stateFolderBytes: "/s", processID: 1, connection: "online", transport: "device", hasPassthrough: false,
                isReadOnly: false, nodes: 1, placeholders: 0, pending: 1, failing: 0, uploading: 1, downloading: 0,
                bytesFetched: fetched, bytesUploaded: sent, cacheBytes: 0, openFiles: 0)
        }
        var watch = StatusWatch()
        let pending = [item("upload", 4000, 0.5, isRunning: true), item("create", 2000, nil, isRunning: false)]
        let first = watch.rows(status(0, 0), pending, at: .seconds(1)) { $0.path }
        #expect(first == [["  under way", "upload /a, 3.9 KiB 50 %"]])
        let second = watch.rows(status(0, 2000), pending, at: .seconds(3)) { $0.path }
        #expect(second.map { $0[0] } == ["  rates", "  time left", "  under way"] && second[1][1] == "about 4 s")
        #expect(second[0][1] == "0 B/s fetched, 1000 B/s sent")
        var most = WaitingWork(pending)
        #expect(most.count == 2 && most.byteCount == 4000)
        most.grow(to: WaitingWork([pending[1], item("list", 9, nil, isRunning: false)]))
        let progress = most.progress(with: WaitingWork([pending[1]]))
        #expect(progress.filesDone == 1 && progress.filesTotal == 2 && progress.bytesDone == 2000 && progress.bytesTotal == 4000)
    }

    @Test func aProviderThatDoesNotAnswerIsNamedBesideWhatItIsBeingTold() {
        var item = PendingItemDocument(
            kind: "upload", node: 1, path: "/a", pathBytes: "/a", isRunning: true, size: 4000, progress: 0.99, since: "",
            attempts: 0)
        item.silentSince = "2024-02-29T12:00:00.000000000Z"
        let mount = MountTable(parsing: "1 1 0:1 / /m rw - fuse.promisefs d rw".utf8).entries[0]
        let row = PendingCommand.row(item, on: mount)
        #expect(row[1] == "running 99 %" && row[3].contains("the provider is not answering since 2024-02-29 12:00:00 UTC"))
        var status = StatusDocument(
            name: "d", provider: "folder:/x", capabilities: [], mountPoint: "/m", mountPointBytes: "/m", stateFolder: "/s",
            stateFolderBytes: "/s", processID: 1, connection: "online", transport: "device", hasPassthrough: false,
            isReadOnly: false, nodes: 1, placeholders: 0, pending: 1, failing: 0, uploading: 1, downloading: 0,
            bytesFetched: 0, bytesUploaded: 0, cacheBytes: 0, openFiles: 0)
        #expect(!StatusCommand.text(status).contains("not answering"))
        status.silentSince = item.silentSince
        #expect(StatusCommand.text(status).contains("not answering since 2024-02-29 12:00:00 UTC"))
        var watch = StatusWatch()
        #expect(watch.rows(status, [item], at: .seconds(1)) { $0.path }.description.contains("99 %, not answering since"))
    }

    @Test func pathsAreShownBelowTheirMountPoint() {
        let mount = MountTable(parsing: "1 1 0:1 / /m rw - fuse.promisefs d rw".utf8).entries[0]
        #expect(shownPath("/a/b", on: mount) == "/m/a/b")
        #expect(shownPath("/", on: mount) == "/m")
    }

    @Test func doctorReadsTheKernelsWords() {
        #expect(KernelVersion(release: "6.18.44-generic\n") == KernelVersion(major: 6, minor: 18))
        #expect(KernelVersion(release: "6.9") < KernelVersion(release: "6.14.1"))
        #expect(KernelVersion(release: "") == KernelVersion(major: 0, minor: 0))
        #expect(Doctor.effectiveCapabilities(status: "Name:\tx\nCapEff:\t0000000000200000\n") == 1 << 21)
        let new = KernelVersion(major: 6, minor: 18)
        #expect(Doctor.passthrough(new, capabilities: 1 << 21, helper: nil).level == .ok)
        #expect(Doctor.passthrough(new, capabilities: 0, helper: nil).level == .warning)
        #expect(Doctor.passthrough(new, capabilities: 0, helper: Array("/bin/helper".utf8)).level == .ok)
        #expect(Doctor.passthrough(KernelVersion(major: 6, minor: 1), capabilities: .max, helper: nil).level == .warning)
        // Nothing is wrong without it.
        for setting in ["Y\n", "N\n", nil] { #expect(Doctor.rings(new, setting: setting).level == .ok) }
        #expect(Doctor.watches("8192\n").level == .warning && Doctor.watches("1048576\n").level == .ok)
        let program = Array("/bin/program".utf8)
        #expect(Doctor.companions(program, holder: program).level == .ok)
        #expect(Doctor.companions(nil, holder: program).level == .warning)
        #expect(Doctor.companions(program, holder: nil).level == .problem)
        #expect(Doctor.sandbox(view: program, locks: program, bubblewrap: "/bin/bwrap").level == .ok)
        #expect(Doctor.sandbox(view: nil, locks: program, bubblewrap: "/bin/bwrap").level == .warning)
        #expect(Doctor.sandbox(view: program, locks: program, bubblewrap: nil).level == .warning)
        #expect(Doctor.sandbox(view: program, locks: nil, bubblewrap: "/bin/bwrap").level == .warning)
    }
}
