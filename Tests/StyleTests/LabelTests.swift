import Testing

/// A label names one call site: a test that makes it fail must know which call it was. The folder provider's labels name what is
/// done for a request, which may take several calls, and the commands' are seen by people only.
@Suite struct LabelTests {
    static let modules: Set<String> = [
        "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseSync", "PromiseFilesystem", "PromiseDomain",
    ]

    @Test func everyLabelNamesOneCallSite() throws {
        let pattern = try Regex(#"(?:label: |\bcall\()"([a-zA-Z.]+)""#)
        var places: [String: [String]] = [:]
        for file in SourceTree.swiftFiles where Self.modules.contains(file.module) {
            for (index, line) in file.lines.enumerated() {
                for match in line.matches(of: pattern) {
                    guard let label = match.output[1].substring else { continue }
                    places[String(label), default: []].append("\(file.path):\(index + 1)")
                }
            }
        }
        #expect(places.count > 30, "the pattern finds labels no more")
        report(
            places.filter { $0.value.count > 1 }.map { label, found in
                "\(label) is at \(found.joined(separator: " and ")); give each call its own label"
            }.sorted())
    }
}
