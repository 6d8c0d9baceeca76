import Logging
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import PromiseWebDAV

/// What PROPFIND says of one file.
func listing(_ reference: String, tag: String = "\"1\"", size: Int = 4) -> String {
    reply(
        "207 Multi-Status", [],
        """
        <multistatus xmlns="DAV:"><response><href>\(reference)</href><propstat><prop><resourcetype/><getetag>\(tag)</getetag>\
        <getcontentlength>\(size)</getcontentlength></prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>
        """)
}

/// What a row says of a folder.
let collection = """
    <propstat><prop><resourcetype><collection/></resourcetype><getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</getlastmodified>\
    </prop><status>HTTP/1.1 200 OK</status></propstat>
    """

/// The same of one that says that something is kept with what is in it.
let keepingCollection = """
    <propstat><prop><resourcetype><collection/></resourcetype><keeps xmlns="urn:promisefs">1</keeps></prop>\
    <status>HTTP/1.1 200 OK</status></propstat>
    """

/// A multi-status of rows: a reference, and what is said of it.
func rows(_ rows: (reference: String, content: String)...) -> String {
    let text = rows.map { "<response><href>\($0.reference)</href>\($0.content)</response>" }.joined()
    return reply("207 Multi-Status", [], "<multistatus xmlns=\"DAV:\">\(text)</multistatus>")
}

/// A provider of a scripted server (`DAV: 1`, `Server: s`) of which so much is remembered, connected.
func provider(
    _ server: ScriptedServer, remembering traits: Set<String>, in folder: TemporaryFolder? = nil,
    at base: String = "/", partWriting: PartWriting? = .nothing, previews: PreviewSource = .nowhere,
    partByteCount: UInt64 = 8 << 20, lockSeconds: UInt64 = 30, escapes: NameEscapes = [],
    clock: any TimeSource = SystemClock()
) async throws -> WebDAVProvider {
    let state = try folder ?? TemporaryFolder("traits")
    let names = [
        "locks", "lockMakesFile", "moveNeedsSourceLock", "keepsProperties", "putIsWhole", "moveKeepsTag", "tagsTellContent",
        "honoursOverwrite", "honoursConditionsOnPut", "deletesOnlyMatching", "putsOnlyNew", "hasRanges", "hasQuota",
        "tellsNews", "isGuess", "brokeOff", "takesTimes", "takesChecksums", "putTellsTag",
        "tellsNumbers", "movesOnlyOverMatching", "joinsOverMatching", "locksEndWithItem",
        "deletesOnlyTagged", "movesOnlyTagged", "overwritesTwins", "foldsNames",
    ]
    // What nearly every server does.
    let usual = ["listsTags": true, "keepsEscapes": !traits.contains("keepsNoEscapes")]
    let facts = (names.map { ($0, traits.contains($0)) } + usual).map { "\"\($0)\": \($1)" }.joined(separator: ", ")
    let parts = partWriting.map { ", \"partWriting\": \"\($0.rawValue)\"" } ?? ""
    let pictures = ", \"previews\": \"\(previews.rawValue)\""
    let lostNames = ", \"escapes\": \(escapes.rawValue)"
    let known = "{\"subject\": \"s 1 http://127.0.0.1:\(server.port)\(base)\", \(facts)\(parts)\(pictures)\(lostNames)}"
    try state.write(Array(known.utf8), to: "webdav-server.json", mode: 0o600)
    let provider = try WebDAVProvider(
        location: try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)\(base)"), credentials: CredentialSource(),
        stateFolder: state.path(""), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        clock: clock, partByteCount: partByteCount, lockSeconds: lockSeconds)
    try await provider.connect()
    return provider
}
