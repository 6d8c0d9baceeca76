import Foundation
import NIOHTTP1
import PromiseCore
import PromiseProvider
import PromiseHTTP
import PromiseWebDAV
import Testing

/// What servers say, read as it is meant.
struct ReplyTests {
    private func parse(_ text: String) -> [ResourceStatus]? { MultiStatusParser.parse(Data(text.utf8)) }

    @Test func propertiesOfApacheAreRead() throws {
        let resources = try #require(
            parse(
                """
                <?xml version="1.0" encoding="utf-8"?>
                <D:multistatus xmlns:D="DAV:" xmlns:ns0="urn:promisefs" xmlns:ns1="DAV:">
                <D:response xmlns:lp1="DAV:"><D:href>/a&amp;b%20c</D:href><D:propstat><D:prop><lp1:resourcetype/>
                <lp1:getcontentlength>12</lp1:getcontentlength><lp1:getetag>W/"c-1"</lp1:getetag>
                <lp1:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</lp1:getlastmodified><ns0:state>1 644 0 0 5 vc-1</ns0:state>
                </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
                <D:response><D:href>/folder/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop>
                <D:status>HTTP/1.1 200 OK</D:status></D:propstat><D:propstat><D:prop><D:getetag>"not there"</D:getetag></D:prop>
                <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>
                </D:multistatus>
                """))
        #expect(resources.count == 2)
        #expect(resources[0].reference == "/a&b%20c" && resources[0].contentLength == 12 && !resources[0].isCollection)
        #expect(resources[0].keptState == "1 644 0 0 5 vc-1")
        #expect(resources[1].isCollection && resources[1].entityTag == nil, "what is not there is no property")
        #expect(resources[0].refusals.isEmpty && resources[1].refusals == [404])
    }

    /// It was "the server answers 424", and a lock that had ended was noticed a minute later.
    @Test(arguments: [("423 Locked", 423), ("403 Forbidden", 403), ("424 Failed Dependency", 424), ("", 424)])
    func whatIsInTheWayBelowAFolderIsSaid(below: String, meant: Int) {
        let text =
            below.isEmpty
            ? "<html>no multi-status</html>"
            : "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/dir/sub/f</D:href>"
                + "<D:status>HTTP/1.1 \(below)</D:status></D:response></D:multistatus>"
        let reply = HTTPReply(status: 424, headers: [:], body: Data(text.utf8))
        let error = ProviderError(reply, "'/dir' cannot be moved")
        let expected = ProviderError(status: meant, "'/dir' cannot be moved")
        #expect(error.code == expected.code && error.message == expected.message)
    }

    @Test func aReplyThatIsCutOffIsNone() {
        #expect(parse("<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/a</D:href></D:response>") == nil)
        #expect(parse("<html><body>Hello</body></html>") == nil)
        #expect(parse("") == nil)
    }

    @Test func aLockIsReadWithItsOwner() throws {
        let resources = try #require(
            parse(
                """
                <multistatus xmlns="DAV:"><response><href>/a</href><propstat><prop><lockdiscovery><activelock>
                <owner>promisefs-x</owner>
                <locktoken><href>opaquelocktoken:1</href></locktoken></activelock></lockdiscovery></prop>
                <status>HTTP/1.1 200 OK</status></propstat></response></multistatus>
                """))
        #expect(resources.first?.lockToken == "opaquelocktoken:1" && resources.first?.lockOwner == "promisefs-x")
        #expect(resources.first?.reference == "/a")
    }

    @Test func datesAreThoseOfTheCalendar() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
            ("Mon, 31 Dec 1900 00:00:00 GMT", -2_177_539_200),
        ] { #expect(HTTPDate.timestamp(text)?.seconds == seconds, "\(text)") }
        for text in [
            "", "yesterday", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 0849 GMT",
            "Sun, 06 Nov 1994 9223372036854775807:00:00 GMT",
        ] {
            #expect(HTTPDate.timestamp(text) == nil)
        }
    }

    @Test func entityTagsAreComparedWithoutQuotesAndWeakness() {
        for tag in ["\"a-1\"", "W/\"a-1\"", "a-1"] { #expect(EntityTag.opaque(tag) == "a-1") }
    }

    @Test func whatIsKeptWithAnItemComesBack() {
        let metadata = Metadata(mode: 0o4750, owner: 1000, group: 7, modificationTime: Timestamp(nanoseconds: -1_234_567_891))
        for target in [nil, Array("../é \u{1}".utf8), [0xFF, 0x20]] {
            let state = KeptState(metadata: metadata, target: target, version: "a \"b\"<c>")
            #expect(KeptState(state.text) == state)
            #expect(!state.text.contains("<"), "it is put into a document as it is")
        }
        for text in ["", "1 644", "2 644 0 0 5 v", "1 999 0 0 5 v", "1 77777 0 0 5 v", "1 644 0 0 5 v l"] {
            #expect(KeptState(text) == nil, "\(text)")
        }
    }

    /// Each status means what the engine must do about it.
    @Test(arguments: [
        (401, nil, ProviderError.Code.authenticate), (403, nil, .refused), (404, nil, .notFound), (405, nil, .refused),
        (409, nil, .refused), (410, nil, .notFound), (412, nil, .conflict), (416, nil, .stale),
        (423, nil, .retryAfter(.seconds(2))),
        (429, "7", .retryAfter(.seconds(7))), (500, nil, .retry), (502, nil, .retry),
        (503, "Sun, 06 Nov", .retryAfter(.seconds(5))),
        (503, "999999", .retryAfter(.seconds(600))), (507, nil, .outOfSpace), (504, nil, .retry),
    ])
    func statusesMeanWhatIsToBeDone(status: Int, retryAfter: String?, code: ProviderError.Code) {
        let error = ProviderError(status: status, retryAfter: retryAfter, "'/a' cannot be looked at")
        #expect(error.code == code)
        #expect(error.message.contains("\(status)"))
    }

    /// Of what is put into a folder, 409 says that there is no such folder.
    @Test func aFolderThatIsNotThereIsNotFound() {
        #expect(ProviderError(status: 409, "'/a/b' cannot be uploaded", puts: true).code == .notFound)
    }
}
