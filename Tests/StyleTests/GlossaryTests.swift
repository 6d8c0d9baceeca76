import Foundation
import Testing

/// The words of `docs/DATA.md` mean one thing each.
@Suite struct GlossaryTests {
    private static let modules = [
        "PromiseSync", "PromiseIndex", "PromiseCore", "PromiseProvider",
    ]

    /// The rows of the section's tables, without their headings.
    private static let rows: [[String]] = {
        let document = SourceTree.documents.first { $0.path == "docs/DATA.md" }
        let section = (document?.lines ?? []).drop { $0 != "## The words of sync" }.dropFirst()
            .prefix { !$0.hasPrefix("## ") }
        return section.filter { $0.hasPrefix("| `") }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }()

    private static func codes(_ cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }

    @Test func aTypeOfTheGlossaryIsDefinedOnce() throws {
        let definition = try Regex(#"^(.*)\b(?:struct|class|enum|protocol|actor|typealias) (\w+)"#)
        let words = Set(Self.rows.filter { $0.count == 2 }.flatMap { Self.codes($0[0]) })
        var places: [String: [String]] = [:]
        for file in SourceTree.swiftFiles where !file.isTest {
            for (index, line) in file.code.enumerated() {
                guard let match = try? definition.firstMatch(in: line),
                    let word = match[2].substring.map(String.init),
                    words.contains(word), !line.hasPrefix(" ") || Self.modules.contains(file.module)
                else { continue }
                places[word, default: []].append("\(file.path):\(index + 1)")
            }
        }
        #expect(words.count > 10)
        report(
            words.sorted().filter { places[$0]?.count != 1 }.map { word in
                "docs/DATA.md: `\(word)` has one meaning, and is defined at \(places[word] ?? [])"
            })
    }

    @Test func aVerbOfTheGlossaryBelongsToTheTypesBesideIt() throws {
        let outer = try Regex(#"^(?:[a-z]+ )*(?:struct|class|enum|protocol|actor|extension) (\w+)"#)
        let verbs = Self.rows.filter { $0.count == 3 }.map {
            (word: Self.codes($0[0])[0], owners: Set(Self.codes($0[1])))
        }
        var found: [String: Set<String>] = [:]
        for file in SourceTree.swiftFiles where file.module == "PromiseSync" && !file.isTest {
            var owner = ""
            for line in file.code {
                if let match = try? outer.firstMatch(in: line), let name = match[1].substring {
                    owner = String(name)
                }
                let words = line.split { !$0.isLetter }
                for (kind, name) in zip(words, words.dropFirst())
                where kind == "func" || kind == "case" {
                    if verbs.contains(where: { $0.word == name }), kind == "func" || owner == "Step"
                    {
                        found[String(name), default: []].insert(owner)
                    }
                }
            }
        }
        #expect(verbs.count > 4)
        report(
            verbs.filter { found[$0.word] != $0.owners }.map { verb in
                "docs/DATA.md: `\(verb.word)` is of \(verb.owners.sorted()), "
                    + "and in \(found[verb.word]?.sorted() ?? [])"
            })
    }
}
