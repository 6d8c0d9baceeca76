import PromiseCore
import PromiseProvider
import PromiseSystem
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

    private static let day = Timestamp(seconds: 1_801_353_600, nanoseconds: 0)

    /// In the middle of a day, however late the tests run.
    private struct NoonClock: TimeSource {
        var date = Timestamp(seconds: day.seconds - 30 * 86_400, nanoseconds: 0)
        func now() -> Timestamp { date.advanced(by: .seconds(43_200)) }
        func uptime() -> Duration { SystemClock().uptime() }
    }

    private static func links(
        of server: ScriptedServer, at date: NoonClock = NoonClock(), _ body: (any SharingLinks) async throws -> Void
    ) async throws {
        let provider = try await provider(server, remembering: ["keepsProperties"], at: base, clock: date)
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
        let made = Self.share("\"17\"", "/shared/a b/\u{e4}", end: "\"2027-01-31 00:00:00\"")
        let server = Self.server { line in Self.answer(line.hasPrefix("GET") ? "[]" : made) }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let path = [FileName("a b")!, FileName("\u{e4}")!]
            let end = Timestamp(seconds: 1_801_353_600, nanoseconds: 0)
            let item = ItemReference(identifier: ItemIdentifier("/x"), path: path)
            let link = try await links.make(to: item, kind: .file, until: end)
            #expect(link == SharingLink(identifier: "17", address: "https://example.com/s/17", path: path, end: end))
        }
        let asked = server.requests.filter { $0.contains("/ocs/") }
        let looked = "GET \(Self.shares)?format=json&path=%2Fshared%2Fa%20b%2F%C3%A4 "
        #expect(asked.count == 2 && asked.first?.hasPrefix(looked) == true, "\(asked)")
        #expect(asked.last?.hasPrefix("POST \(Self.shares)?format=json") == true, "\(asked)")
        #expect(DayText.text(Timestamp(seconds: 1_801_439_999, nanoseconds: 0)) == "2027-01-31")
    }

    private struct Made {
        var link: SharingLink?
        var refusal: ProviderError?
        var changeCount = 0
        var removalCount = 0
    }

    /// Makes a link to `/shared/f` at a server that answers `link`, which it has already or makes now, and `changed` to a change
    /// of its end.
    private static func made(
        until end: Timestamp?, gets link: String, isNew: Bool = false, removed: String = answer("[]"),
        changed: @escaping @Sendable (String) -> String
    ) async throws -> Made {
        let server = Self.server { line in
            switch line.prefix(3) {
            case "PUT": changed(line)
            case "GET": Self.answer(isNew ? "[\(Self.share("3", "/shared/f"))]" : "[\(link)]")
            case "DEL": removed
            default: Self.answer(link)
            }
        }
        defer { server.stop() }
        var made = Made()
        try await Self.links(of: server) { links in
            let item = ItemReference(identifier: ItemIdentifier("/f"), path: [FileName("f")!])
            do throws(ProviderError) {
                made.link = try await links.make(to: item, kind: .file, until: end)
            } catch {
                made.refusal = error
            }
        }
        made.changeCount = server.requests.count { $0.hasPrefix("PUT") }
        made.removalCount = server.requests.count { $0.hasPrefix("DELETE \(Self.shares)/17?") }
        return made
    }

    /// It was given with the end that it had, whichever was asked for.
    @Test func aLinkThatIsThereAlreadyEndsWhenItIsAskedTo() async throws {
        for before in ["null", "\"2027-06-01 00:00:00\""] {
            let there = Self.share("17", "/shared/f", end: before)
            let made = try await Self.made(until: Self.day, gets: there) { line in
                #expect(line == "PUT \(Self.shares)/17?format=json expireDate=2027-01-31")
                return Self.answer(Self.share("17", "/shared/f", end: "\"2027-01-31 00:00:00\""))
            }
            #expect(made.link?.end == Self.day && made.changeCount == 1 && made.removalCount == 0)
        }
    }

    /// Others may have it, and nobody asked for a longer life of it.
    @Test func aLinkThatEndsKeepsItsEndWhenNoneIsAskedFor() async throws {
        let ending = Self.share("17", "/shared/f", end: "\"2027-01-31 00:00:00\"")
        let made = try await Self.made(until: nil, gets: ending) { _ in Self.answer(Self.share("17", "/shared/f")) }
        #expect(made.link?.identifier == "17" && made.link?.end == Self.day && made.changeCount == 0)
    }

    @Test func aLinkThatEndsAsItIsAskedToIsNotChanged() async throws {
        for (end, text) in [(Self.day, "\"2027-01-31 00:00:00\""), (nil, "null")] {
            let there = Self.share("17", "/shared/f", end: text)
            let made = try await Self.made(until: end, gets: there) { _ in Self.answer("[]", status: 500) }
            #expect(made.link?.identifier == "17" && made.link?.end == end && made.changeCount == 0)
        }
    }

    private static let endless = share("17", "/shared/f")
    private static let named = "link 17 to"

    /// Its owner would believe that it has ended.
    @Test func aLinkThatLastsLongerThanItIsAskedToIsNotGiven() async throws {
        let kept = try await Self.made(until: Self.day, gets: Self.endless) { _ in Self.answer(Self.endless) }
        #expect(kept.refusal?.code == .refused && kept.removalCount == 0)
        let words = kept.refusal?.message ?? ""
        #expect(words.contains(Self.named) && words.contains("https://example.com/s/17: it does not end"), "\(words)")
    }

    /// Something was public of which nobody was told.
    @Test(arguments: [(400, ProviderError.Code.refused), (500, .retry)])
    func aLinkWhoseEndCannotBeSetIsNamed(status: Int, code: ProviderError.Code) async throws {
        let made = try await Self.made(until: Self.day, gets: Self.endless) { _ in
            Self.answer("[]", status: status, message: "Expiration date is enforced")
        }
        let words = made.refusal?.message ?? ""
        #expect(made.refusal?.code == code && words.contains("date is enforced"), "\(words)")
        #expect(words.contains(Self.named) && words.contains("https://example.com/s/17"), "\(words)")
        // It is another's, maybe.
        #expect(made.removalCount == 0)
    }

    @Test func aNewLinkThatLastsLongerThanItIsAskedToIsTakenBack() async throws {
        for status in [200, 500] {
            let made = try await Self.made(until: Self.day, gets: Self.endless, isNew: true) { _ in
                Self.answer(Self.endless, status: status)
            }
            #expect(made.link == nil && made.removalCount == 1)
            #expect(made.refusal?.message.contains("https://example.com/s/17, was taken back") == true)
        }
        let stays = Self.answer("[]", status: 503, message: "busy")
        let made = try await Self.made(until: Self.day, gets: Self.endless, isNew: true, removed: stays) { _ in
            Self.answer(Self.endless)
        }
        let words = made.refusal?.message ?? ""
        #expect(words.contains("https://example.com/s/17, was made") && words.contains("not taken back"), "\(words)")
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

    /// The server says of it that there is no such share.
    @Test func aLinkUntilLaterTodayIsRefusedAndNotAskedFor() async throws {
        let server = Self.server { _ in Self.answer("[]", status: 404, message: "Expiration date is in the past") }
        defer { server.stop() }
        try await Self.links(of: server, at: NoonClock(date: Self.day)) { links in
            let item = ItemReference(identifier: ItemIdentifier("/x"), path: [FileName("x")!])
            let evening = Self.day.advanced(by: .seconds(86_399))
            let refusal = await #expect(throws: ProviderError.self) {
                try await links.make(to: item, kind: .file, until: evening)
            }
            #expect(refusal?.code == .refused && refusal?.message.contains("say tomorrow or later") == true)
        }
        #expect(!server.requests.contains { $0.contains("/ocs/") })
    }

    /// Of an end that is too far away a server says that there is no such thing, as of an item that is gone.
    @Test(arguments: [true, false]) func whatIsThereIsNotSaidToBeGoneWhenALinkIsRefused(isThere: Bool) async throws {
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND" where isThere || request.path == Self.base: rows((request.path, collection))
            case "PROPFIND": reply("404 Not Found")
            default: Self.answer("[]", status: 404, message: "Cannot set expiration date more than 7 days in the future")
            }
        }
        defer { server.stop() }
        try await Self.links(of: server) { links in
            let item = ItemReference(identifier: ItemIdentifier("/x"), path: [FileName("x")!])
            let refusal = await #expect(throws: ProviderError.self) {
                try await links.make(to: item, kind: .file, until: Self.day)
            }
            #expect(refusal?.code == (isThere ? .refused : .notFound))
            #expect(refusal?.message.contains("more than 7 days") == true)
        }
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
