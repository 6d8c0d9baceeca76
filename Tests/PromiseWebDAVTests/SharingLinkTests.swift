import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Testing

/// Public links of Nextcloud and ownCloud, as their OCS Share API answers.
struct SharingLinkTests {
    private static let base = "/cloud/remote.php/dav/files/ann/shared/"
    private static let shares = "/cloud/ocs/v2.php/apps/files_sharing/api/v1/shares"

    private static func answer(_ data: String, status: Int = 200, message: String = "OK") -> String {
        let meta = "{\"status\":\"s\",\"statuscode\":\(status),\"message\":\"\(message)\"}"
        let text = "{\"ocs\":{\"meta\":\(meta),\"data\":\(data)}}"
        return reply("200 OK", ["Content-Type: application/json"], text)
    }

    private static func share(_ id: String, _ path: String, type: Int = 3, end: String = "null") -> String {
        "{\"id\":\(id),\"share_type\":\(type),\"path\":\"\(path)\",\"expiration\":\(end),"
            + "\"url\":\"https://example.com/s/\(id.filter(\.isNumber))\"}"
    }

    private static func links(
        of server: ScriptedServer, _ body: (any SharingLinks) async throws -> Void
    ) async throws {
        let provider = try await provider(server, remembering: ["keepsProperties"], at: base)
        #expect(provider.capabilities.contains(.sharingLinks))
        try await body(#require(provider.sharingLinks))
    }

    private static func server(_ answers: @escaping @Sendable (String) -> String) -> ScriptedServer {
        ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": rows((request.path, collection))
            default: answers(["\(request.method) \(request.path)", request.body].filter { !$0.isEmpty }.joined(separator: " "))
            }
        }
    }

    @Test func aLinkIsMadeToWhatIsMountedAndEndsWithADay() async throws {
        let server = Self.server { _ in Self.answer(Self.share("\"17\"", "/shared/a b/\u{e4}", end: "\"2027-01-31 00:00:00\"")) }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let path = [FileName("a b")!, FileName("\u{e4}")!]
            let end = Timestamp(seconds: 1_801_353_600, nanoseconds: 0)
            let item = ItemReference(identifier: ItemIdentifier("/x"), path: path)
            let link = try await links.make(to: item, kind: .file, until: end)
            #expect(link == SharingLink(identifier: "17", address: "https://example.com/s/17", path: path, end: end))
        }
        let asked = server.requests.filter { $0.contains("/ocs/") }
        #expect(asked.count == 1 && asked.first?.hasPrefix("POST \(Self.shares)?format=json") == true, "\(asked)")
        #expect(DayText.text(Timestamp(seconds: 1_801_439_999, nanoseconds: 0)) == "2027-01-31")
    }

    private static let day = Timestamp(seconds: 1_801_353_600, nanoseconds: 0)

    /// Makes a link to `/shared/f` at a server that has `link` already and gives it again, and answers `changed` to a change
    /// of its end.
    private static func made(
        until end: Timestamp?, has link: String, changed: @escaping @Sendable (String) -> String
    ) async throws -> (link: SharingLink?, refusal: ProviderError?, changeCount: Int) {
        let server = Self.server { line in line.hasPrefix("PUT") ? changed(line) : Self.answer(link) }
        defer { server.stop() }
        var (made, refusal): (SharingLink?, ProviderError?)
        try await Self.links(of: server) { links in
            let item = ItemReference(identifier: ItemIdentifier("/f"), path: [FileName("f")!])
            do throws(ProviderError) {
                made = try await links.make(to: item, kind: .file, until: end)
            } catch {
                refusal = error
            }
        }
        return (made, refusal, server.requests.filter { $0.hasPrefix("PUT") }.count)
    }

    /// It was given with the end that it had, whichever was asked for.
    @Test func aLinkThatIsThereAlreadyEndsWhenItIsAskedTo() async throws {
        for before in ["null", "\"2027-06-01 00:00:00\""] {
            let there = Self.share("17", "/shared/f", end: before)
            let made = try await Self.made(until: Self.day, has: there) { line in
                #expect(line == "PUT \(Self.shares)/17?format=json expireDate=2027-01-31")
                return Self.answer(Self.share("17", "/shared/f", end: "\"2027-01-31 00:00:00\""))
            }
            #expect(made.link?.end == Self.day && made.changeCount == 1)
        }
        let ending = Self.share("17", "/shared/f", end: "\"2027-06-01 00:00:00\"")
        let made = try await Self.made(until: nil, has: ending) { line in
            #expect(line == "PUT \(Self.shares)/17?format=json expireDate=")
            return Self.answer(Self.share("17", "/shared/f"))
        }
        #expect(made.link?.identifier == "17" && made.link?.end == nil && made.changeCount == 1)
    }

    @Test func aLinkThatEndsAsItIsAskedToIsNotChanged() async throws {
        for (end, text) in [(Self.day, "\"2027-01-31 00:00:00\""), (nil, "null")] {
            let there = Self.share("17", "/shared/f", end: text)
            let made = try await Self.made(until: end, has: there) { _ in Self.answer("[]", status: 500) }
            #expect(made.link?.identifier == "17" && made.link?.end == end && made.changeCount == 0)
        }
    }

    /// Its owner would believe that it has ended.
    @Test func aLinkThatLastsLongerThanItIsAskedToIsNotGiven() async throws {
        let endless = Self.share("17", "/shared/f")
        let kept = try await Self.made(until: Self.day, has: endless) { _ in Self.answer(endless) }
        #expect(kept.refusal?.code == .refused)
        #expect(kept.refusal?.message.contains("https://example.com/s/17, which does not end") == true)
        let words: @Sendable (String) -> String = { _ in
            Self.answer("[]", status: 400, message: "Expiration date is enforced")
        }
        let refused = try await Self.made(until: Self.day, has: endless, changed: words)
        #expect(refused.refusal?.code == .refused && refused.refusal?.message.contains("date is enforced") == true)
        // What is to have no end lasts as long as the server lets it.
        let ending = Self.share("17", "/shared/f", end: "\"2027-01-31 00:00:00\"")
        #expect(try await Self.made(until: nil, has: ending, changed: words).link?.end == Self.day)
    }

    /// Those of other folders, and what is shared with users, are not shown.
    @Test func linksBelowTheMountedFolderAreListed() async throws {
        let rows = [
            Self.share("1", "/shared/f"), Self.share("2", "/elsewhere/f"), Self.share("3", "/shared/g", type: 0),
            Self.share("\"4\"", "/shared/d", end: "\"2027-01-31\""),
        ]
        let server = Self.server { _ in Self.answer("[\(rows.joined(separator: ","))]") }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let found = try await links.list()
            #expect(found.map(\.identifier) == ["1", "4"] && found.map { $0.end != nil } == [false, true])
            #expect(found.first?.path == [FileName("f")!])
        }
    }

    @Test func aRefusalIsASentenceAndNothingElseIsDeleted() async throws {
        let server = Self.server { line in
            line.hasPrefix("DELETE")
                ? Self.answer("[]", status: 404, message: "Wrong share ID")
                : Self.answer("[]", status: 403, message: "Public upload disabled by the administrator")
        }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let item = ItemReference(identifier: ItemIdentifier("/x"), path: [FileName("x")!])
            let refusal = await #expect(throws: ProviderError.self) { try await links.make(to: item, kind: .file, until: nil) }
            #expect(refusal?.code == .refused && refusal?.message.contains("disabled by the administrator") == true)
            for name in ["9", "../x"] {
                let gone = await #expect(throws: ProviderError.self) { try await links.revoke(name) }
                #expect(gone?.code == .notFound)
            }
        }
        #expect(server.requests.filter { $0.hasPrefix("DELETE") }.count == 1)
    }

    /// Said by the server it was that there is no such link.
    @Test func aLinkUntilADateThatHasPassedIsRefusedAndNotAskedFor() async throws {
        let server = Self.server { _ in Self.answer("[]", status: 404, message: "Expiration date is in the past") }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let item = ItemReference(identifier: ItemIdentifier("/x"), path: [FileName("x")!])
            let past = Timestamp(seconds: 1_000_000_000, nanoseconds: 0)
            let refusal = await #expect(throws: ProviderError.self) { try await links.make(to: item, kind: .file, until: past) }
            #expect(refusal?.code == .refused && refusal?.message.contains("date has passed") == true)
        }
        #expect(!server.requests.contains { $0.hasPrefix("POST") })
    }

    @Test func ofMoreLinksThanCanBeShownTheFirstAre() async throws {
        let rows = (0..<10_050).map { Self.share("\($0)", "/shared/f") }.joined(separator: ",")
        let server = Self.server { _ in Self.answer("[\(rows)]") }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let found = try await links.list()
            #expect(found.count == 10_000 && found.last?.identifier == "9999")
        }
    }

    @Test func anotherServerHasNone() async throws {
        let server = Self.server { _ in reply("404 Not Found") }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["keepsProperties"])
        #expect(provider.sharingLinks == nil && !provider.capabilities.contains(.sharingLinks))
    }
}
