import PromiseAccess
import PromiseCore
import PromiseKeyValue
import Testing

@Suite struct BookmarkSealTests {
    private let bookmark = Bookmark(
        key: ItemKey(
            identifier: ItemIdentifier("1"), machine: nil, kind: .file, path: [FileName("secret name")!]),
        entry: EntryID(7), isReadOnly: true, attributes: ["kMDItemFSName": .string("secret name")])
    private let seal = BookmarkSeal(key: [UInt8](repeating: 5, count: 32))!

    @Test func aBookmarkIsOneOpaqueLineThatItsApplicationAloneCanUse() throws {
        let text = try #require(seal.seal(bookmark, for: "com.example.editor"))
        #expect(text.utf8.allSatisfy { $0 > 0x2C && $0 < 0x7F && $0 != 0x2F } && !text.contains("secret"))
        #expect(text != seal.seal(bookmark, for: "com.example.editor"), "no two are alike")
        #expect(seal.open(text, for: "com.example.editor") == bookmark)
        #expect(seal.open(text, for: "com.example.other") == nil)
        #expect(seal.open(text, for: nil) == nil && seal.open(text, for: "") == nil)
        let other = BookmarkSeal(key: [UInt8](repeating: 6, count: 32))!
        #expect(other.open(text, for: "com.example.editor") == nil)
        #expect(BookmarkSeal(key: []) == nil && BookmarkSeal.freshKey() != BookmarkSeal.freshKey())
    }

    @Test func whatWasChangedInAnyPlaceIsNoBookmark() throws {
        let text = Array(try #require(seal.seal(bookmark, for: nil)))
        for place in stride(from: 0, to: text.count, by: 3) {
            var changed = text
            changed[place] = changed[place] == "A" ? "B" : "A"
            #expect(seal.open(String(changed), for: nil) == nil, "\(place)")
        }
        for other in ["", "A", "AQ", "====", "ü", String(text.dropLast(5)), String(text) + "AAAA"] {
            #expect(seal.open(other, for: nil) == nil, "\(other)")
        }
    }

    @Test func aBookmarkSaysWhyItIsStale() {
        var now = bookmark.key
        #expect(bookmark.staleness(now) == nil)
        now.path = [FileName("other")!]
        #expect(bookmark.staleness(now)?.contains("moved") == true)
        now = bookmark.key
        now.identifier = ItemIdentifier("2")
        #expect(bookmark.staleness(now)?.contains("replaced") == true)
        var early = bookmark
        early.key.identifier = nil
        #expect(early.staleness(bookmark.key) == nil, "it was uploaded since")
    }
}
