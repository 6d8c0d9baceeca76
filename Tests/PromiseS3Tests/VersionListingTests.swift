import Foundation
import PromiseCore
import PromiseProvider
import PromiseS3
import Testing

@Suite struct VersionListingTests {
    private func page(_ rows: String, _ end: String = "<IsTruncated>false</IsTruncated>") -> Data {
        Data("<ListVersionsResult><EncodingType>url</EncodingType>\(rows)\(end)</ListVersionsResult>".utf8)
    }

    private func row(_ kind: String, _ key: String, _ identifier: String, isLatest: Bool = false) -> String {
        """
        <\(kind)><Key>\(key)</Key><VersionId>\(identifier)</VersionId><IsLatest>\(isLatest)</IsLatest>\
        <LastModified>2026-11-22T02:13:18.185Z</LastModified><ETag>"\(identifier)tag"</ETag><Size>4</Size></\(kind)>
        """
    }

    @Test func versionsAreReadAndDeletionsAreNone() throws {
        let rows = row("Version", "a%20b", "3", isLatest: true) + row("DeleteMarker", "a%20b", "2") + row("Version", "a%20b", "1")
        let found = try #require(S3Versions.parse(page(rows)))
        #expect(found.versions.map(\.version.identifier) == ["3", "1"])
        #expect(found.versions.map(\.isLatest) == [true, false])
        #expect(found.versions.allSatisfy { $0.key == Array("a b".utf8) && $0.version.size == 4 })
        #expect(found.versions.map(\.version.version.rawValue) == ["3tag", "1tag"])
        #expect(found.next == nil)
    }

    @Test func aPageSaysWhereTheNextOneBegins() {
        let end = "<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker><NextVersionIdMarker>7</NextVersionIdMarker>"
        #expect(S3Versions.parse(page(row("Version", "a", "7"), end))?.next != nil)
    }

    @Test func whatIsCutOffOrSomethingElseIsNoPage() {
        let whole = page(row("Version", "a", "1"))
        #expect(S3Versions.parse(whole) != nil)
        #expect(S3Versions.parse(whole.dropLast(20)) == nil)
        #expect(S3Versions.parse(Data("<ListBucketResult></ListBucketResult>".utf8)) == nil)
        #expect(S3Versions.parse(page(row("Version", "a", "1"), "<IsTruncated>true</IsTruncated>")) == nil)
    }
}
