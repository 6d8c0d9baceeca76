import PromiseCore
import PromiseFolder
import Testing

@Suite struct PlaceMapTests {
    private let root = ItemIdentifier("root")

    private func name(_ text: String) throws -> FileName { try #require(FileName(text)) }

    @Test func theFoldersAboveWhatWasSeenLatelyAreKnown() throws {
        var places = PlaceMap()
        places.learn(ItemIdentifier("a"), parent: root, name: try name("a"))
        places.learn(ItemIdentifier("b"), parent: ItemIdentifier("a"), name: try name("b"))
        let count = PlaceMap.generationCount * 5
        for number in 0..<count {
            places.learn(ItemIdentifier("\(number)"), parent: ItemIdentifier("b"), name: try name("\(number)"))
        }
        let expected = try [name("a"), name("b"), name("\(count - 1)")]
        #expect(places.path(of: ItemIdentifier("\(count - 1)"), root: root) == expected)
    }

    @Test func whatWasSeenLongAgoIsForgotten() throws {
        var places = PlaceMap()
        for number in 0..<(PlaceMap.generationCount * 3) {
            places.learn(ItemIdentifier("\(number)"), parent: root, name: try name("\(number)"))
        }
        #expect(places.path(of: ItemIdentifier("0"), root: root) == nil)
    }

    @Test func aCircleOfFoldersEnds() throws {
        var places = PlaceMap()
        places.learn(ItemIdentifier("a"), parent: ItemIdentifier("b"), name: try name("a"))
        places.learn(ItemIdentifier("b"), parent: ItemIdentifier("a"), name: try name("b"))
        for number in 0..<PlaceMap.generationCount {
            places.learn(ItemIdentifier("\(number)"), parent: ItemIdentifier("a"), name: try name("\(number)"))
        }
        #expect(places.path(of: ItemIdentifier("a"), root: root) == nil)
    }
}
