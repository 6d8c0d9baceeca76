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
}
