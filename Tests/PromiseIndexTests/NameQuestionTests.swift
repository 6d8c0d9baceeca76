import Glibc
import PromiseCore
import PromiseIndex
import PromiseQuery
import PromiseTestSupport
import Testing

/// Random questions about names of every kind of letter: the index, the evaluator and a reference that shares no code with
/// either find the same. PROMISEFS_SCALE=full asks a million, PROMISEFS_SEED repeats one run.
@Suite struct NameQuestionTests {
    private indirect enum Question {
        case text(operation: String, folding: Int, text: [Unicode.Scalar])
        case pattern([PatternPart], folding: Int)
        case not(Question), and(Question, Question), or(Question, Question)

        /// As a predicate whose arguments are put at the end of `arguments`.
        func written(_ arguments: inout [QueryValue]) -> String {
            let foldings = ["", "[c]", "[d]", "[cd]"]
            switch self {
            case .text(let operation, let folding, let text):
                let value = QueryValue.text(string(text))
                arguments.append(operation == "IN" ? .list([.text("none"), value]) : value)
                return "kMDItemFSName \(operation)\(foldings[folding]) %@"
            case .pattern(let parts, let folding):
                arguments.append(.text(parts.map(\.written).joined()))
                return "kMDItemFSName MATCHES\(foldings[folding]) %@"
            case .not(let part): return "NOT (\(part.written(&arguments)))"
            case .and(let left, let right): return "(\(left.written(&arguments)) AND \(right.written(&arguments)))"
            case .or(let left, let right): return "(\(left.written(&arguments)) OR \(right.written(&arguments)))"
            }
        }

        /// `name` in all four foldings.
        func holds(_ name: [[Unicode.Scalar]]) -> Bool {
            switch self {
            case .text(let operation, let folding, let text):
                return holds(operation, name[folding], Letter.fold(.init(text), folding))
            case .pattern(let parts, let folding): return NameReference.matches(parts[...], name[folding], 0, folding)
            case .not(let part): return !part.holds(name)
            case .and(let left, let right): return left.holds(name) && right.holds(name)
            case .or(let left, let right): return left.holds(name) || right.holds(name)
            }
        }

        private func holds(_ operation: String, _ name: [Unicode.Scalar], _ text: [Unicode.Scalar]) -> Bool {
            switch operation {
            case "==", "IN": name == text
            case "!=": name != text
            case "<": name.lexicographicallyPrecedes(text)
            case "CONTAINS": NameReference.contains(name, text)
            case "BEGINSWITH": name.starts(with: text)
            case "ENDSWITH": name.reversed().starts(with: text.reversed())
            default: NameReference.isLike(text[...], name[...])
            }
        }
    }

    private struct Attributes: AttributeSource {
        let name: FileName
        func value(of key: AttributeKey) -> QueryValue { key == .name ? .text(Array(name.display.utf8)) : .null }
    }

    private static func string(_ scalars: [Unicode.Scalar]) -> String { String(String.UnicodeScalarView(scalars)) }

    private func word(_ random: inout SeededGenerator, _ count: ClosedRange<Int>) -> [Unicode.Scalar] {
        (0..<Int.random(in: count, using: &random)).map { _ in Letter.all.randomElement(using: &random)!.scalar }
    }

    /// A part of one of the names, with some letters in another form.
    private func part(_ names: [[Unicode.Scalar]], _ random: inout SeededGenerator) -> [Unicode.Scalar] {
        let name = names.randomElement(using: &random)!
        var start = Int.random(in: 0..<name.count, using: &random)
        var end = Int.random(in: start + 1...name.count, using: &random)
        if Int.random(in: 0..<3, using: &random) == 0 { start = 0 }
        if Int.random(in: 0..<3, using: &random) == 0 { end = name.count }
        return name[start..<end].flatMap { scalar -> [Unicode.Scalar] in
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1:
                let folding = Int.random(in: 1...3, using: &random)
                let folded = Letter.fold(.init([scalar]), folding)
                let others = Letter.all.filter { Letter.fold(.init([$0.scalar]), folding) == folded }
                return [others.randomElement(using: &random)?.scalar ?? scalar]
            case 2: return Letter.fold(.init([scalar]), Int.random(in: 1...3, using: &random))
            default: return [scalar]
            }
        }
    }

    private func pattern(_ text: [Unicode.Scalar], _ random: inout SeededGenerator) -> [PatternPart] {
        var parts: [PatternPart] = []
        for scalar in text.prefix(7) {
            let kind: PatternPart.Kind
            switch Int.random(in: 0..<8, using: &random) {
            case 0: kind = .any
            case 1: kind = .word
            case 2: kind = .space
            case 3: kind = .members([scalar] + word(&random, 0...3))
            default: kind = .literal(scalar)
            }
            var part = PatternPart(kind: kind, repetition: ["", "", "", "", "?", "*", "+"].randomElement(using: &random)!)
            // An accent and the letter before it are one character, of which both would be repeated.
            if part.isAccent, parts.last?.repetition == "" { part.repetition = "" }
            parts.append(part)
        }
        return parts
    }

    private func question(_ names: [[Unicode.Scalar]], _ depth: Int, _ random: inout SeededGenerator) -> Question {
        let folding = Int.random(in: 0...3, using: &random)
        let choice = Int.random(in: 0..<(depth == 0 ? 10 : 13), using: &random)
        switch choice {
        case 10: return .not(question(names, depth - 1, &random))
        case 11: return .and(question(names, depth - 1, &random), question(names, depth - 1, &random))
        case 12: return .or(question(names, depth - 1, &random), question(names, depth - 1, &random))
        case 9: return .pattern(pattern(part(names, &random), &random), folding: folding)
        case 7, 8:
            var text = part(names, &random)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = [0, text.count, Int.random(in: 0...text.count, using: &random)].randomElement(using: &random)!
                text.insert(["*", "*", "?"].randomElement(using: &random)!, at: place)
            }
            return .text(operation: "LIKE", folding: folding, text: text)
        default:
            let operation = ["==", "IN", "!=", "<", "CONTAINS", "BEGINSWITH", "ENDSWITH"][choice]
            return .text(operation: operation, folding: folding, text: part(names, &random))
        }
    }

    private func found(_ predicate: Predicate, _ index: Index) throws -> Set<FileName> {
        let plan = CandidatePlan(predicate)
        var position = CandidatePosition.start
        var result: Set<FileName> = []
        while true {
            if case .end = position { return result }
            let page = try index.read { transaction throws(Failure) in
                try transaction.candidates(plan, &position, limit: 1_000)
            }
            for item in page where predicate.isSatisfied(by: Attributes(name: item.entry.name)) {
                result.insert(item.entry.name)
            }
        }
    }

    @Test func theIndexTheEvaluatorAndAReferenceFindTheSame() throws {
        let isFull = getenv("PROMISEFS_SCALE").map { String(cString: $0) } == "full"
        var random = SeededGenerator(for: "questions about names")
        for _ in 0..<(isFull ? 200 : 4) {
            let folder = try TemporaryFolder()
            let index = try folder.open()
            defer { index.close() }
            var names: [FileName: [[Unicode.Scalar]]] = [:]
            while names.count < 40 {
                let scalars = word(&random, 1...8)
                guard let name = FileName(Array(Self.string(scalars).utf8)) else { continue }
                guard names.updateValue((0...3).map { Letter.fold(.init(scalars), $0) }, forKey: name) == nil else { continue }
                try index.write { transaction throws(Failure) in
                    try transaction.make(named: name)
                    return
                }
            }
            try index.catchUpSearch()
            let words = names.values.map { $0[0] }.sorted { $0.lexicographicallyPrecedes($1) }
            for _ in 0..<5_000 {
                let question = question(words, 2, &random)
                var arguments: [QueryValue] = []
                let text = question.written(&arguments)
                let predicate = try PredicateParser.parse(text, arguments: arguments)
                let expected = Set(names.filter { question.holds($0.value) }.keys)
                let evaluated = Set(names.keys.filter { predicate.isSatisfied(by: Attributes(name: $0)) })
                let indexed = try found(predicate, index)
                let differing = expected.symmetricDifference(evaluated).union(expected.symmetricDifference(indexed))
                try #require(
                    differing.isEmpty,
                    "\(text) \(arguments) of \(differing.map { Array($0.display.unicodeScalars) }); seed \(random.seed)")
            }
        }
    }
}
