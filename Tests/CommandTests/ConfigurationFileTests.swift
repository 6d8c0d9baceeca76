import ArgumentParser
import Foundation
import Testing

@testable import promisefs

/// The file of named domains becomes words of the command line.
@Suite struct ConfigurationFileTests {
    private let text = """
        cache-limit = "20G"
        hydration-rules = ["refuse:program=indexer*"]

        [domains.work]
        provider = "webdav+https://ann@example.com/files"
        mountpoint = "/home/ann/work"
        cache-limit = 5_000_000   # bytes
        read-only = true
        no-passthrough = false
        hydration-rules = ["allow:program=cp"]
        options = ["allow_other"]

        [domains."cloud.2"]
        mountpoint = "/mnt"
        """

    private func parsed(_ operands: [String], given: [String] = []) throws -> MountCommand {
        try MountCommand.parse(try ConfigurationFile(text, path: "config.toml").words(for: operands, given: given))
    }

    /// What a document shows is understood as it is there.
    @Test func theExampleOfTheDocumentIsAConfiguration() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let document = try String(contentsOf: root.appending(path: "docs/OPERATIONS.md"), encoding: .utf8)
        let section = document.components(separatedBy: "\n## ").first { $0.hasPrefix("The configuration file\n") }
        let lines = try #require(section).split(separator: "\n", omittingEmptySubsequences: false)
        let example = lines.filter { $0.hasPrefix("    ") }.map { $0.dropFirst(4) }.joined(separator: "\n")
        let file = try ConfigurationFile(example, path: "config.toml")
        #expect(file.domains.keys.sorted() == ["scans", "work"])
        for name in ["work", "scans"] {
            let command = try MountCommand.parse(try file.words(for: [name], given: []))
            #expect(command.options.domain == name)
        }
    }

    @Test func notificationsAreTurnedOffForAllOrOne() throws {
        let off = try ConfigurationFile("notifications = false\n[domains.a]\nnotifications = true\n[domains.b]", path: "x")
        #expect([off.notifies(of: "a"), off.notifies(of: "b"), off.notifies(of: "c")] == [true, false, false])
        #expect(try parsed(["work"]).options.domain == "work")
        #expect(try ConfigurationFile(text, path: "x").notifies(of: "work"))
        #expect(throws: CommandFailure.self) { try ConfigurationFile("notifications = 1", path: "x") }
    }

    @Test func aNameStandsForWhatIsConfigured() throws {
        let command = try parsed(["work"])
        #expect(command.operands == ["webdav+https://ann@example.com/files", "/home/ann/work"])
        #expect(command.options.domain == "work" && command.options.cacheLimit?.bytes == 5_000_000)
        #expect(command.options.isReadOnly && !command.options.noPassthrough)
        #expect(command.options.hydrationRule.map(\.text) == ["allow:program=cp", "refuse:program=indexer*"])
        #expect(command.options.splitMountOptions == ["allow_other"])
        let embedded = try parsed(["cloud.2"])
        #expect(embedded.operands == ["/mnt"] && embedded.options.cacheLimit?.bytes == 20 << 30)
    }

    @Test func theCommandLineWins() throws {
        let command = try parsed(["work"], given: ["--cache-limit", "1M", "--hydration-rule", "refuse:io=idle"])
        #expect(command.options.cacheLimit?.bytes == 1 << 20)
        #expect(command.options.hydrationRule.first?.text == "refuse:io=idle")
    }

    /// Options of -o and patterns of the defaults came last, and so won over the command line.
    @Test func theDomainWinsOverTheDefaultsAndTheCommandLineOverBoth() throws {
        let text = """
            options = ["uid=1", "gid=1"]
            ignore = ["*.o"]
            read-only = true
            no-passthrough = true
            io-uring = true

            [domains.work]
            mountpoint = "/mnt"
            options = ["uid=2"]
            ignore = ["!keep.o", "-x"]
            read-only = false
            no-passthrough = false
            io-uring = false
            """
        let file = try ConfigurationFile(text, path: "config.toml")
        func parsed(_ operands: [String], _ given: [String] = []) throws -> DomainOptions {
            // As `mount` passes on what the user wrote.
            let given = try DomainOptions.parse(given).forwarded
            return try MountCommand.parse(try file.words(for: operands, given: given)).options
        }
        let plain = try parsed(["work"])
        #expect(plain.splitMountOptions == ["uid=1", "gid=1", "uid=2"])
        #expect(plain.ignore == ["*.o", "!keep.o", "-x"])
        #expect(!plain.isReadOnly && !plain.noPassthrough && !plain.ioUring)
        #expect(file.domains["work"].map { file.whole($0).isReadOnly } == false)
        let other = try parsed(["/other"])
        #expect(other.isReadOnly && other.noPassthrough && other.ioUring)
        let given = try parsed(["work"], ["-o", "uid=3,ro", "--ignore", "keep.o"])
        #expect(given.splitMountOptions.last == "uid=3" && given.ignore.last == "keep.o")
        #expect(given.isReadOnly)
        #expect(try !parsed(["/other"], ["-o", "rw"]).isReadOnly)
        #expect(try parsed(["/other"], ["--ignore", "!a.o"]).ignore == ["*.o", "!a.o"])
    }

    @Test func whatHasNoNameGetsTheDefaults() throws {
        let command = try parsed(["folder:/srv", "work"])
        #expect(command.operands == ["folder:/srv", "work"] && command.options.domain == nil)
        #expect(command.options.cacheLimit?.bytes == 20 << 30)
        #expect(try parsed(["./work"]).operands == ["./work"])
    }

    @Test(arguments: [
        ("cache-limit = ", "line 1"), ("cachelimit = 1", "no key 'cachelimit'"), ("read-only = 1", "neither true nor false"),
        ("[domains.'a/b']", "cannot name a domain"), ("[domains]\nx = 1", "'domains.x' is no table"), ("domains = 3", "no table"),
        ("[domains.x]\noptions = 'a'", "no list"), ("[domains.x]\noptions = [1]", "no text"),
        ("[domains.x]\nprovider = 1", "'domains.x.provider' is no text"), ("provider = 'folder:/x'", "no key 'provider'"),
    ])
    func whatIsWrongIsSaid(text: String, sentence: String) {
        let failure = #expect(throws: CommandFailure.self) { try ConfigurationFile(text, path: "config.toml") }
        #expect(failure?.message?.hasPrefix("config.toml") == true && failure?.message?.contains(sentence) == true)
        #expect(failure?.exitStatus == 2)
    }

    /// One domain's mistake is that domain's.
    @Test func whatIsWrongWithOneDomainKeepsNoOtherFromBeingMounted() throws {
        let file = ConfigurationFile(
            lenient: "[domains.a]\nmountpoint = '/a'\nnosuch = 1\n[domains.b]\nmountpoint = '/b'", path: "config.toml")
        #expect(file.problem(of: "a")?.message?.contains("'domains.a.nosuch'") == true && file.problem(of: "b") == nil)
        #expect(try file.words(for: ["b"], given: []) == ["--domain", "b", "--", "/b"] && file.isReadable)
        let broken = ConfigurationFile(lenient: "cache-limit = 1\nx =", path: "config.toml")
        #expect(!broken.isReadable && broken.problem(of: "b")?.message?.hasPrefix("config.toml, line 2") == true)
        #expect(ConfigurationFile(lenient: "nosuch = 1", path: "x").problem(of: "b")?.exitStatus == 2)
    }

    /// A wrong key of one domain was in the way of `login`, `enable`, `setup` and `doctor` of all.
    @Test func whatIsWrongWithOneDomainKeepsNoCommandFromAnother() throws {
        let text = "[domains.a]\nmountpoint = '/a'\nnosuch = 1\n[domains.b]\nmountpoint = '/b'\n"
            + "provider = 'webdav+https://ann@example.com/b'\nnosuch = 1\n"
        let file = ConfigurationFile(lenient: text, path: "config.toml")
        // A login needs the server's name, and no more of its own domain either.
        #expect(try LoginCommand.entry(of: "b", in: file).mountPoint == "/b")
        #expect(throws: CommandFailure.self) { try LoginCommand.entry(of: "c", in: file) }
        #expect(throws: CommandFailure.self) { try ServiceUnit.check("b", in: file) }
        let findings = DoctorSettings.configuration(file)
        #expect(findings.map(\.level) == [.problem, .problem])
        #expect(findings.map(\.subject) == ["configuration", "configuration"])
        #expect(findings[0].message.contains("'domains.a.nosuch'"))
        let other = ConfigurationFile(
            lenient: "[domains.a]\nnosuch = 1\n[domains.b]\nmountpoint = '/b'\n", path: "x")
        try ServiceUnit.check("b", in: other)
        let words = ["--yes", "--name", "work", "--mountpoint", "/m"]
        let writer = SetupWriter(
            try SetupAnswers(asking: try SetupCommand.parse(words), (nil, nil)))
        #expect(try !writer.isWritten(text, text + "[domains.work]\nmountpoint = '/m'\n"))
        // What concerns all, or is no TOML, is in the way of each.
        for wrong in ["nosuch = 1\n", "x =\n"] {
            #expect(throws: CommandFailure.self) {
                try writer.isWritten(wrong, wrong + "[domains.work]\n")
            }
        }
    }

    /// The next `mount NAME` was refused, or was of the storage that had been left.
    @Test func whoHasMigratedIsToldOfASectionThatLeadsToTheOldStorage() throws {
        let text = "[domains.a]\nprovider = 'folder:/srv/old'\n[domains.b]\nmountpoint = '/b'\n"
        let file = try ConfigurationFile(text, path: "config.toml")
        #expect(MigrateCommand.isOutdated(file, of: "a", at: "folder:/srv/new"))
        #expect(MigrateCommand.isOutdated(file, of: "b", at: "folder:/srv/new"))
        #expect(!MigrateCommand.isOutdated(file, of: "a", at: "folder:/srv/old"))
        #expect(!MigrateCommand.isOutdated(file, of: "c", at: "folder:/srv/new"))
    }

    @Test func aDomainWithoutAPlaceCannotBeMounted() throws {
        let file = try ConfigurationFile("[domains.x]\nprovider = 'folder:/x'", path: "config.toml")
        let failure = #expect(throws: CommandFailure.self) { try file.words(for: ["x"], given: []) }
        #expect(failure?.message?.contains("no 'mountpoint'") == true)
    }

    /// The password of the old storage went to another server, and a folder asked for the keyring.
    @Test func thePasswordThatIsKeptGoesToItsOwnServerAlone() {
        func new(_ old: String, _ new: String) -> Bool { KeptLogins(old: old, new: new).isOfNew }
        let old = "webdav+https://ann@example.com/files/"
        #expect(new(old, "webdav+https://ann@example.com/other/"))
        for other in [
            "webdav+https://ann@nowhere.invalid/files/", "webdav+https://bob@example.com/files/",
            "webdav+http://ann@example.com/files/", "webdav+https://ann@example.com:444/files/",
            "s3://files/?endpoint=https://example.com", "folder:/srv", "rclone:one:files",
            "extension+exec:/bin/store",
        ] {
            #expect(!new(old, other), "\(other)")
            #expect(KeptLogins(old: old, new: other).isOfOld)
        }
        #expect(new("s3://a/?endpoint=https://localhost&region=x", "s3://b/?endpoint=https://localhost"))
        #expect(!new("s3://a/", "s3://a/?endpoint=https://localhost"))
        #expect(new("extension:/run/store", "extension:/run/store"))
        let folder = KeptLogins(old: "folder:/srv/old", new: "folder:/srv/new")
        #expect(!folder.isOfOld && !folder.isOfNew && !folder.needsLogin)
        #expect(KeptLogins(old: old, new: "webdav+https://bob@example.com/").needsLogin)
        #expect(!KeptLogins(old: old, new: "folder:/srv").needsLogin)
        // It is the domain's own storage, whatever that is.
        let unknown = KeptLogins(old: nil, new: old)
        #expect(unknown.isOfOld && !unknown.isOfNew)
    }

    /// `doctor` warned of a folder that may not be changed, as soon as another value was wrong.
    @Test func aDomainIsReadOnlyWhateverElseIsWrong() throws {
        func isReadOnly(_ lines: String, above: String = "") throws -> Bool {
            let text = "\(above)\n[domains.a]\nprovider = 'folder:/x'\n\(lines)\n"
            let file = try ConfigurationFile(text, path: "config.toml")
            return file.whole(try #require(file.domains["a"])).isReadOnly
        }
        let wrong = "cache-limit = 'much'\n"
        #expect(try isReadOnly(wrong + "read-only = true"))
        #expect(try isReadOnly(wrong + "options = ['allow_other,ro']"))
        #expect(try isReadOnly(wrong + "options = ['rw', 'ro,allow_other']"))
        #expect(try !isReadOnly(wrong + "options = ['ro,rw']"))
        #expect(try !isReadOnly(wrong + "read-only = false", above: "read-only = true"))
        #expect(try isReadOnly(wrong, above: "read-only = true"))
        #expect(try !isReadOnly("state-dir = '--read-only'\ncertificate = '-o'\ntrash = 'ro'"))
        #expect(ConfigurationFile.Domain(options: ["--read-only", "-o", "rw"]).isReadOnly)
    }
}
