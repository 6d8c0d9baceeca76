import PromisePicker
import Testing

/// Two versions of a text side by side.
@Suite struct TextDifferenceTests {
    private func difference(_ old: String, _ new: String) -> [String] {
        TextDifference(from: Array(old.utf8), to: Array(new.utf8)).lines.map { "\($0.kind) \($0.text)" }
    }

    /// Texts of Windows were one line.
    @Test(arguments: ["\n", "\r\n"]) func linesAreComparedWhateverEndsThem(end: String) {
        let found = difference("a\(end)b\(end)c", "a\(end)x\(end)c").map { String($0.prefix(5)) }
        #expect(found == ["same ", "cut b", "add x", "same "])
    }

    /// They were said to be the same, and a person gave one of them up.
    @Test func whatDiffersInBytesDiffersAlthoughItLooksTheSame() {
        #expect(difference("\u{e9}", "e\u{301}").map { $0.prefix(3) } == ["cut", "add"])
    }

    @Test func whatIsNoTextIsSaid() {
        #expect(TextDifference(from: [0], to: []).note == "they are no text")
        #expect(TextDifference(from: [0xFF], to: []).note == "they are no text")
        #expect(TextDifference(from: [], to: []).lines.map(\.kind) == ["same"])
    }
}
