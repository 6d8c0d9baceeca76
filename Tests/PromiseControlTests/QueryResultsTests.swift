import PromiseKit
import PromiseQuery
import PromiseWire
import Testing

/// What an application keeps of a query's updates.
@Suite struct QueryResultsTests {
    private func item(_ id: Int64, _ attributes: [String: WireValue]) -> FoundItemDocument {
        FoundItemDocument(
            id: id, node: UInt64(id), path: "/\(id)", pathBytes: "/\(id)", kind: "file", size: 0, modificationTime: "",
            identifier: nil, state: "current", isUploaded: true, attributes: attributes)
    }

    @Test func valuesAreCountedAsUpdatesCome() {
        var results = QueryResults(valuesOf: ["type", "tags"])
        results.apply(.added([item(1, ["type": .text("a"), "tags": .list([.text("x"), .text("y"), .text("x")])])]))
        results.apply(.added([item(2, ["type": .text("b")]), item(3, ["type": .text("a")])]))
        results.apply(.finishedGathering)
        #expect(results.isComplete && results.items.map(\.id) == [1, 2, 3])
        #expect(results.values(of: "type").map(\.value) == [.text("a"), .text("b")])
        #expect(results.values(of: "tags").map(\.count) == [2, 1, 1], "two without tags, one of each tag")
        results.apply(.changed([item(1, ["type": .text("b")])]))
        results.apply(.removed([3, 99]))
        #expect(results.values(of: "type").map { "\($0.value) \($0.count)" } == ["text(\"b\") 2"])
        #expect(results.values(of: "tags").map(\.value) == [.null])
        #expect(results.grouped(by: "type")[.text("b")]?.map(\.id) == [1, 2])
        results.apply(.reset)
        #expect(results.count == 0 && results.values(of: "type").isEmpty && !results.isComplete)
    }

    @Test func theKeysOfPromisedValuesAreThoseOfQueries() {
        #expect(Set(PromisedKey.all.map(\.rawValue)) == Set(AttributeKey.allCases.map(\.rawValue)))
        #expect(PromisedKey.all.count == AttributeKey.allCases.count)
    }
}
