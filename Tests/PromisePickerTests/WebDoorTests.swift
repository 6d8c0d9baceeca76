import PromisePicker
import Testing

/// Whom a page's server answers, told of what requests say.
@Suite struct WebDoorTests {
    private func knock(
        _ method: String, _ path: String, host: [String] = ["127.0.0.1:8000"],
        origin: [String] = [], site: [String] = [],
        key: String? = nil, isJSON: Bool = false
    ) -> WebDoor.Knock {
        WebDoor.Knock(
            method: method, path: path, host: host, origin: origin, site: site,
            key: key.map { [$0] } ?? [], isJSON: isJSON)
    }

    @Test func aTokenIsGoodOnceAndAKeyIsNeededForAllThatSaysSomething() throws {
        var door = WebDoor(port: 8000, token: "token")
        #expect(door.refusal(of: knock("GET", "/")) == nil)
        #expect(door.refusal(of: knock("GET", "/state")) == .key)
        let given = door.exchange("token")
        let key = try #require(given)
        #expect(door.exchange("token") == nil)
        #expect(door.refusal(of: knock("GET", "/state", key: key)) == nil)
        #expect(door.refusal(of: knock("GET", "/state", key: "token")) == .key)
        #expect(door.refusal(of: knock("GET", "/state", key: String(key.dropLast()))) == .key)
        #expect(key.count == 43 && WebDoor.secret() != WebDoor.secret())
    }

    @Test func whoGuessesTokensEndsThemAll() {
        var door = WebDoor(port: 8000, token: "token")
        for guess in 0..<5 { #expect(door.exchange("guess \(guess)") == nil) }
        #expect(door.exchange("token") == nil)
    }

    /// DNS rebinding: a name of another site that leads here.
    @Test func anotherNameForThisAddressIsRefused() {
        let door = WebDoor(port: 8000, token: "token")
        for host in [
            ["evil.example.com:8000"], ["localhost:8000"], ["127.0.0.1"], [],
            ["127.0.0.1:8000", "x"],
        ] {
            #expect(door.refusal(of: knock("GET", "/", host: host)) == .host)
        }
    }

    @Test func anotherSiteIsRefusedWhateverItKnows() throws {
        var door = WebDoor(port: 8000, token: "token")
        let given = door.exchange("token")
        let key = try #require(given)
        let here = ["http://127.0.0.1:8000"]
        func post(_ origin: [String], _ site: [String] = [], isJSON: Bool = true) -> WebDoor
            .Refusal?
        {
            door.refusal(
                of: knock("POST", "/event", origin: origin, site: site, key: key, isJSON: isJSON))
        }
        #expect(post(here, ["same-origin"]) == nil)
        #expect(post(["http://127.0.0.1:8001"]) == .origin && post(["null"]) == .origin)
        #expect(
            post([]) == .origin && post(here, isJSON: false) == .origin, "as a form would send it")
        #expect(post(here, ["cross-site"]) == .site && post(here, ["same-site"]) == .site)
        #expect(door.refusal(of: knock("GET", "/page.js", site: ["cross-site"])) == .site)
        #expect(
            door.refusal(of: knock("PUT", "/event", origin: here, key: key, isJSON: true))
                == .method)
        #expect(
            door.refusal(of: knock("OPTIONS", "/event")) == .method,
            "nothing is allowed to another site")
    }

    @Test func theKernelSaysWhoseAConnectionIs() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
               1: 0100007F:C350 0100007F:1F40 01 00000000:00000000 00:00000000 00000000  1001        0 2 1
               2: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 3 1
            """
        #expect(WebDoor.user(ofPeer: 50_000, serverPort: 8000, table: table) == 1001)
        #expect(WebDoor.user(ofPeer: 50_001, serverPort: 8000, table: table) == nil)
    }

    /// A header that promises 50,000 pixels a side, and what is no PNG.
    @Test func aPictureThatWouldFillTheMemoryIsNotShown() {
        func png(_ width: UInt32, _ height: UInt32) -> [UInt8] {
            func bytes(_ number: UInt32) -> [UInt8] {
                (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            }
            return [
                0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52,
            ]
                + bytes(width) + bytes(height) + [8, 6, 0, 0, 0, 0, 0, 0, 0]
        }
        #expect(PickerSite.isBearable(png(256, 256)))
        for picture in [
            png(50_000, 50_000), png(0, 1), png(256, 1 << 31), Array("<svg onload='x()'/>".utf8),
            [],
        ] {
            #expect(!PickerSite.isBearable(picture))
        }
    }
}
