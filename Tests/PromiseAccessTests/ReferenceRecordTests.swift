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
}
