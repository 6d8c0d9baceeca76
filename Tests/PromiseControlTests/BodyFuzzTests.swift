import Glibc
import Logging
import PromiseControl
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseTestSupport
import PromiseWire
import Testing

/// Bodies and streams from strangers: never a failure of the daemon's own, no crash, no hang. PROMISEFS_SCALE=full sends many
/// more, PROMISEFS_SEED repeats one run.
@Suite(.serialized, .timeLimit(.minutes(30))) struct BodyFuzzTests {
    private static let isFullScale = getenv("PROMISEFS_SCALE").map { String(cString: $0) } == "full"
    private static let blocking = BlockingPool(name: "fuzz", threads: 1)

    /// A request that is understood, of each route that takes a body.
    private static let requests: [(line: String, body: String)] = [
        ("POST /v1/items/fetch", #"{"paths":["/","/a%20b"]}"#),
        ("POST /v1/items/evict", #"{"paths":["/"]}"#),
        ("POST /v1/items/pin", #"{"paths":["/"],"pin":"pinned"}"#),
        ("POST /v1/items/values", #"{"paths":["/"],"keys":["kMDItemFSSize","promisefs.state"]}"#),
        ("PUT /v1/items/thumbnail?path=/", "\u{89}PNG"),
        ("POST /v1/sync", #"{"path":"/","wait":true,"timeoutSeconds":2}"#),
        ("POST /v1/verify", #"{"repair":false,"provider":true}"#),
        ("POST /v1/queries", #"{"predicate":"kMDItemFSName == %@","arguments":["a"],"live":true,"sort":["-kMDItemPath"]}"#),
        ("POST /v1/queries", #"{"predicate":"kMDItemFSSize IN %@","arguments":[[1,true,null]],"batchingSeconds":1}"#),
        ("POST /v1/claims", #"{"items":[{"path":"/","access":"read","options":["withoutChanges"]}],"timeoutSeconds":0.1}"#),
        ("POST /v1/presenters", #"{"path":"/","purpose":"x"}"#),
        ("POST /v1/presenters/5/answers", #"{"question":9}"#),
    ]

    private static let pieces = [
        "\"", "{", "}", "[", "]", ",", ":", "null", "true", "-1", "1e999", "18446744073709551616", "\\ud800", "\\u0000", "%",
        "%zz", "..", "/", "é", "\u{0}", String(repeating: "[", count: 2_000), String(repeating: "a", count: 5_000), "1.5",
        "{\"paths\":",
    ]

    @Test func noBodyDoesHarm() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path + "/runtime/d.sock"
        try ControlServer.prepare(socketPath: path)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let server = ControlServer(service: FakeService(), socketPath: path, logger: logger, keepAliveInterval: .seconds(1))
        let (ready, continuation) = AsyncStream.makeStream(of: Void.self)
        let serving = Task { try await server.run { continuation.yield() } }
        _ = await ready.first { _ in true }
        var random = SeededGenerator(for: "bodies")
        for _ in 0..<(Self.isFullScale ? 200_000 : 200) {
            let request = Self.requests.randomElement(using: &random)!
            let body = mutated(Array(request.body.utf8), &random)
            let reply = await Self.blocking.run { () throws(Never) in rawReply(path, request.line, body, headOnly: true) }
            let isRefused = reply.hasPrefix("HTTP/1.1 4") || reply.hasPrefix("HTTP/1.1 5") && reply.contains("problem+json")
            let isDone = reply.hasPrefix("HTTP/1.1 2")
            #expect(isDone || isRefused, "\(request.line) \(body) gives \(reply.prefix(60)), seed \(random.seed)")
        }
        let status = try await PromiseClient(socketPath: path, domain: "fake").status()
        #expect(status.name == "fake", "the daemon lives")
        await server.stop()
        try await serving.value
    }

    @Test func eventsAreTheSameInWhateverPiecesTheyCome() throws {
        var random = SeededGenerator(for: "events")
        let words = [
            "event: a\n", "data: {}\n", "\n", "\r\n", "\r", ": c\n", "data", ":", "x", "\u{FEFF}", "é", "id: 1\n", "\u{0}",
        ]
        for _ in 0..<(Self.isFullScale ? 1_000_000 : 2_000) {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0...20, using: &random) { bytes += Array(words.randomElement(using: &random)!.utf8) }
            if Int.random(in: 0..<4, using: &random) == 0 { bytes = mutated(bytes, &random) }
            var whole = ServerEventParser()
            let expected = try whole.feed(bytes)
            var parts = ServerEventParser()
            var found: [ServerEvent] = []
            while !bytes.isEmpty {
                let count = Int.random(in: 1...bytes.count, using: &random)
                found += try parts.feed(bytes[..<count])
                bytes.removeFirst(count)
            }
            #expect(found == expected, "seed \(random.seed)")
        }
    }

    private func mutated(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, place + Int.random(in: 0...8, using: &random))
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes.insert(contentsOf: Array(Self.pieces.randomElement(using: &random)!.utf8), at: place)
            case 1: bytes.removeSubrange(place..<end)
            case 2: bytes.insert(contentsOf: bytes[place..<end], at: place)
            default: if place < bytes.count { bytes[place] = UInt8.random(in: 0...255, using: &random) }
            }
        }
        return bytes
    }
}
