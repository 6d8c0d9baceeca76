import Logging
import PromiseCore
import PromiseExtension
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What extensions do when they are wrong: nothing that cannot be is believed, and every error names the extension.
struct ExtensionFaultTests {
    private let file = ItemReference(identifier: ItemIdentifier("2"), path: [FileName("file")!])
    private let root = ItemReference(identifier: ItemIdentifier("1"), path: [])

    private func names(_ provider: ExtensionProvider, _ folder: ItemReference) async throws -> [String] {
        try await provider.enumerateItems(in: folder, page: nil).items.map(\.name.display)
    }

    @Test(arguments: [
        "garbage", "{", "[]", "{\"identifier\": 5}", "null",
        described("2", ["kind": "\"door\""]), described("2", name: ""), described("3"),
        described("2", ["size": "-1"]), described("2", ["size": "1e30"]), described("2", ["size": "9223372036854775807"]),
        described("2", ["size": "18446744073709551615"]), described("2", ["modified": "9223372036854775808"]),
        described("2", ["mode": "99999"]),
        described("2", ["version": "null"]), described("2", ["kind": "\"link\""]), described("2", ["parent": "\"2\""]),
        described("2", ["kind": "\"link\"", "target": "\"%00\""]),
    ])
    func whatIsNoItemIsNotBelieved(body: String) async throws {
        try await withExtension({ _ in reply("200 OK", body) }) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .permanent && found?.message.contains("the extension 'socket'") == true)
        }
    }

    /// It was of 1970, and stayed so.
    @Test func aTimeThatIsNotToldIsNotTheEpoch() async throws {
        try await withExtension({ _ in reply("200 OK", described("2")) }) { provider, _ in
            let item = try await provider.item(for: file)
            #expect(item.isGuess && item.metadata.modificationTime.seconds > 1_500_000_000)
        }
    }

    @Test func whatIsNoHTTPIsAnError() async throws {
        try await withExtension({ _ in Answer(pieces: ["EHLO there\r\n\r\n"], closes: true) }) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.message.contains("the extension 'socket'") == true)
        }
    }

    @Test func anAnswerThatDoesNotEndIsGivenUp() async throws {
        let flood = String(repeating: " ", count: 1 << 20)
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let pieces = [head] + (0..<32).map { _ in "100000\r\n\(flood)\r\n" }
        try await withExtension({ _ in Answer(pieces: pieces) }) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            let isTooLong = found?.code == .permanent && found?.message.contains("more than") == true
            #expect(isTooLong, "\(String(describing: found))")
        }
    }

    /// One wrong item leaves the others alone.
    @Test func aListingShowsOnlyWhatCanBe() async throws {
        let items = [
            described("2", name: "good"), described("3", name: "a%2Fb"), described("4", name: "a%00b"),
            described("5", name: ".."), described("6", name: "."), described("7", name: ""),
            described("8", name: String(repeating: "x", count: 256)),
            described("9", name: "good"), described("2", name: "again"), described("10", in: "77", name: "elsewhere"),
            described("", name: "nobody"), described("11", name: "%FF%"), described("12", name: "no%FFutf8"),
            described("1", name: "root", folderMembers), described("1", name: "rootAsFile"),
            described("13", name: "last", folderMembers),
        ]
        let body = "{\"items\": [\(items.joined(separator: ","))]}"
        try await withExtension({ _ in reply("200 OK", body) }) { provider, _ in
            let found = try await names(provider, root)
            #expect(found == ["good", "no\\xffutf8", "last"])
        }
    }

    /// It took its whole folder with it.
    @Test func whatIsNoItemAtAllIsLeftOutOfItsFolder() async throws {
        let items = [
            described("2", name: "good"), "{\"identifier\": \"3\"}", "5", 
            described("4", ["owner": "-1"]), described("5", name: "last"),
        ]
        try await withExtension({ _ in reply("200 OK", "{\"items\": [\(items.joined(separator: ","))]}") }) { provider, _ in
            let found = try await names(provider, root)
            #expect(found == ["good", "last"])
        }
    }

    /// A storage that leaves something out of what it has found has pages on which nothing is left.
    @Test func anEmptyPageIsNoEnd() async throws {
        let script: ScriptedExtension.Script = { request in
            request.path.contains("page=")
                ? reply("200 OK", "{\"items\": [\(described("2", name: "last"))]}")
                : reply("200 OK", "{\"items\": [], \"next\": \"\u{301}1\"}")
        }
        try await withExtension(script) { provider, _ in
            let first = try await provider.enumerateItems(in: root, page: nil)
            #expect(first.items.isEmpty)
            let second = try await provider.enumerateItems(in: root, page: first.next)
            #expect(second.items.map(\.name.display) == ["last"] && second.next == nil)
        }
    }

    @Test func aFolderIsNeverShownInsideOfItself() async throws {
        // 1 / 2 / 3, and in 3 again 2.
        let script: ScriptedExtension.Script = { request in
            switch request.path {
            case "items/1/children": reply("200 OK", "{\"items\": [\(described("2", in: "1", name: "a", folderMembers))]}")
            case "items/2/children": reply("200 OK", "{\"items\": [\(described("3", in: "2", name: "b", folderMembers))]}")
            case "items/3/children":
                reply(
                    "200 OK",
                    "{\"items\": [\(described("2", in: "3", name: "a", folderMembers)), \(described("4", in: "3", name: "c"))]}")
            case "items/3": reply("200 OK", described("3", in: "2", name: "b", folderMembers))
            default: reply("200 OK", described("2", in: "3", name: "a", folderMembers))
            }
        }
        try await withExtension(script) { provider, _ in
            _ = try await names(provider, root)
            _ = try await names(provider, file)
            let found = try await names(provider, ItemReference(identifier: ItemIdentifier("3"), path: []))
            #expect(found == ["c"])
        }
    }

    /// Each folder was looked for in all the others above it: a quarter of a million of them took hours.
    @Test(.timeLimit(.minutes(1))) func aChainOfFoldersWithoutEndIsNotWalkedThroughForEach() async throws {
        let chain = (2...60_000).map { described("\($0)", in: "\($0 - 1)", name: "a", folderMembers) }
        let body = "{\"anchor\": \"6\", \"updated\": [\(chain.joined(separator: ","))]}"
        try await withExtension(capabilities: "\"change-feed\"", { _ in reply("200 OK", body) }) { provider, _ in
            let page = try await provider.changes(since: Anchor(rawValue: "5"))
            #expect(page.updated.count == 4096)
        }
    }

    /// It was asked again without a pause, as often as it could answer.
    @Test func anExtensionThatDoesNotWaitForChangesIsAskedOnceASecond() async throws {
        let count = Mutex(0)
        let script: ScriptedExtension.Script = { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return reply("200 OK", "{\"anchor\": \"\(number < 3 ? 5 : 6)\"}")
        }
        let capabilities = "\"change-feed\", \"change-push\""
        try await withExtension(capabilities: capabilities, script) { provider, _ in
            let begun = ContinuousClock.now
            try await provider.waitForChanges(since: Anchor(rawValue: "5"))
            let (time, calls) = (ContinuousClock.now - begun, count.withLock { $0 })
            #expect(time >= .milliseconds(1900) && calls == 3)
        }
    }

    /// Whether a folder is inside of itself cannot be found out now: nothing is shown rather than something left out, and a feed
    /// does not go on.
    @Test(arguments: [false, true]) func aPassingFailureIsNotTakenForALie(isFeed: Bool) async throws {
        let moved = described("2", in: "3", name: "a", folderMembers)
        let script: ScriptedExtension.Script = { request in
            switch request.path.split(separator: "?")[0] {
            case "items/1/children": reply("200 OK", "{\"items\": [\(described("2", in: "1", name: "a", folderMembers))]}")
            case "items/2/children": reply("200 OK", "{\"items\": [\(described("3", in: "2", name: "b", folderMembers))]}")
            case "items/3/children": reply("200 OK", "{\"items\": [\(moved)]}")
            case "changes": reply("200 OK", "{\"anchor\": \"6\", \"updated\": [\(moved)]}")
            default: reply("503 Busy")
            }
        }
        try await withExtension(capabilities: isFeed ? "\"change-feed\"" : "", script) { provider, _ in
            _ = try await names(provider, root)
            _ = try await names(provider, file)
            let found = await error {
                if isFeed {
                    _ = try await provider.changes(since: Anchor(rawValue: "5"))
                } else {
                    _ = try await names(provider, ItemReference(identifier: ItemIdentifier("3"), path: []))
                }
            }
            #expect(found?.code == .retryAfter(.seconds(5)))
        }
    }

    @Test func aListingOfMoreThanThereCanBeIsGivenUp() {
        var record = ListingRecord()
        let number = record.begin()
        let turns = [("a", 1), ("b", ListingRecord.itemsMax - 1), ("c", 1), ("a", 0)].map { token, count in
            record.turn(to: token, after: count, in: number)
        }
        #expect(turns == [true, true, false, false])
    }

    /// Each of many was within the bound; and pages that hold nothing were within any.
    @Test func listingsOfMoreThanThereCanBeTogetherAreGivenUp() {
        var record = ListingRecord()
        let (one, other) = (record.begin(), record.begin())
        let first = record.turn(to: "a", after: ListingRecord.itemsMax - 2, in: one)
        let empty = ["b", "c", "d"].map { record.turn(to: $0, after: 0, in: other) }
        #expect(first)
        #expect(empty == [true, true, false])
    }

    /// What was known of the folders is old: the extension is asked, and believed.
    @Test func aFolderThatMovedIntoOneThatWasInsideOfItIsShown() async throws {
        let script: ScriptedExtension.Script = { request in
            switch request.path {
            case "items/1/children": reply("200 OK", "{\"items\": [\(described("2", in: "1", name: "a", folderMembers))]}")
            case "items/2/children": reply("200 OK", "{\"items\": [\(described("3", in: "2", name: "b", folderMembers))]}")
            case "items/3/children": reply("200 OK", "{\"items\": [\(described("2", in: "3", name: "a", folderMembers))]}")
            default: reply("200 OK", described("3", in: "1", name: "b", folderMembers))
            }
        }
        try await withExtension(script) { provider, _ in
            _ = try await names(provider, root)
            _ = try await names(provider, file)
            let found = try await names(provider, ItemReference(identifier: ItemIdentifier("3"), path: []))
            #expect(found == ["a"])
        }
    }

    @Test(arguments: ["\"same\"", "\"\"", "\"a\\u0000b\""]) func pagesThatDoNotEndAreGivenUp(next: String) async throws {
        let body = "{\"items\": [\(described("2"))], \"next\": \(next)}"
        try await withExtension({ _ in reply("200 OK", body) }) { provider, _ in
            let found = await error {
                var page: PageToken?
                for _ in 0..<3 { page = try await provider.enumerateItems(in: root, page: page).next }
            }
            #expect(found?.code == .permanent && found?.message.contains("do not end") == true)
        }
    }

    @Test(arguments: [
        (reply("200 OK", "long text"), ProviderError.Code.corrupted), (reply("206 Partial Content", "te"), .corrupted),
        (reply("206 Partial Content", "te", ["Content-Range: bytes 1-2/4"]), .corrupted),
        (reply("206 Partial Content", "texts", ["Content-Range: bytes 0-3/4"]), .corrupted),
        (reply("206 Partial Content", "te", ["Content-Range: bytes 0-3/4"]), .corrupted),
        (reply("206 Partial Content", "te", ["Content-Range: bytes 0-3/4"], length: 4, closes: true), .retry),
        (reply("412 Precondition Failed"), .stale), (reply("404 Not Found"), .notFound), (reply("416 Bad"), .stale),
    ])
    func contentOfAnotherLengthIsNotTaken(answer: Answer, code: ProviderError.Code) async throws {
        // The second half is asked for where all of it comes, so that more than all shows.
        try await withExtension({ _ in answer }) { provider, _ in
            let found = await error {
                try await provider.fetchContents(
                    of: file, version: ContentVersion("1"), range: ByteRange(0, 4), into: StrictSink(size: 4))
            }
            if answer.pieces[0].hasSuffix("long text") {
                // All that was asked for is there; what is behind it is not looked at.
                #expect(found == nil)
            } else {
                #expect(found?.code == code)
            }
        }
    }

    @Test(arguments: [
        ("401 Unauthorized", ProviderError.Code.authenticate), ("403 Forbidden", .refused), ("404 Not Found", .notFound),
        ("409 Conflict", .conflict), ("412 Precondition Failed", .conflict), ("423 Locked", .retryAfter(.seconds(2))),
        ("429 Slow", .retryAfter(.seconds(3))), ("500 Oops", .retry), ("503 Busy", .retryAfter(.seconds(3))),
        ("507 Full", .outOfSpace), ("302 Found", .permanent),
    ])
    func aRefusalSaysWhy(status: String, code: ProviderError.Code) async throws {
        let problem = "{\"title\": \"no\", \"detail\": \"because\\nof \\u0007 reasons\"}"
        let script: ScriptedExtension.Script = { _ in reply(status, problem, ["Retry-After: 3"]) }
        try await withExtension(script) { provider, _ in
            let found = await error {
                _ = try await provider.modify(file, changes: ItemChanges(), contents: nil, baseVersion: nil)
            }
            #expect(found?.code == code)
            #expect(found?.message.hasSuffix("because\\nof \\x07 reasons") == true)
            #expect(found?.message.hasPrefix("the extension 'socket' answers \(status.prefix(3))") == true)
        }
    }

    /// What was made must be what was asked for; else it is taken back, unless it is not where it was to be made, or was there
    /// before: the first time that is not known.
    @Test(arguments: [
        (described("2", name: "other"), true), (described("2", ["size": "5"]), true), (described("2", folderMembers), true),
        (described("2", in: "9"), false), (described("1", in: "9"), false),
    ])
    func whatIsMadeOtherwiseThanToldIsTakenBack(body: String, isTakenBack: Bool) async throws {
        let script: ScriptedExtension.Script = { request in
            request.method == "GET" ? reply("200 OK", "{\"items\": []}") : reply("201 Created", body)
        }
        try await withExtension(script) { provider, server in
            for isFirst in [true, false] {
                let found = await makeFile(with: provider)
                #expect(found?.code == .refused && found?.message.contains("the extension 'socket' made ") == true)
                #expect(isDeleted("2", at: server) == (isTakenBack && !isFirst))
            }
        }
    }

    /// The answer that names an older file of the folder must not cost that file.
    @Test(arguments: ["older", "file"]) func whatIsMadeOtherwiseThanToldMayBeOlderAndIsNotDeleted(name: String) async throws {
        let older = described("2", name: name, ["size": "5"])
        let script: ScriptedExtension.Script = { request in
            switch (request.method, request.path.contains("page=")) {
            case ("GET", false): reply("200 OK", "{\"items\": [\(described("3", name: "other"))], \"next\": \"x\"}")
            case ("GET", true): reply("200 OK", "{\"items\": [\(older)]}")
            default: reply("201 Created", older)
            }
        }
        try await withExtension(script) { provider, server in
            for _ in 0..<3 { #expect(await makeFile(with: provider)?.code == .refused) }
            #expect(!isDeleted("2", at: server))
        }
    }

    private func makeFile(with provider: ExtensionProvider) async -> ProviderError? {
        let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
        return await error {
            _ = try await provider.create(
                NewItem(name: FileName("file")!, kind: .file, metadata: metadata), in: root,
                contents: try ConformanceSource(size: 4, pieces: [(0, Array("text".utf8))]))
        }
    }

    private func isDeleted(_ identifier: String, at server: ScriptedExtension) -> Bool {
        server.requests.contains { $0.method == "DELETE" && $0.path.hasPrefix("items/\(identifier)?") }
    }

    @Test func theSameVersionAfterTheSameBytesIsBelieved() async throws {
        try await withExtension({ _ in reply("200 OK", described("2")) }) { provider, _ in
            let item = try await provider.modify(
                file, changes: ItemChanges(), contents: try ConformanceSource(size: 4, pieces: [(0, Array("text".utf8))]),
                baseVersion: ContentVersion("1"))
            #expect(item.version == ContentVersion("1"))
        }
    }

    @Test func anExtensionThatSaysNothingIsGivenUp() async throws {
        try await withExtension(idle: .milliseconds(300), { _ in Answer(pieces: [""], closes: false) }) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .retry && found?.message.contains("does not answer") == true)
        }
    }

    @Test func progressExtendsTheDeadline() async throws {
        let progress = "HTTP/1.1 102 Processing\r\n\r\n"
        let pieces = (0..<6).flatMap { _ in ["", progress] } + reply("200 OK", described("2")).pieces
        try await withExtension(idle: .milliseconds(1500), { _ in Answer(pieces: pieces) }) { provider, _ in
            let found = try await provider.item(for: file).size
            #expect(found == 4)
        }
    }

    @Test func withoutAFeedFoldersThatHoldNoFoldersAreLookedAtAgain() async throws {
        let script: ScriptedExtension.Script = { request in
            request.path.hasPrefix("items/9") ? reply("404 Not Found") : reply("200 OK", "{\"items\": []}")
        }
        try await withExtension(script) { provider, _ in
            let leaf = ItemReference(identifier: ItemIdentifier("5"), path: [])
            _ = try await names(provider, leaf)
            _ = await error { _ = try await names(provider, ItemReference(identifier: ItemIdentifier("9"), path: [])) }
            let found = try await provider.changes(since: try await provider.currentAnchor()).foldersToList
            #expect(found == [leaf.identifier])
            try await provider.delete(leaf, baseVersion: nil)
            let left = try await provider.changes(since: try await provider.currentAnchor()).foldersToList
            #expect(left == [])
        }
    }

    @Test func nobodyListeningIsOffline() async throws {
        let location = try ExtensionLocation(parsing: "extension:/nonexistent/socket")
        let provider = try ExtensionProvider(
            location: location, credentials: CredentialSource(), stateFolder: nil, logger: .init(label: "test"))
        let found = await error { try await provider.connect() }
        #expect(found?.code == .offline && found?.message.contains("the extension 'socket'") == true)
    }

    @Test func credentialsGoToTheExtensionAndNowhereElse() async throws {
        let server = try ScriptedExtension { request in
            request.head.contains("authorization: basic dtpw")
                ? reply("200 OK", request.path == "root" ? rootDescribed : "{\"capabilities\": []}") : reply("401 Unauthorized")
        }
        defer { server.stop() }
        let provider = try ExtensionProvider(
            location: try ExtensionLocation(parsing: "extension:" + server.path),
            credentials: CredentialSource(given: .password(user: "u", Secret("p"))), stateFolder: nil,
            logger: .init(label: "test"))
        try await provider.connect()
    }
}

/// Takes bytes up to a size, as a file would.
private struct StrictSink: ContentSink {
    var size: UInt64

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        guard offset + UInt64(bytes.count) <= size else { throw ProviderError(.corrupted, "too many bytes") }
    }

    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError) -> UInt64 {
        count
    }
}
