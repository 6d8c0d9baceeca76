import PromiseAccess
import PromiseCore
import Testing

@Suite struct ReferenceRecordTests {
    private let key = ItemKey(
        identifier: ItemIdentifier("i/1"), machine: nil, kind: .file,
        path: [FileName("a folder")!, FileName([0xFF])!])

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func aReferenceSaysWhatItIsAndIsReadBack() {
        let target = ReferenceRecord(key).target
        #expect(text(target).contains("stands for the item") && text(target).contains("/a%20folder/%FF"))
        #expect(ReferenceRecord(target: target) == ReferenceRecord(key))
        for other in [
            "a", "", "promisefs-reference:", "promisefs-reference:{}", text(target) + "x",
            text(target).replacing("\"schema\":1", with: "\"schema\":2"),
        ] {
            #expect(ReferenceRecord(target: Array(other.utf8)) == nil, "\(other)")
        }
    }

    @Test func whatIsGoneIsNeverShownUnderTheNameOfSomethingElse() {
        let record = ReferenceRecord(key)
        let folder = [FileName("desk")!]
        let path = [FileName("b")!]
        #expect(text(record.link(in: folder, .found, path)) == "../b")
        #expect(text(record.link(in: folder, .unknown, path)) == "../b")
        #expect(text(record.link(in: folder, .deleted, path)) == "../.promisefs/deleted/b")
        #expect(text(record.link(in: folder, .replaced, path)) == "../.promisefs/replaced/b")
    }

    @Test func aReferenceToAnotherStorageNamesItAndIsNoneOfThisOne() {
        let storage = ReferenceRecord.Storage(identifier: "abc", domain: "papers")
        let record = ReferenceRecord(key, of: storage)
        #expect(ReferenceRecord(target: record.target) == record)
        #expect(text(record.target).contains("of the storage whose") && record.storage == storage)
        // Earlier versions read the first schema alone, and would look for the document here.
        #expect(text(record.target).contains("\"schema\":2"))
        for (old, new) in [("\"identifier\":\"abc\"", "\"identifier\":\"\""), ("\"schema\":2", "\"schema\":3")] {
            let damaged = text(record.target).replacing(old, with: new)
            #expect(ReferenceRecord(target: Array(damaged.utf8)) == nil, "\(damaged)")
        }
    }

    @Test func ofAnotherDomainTheWholePathIsShownWhileItIsKnown() {
        let record = ReferenceRecord(key, of: .init(identifier: "abc", domain: "papers"))
        var finding = ElsewhereFinding(.found, path: [FileName("b")!])
        finding.place = Array("/mnt/papers/b".utf8)
        let folder = [FileName("desk")!]
        for fate in ItemFate.allCases {
            finding.fate = fate
            let leads = [.found, .unknown, .silent].contains(fate)
            let expected = leads ? "/mnt/papers/b" : "../.promisefs/\(fate.rawValue)/b"
            #expect(text(record.link(in: folder, finding)) == expected)
        }
        #expect(text(record.link(in: folder, ElsewhereFinding(.silent, path: [FileName("b")!])))
            == "../.promisefs/silent/b")
    }
}
