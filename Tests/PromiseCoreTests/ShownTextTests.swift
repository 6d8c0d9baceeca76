import PromiseCore
import Testing

/// No name, version or sentence of a stranger's moves a cursor, colours a line or begins one.
struct ShownTextTests {
    @Test(arguments: [
        ("plain é 😀", "plain é 😀"), ("a\nb", "a\\nb"), ("a\tb", "a\\x09b"), ("\u{1B}[2J", "\\x1b[2J"), ("\r", "\\x0d"),
        ("\u{9B}2J", "\\u{9b}2J"), ("\u{85}", "\\u{85}"), ("\u{7F}", "\\x7f"), ("exe.\u{202E}txt", "exe.\\u{202e}txt"),
        ("\u{2066}\u{2069}", "\\u{2066}\\u{2069}"), ("\u{200F}", "\\u{200f}"), ("\u{61C}", "\\u{61c}"),
        ("\u{2028}", "\\u{2028}"), ("\u{1B}[31mred", "\\x1b[31mred"),
    ])
    func whatATerminalObeysIsEscaped(text: String, shown: String) { #expect(escapedForTerminal(text) == shown) }

    @Test func linesAndColoursOfOurOwnStay() {
        #expect(escapedForTerminal("a\n\u{9B}b\tc", keepsLines: true) == "a\n\\u{9b}b\tc")
        let coloured = "\u{1B}[31mred\u{1B}[0m"
        #expect(escapedForTerminal(coloured, keepsColours: true) == coloured)
        #expect(escapedForTerminal("\u{1B}[2J\u{1B}[31;5m", keepsColours: true) == "\\x1b[2J\\x1b[31;5m")
    }

    @Test func inJSONTheySayTheSame() {
        #expect(escapedInJSON("{\"a\":\"é\u{202E}\u{9B}\"}\n") == "{\"a\":\"é\\u202e\\u009b\"}\n")
        #expect(escapedInJSON("{\"a\":\"é\"}") == "{\"a\":\"é\"}")
    }
}
