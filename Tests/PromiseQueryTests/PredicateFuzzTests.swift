import Foundation
import PromiseQuery
import PromiseTestSupport
import Testing

/// Predicates from strangers: no crash, no hang, bounded. PROMISEFS_SCALE=full reads ten million, PROMISEFS_SEED repeats one run.
@Suite struct PredicateFuzzTests {
    private static let environment = ProcessInfo.processInfo.environment

    private static let words = [
        "kMDItemFSName", "kMDItemFSSize", "kMDItemPath", "kMDItemFSContentChangeDate", "kMDItemContentTypeTree",
        "promisefs.state",
        "==", "!=", "<", ">=", "LIKE", "MATCHES", "CONTAINS", "BEGINSWITH", "IN", "BETWEEN", "AND", "OR", "NOT", "&&", "||", "!",
        "(", ")", "{", "}", ",", "[c]", "[cd]", "ANY", "ALL", "NONE", "TRUEPREDICATE", "NIL", "%@", "%K", "'a*?[b'", "\"x\\\"y\"",
        "'2024-02-29'", "'(a|b)*c'", "12", "-3.5e7", "0x1F", "CAST", "$time.iso", "#", "'", "\\", "é", "\u{0}",
        "9999999999999999999",
        "'[a-z]+\\\\d{2,3}'", "'\\U0001F600'",
    ]

    struct Item: AttributeSource {
        func value(of key: AttributeKey) -> QueryValue {
            switch key.kind {
            case .text: .text("é a.b")
            case .number: .integer(.max)
            case .truth: .truth(true)
            case .time: .time(.min)
            case .texts: .list([.text("a"), .null])
            }
        }
    }

    @Test func noInputDoesHarm() {
        let count = Self.environment["PROMISEFS_SCALE"] == "full" ? 10_000_000 : 20_000
        var random = SeededGenerator(for: "predicates")
        var accepted = 0
        for _ in 0..<count {
            let text = input(&random)
            let arguments: [QueryValue] = Bool.random(using: &random) ? [] : [.text("kMDItemFSName"), .integer(.min)]
            if let predicate = try? PredicateParser.parse(text, arguments: arguments) {
                accepted += 1
                _ = predicate.isSatisfied(by: Item())
                _ = predicate.keys
            }
        }
        #expect(accepted > 0, "some inputs are predicates; seed \(random.seed)")
    }

    private func input(_ random: inout SeededGenerator) -> String {
        var result = ""
        // Half begins as a predicate, so that something is reached.
        if Bool.random(using: &random) { result = "kMDItemFSSize > 1 AND " }
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            result += Self.words.randomElement(using: &random) ?? ""
            if Int.random(in: 0..<4, using: &random) > 0 { result += " " }
        }
        if Int.random(in: 0..<3, using: &random) == 0 { result += "TRUEPREDICATE" }
        guard Int.random(in: 0..<4, using: &random) == 0, !result.isEmpty else { return result }
        var bytes = Array(result.utf8)
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
        return String(decoding: bytes, as: UTF8.self)
    }
}
