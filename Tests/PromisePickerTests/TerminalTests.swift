import PromiseKit
import PromisePicker
import Testing

/// What a terminal shows, and what keys mean.
@Suite struct TerminalTests {
    private func machine(_ names: [String], _ request: PickerRequest = PickerRequest(.open))
        -> PickerMachine
    {
        var machine = PickerMachine(request)
        let folder = PickerFolder(domain: "work")
        _ = machine.handle(.places([PickerPlace(.domain, title: "work", folder: folder)]))
        let items = names.map {
            PickerItem(
                domain: "work", path: Array($0.utf8), kind: $0.hasSuffix("d") ? "folder" : "file",
                size: 1_234_567,
                modificationTime: "2026-01-31T12:00:00.000000000Z", state: "placeholder")
        }
        _ = machine.handle(
            .window(generation: 1, offset: 0, total: items.count, items: items, reason: nil))
        return machine
    }

    @Test func keysAreReadHoweverTheyArrive() {
        var keys = TerminalKeys()
        #expect(
            keys.feed("j\u{1B}[A\u{1B}OB\r\t\u{7F}".utf8) == [
                .text("j"), .up, .down, .enter, .tab, .backspace,
            ])
        #expect(keys.feed([0x1B]) == [] && keys.isInside)
        #expect(keys.feed("[5".utf8) == [] && keys.feed("~".utf8) == [.pageUp])
        #expect(keys.feed([0xC3]) == [] && keys.feed([0xA9]) == [.text("é")])
        #expect(keys.feed([0x1B]) == [] && keys.flush() == [.escape])
        #expect(keys.feed([3, 0xFF, 0x41]) == [.control("c"), .text("A")])
        #expect(
            keys.feed([UInt8](repeating: 0x5B, count: 5000)).isEmpty, "nothing is kept without end")
    }

    /// 40 by 8 is the smallest that is said to work.
    @Test(arguments: [(40, 8), (60, 10), (80, 24), (200, 50), (12, 4), (3, 3)])
    func everyLineHasExactlyTheColumnsOfTheScreen(columns: Int, rows: Int) {
        let names = [
            "folder d", "文書の名前がとても長い場合.md", "e\u{301}tude.txt",
            String(repeating: "long ", count: 40),
        ]
        for hasColours in [false, true] {
            var screen = TerminalScreen(
                size: .init(columns: columns, rows: rows), hasColours: hasColours)
            let (lines, _) = screen.draw(machine(names))
            #expect(lines.count == rows)
            #expect(lines.contains { $0.contains("\u{1B}") } == hasColours)
            guard !hasColours, columns >= 12 else { continue }
            for line in lines { #expect(width(line) == columns, "\(line)") }
        }
    }

    /// Ideographs and kana of this test have two columns.
    private func width(_ text: String) -> Int {
        text.reduce(0) {
            $0 + ((0x3040...0x9FFF).contains($1.unicodeScalars.first?.value ?? 0) ? 2 : 1)
        }
    }

    /// Each letter of a text that was pasted was a list of its own: 20,000 at once.
    @Test func whatIsPastedIsOneText() {
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        let shown = machine(["a.txt"])
        let pasted = [TerminalKey](repeating: .text("x"), count: 20_000)
        let events = screen.press([.text("/")] + pasted, shown)
        #expect(events == [.filter(String(repeating: "x", count: 1024))])
        let both = screen.press([.control("u"), .text("a"), .enter, .enter], shown)
        #expect(both == [.filter("a"), .enter])
    }

    /// Half of it was never seen on the smallest screen.
    @Test func helpIsShownToItsEnd() {
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        let shown = machine(["a.txt"])
        _ = screen.press(.text("?"), shown)
        #expect(screen.draw(shown).lines.last?.hasPrefix("any key: more") == true)
        _ = screen.press(.text(" "), shown)
        #expect(screen.draw(shown).lines.contains { $0.hasPrefix("R list anew") })
        _ = screen.press(.text(" "), shown)
        #expect(screen.draw(shown).lines.contains { $0.hasPrefix("> a.txt") })
    }

    /// What was at the cursor by then was given that name.
    @Test func renamedIsWhatWasSeenWhenTheNameWasAskedFor() {
        var request = PickerRequest(.export)
        request.sources = [.init(path: Array("/tmp/x".utf8))]
        var shown = machine(["a.txt", "b.txt"], request)
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        _ = screen.press(.text("r"), shown)
        _ = shown.handle(.step(1))
        _ = screen.press(.text("x"), shown)
        let old = PickerItem(domain: "work", path: Array("a.txt".utf8), kind: "file")
        guard case .renameItem(let item, let name)? = screen.press(.enter, shown).first else {
            Issue.record("nothing is renamed")
            return
        }
        #expect(item.path == old.path && name == Array("a.txtx".utf8))
        _ = shown.handle(.visit(PickerFolder(domain: "other")))
        #expect(screen.press(.text("r"), shown) == [] && screen.press(.enter, shown) == [.enter])
    }

    /// Each of these has a character of two columns; lines with them were one too long.
    @Test(arguments: ["🚀.txt", "✅.txt", "🇩🇪.txt", "का.txt", "👩‍👩‍👧.txt", "각.txt"])
    func picturesAndVowelsHaveTheirColumns(name: String) {
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        #expect(screen.draw(machine([name])).lines[1].count == 39)
    }

    @Test func anotherListIsSaidFromItsBeginningAndAnEmptyLineSaysItAgain() {
        var plain = PlainScreen()
        var shown = machine((0..<50).map { "folder \($0) d" })
        _ = plain.say(shown)
        for event in plain.take("n", shown).events { _ = shown.handle(event) }
        #expect(plain.say(shown).text.contains("from 21"))
        let again = plain.take("", shown)
        #expect(again.events.count == 1 && again.text.isEmpty)
        #expect(plain.say(shown).text.contains("21 folder 20 d"))
        _ = shown.handle(.enter)
        _ = plain.say(shown)
        let items = (0..<50).map {
            PickerItem(domain: "work", path: Array("folder 20 d/\($0)".utf8), kind: "file")
        }
        _ = shown.handle(
            .window(
                generation: shown.generation, offset: 0, total: 50, items: items, reason: nil))
        #expect(plain.say(shown).text.contains("from 1\n1 0,"))
    }

    @Test func aNameCannotObeyTheTerminal() {
        let name = "a\u{1B}[2Jb\nc\u{202E}d.txt"
        var screen = TerminalScreen(size: .init(columns: 80, rows: 8), hasColours: false)
        let (lines, _) = screen.draw(machine([name]))
        #expect(
            lines.allSatisfy {
                !$0.contains("\u{1B}") && !$0.contains("\n") && !$0.contains("\u{202E}")
            })
        var plain = PlainScreen()
        let said = plain.say(machine([name])).text
        #expect(
            !said.contains("\u{1B}") && !said.contains("\u{202E}")
                && said.split(separator: "\n").count == 2)
    }

    @Test func keysMeanWhatTheyMeanInLessAndFzf() {
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        let shown = machine(["a.txt", "folder d"])
        func press(_ key: TerminalKey) -> [PickerEvent] { screen.press(key, shown) }
        #expect(
            press(.text("j")) == [.step(1)] && press(.up) == [.step(-1)]
                && press(.text("G")) == [.end])
        #expect(
            press(.text("g")) == [.go(to: 0)] && press(.pageDown) == [.step(5)]
                && press(.enter) == [.enter])
        #expect(
            press(.tab) == [.mark] && press(.text("q")) == [.cancel] && press(.escape) == [.cancel])
        #expect(
            press(.text("/")) == [] && press(.text("q")) == [.filter("q")]
                && press(.backspace) == [.filter("")])
        #expect(
            press(.text("x")) == [.filter("x")] && press(.escape) == [.filter("")]
                && press(.text("q")) == [.cancel])
        #expect(
            press(.text("f")) == [] && press(.text("ab")) == [] && press(.enter) == [.search("ab")])
        #expect(press(.text("p")) == [] && press(.enter) == [.visit(PickerFolder(domain: "work"))])
        #expect(press(.text("?")) == [] && press(.text("q")) == [], "help goes by any key")
        #expect(
            press(.text("o")) == [.sort(.date)] && press(.text("+")) == [],
            "nothing is made where one opens")
    }

    @Test func theCursorStaysInSight() {
        var long = machine((0..<200).map { "file \($0).txt" })
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        _ = long.handle(.go(to: 150))
        let (lines, sight) = screen.draw(long)
        #expect(
            lines.contains { $0.hasPrefix("> file 150.txt") } && sight == .see(first: 146, count: 5)
        )
        _ = long.handle(.go(to: 0))
        #expect(screen.draw(long).sight == .see(first: 0, count: 5))
    }

    @Test func linesAreSaidOnceAndNumbersPick() {
        var plain = PlainScreen()
        let shown = machine(["folder d", "a.txt"])
        let said = plain.say(shown).text
        #expect(
            said
                == "Open a document: work:/: 2 items\n1 folder d, folder, placeholder\n2 a.txt, 1.2 MB, placeholder\n"
        )
        #expect(plain.say(shown).text.isEmpty)
        #expect(plain.take("2", shown).events == [.go(to: 1), .enter])
        // The last item was taken for what is not there.
        for line in ["0", "-1", "3", "m 3", "rename 3 b.txt"] {
            let answer = plain.take(line, shown)
            #expect(answer.events == [] && answer.text == PlainScreen.noItem, "\(line)")
        }
        #expect(plain.take("1", machine(["a new one", "folder d", "a.txt"])).events == [])
        #expect(
            plain.take("/x", shown).events == [.filter("x")]
                && plain.take("q", shown).events == [.cancel])
        #expect(plain.take("places", shown).text == "1 work\n")
        #expect(plain.take("at 1", shown).events == [.visit(PickerFolder(domain: "work"))])
        #expect(plain.take("nonsense", shown).text == PlainScreen.help + "\n")
    }

    @Test func choicesAreTurnedOnScreensAndByLines() {
        var request = PickerRequest(.open)
        request.choices = [
            PickerChoice(label: "Encoding", options: ["UTF", "Latin \u{1B}[2J"], initial: 0),
            PickerChoice(label: "Read only", options: [], initial: 0),
        ]
        var machine = PickerMachine(request)
        var screen = TerminalScreen(size: .init(columns: 40, rows: 8), hasColours: false)
        #expect(screen.draw(machine).lines[6].contains("c Encoding: UTF…"))
        #expect(screen.press(.text("c"), machine) == [])
        for event in screen.press(.enter, machine) { _ = machine.handle(event) }
        #expect(machine.chosen == [1, 0])
        _ = screen.press(.down, machine)
        #expect(screen.press(.left, machine) == [.choose(choice: 1, option: 1)])
        let lines = screen.draw(machine).lines
        #expect(lines[1].hasPrefix("  Encoding: Latin") && lines[2].hasPrefix("> Read only: no"))
        #expect(lines.allSatisfy { !$0.contains("\u{1B}") })
        _ = screen.press(.escape, machine)
        #expect(screen.press(.enter, machine) == [.enter])
        var plain = PlainScreen()
        #expect(plain.take("choices", machine).text.contains("2 Read only: no (1 no, 2 yes)"))
        #expect(plain.take("choose 2 2", machine).events == [.choose(choice: 1, option: 1)])
        #expect(plain.take("choose 3 1", machine).events == [])
        #expect(plain.take("choose 1 3", machine).events == [])
    }
}
