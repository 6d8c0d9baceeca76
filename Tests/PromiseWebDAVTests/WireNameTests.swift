import PromiseCore
import PromiseProvider
import PromiseHTTP
import PromiseWebDAV
import Testing

/// Every name has one form on the wire, which is UTF-8, and comes back as it was.
struct WireNameTests {
    @Test(arguments: [
        "plain", "é", "e\u{301}", "100%25 %2F", "‛", "‛FF", "‛7F", "‛ff", "‛‛E2", "文件", "a‛E2‛80‛9BFF", " ", "\n",
    ])
    func aNameInUTF8ComesBack(name: String) throws {
        let bytes = Array(name.utf8)
        let wire = WireName.encoded(bytes)
        #expect(String(validating: wire, as: UTF8.self) != nil)
        #expect(WireName.decoded(wire)?.bytes == bytes)
    }

    @Test func bytesThatAreNoUTF8TravelAsRcloneWritesThem() {
        let name: [UInt8] = [0x66, 0xFF, 0xFE, 0x2E, 0x80]
        #expect(WireName.encoded(name) == Array("f‛FF‛FE.‛80".utf8))
        #expect(WireName.decoded(WireName.encoded(name))?.bytes == name)
    }

    @Test func randomBytesComeBackAndNoTwoNamesBecomeOne() {
        var generator = SystemRandomNumberGenerator()
        var seen: [[UInt8]: [UInt8]] = [:]
        // Bytes that make up escapes and broken sequences, so that accidents happen.
        let alphabet: [UInt8] = [0xE2, 0x80, 0x9B, 0x46, 0x38, 0x41, 0xFF, 0xC3, 0xA9]
        for _ in 0..<20_000 {
            let name = (0..<Int.random(in: 1...9, using: &generator)).map { _ in alphabet.randomElement(using: &generator)! }
            let wire = WireName.encoded(name)
            #expect(WireName.decoded(wire)?.bytes == name, "\(name)")
            #expect(seen[wire] == nil || seen[wire] == name, "\(name)")
            seen[wire] = name
        }
    }

    @Test(arguments: ["‛C3‛A9", "a/b", "", "..", "‛E2‛80‛9B"]) func whatIsNoNamesFormIsNotTakenForOne(wire: String) {
        #expect(WireName.decoded(Array(wire.utf8)) == nil)
    }
}

struct LocationTests {
    /// Names of a server that makes other names of others.
    @Test(arguments: [("é", true), ("e\u{301}", false), ("a,b", true), ("\u{212B}", false), ("‛FF", true)])
    func aComposedNameIsKnown(name: String, isComposed: Bool) { #expect(WireName.isComposed(Array(name.utf8)) == isComposed) }

    @Test func aNameIsReadAndWrittenWithoutASecret() throws {
        let location = try WebDAVLocation(parsing: "webdav+https://ann@example.com:8443/a%20b/c")
        #expect(location.name == "webdav+https://ann@example.com:8443/a%20b/c/")
        #expect(location.user == "ann")
        #expect(location.hostNames == ["example.com:8443", "example.com"])
        #expect(location.lastName == "c")
        let name = try #require(FileName("x y#%é"))
        #expect(location.url([name]) == "https://example.com:8443/a%20b/c/x%20y%23%25%C3%A9")
    }

    @Test(arguments: [
        "webdav:/x", "webdav+http:/x", "webdav+http://", "webdav+http://host/a?b", "webdav+http://host/../x",
        "webdav+http://host/%FF",
        "webdav+ftp://host/",
    ])
    func whatNamesNoFolderIsRefused(name: String) { #expect(throws: (any Error).self) { _ = try WebDAVLocation(parsing: name) } }

    @Test func aPasswordInANameIsRefusedAndNotRepeated() {
        do {
            _ = try WebDAVLocation(parsing: "webdav+https://ann:tops3cret@example.com/")
            Issue.record("it was taken")
        } catch {
            #expect(error.message.contains("credentials file") && !error.message.contains("tops3cret"))
        }
        #expect(!WebDAVLocation.withoutPassword("other://u:tops3cret@host/x@y").contains("tops3cret"))
    }

    @Test func referencesAreComparedDecoded() throws {
        let location = try WebDAVLocation(parsing: "webdav+http://host/base/~dir/")
        let name = try #require(FileName("a b"))
        for reference in ["/base/~dir/a%20b", "/base/%7Edir/a%20b/", "http://host/base/~dir/a b", " /base/~dir/a%20b\n"] {
            #expect(location.names(ofReference: reference) == .names([name]), "\(reference)")
        }
        #expect(location.names(ofReference: "/base/~dir/") == .names([]))
        #expect(location.names(ofReference: "/base/other/x") == .elsewhere)
        #expect(location.names(ofReference: "/base/~dir/%FF") == .unspeakable("%FF"))
    }
}
