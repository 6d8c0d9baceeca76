import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Testing

/// Names of buckets and keys, and what servers say of objects.
@Suite struct ValueTests {
    // MARK: Checksums

    /// The check values that catalogues of such codes have, of `123456789`; in pieces of any size.
    @Test(arguments: [
        (CyclicRedundancyCheck.Kind.crc32, "cbf43926"), (.crc32c, "e3069283"), (.crc64nvme, "ae8b14860a799888"),
    ])
    func checksAreThoseOfTheStandards(kind: CyclicRedundancyCheck.Kind, expected: String) {
        var check = CyclicRedundancyCheck(kind)
        Array("123456789".utf8).withUnsafeBytes { check.update($0) }
        #expect(check.bytes == PercentEncoding.decoded(hexadecimal: Substring(expected)))
        let bytes = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        var whole = CyclicRedundancyCheck(kind)
        bytes.withUnsafeBytes { whole.update($0) }
        for size in [1, 7, 8, 9, 33] {
            var pieces = CyclicRedundancyCheck(kind)
            for start in stride(from: 0, to: bytes.count, by: size) {
                bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { pieces.update($0) }
            }
            #expect(pieces.bytes == whole.bytes)
        }
    }

    // MARK: Faults for checks

    @Test(arguments: [
        ("<a><response><b/></response> <response>2</response></a>",
            "<a><response><b/></response> <response>2</response><response><b/></response><response>2</response></a>"),
        ("<D:m xmlns:D=\"DAV:\"><D:response>1</D:response></D:m>",
            "<D:m xmlns:D=\"DAV:\"><D:response>1</D:response><D:response>1</D:response></D:m>"),
        ("<r><Contents>1</Contents><CommonPrefixes>2</CommonPrefixes><n/></r>",
            "<r><Contents>1</Contents><CommonPrefixes>2</CommonPrefixes><Contents>1</Contents>"
                + "<CommonPrefixes>2</CommonPrefixes><n/></r>"),
        ("{\"items\":[1,{\"a\":2}]}", "{\"items\":[1,{\"a\":2},1,{\"a\":2}]}"), ("{\"items\":[]}", nil), ("<r/>", nil),
        ("text", nil), ("<r><response>", nil),
    ])
    func rowsAreRepeatedBehindTheLast(document: String, repeated: String?) {
        #expect(RepeatedRows.of(Array(document.utf8)).map { String(decoding: $0, as: UTF8.self) } == repeated)
    }

    // MARK: Locations

    @Test(arguments: [
        ("s3://bucket", "s3://bucket/", "bucket.s3.us-east-1.amazonaws.com/a%20b"),
        (
            "s3://bucket/a/b/?region=eu-west-1", "s3://bucket/a/b/?region=eu-west-1",
            "bucket.s3.eu-west-1.amazonaws.com/a%20b"
        ),
        ("s3://my.bucket", "s3://my.bucket/", "s3.us-east-1.amazonaws.com/my.bucket/a%20b"),
        (
            "s3://bucket/x?endpoint=http://127.0.0.1:9000/", "s3://bucket/x/?endpoint=http://127.0.0.1:9000",
            "127.0.0.1:9000/bucket/a%20b"
        ),
        (
            "s3://bucket?endpoint=http://localhost:9000&style=virtual",
            "s3://bucket/?endpoint=http://localhost:9000&style=virtual", "bucket.localhost:9000/a%20b"
        ),
    ])
    func aNameHasOneFormAndLeadsToAnAddress(name: String, form: String, address: String) throws {
        let location = try S3Location(parsing: name)
        #expect(location.name == form)
        #expect((location.origin + location.path(Array("a b".utf8))).hasSuffix("://\(address)"))
        #expect(try S3Location(parsing: location.name) == location)
    }

    @Test(arguments: [
        "s3://", "s3://key:secret@bucket/", "s3://key@bucket/", "s3://b ucket", "s3://bucket:80/", "s3://bucket/a/../b",
        "s3://bucket/%ff", "s3://bucket?secret=hidden", "s3://bucket?endpoint=ftp://host", "s3://bucket?endpoint=http://u:p@host",
        "s3://bucket?style=odd", "s3://bucket#part",
    ])
    func whatNamesNoBucketIsRefusedWithASentenceWithoutSecrets(name: String) {
        do {
            _ = try S3Location(parsing: name)
            Issue.record("\(name) is taken")
        } catch {
            #expect(error.code == .permanent && !error.message.contains("hidden") && !error.message.contains("key:"))
        }
    }

    @Test func theEnvironmentSaysWhatTheNameLeavesOpen() throws {
        let variables = ["AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "eu-north-1"]
        let location = try S3Location(parsing: "s3://bucket") { variables[$0] }
        #expect(location.name == "s3://bucket/?endpoint=http://127.0.0.1:1&region=eu-north-1")
        #expect(location.hostNames == ["bucket", "127.0.0.1:1", "127.0.0.1"])
    }

    @Test func anAccessKeyIsFoundInTheFileOfAWSsTools() {
        let text =
            "[default]\naws_access_key_id = A\n[work]\n# note\naws_secret_access_key=s = 1\r\nAWS_ACCESS_KEY_ID = B\nregion = x\n"
        #expect(AccessKeySource.key(inSharedFile: text, profile: "default") == nil)
        #expect(
            AccessKeySource.key(inSharedFile: text, profile: "work")
                == AccessKey(identifier: "B", secret: Secret("s = 1")))
    }

    // MARK: Keys

    @Test func keysAndPathsLeadToEachOther() throws {
        for escapes in [NameEscapes(), .controls] {
            let names = KeyNames(prefix: Array("pre/".utf8), escapes: escapes)
            let folder = [try #require(FileName("a b"))]
            let texts = ["é", "one\ntwo", "‛0A", "..x"].map { Array($0.utf8) }
            for bytes in texts + [[0x66, 0xFF], [1, 0x7F]] {
                let name = try #require(FileName(bytes))
                let key = names.key(folder + [name])
                #expect(key.starts(with: Array("pre/a b/".utf8)) && String(validating: key, as: UTF8.self) != nil)
                #expect(names.name(of: key, in: names.folderKey(folder)) == name)
                #expect(names.name(of: names.folderKey(folder + [name]), in: names.folderKey(folder)) == name)
                #expect(escapes.isEmpty || !key.contains { $0 < 0x20 || $0 == 0x7F })
            }
        }
    }

    @Test(arguments: ["pre/", "pre//", "pre/.", "pre/..", "pre/../", "pre/a\u{0}", "other"])
    func whatIsNoFileNameIsNone(key: String) {
        #expect(KeyNames(prefix: Array("pre/".utf8)).name(of: Array(key.utf8), in: Array("pre/".utf8)) == nil)
    }

    @Test func aListingHidesWhatCannotBeShown() throws {
        let names = KeyNames(prefix: [])
        let listing = try #require(
            S3Listing.parse(
                page(
                    keys: ["a", "a%2F..%2Fb", "dir", ".promisefs", "%FF", String(repeating: "x", count: 256), "b+c%2Bd"],
                    prefixes: ["dir/", "/", "../", ".promisefs/", "n%0An/"])))
        let rows = S3Rows(listing, in: [], names, isRoot: true)
        #expect(rows.files.map(\.name.display) == ["a", "dir (file beside folder)", "b c+d"])
        #expect(rows.folders.map(\.name.display) == ["dir", "n\\nn"])
        #expect(rows.hidden.count == 5)
    }

    @Test func aKeyThatIsListedTwiceIsThereOnce() throws {
        let listing = try #require(S3Listing.parse(page(keys: ["a", "b", "a"], prefixes: ["c/", "c/"])))
        let rows = S3Rows(listing, in: [], KeyNames(prefix: []), isRoot: true)
        #expect(rows.files.map(\.name.display) == ["a", "b"] && rows.folders.map(\.name.display) == ["c"])
        #expect(rows.hidden.isEmpty)
    }

    @Test func contentUnderAFoldersKeyIsHiddenAndNotLost() throws {
        let listing = try #require(S3Listing.parse(page(keys: ["dir%2F", "dir%2Fa"], prefixes: [])))
        let folder = Array("dir/".utf8)
        let rows = S3Rows(listing, in: folder, KeyNames(prefix: []), isRoot: false)
        #expect(rows.hidden == [folder] && rows.files.map(\.name.display) == ["a"])
    }

    @Test func aListingThatIsCutOffIsNone() {
        let whole = page(keys: ["a", "b"], prefixes: [])
        #expect(S3Listing.parse(whole)?.objects.count == 2)
        #expect(S3Listing.parse(whole.dropLast(20)) == nil)
        #expect(S3Listing.parse(Data("<html></html>".utf8)) == nil)
    }

    /// Ceph RGW says back what it was asked for, with references to characters that XML does not have.
    @Test func aListingThatSaysBackControlCharactersIsRead() throws {
        let text = String(decoding: page(keys: ["q%2F%01z"], prefixes: [], extra: "<Prefix>q/&#x01;</Prefix>"), as: UTF8.self)
        let listing = try #require(S3Listing.parse(Data(text.utf8)))
        #expect(listing.objects.map(\.key) == [Array("q/\u{1}z".utf8)])
        let next = S3Listing.Next.after(Array("q/\u{1}".utf8))
        #expect(S3Listing.Next(next.text) == next && S3Listing.Next("tabc") == .token("abc") && S3Listing.Next("") == nil)
    }

    private func page(keys: [String], prefixes: [String], extra: String = "") -> Data {
        let rows = keys.map {
            "<Contents><Key>\($0)</Key><LastModified>2026-11-22T02:13:18.185Z</LastModified><ETag>&quot;e&quot;</ETag>"
                + "<Size>1</Size><Owner><ID>o</ID></Owner></Contents>"
        }
        let folders = prefixes.map { "<CommonPrefixes><Prefix>\($0)</Prefix></CommonPrefixes>" }
        return Data(
            ("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(extra)"
                + "<EncodingType>url</EncodingType>\(rows.joined())\(folders.joined())<IsTruncated>false</IsTruncated>"
                + "</ListBucketResult>").utf8)
    }

    // MARK: Metadata

    @Test func modesAndTimesAreReadAsOthersWriteThem() {
        let status = ObjectStatus([
            "ETag": "\"abc-2\"", "Content-Length": "12", "Last-Modified": "Sun, 22 Nov 2026 02:13:18 GMT",
            "x-amz-meta-mtime": "1354040105.123456789", "x-amz-meta-mode": "33256", "x-amz-meta-uid": "5",
            "x-amz-meta-other": "x", "Content-Type": "text/plain",
        ])
        #expect(status.tag == "abc-2" && status.size == 12)
        #expect(status.details.modificationTime == Timestamp(seconds: 1_354_040_105, nanoseconds: 123_456_789))
        #expect(status.details.mode == 0o750 && status.details.owner == 5 && status.details.group == nil)
        #expect(!status.details.isLink)
        #expect(status.kept.count == 2)
        #expect(ObjectDetails.status("41471").map { $0 & 0o170000 } == 0o120000)
        #expect(ObjectDetails.status("100644") == 0o100644 && ObjectDetails.status("0755") == 0o755)
        #expect(ObjectDetails.status("-1") == nil && ObjectDetails.status("x") == nil)
    }

    @Test(arguments: [0, 1, 1_354_040_105_123_456_789, -1, -1_500_000_000, 1_000_000_000])
    func timesComeBackAsTheyWere(nanoseconds: Int64) {
        let time = Timestamp(nanoseconds: nanoseconds)
        #expect(ObjectDetails.timestamp(ObjectDetails.text(time)) == time, "\(ObjectDetails.text(time))")
    }

    @Test func whatIsKnownOfAnObjectHoldsAsLongAsItsTagAndTime() {
        let known = KnownDetails(entriesMax: 2)
        let (first, second) = (Timestamp(seconds: 1, nanoseconds: 0), Timestamp(seconds: 2, nanoseconds: 0))
        var details = ObjectDetails()
        details.mode = 0o600
        let key = Array("key".utf8)
        #expect(known.answer(key, .init(tag: "a", lastModified: first)) == .unknown)
        // Our own write: the first listing says its time.
        known.note(key, .init(tag: "a", lastModified: nil), details)
        #expect(known.answer(key, .init(tag: "a", lastModified: first)) == .known(details))
        #expect(known.answer(key, .init(tag: "a", lastModified: second)) == .unknown)
        #expect(known.answer(key, .init(tag: "b", lastModified: first)) == .unknown)
        for index in 0..<3 { known.note([UInt8(index)], .init(tag: "x", lastModified: first), details) }
        #expect(known.answer(key, .init(tag: "a", lastModified: first)) == .told)
    }

    @Test func whatWasFoundInTheBackgroundIsAskedForUntilAListingTellsIt() {
        let known = KnownDetails(entriesMax: 1)
        let stamp = KnownDetails.Stamp(tag: "a", lastModified: .zero)
        let key = Array("key".utf8)
        known.note(key, stamp, ObjectDetails())
        known.note([0], stamp, ObjectDetails())
        #expect(known.answer(key, stamp) == .unknown)
        known.tell(key, stamp)
        #expect(known.answer(key, stamp) == .told)
    }

    // MARK: Journals

    @Test func aMoveIsUnfinishedOnlyWhenNobodyIsAtItAndOneThatCannotBeJournalledDoesNotBegin() throws {
        let record = MoveJournal.Record(source: "a/", target: "b/")
        let file = RememberedFile<[MoveJournal.Record]>(folder: nil, name: "x", logger: Logger(label: "test"))
        let journal = MoveJournal(file)
        try journal.begin(record)
        #expect(journal.unfinished.isEmpty)
        journal.leave(record)
        #expect(journal.unfinished == [record])
        journal.end(record)
        #expect(journal.unfinished.isEmpty)
        let nowhere = RememberedFile<[MoveJournal.Record]>(
            folder: Array("/no such folder".utf8), name: "x", logger: Logger(label: "test"))
        #expect(throws: ProviderError.self) { try MoveJournal(nowhere).begin(record) }
    }

    /// Each object of a folder made the journal longer, and all of it was written anew with each.
    @Test func whatHasBeenMovedIsWrittenNoMore() throws {
        let folder = try TemporaryFolder("journal")
        let file = RememberedFile<[MoveJournal.Record]>(
            folder: folder.path(""), name: "moves.json", logger: Logger(label: "test"))
        let journal = MoveJournal(file)
        let record = MoveJournal.Record(source: "a/", target: "b/")
        try journal.begin(record)
        for number in 0..<20 {
            journal.copied("a/\(number)", tag: "1", copyTag: "2", record)
            if number < 18 { journal.moved("a/\(number)", record) }
        }
        #expect(file.read()?.first?.copies?.keys.sorted() == ["a/18", "a/19"])
        // The next daemon knows its copies by them.
        #expect(MoveJournal(file).unfinished.first?.copies?.count == 2)
        journal.end(record)
        #expect(file.read() == [])
    }

    @Test func anUploadThatIsGoneOnWithIsNotOld() {
        let journal = UploadJournal(RememberedFile(folder: nil, name: "x", logger: Logger(label: "test")))
        let record = UploadJournal.Record(
            key: "k", upload: "u", size: 1, partByteCount: 1, headers: [], began: Timestamp(seconds: 0, nanoseconds: 0))
        journal.add(record)
        let later = Timestamp(seconds: 8 * 86_400, nanoseconds: 0)
        #expect(journal.old(at: later).count == 1)
        journal.touch(record, at: later)
        #expect(journal.old(at: later).isEmpty)
        journal.remove(record)
        #expect(journal.record("k") == nil)
    }

    @Test func whatIsNotedOfPartsIsInTheNextJournalAndAnOlderOneIsRead() throws {
        let folder = try TemporaryFolder("uploads")
        let file = RememberedFile<[UploadJournal.Record]>(folder: folder.path, name: "x", logger: Logger(label: "test"))
        let old = "[{\"key\":\"k\",\"upload\":\"u\",\"size\":1,\"partByteCount\":1,\"headers\":[],\"began\":0}]"
        try folder.write(old, to: "x")
        let journal = UploadJournal(file)
        #expect(journal.record("k")?.upload == "u" && journal.record("k")?.digests == nil)
        var record = UploadJournal.Record(key: "k", upload: "v", size: 3, partByteCount: 1, began: .zero, digests: [])
        journal.add(record)
        journal.note("1", ofPart: 1, of: record)
        journal.note("3", ofPart: 3, of: record)
        record.upload = "of another one"
        journal.note("2", ofPart: 2, of: record)
        #expect(UploadJournal(file).record("k")?.digests == ["1"] && UploadJournal(file).names == ["v"])
    }

    // MARK: Folders that were seen

    @Test func onlyAWholeListingOfLatelyTellsThatAFolderIsMissing() {
        let seen = SeenFolders()
        let (top, a, b) = (Array("t/".utf8), Array("t/a/".utf8), Array("t/b/".utf8))
        #expect(!seen.isMissing(a, in: top, at: .seconds(1)), "nobody has looked")
        seen.listed([a], in: top, isFirst: true, isLast: false, at: .seconds(1))
        #expect(!seen.isMissing(b, in: top, at: .seconds(1)), "it may be on the next page")
        seen.listed([], in: top, isFirst: false, isLast: true, at: .seconds(2))
        #expect(seen.isMissing(b, in: top, at: .seconds(3)) && !seen.isMissing(a, in: top, at: .seconds(3)))
        #expect(!seen.isMissing(b, in: top, at: .seconds(1) + SeenFolders.lifetime), "the listing began too long ago")
        seen.made(b, in: top, at: .seconds(3))
        #expect(!seen.isMissing(b, in: top, at: .seconds(3)), "we made it")
        #expect(seen.isMissing(Array("t/b/c/".utf8), in: b, at: .seconds(3)), "what we made is empty")
    }

    // MARK: Parts

    @Test func partsCoverAContentOnceAndAreNeverTooMany() {
        for size in [1, 8 << 20, (8 << 20) + 1, 40 << 20, 5 << 30, 5 << 40] as [UInt64] {
            let plan = PartPlan(size: size)
            #expect(plan.count <= 10_000 && plan.partByteCount >= 5 << 20)
            #expect(plan.range(1).lower == 0 && plan.range(plan.count).upper == size)
            if plan.count > 1 { #expect(plan.range(1).upper == plan.range(2).lower) }
        }
        #expect(PartPlan(size: 40 << 20).partByteCount == 8 << 20 && PartPlan(size: 1 << 30).partByteCount == 16 << 20)
        #expect(PartPlan(size: 1 << 40).readsAhead == false, "memory holds no two of 105 MiB")
    }

    @Test func tagsOfPartsMakeTheTagOfTheWhole() {
        #expect(PartDigest.of(ByteBuffer(string: "x")).tag == "9dd4e461268c8034f5c8564e155c67a6")
        // As both servers say it of one part.
        #expect(PartDigest.ofParts(["9dd4e461268c8034f5c8564e155c67a6"]) == "9affad555af89da9b0bfcd5e45bc93da-1")
        #expect(PartDigest.ofParts(["of another kind"]) == nil)
    }

    // MARK: Refusals

    @Test func refusalsMeanWhatTheEngineMustDo() {
        #expect(S3Refusal(status: 503, code: "SlowDown").error("x").code == .retryAfter(.seconds(5)))
        #expect(S3Refusal(status: 404, code: "NoSuchBucket").error("x").code == .refused)
        // It was taken for a removal of the file whose new content was on its way.
        #expect(S3Refusal(status: 404, code: "NoSuchUpload").error("x").code == .retry)
        #expect(S3Refusal(status: 404, code: "NoSuchKey").error("x").code == .notFound)
        #expect(S3Refusal(status: 412).error("x").code == .conflict)
        #expect(S3Refusal(status: 403, code: "SignatureDoesNotMatch").error("x").code == .authenticate)
        #expect(S3Refusal(status: 403, code: "QuotaExceeded").error("x").code == .outOfSpace)
        #expect(S3Refusal(status: 400, code: "RequestTimeout").error("x").code == .retry)
        #expect(S3Refusal(status: 301, region: "eu-west-1").error("x").message.contains("301"))
    }
}
