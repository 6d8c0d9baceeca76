import PromiseAccess
import PromiseCore
import Testing

/// Pictures of documents as hidden objects at a provider.
@Suite struct PictureRecordTests {
    private func record(_ identifier: String?, _ path: String, _ version: String) -> PictureRecord {
        PictureRecord(
            identifier: identifier.map { ItemIdentifier($0) }, path: ItemKey.names(path) ?? [],
            version: ContentVersion(version))
    }

    @Test func aPictureIsOfOneItemAndOneVersion() {
        let bytes = record(nil, "/a/b.png", "v1").bytes(of: [1, 2, 10])
        #expect(record(nil, "/a/b.png", "v1").picture(in: bytes) == [1, 2, 10])
        #expect(record(nil, "/a/b.png", "v2").picture(in: bytes) == nil)
        #expect(record(nil, "/a/c.png", "v1").picture(in: bytes) == nil)
        #expect(record("7", "/a/b.png", "v1").picture(in: bytes) == nil)
        #expect(record(nil, "/a/b.png", "v1").picture(in: []) == nil)
    }

    /// All versions of an item replace each other; where machines share identifiers it keeps its picture wherever it is moved.
    @Test func theNameIsTheItems() {
        #expect(record(nil, "/a", "v1").name == record(nil, "/a", "v2").name)
        #expect(record("7", "/a", "v1").name == record("7", "/b", "v1").name)
        #expect(record(nil, "/a", "v1").name != record(nil, "/b", "v1").name)
        #expect(record(nil, "/%61", "v1").name == record(nil, "/a", "v1").name)
        // What a server may call things.
        let odd = record("x\n/../\0é", "/a", "v\n1 2")
        #expect(odd.picture(in: odd.bytes(of: [3])) == [3])
        #expect(odd.name.utf8.count < 100)
    }

    @Test func aPictureAtAProviderSaysWhatItIsOf() {
        let place = record(nil, "/a b/c.png", "v1")
        let found = PictureRecord.read(place.bytes(of: [1, 10, 2]), as: place.name)
        #expect(found?.identifier == nil && found?.path == ItemKey.names("/a%20b/c.png"))
        #expect(found.map { Array($0.picture) } == [1, 10, 2])
        let item = record("x\n/é", "/a", "v 1")
        #expect(PictureRecord.read(item.bytes(of: [3]), as: item.name)?.identifier == ItemIdentifier("x\n/é"))
        // What a stranger may put there.
        #expect(PictureRecord.read(item.bytes(of: [3]), as: place.name) == nil)
        let mark = "promisefs-picture-at-a-provider-1"
        for rubbish in ["", "\n", "x", "\(mark) \n", "\(mark)  identifier\n", "\(mark)  place /a\n"] {
            #expect(PictureRecord.read(Array(rubbish.utf8), as: item.name) == nil)
        }
    }
}
