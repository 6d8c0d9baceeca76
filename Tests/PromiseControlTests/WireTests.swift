import PromiseWire
import Testing

@Suite struct WireTests {
    @Test func everyByteSurvivesPercentCoding() {
        let all = (0...255).map { UInt8($0) }
        let text = PercentCoding.encode(all)
        #expect(PercentCoding.decode(text) == all)
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
        #expect(PercentCoding.encode(Array("a/b c%+ä".utf8)) == "a/b%20c%25%2B%C3%A4")
    }

    @Test func composedAndDecomposedNamesStayTwo() {
        let composed = PercentCoding.encode(Array("\u{E9}".utf8))
        let decomposed = PercentCoding.encode(Array("e\u{301}".utf8))
        #expect(composed == "%C3%A9")
        #expect(decomposed == "e%CC%81")
    }

    @Test func brokenEscapesAreRefusedAndPlainTextIsTaken() {
        for broken in ["%", "a%4", "%zz", "%4%41"] { #expect(PercentCoding.decode(broken) == nil) }
        #expect(PercentCoding.decode("Grüße x%41%ff") == Array("Grüße xA".utf8) + [0xFF])
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (1_709_208_000_000_000_001, "2024-02-29T12:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (4_102_444_799_999_999_999, "2099-12-31T23:59:59.999999999Z"),
        ] as [(Int64, String)])
    func timesAreWrittenWithNanoseconds(nanoseconds: Int64, text: String) {
        #expect(TimeText.format(nanoseconds: nanoseconds) == text)
    }

    @Test func documentsSurviveTheWire() throws {
        let item = ItemDocument(
            node: .max, path: "/a\\xff", pathBytes: "/a%FF", kind: "file", size: .max, localBytes: 1, mode: 0o4755, owner: 0,
            group: 1,
            accessTime: "t", modificationTime: "t", changeTime: "t", birthTime: "t", links: 2, identifier: "i", version: nil,
            state: "partial", pin: "pinned", progress: 0.5, error: nil, isConflict: true, linkTarget: nil, linkTargetBytes: nil)
        #expect(WireCoding.decode(ItemDocument.self, from: WireCoding.bytes(item)) == item)
        let problem = ProblemDocument(code: "offline", title: "Offline", status: 503, detail: "no line", exitStatus: 4)
        #expect(WireCoding.decode(ProblemDocument.self, from: WireCoding.bytes(problem)) == problem)
        let request = UnmountRequest(wait: true, timeoutSeconds: 1.5, lazy: nil)
        #expect(WireCoding.decode(UnmountRequest.self, from: WireCoding.bytes(request)) == request)
        #expect(WireCoding.decode(UnmountRequest.self, from: Array("{}".utf8)) == UnmountRequest())
        #expect(WireCoding.decode(ItemDocument.self, from: Array("{}".utf8)) == nil)
    }

    @Test func documentsAreOneLine() {
        #expect(WireCoding.text(SyncDocument(pending: 3)) == #"{"pending":3}"#)
        let line = WireCoding.text(VerifyDocument(nodes: 1, problems: ["a\nb"], repaired: []))
        #expect(!line.contains("\n"))
    }

    @Test func socketsAreLookedForWhereDaemonsPutThem() {
        #expect(ControlSocket.path(domain: "w", user: 0, runtimeFolder: nil) == "/run/promisefs/w.sock")
        #expect(ControlSocket.path(domain: "w", user: 7, runtimeFolder: nil) == "/tmp/promisefs-7/w.sock")
        #expect(ControlSocket.path(domain: "w", user: 7, runtimeFolder: "/run/user/7") == "/run/user/7/promisefs/w.sock")
        for (user, runtime) in [(UInt32(0), nil), (7, nil), (7, "/x"), (0, "/x")] as [(UInt32, String?)] {
            let path = ControlSocket.path(domain: "w", user: user, runtimeFolder: runtime)
            #expect(ControlSocket.candidates(domain: "w", mountUser: user, user: user, runtimeFolder: runtime).first == path)
        }
        // Root asks for a user's domain.
        let foreign = ControlSocket.candidates(domain: "w", mountUser: 7, user: 0, runtimeFolder: "/run/user/0")
        #expect(foreign == ["/run/user/7/promisefs/w.sock", "/tmp/promisefs-7/w.sock"])
    }

    @Test func domainNamesAreCheckedByTheByte() {
        for name in ["a", "work-1.x_Y", String(repeating: "n", count: 64)] { #expect(DomainName.isValid(name)) }
        for name in ["", ".x", "-x", "a/b", "a b", "ä", String(repeating: "n", count: 65)] { #expect(!DomainName.isValid(name)) }
    }
}

@Suite struct EventStreamTests {
    @Test(arguments: 1...7) func eventsArriveWhateverThePiecesAre(size: Int) throws {
        let events = [ServerEvent(name: "progress", data: #"{"a":"é"}"#), ServerEvent(name: "done", data: "x\ny")]
        let text = ServerEvent.keepAlive + events[0].encoded + ServerEvent.keepAlive + events[1].encoded
        var parser = ServerEventParser()
        var seen: [ServerEvent] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            seen += try parser.feed(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        #expect(seen == events)
    }

    @Test func lineEndsOfEveryKindAndUnknownFieldsAreRead() throws {
        var parser = ServerEventParser()
        let seen = try parser.feed(
            "\u{FEFF}event:a\r\nid: 7\rdata\ndata:  b\r\n\r\ndata: c\n\nevent: lost\n\ndata: unfinished\n".utf8)
        #expect(seen == [ServerEvent(name: "a", data: "\n b"), ServerEvent(name: "message", data: "c")])
    }

    @Test func aLineWithoutEndIsRefused() throws {
        var parser = ServerEventParser(byteCountMax: 100)
        #expect(try parser.feed(repeatElement(UInt8(ascii: "x"), count: 100)).isEmpty)
        #expect(throws: ServerEventParser.Overflow.self) { _ = try parser.feed([UInt8(ascii: "x")]) }
    }

    @Test(arguments: ["data: 12345\n", "data\n"]) func anEventWithoutEndIsRefused(line: String) throws {
        var parser = ServerEventParser(byteCountMax: 100)
        #expect(throws: ServerEventParser.Overflow.self) {
            for _ in 0..<200 { _ = try parser.feed(line.utf8) }
        }
        var other = ServerEventParser(byteCountMax: 100)
        for _ in 0..<200 { #expect(try other.feed((line + "\n").utf8).count == 1, "each event by itself is short") }
    }
}
