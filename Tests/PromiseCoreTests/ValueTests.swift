import PromiseCore
import Testing

@Suite struct TimestampTests {
    @Test(arguments: [
        (0, 0, 0), (1, 0, 1), (-1, -1, 999_999_999), (-1_000_000_000, -1, 0), (-1_000_000_001, -2, 999_999_999),
        (1_999_999_999, 1, 999_999_999), (Int64.max, 9_223_372_036, 854_775_807),
        (-9_223_372_036_000_000_000, -9_223_372_036, 0),
    ] as [(Int64, Int, Int)])
    func partsOfATimeBeforeAndAfter1970(raw: Int64, seconds: Int, part: Int) {
        let time = Timestamp(nanoseconds: raw)
        #expect(time.seconds == seconds && time.nanosecondPart == part)
        #expect(Timestamp(seconds: time.seconds, nanoseconds: time.nanosecondPart) == time)
    }

    /// A date of 2300 came to be one of 1715, and the age of such a file stopped the daemon.
    @Test func aTimeThatIsBeyondIsTheEnd() {
        #expect(Timestamp(seconds: 10_413_792_000, nanoseconds: 0) == Timestamp(nanoseconds: .max))
        #expect(Timestamp(seconds: -10_413_792_000, nanoseconds: 5) == Timestamp(nanoseconds: .min))
        #expect(Timestamp(nanoseconds: .max).advanced(by: .seconds(1)) == Timestamp(nanoseconds: .max))
        #expect(Timestamp(nanoseconds: .min).advanced(by: .seconds(-1)) == Timestamp(nanoseconds: .min))
        let least = Timestamp(nanoseconds: .min + 1)
        #expect(Timestamp(seconds: least.seconds, nanoseconds: least.nanosecondPart) == least)
    }

    @Test func durationsMoveATime() {
        #expect(Timestamp(seconds: 5, nanoseconds: 1).advanced(by: .milliseconds(-5_001)) == Timestamp(nanoseconds: -999_999))
        #expect(Duration.seconds(1 << 62).nanoseconds == .max)
        #expect(Duration.seconds(-(1 << 62)).nanoseconds == .min)
        #expect(Duration.microseconds(-3).nanoseconds == -3000)
    }

    @Test func orderIsThatOfTime() {
        #expect(Timestamp(nanoseconds: -1) < .zero && .zero < Timestamp(nanoseconds: 1))
    }
}

/// To Swift two texts are one that people see as one; a provider's are bytes.
@Suite struct OpaqueTextTests {
    @Test func textsThatLookAlikeAreTwo() {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(ItemIdentifier(composed) != ItemIdentifier(decomposed))
        #expect(ContentVersion(composed) != ContentVersion(decomposed))
        #expect(Set([ItemIdentifier(composed), ItemIdentifier(decomposed)]).count == 2)
        #expect(ItemIdentifier("a" + "b") == ItemIdentifier("ab"))
    }
}

@Suite struct NodeKindTests {
    @Test func typeBitsGoThereAndBack() {
        for kind in NodeKind.allCases { #expect(NodeKind(modeBits: kind.modeBits | 0o7777) == kind) }
        #expect(NodeKind(modeBits: 0) == nil && NodeKind(modeBits: 0o160000) == nil)
        #expect(NodeKind.allCases.filter(\.isStorable) == [.file, .folder, .link])
    }

    @Test func pinsAreNamed() {
        for pin in Pin.allCases { #expect(Pin(name: pin.name) == pin) }
        #expect(Pin(name: "Pinned") == nil)
    }
}

/// > So a document that is really called `letter~` stays here.
@Suite struct ExclusionTests {
    @Test(arguments: [
        (
            ".*.sw?", [".notes.swp", ".notes.swo", ".a.b.swx", ".\u{e9}.swp"],
            ["notes.swp", ".notes.sw", ".notes.swap", ".notesswp"]
        ),
        (".sw?", [".swp", ".swo"], [".sw", "swp", ".swap"]),
        ("4913", ["4913"], ["4914", "49130", "04913"]),
        ("*~", ["notes~", "~", "a.txt~"], ["~notes", "notes~1"]),
        (".#*", [".#notes", ".#"], ["#notes", ".notes#", "a.#b"]),
        ("#*#", ["#notes#", "##"], ["#", "#notes", "notes#"]),
        (".~lock.*#", [".~lock.report.odt#", ".~lock.#"], [".~lock.report.odt", "~lock.report#", ".~locked#"]),
        ("~$*", ["~$report.docx", "~$"], ["$report.docx", "~report.docx"]),
        (".goutputstream-*", [".goutputstream-AB12CD", ".goutputstream-"], ["goutputstream-A", ".goutputstream"]),
        (".fuse_hidden*", [".fuse_hidden0000001", ".fuse_hidden"], ["fuse_hidden1", ".fuse-hidden"]),
        (".xdp-*", [".xdp-report.odt-a1B2c3", ".xdp-"], ["xdp-a", ".xdp"]),
        (".nfs????????*", [".nfs00000001", ".nfs0000000100000002"], [".nfs", ".nfs0000001", "nfs00000001"]),
    ] as [(String, [String], [String])])
    func defaultPatternMatchesItsNamesOnly(text: String, matching: [String], others: [String]) {
        let pattern = ExclusionRules.Pattern(text)
        #expect(ExclusionRules.defaults.contains(pattern), "\(text) is not a default any more")
        for name in matching {
            #expect(pattern.matches(FileName(name)!), "\(name)")
            #expect(ExclusionRules().excludes(FileName(name)!), "\(name)")
        }
        for name in others { #expect(!pattern.matches(FileName(name)!), "\(name)") }
    }

    @Test func tableHasEveryDefault() { #expect(ExclusionRules.defaults.count == 12) }

    @Test func ordinaryNamesGoToTheProvider() {
        for name in ["report.docx", ".profile", ".git", "a.swift", "Thumbs.db", "4913.txt", "data.db", "data.db-wal", "*", "?"] {
            #expect(!ExclusionRules().excludes(FileName(name)!), "\(name)")
        }
    }

    /// A folder `notes~` was silently left out, with everything in it.
    @Test func rulesForFilesAreNotForFolders() {
        for name in ["notes~", "4913", ".a.swp", "#drafts#"] {
            #expect(!ExclusionRules().excludes(FileName(name)!, isFolder: true), "\(name)")
        }
        for name in [".Trash", ".Trash-1000"] {
            #expect(ExclusionRules().excludes(FileName(name)!, isFolder: true), "\(name)")
            #expect(!ExclusionRules().excludes(FileName(name)!), "\(name)")
        }
    }

    @Test func starsAreMatchedWithoutDelay() {
        let pattern = ExclusionRules.Pattern(String(repeating: "a*", count: 40) + "b")
        #expect(!pattern.matches(FileName(String(repeating: "a", count: 255))!))
        #expect(pattern.matches(FileName(String(repeating: "a", count: 254) + "b")!))
        #expect(ExclusionRules.Pattern("?").matches(FileName([0xFF])!))
    }

    @Test func ownPatternsReplaceTheDefaults() {
        let rules = ExclusionRules(patterns: [ExclusionRules.Pattern("*.tmp")])
        #expect(rules.excludes(FileName("a.tmp")!) && !rules.excludes(FileName("a~")!))
    }

    @Test(arguments: [
        ("data.db-wal", "data.db"), ("data.db-shm", "data.db"), ("x-journal", "x"), ("-wal", nil), ("data.db", nil), ("wal", nil),
        ("data.db-WAL", nil), ("a-wal-shm", "a-wal"),
    ] as [(String, String?)])
    func companionsNameTheirDatabase(name: String, database: String?) {
        #expect(ExclusionRules.databaseName(ofCompanion: FileName(name)!) == database.flatMap { FileName($0) })
    }

    /// Providers may say any of them.
    @Test(arguments: [Int64.min, Int64.min + 1, -1, 0, Int64.max]) func everyTimeHasSecondsAndAnAge(nanoseconds: Int64) {
        let time = Timestamp(nanoseconds: nanoseconds)
        #expect((0..<1_000_000_000).contains(time.nanosecondPart))
        #expect(Int64(time.seconds) &* 1_000_000_000 &+ Int64(time.nanosecondPart) == nanoseconds)
        #expect(Timestamp(nanoseconds: .max).nanoseconds(since: time) >= 0)
        #expect(Timestamp(nanoseconds: .min).nanoseconds(since: time) <= 0)
    }

    @Test func whatIsNoSizeIsNone() {
        #expect(ItemSize.read("0") == 0 && ItemSize.read("1152921504606846976") == ItemSize.max)
        for text in ["", "-1", "x", "1152921504606846977", "18446744073709551615", "18446744073709551616"] {
            #expect(ItemSize.read(text) == nil)
        }
        #expect(UInt64.max.plus(1) == .max && UInt64(1).plus(1) == 2)
    }
}
