import Glibc
import Logging
import PromiseControl
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseTestSupport
import PromiseWire
import Testing

/// Requests and streams from strangers: never a failure of the daemon's own, no crash, no hang, no growth. PROMISEFS_SCALE=full
/// makes ten million of each, PROMISEFS_SEED repeats one run.
@Suite(.serialized, .timeLimit(.minutes(30))) struct BodyFuzzTests {
    private static let isFullScale = getenv("PROMISEFS_SCALE").map { String(cString: $0) } == "full"
    private static let blocking = BlockingPool(name: "fuzz", threads: 1)

    /// A request that is understood, of each route that takes a body.
    private static let requests: [(line: String, body: String)] = [
        ("POST /v1/items/fetch", #"{"paths":["/","/a%20b"]}"#),
        ("POST /v1/items/evict", #"{"paths":["/"]}"#),
        ("POST /v1/items/revert", #"{"paths":["/"]}"#),
        ("POST /v1/links", #"{"path":"/a","until":"2027-01-31"}"#),
        ("POST /v1/limits", #"{"cache":"1000","upload":"none","download":"100000"}"#),
        ("POST /v1/trash/restore", #"{"paths":["/a"],"to":"/"}"#),
        ("POST /v1/trash/empty", #"{"path":"/"}"#),
        ("POST /v1/items/pin", #"{"paths":["/"],"pin":"pinned"}"#),
        ("POST /v1/items/values", #"{"paths":["/"],"keys":["kMDItemFSSize","promisefs.state"]}"#),
        ("PUT /v1/items/thumbnail?path=/", "\u{89}PNG"),
        ("POST /v1/sync", #"{"path":"/","wait":true,"timeoutSeconds":2}"#),
        ("POST /v1/verify", #"{"repair":false,"provider":true}"#),
        ("POST /v1/queries", #"{"predicate":"kMDItemFSName == %@","arguments":["a"],"live":true,"sort":["-kMDItemPath"]}"#),
        ("POST /v1/queries", #"{"predicate":"kMDItemFSSize IN %@","arguments":[[1,true,null]],"batchingSeconds":1}"#),
        ("POST /v1/claims", #"{"items":[{"path":"/","access":"read","options":["withoutChanges"]}],"timeoutSeconds":0.1}"#),
        ("POST /v1/accesses", #"{"items":[{"path":"/","access":"write","options":["forMerging"]}],"purpose":"x"}"#),
        ("POST /v1/presenters", #"{"path":"/","purpose":"x"}"#),
        ("POST /v1/presenters/5/answers", #"{"question":9}"#),
    ]

    /// Of each that takes none.
    private static let questions = [
        "GET /v1/status", "GET /v1/items?path=/a%20b", "GET /v1/items?node=1", "GET /v1/pending?path=/", "GET /v1/trace",
        "GET /v1/queries?predicate=kMDItemFSSize%20%3E%200&scope=/&sort=-kMDItemPath&attributes=kMDItemPath&limit=5",
        "GET /v1/changes?since=0&limit=10", "GET /v1/changes?since=0&follow=true", "GET /v1/items/versions?path=/",
        "GET /v1/items/thumbnail?path=/&size=128", "DELETE /v1/claims/77", "POST /v1/unmount", "POST /v1/restart",
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
        for _ in 0..<(Self.isFullScale ? 200_000 : 100) {
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

    /// Without a socket, so that there can be many: the routes and decoders themselves, with paths and queries mutated as well.
    @Test func noRequestDoesHarm() async throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let server = ControlServer(service: FakeService(isQuick: true), socketPath: "/none", logger: logger)
        let answerer = ControlServer.Answerer(server)
        var random = SeededGenerator(for: "requests")
        let count = Self.isFullScale ? 10_000_000 : 2_000
        var (understood, longest) = (0, Duration.zero)
        for number in 0..<count {
            let request = mutatedRequest(&random)
            let start = ContinuousClock.now
            let reply = try await answerer.answer(request.method, request.target, body: request.body)
            longest = max(longest, ContinuousClock.now - start)
            if reply.status < 300 { understood += 1 }
            if (200..<500).contains(reply.status) { continue }
            // The daemon says that it could not, which is no failure of its own.
            let isProblem = String(decoding: reply.body, as: UTF8.self).contains("\"code\"")
            #expect(isProblem, "\(request.method) \(request.target) gives \(reply.status), number \(number), seed \(random.seed)")
        }
        print("requests: \(count), understood: \(understood), longest: \(longest), memory at most \(peakMebibytes()) MiB")
        #expect(understood > count / 20 && understood < count, "seed \(random.seed)")
        #expect(longest < .seconds(20), "seed \(random.seed)")
    }

    private func mutatedRequest(_ random: inout SeededGenerator) -> (method: String, target: String, body: [UInt8]) {
        let hasBody = Int.random(in: 0..<3, using: &random) > 0
        let (line, body) =
            hasBody ? Self.requests.randomElement(using: &random)! : (Self.questions.randomElement(using: &random)!, "")
        var parts = line.split(separator: " ").map(String.init)
        if Int.random(in: 0..<3, using: &random) == 0 {
            parts[1] = String(decoding: mutated(Array(parts[1].utf8), &random), as: UTF8.self)
        }
        let methods = ["GET", "POST", "PUT", "DELETE", "PATCH"]
        if Int.random(in: 0..<50, using: &random) == 0 { parts[0] = methods.randomElement(using: &random)! }
        return (parts[0], parts[1], mutated(Array(body.utf8), &random))
    }

    @Test func eventsAreTheSameInWhateverPiecesTheyCome() throws {
        let start = ContinuousClock.now
        defer { print("streams: \(ContinuousClock.now - start), memory at most \(peakMebibytes()) MiB") }
        var random = SeededGenerator(for: "events")
        let words = [
            "event: a\n", "event: problem\n", "data: {}\n", "data: {\"sequence\":1,\"items\":[],\"claim\":2}\n", "\n", "\r\n",
            "\r", ": c\n", "data", ":", "x", "\u{FEFF}", "é", "id: 1\n", "\u{0}",
        ]
        for number in 0..<(Self.isFullScale ? 10_000_000 : 2_000) {
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
            if found != expected { Issue.record("stream \(number) in pieces is another one, seed \(random.seed)") }
            if number % 16 == 0 { found.forEach(decodeAsEverything) }
        }
    }

    /// As PromiseKit does, whatever it waits for.
    private func decodeAsEverything(_ event: ServerEvent) {
        let data = Array(event.data.utf8)
        _ = WireCoding.decode(QueryEventDocument.self, from: data)
        _ = WireCoding.decode(GrantedClaimDocument.self, from: data)
        _ = WireCoding.decode(PresenterEventDocument.self, from: data)
        _ = WireCoding.decode(ProblemDocument.self, from: data)
        _ = WireCoding.decode(ProgressDocument.self, from: data)
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

/// VmHWM of proc_pid_status(5).
private func peakMebibytes() -> Int {
    let status = readSmallFile(Array("/proc/self/status".utf8)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(separator: " ").compactMap { Int($0) }.first ?? 0) / 1024
}
