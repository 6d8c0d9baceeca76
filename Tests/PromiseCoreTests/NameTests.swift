import PromiseCore
import Testing

@Suite struct FileNameTests {
    @Test func legalNamesKeepTheirBytes() {
        let names: [[UInt8]] = [
            [0x61], [0x2E, 0x61], [0x2E, 0x2E, 0x2E], [0x20], [0x0A], [0xFF, 0xFE], [0x5C], Array(repeating: 0x61, count: 255),
        ]
        for bytes in names { #expect(FileName(bytes)?.bytes == bytes) }
    }

    @Test func illegalNamesAreRefused() {
        let names: [[UInt8]] = [
            [], [0x2E], [0x2E, 0x2E], [0x61, 0x2F], [0x2F], [0], [0x61, 0, 0x62], Array(repeating: 0x61, count: 256),
        ]
        for bytes in names { #expect(FileName(bytes) == nil, "\(bytes)") }
        #expect(FileName("") == nil && FileName("..") == nil && FileName("a/b") == nil)
    }

    @Test func composedAndDecomposedLettersAreTwoNames() throws {
        let composed = try #require(FileName([0xC3, 0xA9]))
        let decomposed = try #require(FileName([0x65, 0xCC, 0x81]))
        // Swift's strings hold them for equal, which is why names are none.
        #expect(composed.display == decomposed.display)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(decomposed < composed)
    }

    @Test func orderIsThatOfTheBytes() {
        let sorted = ["A", "B", "a", "aa", "b", "é"].compactMap { FileName($0) } + [FileName([0xFF])!]
        #expect(sorted.shuffled().sorted() == sorted)
    }

    @Test(arguments: [
        ([0x61, 0x62], "ab"), ([0x61, 0x0A, 0x62], "a\\nb"), ([0x09], "\\x09"), ([0x1B, 0x5B], "\\x1b["), ([0x7F], "\\x7f"),
        ([0xFF, 0x61], "\\xffa"), ([0xC3, 0xA9], "é"), ([0xC3], "\\xc3"), ([0xC3, 0x61], "\\xc3a"), ([0xC0, 0xAF], "\\xc0\\xaf"),
        ([0xED, 0xA0, 0x80], "\\xed\\xa0\\x80"), ([0xF0, 0x9F, 0x98, 0x80], "😀"),
        ([0xF4, 0x90, 0x80, 0x80], "\\xf4\\x90\\x80\\x80"),
        ([0xE2, 0x82], "\\xe2\\x82"), ([0x80], "\\x80"),
    ] as [([UInt8], String)])
    func displayEscapesWhatPeopleCannotRead(bytes: [UInt8], shown: String) {
        #expect(escapedForDisplay(bytes) == shown)
        #expect(FileName(bytes)?.description == shown)
    }

    @Test func hexadecimalHasTwoDigits() {
        for byte in UInt8.min...UInt8.max {
            let text = hexadecimal(byte)
            #expect(text.utf8.count == 2 && UInt8(text, radix: 16) == byte && text == text.lowercased())
        }
    }
}

@Suite struct ConflictNameTests {
    private func conflict(_ name: String, host: String = "host", attempt: Int = 1) -> String {
        conflictName(of: FileName(name)!, host: host, date: "2026-11-21", attempt: attempt).display
    }

    @Test func extensionStaysAtTheEnd() {
        #expect(conflict("report.txt") == "report (conflict, host, 2026-11-21).txt")
        #expect(conflict("archive.tar.gz") == "archive.tar (conflict, host, 2026-11-21).gz")
        #expect(conflict("Makefile") == "Makefile (conflict, host, 2026-11-21)")
        #expect(conflict("ends.") == "ends (conflict, host, 2026-11-21).")
    }

    @Test func leadingDotIsNoExtension() {
        #expect(conflict(".profile") == ".profile (conflict, host, 2026-11-21)")
        #expect(conflict(".config.json") == ".config (conflict, host, 2026-11-21).json")
    }

    @Test func attemptsAreNumberedFromTheSecondOn() {
        #expect(conflict("a.b", attempt: 2) == "a (conflict, host, 2026-11-21 2).b")
        #expect(conflict("a.b", attempt: 10) == "a (conflict, host, 2026-11-21 10).b")
    }

    @Test func hostCannotBreakTheName() {
        #expect(conflict("a", host: "x/y") == "a (conflict, x-y, 2026-11-21)")
        #expect(conflict("a", host: "x\u{0}y") == "a (conflict, x-y, 2026-11-21)")
        #expect(conflict("a", host: String(repeating: "h", count: 300)).utf8.count <= 255)
    }

    /// On every machine, whoever made it; of a name that was too long the beginning.
    @Test func aConflictNameSaysWhatItIsAVersionOf() throws {
        let long = String(repeating: "e", count: 40)
        for host in ["host", "host.example.com", "a, b", "x/y", ""] {
            for name in ["report.txt", "a.tar.gz", "Makefile", "ends.", ".profile", ".config.json", "a.\(long)", "a (b).c"] {
                for attempt in [1, 2, 10] {
                    let once = conflictName(of: FileName(name)!, host: host, date: "2026-11-21", attempt: attempt)
                    #expect(ConflictName(once)?.document.display == name, "\(once)")
                    let twice = conflictName(of: once, host: "other", date: "2026-11-22", attempt: 1)
                    #expect(ConflictName(twice)?.document == once && ConflictName(twice)?.isCut == false)
                }
            }
        }
        let text = String(repeating: "é", count: 120) + ".txt"
        let cut = try #require(ConflictName(FileName(conflict(text))!))
        #expect(cut.isCut && cut.isVersion(of: FileName(text)!))
        #expect(text.hasPrefix(cut.beginning?.display ?? "?"))
    }

    @Test(arguments: [
        "a", "a (b).txt", "a (conflict).txt", "a (conflict, host).txt", "a (conflict, host, yesterday).txt",
        "a (conflict, host, 2026-11-21 0).txt", "a (conflict, host, 2026-11-21 1).txt", "a (conflict, host, 2026-11-21 x)",
        "a (conflict, host, 2026-11-21) copy.txt", " (conflict, host, 2026-11-21)", "a (conflict, host, 2026-11-21",
    ]) func aNameThatOnlyLooksAlikeIsNone(name: String) {
        #expect(ConflictName(FileName(name)!) == nil)
    }

    @Test func longExtensionIsPartOfTheStem() {
        let suffix = String(repeating: "e", count: 40)
        #expect(conflict("a.\(suffix)") == "a.\(suffix) (conflict, host, 2026-11-21)")
    }

    @Test func resultHasAtMost255BytesAndCutsNoLetter() {
        for letter in ["a", "é", "€", "😀"] {
            for lead in 0..<4 {
                let room = 255 - 4 - lead
                let stem = String(repeating: "x", count: lead) + String(repeating: letter, count: room / letter.utf8.count)
                let bytes = conflictName(of: FileName(stem + ".txt")!, host: "host", date: "2026-11-21", attempt: 123).bytes
                #expect(bytes.count <= 255 && bytes.count > 255 - 4, "\(letter) \(lead): \(bytes.count)")
                #expect(String(validating: bytes, as: UTF8.self)?.hasSuffix(" (conflict, host, 2026-11-21 123).txt") == true)
            }
        }
    }

    @Test func stemThatIsNoTextIsCutToo() {
        let bytes = [UInt8](repeating: 0x80, count: 255)
        let result = conflictName(of: FileName(bytes)!, host: "host", date: "2026-11-21", attempt: 1)
        #expect(result.bytes.count <= 255 && result.bytes.starts(with: [0x80, 0x80]))
    }

    @Test func namesOfAttemptsDiffer() {
        let name = FileName(String(repeating: "n", count: 255))!
        let results = (1...200).map { conflictName(of: name, host: "host", date: "2026-11-21", attempt: $0) }
        #expect(Set(results).count == 200)
    }
}

@Suite struct FailureTests {
    @Test func codesHaveNamesOfTheirOwn() {
        let names = Failure.Code.allCases.map(\.rawValue)
        #expect(Set(names).count == names.count && !names.contains(""))
    }

    @Test func descriptionNamesTheCode() {
        #expect(Failure(.offline, "the provider is away").description == "the provider is away [offline]")
    }
}
