import PromiseCore
import PromiseProvider
import PromiseHTTP
import PromiseWebDAV
import Testing

/// Every name has one form on the wire, which is UTF-8, and comes back as it was.
struct StoredNameTests {
    @Test(arguments: [
        "plain", "é", "e\u{301}", "100%25 %2F", "‛", "‛FF", "‛7F", "‛ff", "‛‛E2", "文件", "a‛E2‛80‛9BFF", " ", "\n",
    ])
    func aNameInUTF8ComesBack(name: String) throws {
        let bytes = Array(name.utf8)
        let wire = StoredName.encoded(bytes)
        #expect(String(validating: wire, as: UTF8.self) != nil)
        #expect(StoredName.decoded(wire)?.bytes == bytes)
    }

    @Test func bytesThatAreNoUTF8TravelAsRcloneWritesThem() {
        let name: [UInt8] = [0x66, 0xFF, 0xFE, 0x2E, 0x80]
        #expect(StoredName.encoded(name) == Array("f‛FF‛FE.‛80".utf8))
        #expect(StoredName.decoded(StoredName.encoded(name))?.bytes == name)
    }

    @Test func randomBytesComeBackAndNoTwoNamesBecomeOne() {
        var generator = SystemRandomNumberGenerator()
        // Bytes that make up escapes, broken sequences and decomposed letters, so that accidents happen.
        let alphabet: [UInt8] = [
            0xE2, 0x80, 0x9B, 0x46, 0x38, 0x41, 0xFF, 0xC3, 0xA9, 0x35, 0x43, 0x32, 0x30, 0x5C, 0x20, 0x2E, 0x23, 0x0A,
            0x65, 0xCC, 0x81,
        ]
        for _ in 0..<20 {
            let escapes = NameEscapes(rawValue: UInt16.random(in: 0...511, using: &generator))
            var seen: [[UInt8]: FileName] = [:]
            for _ in 0..<2_000 {
                let bytes = (0..<Int.random(in: 1...9, using: &generator)).map { _ in alphabet.randomElement(using: &generator)! }
                guard let name = FileName(bytes) else { continue }
                let wire = StoredName.encoded(bytes, escapes)
                #expect(StoredName.decoded(wire, escapes) == name, "\(bytes) with \(escapes.names)")
                #expect(seen[wire] == nil || seen[wire] == name, "\(bytes) with \(escapes.names)")
                seen[wire] = name
            }
        }
    }

    @Test func namesThatDifferInCaseOnlyHaveFormsThatDifferInMore() {
        let names = ["readme", "README", "Readme", "reAdme", "É.txt", "é.txt", "1:É", "1:é", "‛72eadme", "‛72EADME", "x:y", "X:y"]
        let escapes: NameEscapes = [.reserved, .cases]
        func folded(_ form: [UInt8]) -> String { String(decoding: form, as: UTF8.self).lowercased() }
        var forms: Set<String> = []
        for name in names {
            let twin = StoredName.caseTwin(of: Array(name.utf8), escapes)
            #expect(StoredName.decoded(twin, escapes) == FileName(name), "\(name)")
            #expect(StoredName.decoded(StoredName.encoded(Array(name.utf8), escapes), escapes) == FileName(name), "\(name)")
            forms.insert(folded(twin))
            for other in names {
                #expect(folded(twin) != folded(StoredName.encoded(Array(other.utf8), escapes)), "\(name), \(other)")
            }
        }
        #expect(forms.count == names.count)
    }

    @Test(arguments: [
        ("a\nb\u{7F}", NameEscapes.controls, "a‛0Ab‛7F"), ("a\\b", .backslash, "a‛5Cb"),
        ("a\"*:<>?|b", .reserved, "a‛22‛2A‛3A‛3C‛3E‛3F‛7Cb"), ("50%25 #1?;&+=@", .delimiters, "50‛2525 ‛231‛3F‛3B‛26‛2B‛3D‛40"),
        (" a b ", .ends, "‛20a b‛20"), ("a.b.", .ends, "a.b‛2E"), (".a.b", .hidden, "‛2Ea.b"), ("..", .hidden, "‛2E."),
        ("e\u{301}x", .decomposed, "e‛CC‛81x"), ("\u{E9}x", .decomposed, "\u{E9}x"), ("\u{E9}x", .composed, "‛C3‛A9x"),
        ("e\u{301}x", .composed, "e\u{301}x"), ("‛5C", .backslash, "‛E2‛80‛9B5C"), ("‛5C", .controls, "‛5C"),
    ]) func whatAServerCannotKeepIsEscaped(name: String, escapes: NameEscapes, wire: String) {
        #expect(StoredName.encoded(Array(name.utf8), escapes) == Array(wire.utf8))
    }

    /// It would be shown as another name than it has.
    @Test(arguments: ["a\\b", "a‛41", "‛5C‛5c"]) func whatIsNotEscapedAsItMustBeIsNoName(wire: String) {
        let name = StoredName.decoded(Array(wire.utf8), .backslash)
        #expect(name == nil || StoredName.encoded(name!.bytes, .backslash) == Array(wire.utf8))
    }

    @Test(arguments: ["‛C3‛A9", "a/b", "", "..", "‛E2‛80‛9B"]) func whatIsNoNamesFormIsNotTakenForOne(wire: String) {
        #expect(StoredName.decoded(Array(wire.utf8)) == nil)
    }
}

struct LocationTests {
    /// What has been written before it was known what has to be escaped is found there.
    @Test func ourOwnFolderHasTheSameNameWhateverIsEscaped() throws {
        let location = try WebDAVLocation(parsing: "webdav+http://host/base/").escaping([.hidden, .backslash])
        let own = [".promisefs", "uploads", ".x"].map { FileName($0)! }
        #expect(location.url(own) == "http://host/base/.promisefs/uploads/.x")
        #expect(location.names(ofReference: "/base/.promisefs/uploads/.x") == .names(own))
        let other = [".profile", "a\\b"].map { FileName($0)! }
        #expect(location.names(ofReference: "/base/%E2%80%9B2Eprofile/a%E2%80%9B5Cb") == .names(other))
        #expect(location.url(other) == "http://host/base/%E2%80%9B2Eprofile/a%E2%80%9B5Cb")
        #expect(location.names(ofReference: "/base/.profile") == .unspeakable(".profile"))
    }

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
