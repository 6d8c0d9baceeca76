import Foundation
import Testing

@testable import promisefs

@Suite struct OutputTests {
    /// `find --json` and `changes --json` wrote `\u{200e}` as for a terminal, which is no JSON.
    @Test func linesOfJSONAreJSONWhateverNamesHold() throws {
        let names = ["plain", "left\u{200E}to right", "line\u{2028}end", "bell\u{7}", "\u{9B}31m"]
        let lines = Output.jsonText(names.map { ["name": $0] }).split(separator: "\n")
        let read = try lines.map { line in
            try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
        }
        #expect(read.map { $0["name"] ?? "" } == names)
        #expect(lines.allSatisfy { !$0.unicodeScalars.contains("\u{200E}") })
    }
}
