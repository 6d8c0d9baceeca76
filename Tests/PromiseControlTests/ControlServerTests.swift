import Glibc
import Logging
import PromiseControl
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct ControlServerTests {
    /// For calls that block: the server under test needs the threads of the concurrent pool.
    private static let blocking = BlockingPool(name: "test", threads: 1)

    /// Runs a server over a real socket for the time of `body`.
    private func withServer(
        keepAlive: Duration = .seconds(3), unreadPatience: Duration = .seconds(60),
        _ body: (FakeService, PromiseClient, ControlServer) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path + "/runtime/d.sock"
        try ControlServer.prepare(socketPath: path)
        let service = FakeService()
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let server = ControlServer(
            service: service, socketPath: path, logger: logger, keepAliveInterval: keepAlive,
            unreadPatience: unreadPatience)
        let (ready, continuation) = AsyncStream.makeStream(of: Void.self)
        let serving = Task { try await server.run { continuation.yield() } }
        var iterator = ready.makeAsyncIterator()
        await iterator.next()
        do {
            try await body(service, PromiseClient(socketPath: path, domain: "fake"), server)
        } catch {
            await server.stop()
            _ = await serving.result
            throw error
        }
        await server.stop()
        try await serving.value
        #expect(access(path, F_OK) != 0, "the socket is taken away at the end")
    }

    @Test func statusTravelsWhole() async throws {
        try await withServer { _, client, _ in
            let status = try await client.status()
            #expect(status.name == "fake" && status.connection == "offline" && status.bytesUploaded == .max)
            #expect(status.mountPoint == "/m\\xff" && status.mountPointBytes == "/m%FF")
        }
    }

    /// Each is a descriptor, and the mount's open files had none left.
    @Test func idleConnectionsHaveABudgetAndKeepNobodyOut() async throws {
        try await withServer { _, client, server in
            var sockets: [CInt] = []
            defer { for socket in sockets { close(socket) } }
            for _ in 0..<400 {
                let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
                sockets.append(number)
                var address = sockaddr_un()
                address.sun_family = sa_family_t(AF_UNIX)
                withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: server.socketPath.utf8) }
                withUnsafePointer(to: &address) { pointer in
                    _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                    }
                }
            }
            var endedCount = 0
            // The budget is 128; what is accepted in the same moment is more for that moment.
            let expected = 400 - 160
            for _ in 0..<2_000 where endedCount < expected {
                try await Task.sleep(for: .milliseconds(50))
                var byte: UInt8 = 0
                endedCount = sockets.count { recv($0, &byte, 1, Int32(MSG_DONTWAIT)) == 0 }
            }
            #expect(endedCount >= expected)
            #expect(try await client.status().name == "fake")
        }
    }

    /// A client that asked for events and read none of them had the daemon keep the stream, and a descriptor, for ever.
    @Test func aStreamThatNobodyReadsIsEnded() async throws {
        // Longer than one that reads may be held up by what else this machine does.
        try await withServer(unreadPatience: .seconds(5)) { service, client, server in
            service.tellWithoutEnd()
            let path = server.socketPath
            let body = #"{"predicate":"TRUEPREDICATE","live":true}"#
            let (idle, slow) = (asking(path, "POST /v1/queries", body), asking(path, "POST /v1/queries", body))
            defer { for socket in [idle, slow] { close(socket) } }
            // Whoever reads slowly keeps what it has asked for. (The kernel asks for more when three quarters have been read.)
            let isOver = Mutex(false)
            // In a thread of its own: others wait in the pool.
            let pool = BlockingPool(name: "slow", threads: 1)
            defer { pool.stop() }
            let reading = Task {
                await pool.run { () throws(Never) in
                    var buffer = [UInt8](repeating: 0, count: 8192)
                    var count = 0
                    while !isOver.withLock({ $0 }) || count <= 1_000_000 {
                        let piece = recv(slow, &buffer, buffer.count, 0)
                        if piece <= 0 { break }
                        count += piece
                        usleep(5_000)
                    }
                    return count
                }
            }
            for _ in 0..<2_000 where service.calls.count("query left") == 0 { try await Task.sleep(for: .milliseconds(25)) }
            #expect(service.calls.count("query left") == 1, "the one that nobody reads")
            isOver.withLock { $0 = true }
            #expect(await reading.value > 1_000_000)
            let rest = await ControlServerTests.blocking.run { () throws(Never) in
                var buffer = [UInt8](repeating: 0, count: 65_536)
                var count = 0
                while count < 16 << 20 {
                    let piece = recv(idle, &buffer, buffer.count, 0)
                    guard piece > 0 else { return count }
                    count += piece
                }
                return -1
            }
            #expect((1..<4 << 20).contains(rest), "what was sent before, and then the end")
            #expect(try await client.status().name == "fake")
        }
    }

    @Test func onlyTheOwnerReachesTheSocket() async throws {
        try await withServer { _, _, server in
            var status = stat()
            lstat(server.socketPath, &status)
            #expect(status.st_mode & 0o777 == 0o600)
            let folder = String(server.socketPath[..<(server.socketPath.lastIndex(of: "/")!)])
            lstat(folder, &status)
            #expect(status.st_mode & 0o777 == 0o700)
        }
    }

    @Test func aSocketThatAnswersIsNotTakenAndAStaleOneIsReplaced() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try await withServer { _, _, server in
            #expect(throws: ControlServer.StartFailure.self) { try ControlServer.prepare(socketPath: server.socketPath) }
        }
        // A socket nobody listens at, as a killed daemon leaves it.
        let path = folder.path + "/s.sock"
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        close(descriptor)
        #expect(bound == 0)
        try ControlServer.prepare(socketPath: path)
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let server = ControlServer(service: FakeService(), socketPath: path, logger: logger)
        let (ready, continuation) = AsyncStream.makeStream(of: Void.self)
        let serving = Task { try await server.run { continuation.yield() } }
        var iterator = ready.makeAsyncIterator()
        await iterator.next()
        #expect(try await PromiseClient(socketPath: path, domain: "d").status().name == "fake")
        await server.stop()
        try await serving.value
    }

    @Test func pathsAreBytesAndLinksKeepTheirTargets() async throws {
        try await withServer { service, client, _ in
            let odd: [UInt8] = [0x66, 0xFF, 0x0A, 0x2B, 0x26, 0x3D, 0x3F, 0x23, 0x25]
            service.add([Array("é".utf8), odd], node: 9)
            let item = try await client.information(path: Array("é/".utf8) + odd)
            #expect(item.node == 9 && item.kind == "link" && item.mode == 0o777 && item.pin == "online-only")
            #expect(PercentCoding.decode(item.pathBytes) == Array("/é/".utf8) + odd)
            #expect(item.linkTargetBytes == "a%FE" && item.linkTarget == "a\\xfe")
            #expect(item.modificationTime == "1969-12-31T23:59:59.999999999Z")
            #expect(try await client.information(node: 9) == item)
            #expect(try await client.information(path: []).path == "/")
        }
    }

    @Test func failuresKeepTheirCodeAndExitStatus() async throws {
        try await withServer { service, client, _ in
            let missing = await #expect(throws: PromiseError.self) { _ = try await client.information(path: Array("no".utf8)) }
            #expect(missing?.exitStatus == 1 && missing?.message == "there is no such item")
            service.fail(Failure(.offline, "no line"))
            let offline = await #expect(throws: PromiseError.self) { _ = try await client.pending() }
            #expect(offline?.exitStatus == 4)
            guard case .refused(let problem) = offline?.kind else { return #expect(Bool(false), "a problem document") }
            #expect(problem.code == "offline" && problem.status == 503 && problem.type == "urn:promisefs:problem:offline")
            let dots = await #expect(throws: PromiseError.self) { _ = try await client.information(path: Array("a/../b".utf8)) }
            #expect(dots?.exitStatus == 1)
        }
    }

    @Test func aFetchStreamsProgressAndSumsItsPaths() async throws {
        try await withServer { service, client, _ in
            service.add([[0x61]], node: 2)
            service.add([[0x62]], node: 3)
            let seen = Mutex<[ProgressDocument]>([])
            let result = try await client.fetch([[0x61], [0x62], [0x63]]) { now in seen.withLock { $0.append(now) } }
            #expect(result.filesDone == 2 && result.bytesDone == 200 && result.bytesTotal == 200)
            #expect(result.failures.map(\.pathBytes) == ["/c"] && result.failures[0].code == "notFound")
            let bytes = seen.withLock { $0.map(\.bytesDone) }
            #expect(!bytes.isEmpty && bytes == bytes.sorted())
        }
    }

    @Test func cancellingTheClientStopsTheDaemonsFetch() async throws {
        try await withServer(keepAlive: .milliseconds(20)) { service, client, _ in
            service.add([[0x61]], node: 2)
            let task = Task { try await client.fetch([[0x61]]) }
            while service.calls.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            task.cancel()
            let error = await #expect(throws: PromiseError.self) { _ = try await task.value }
            #expect(error?.kind == .cancelled)
            while !service.calls.contains("cancelled 2") { try await Task.sleep(for: .milliseconds(5)) }
        }
    }

    @Test func evictionAndPinsReportEveryPath() async throws {
        try await withServer { service, client, _ in
            service.add([[0x61]], node: 2)
            let eviction = try await client.evict([[], [0x61], [0x7A]])
            #expect(eviction.evicted == 2 && eviction.bytesFreed == 20 && eviction.failures.count == 1)
            #expect(eviction.kept.first?.path == "/\\xff" && eviction.kept.first?.reason == "it is pinned")
            // Only of what was named itself.
            #expect(eviction.kept.map(\.exitStatus) == [nil, 1] && eviction.kept.map(\.code) == ["pinned", "pinned"])
            let pin = try await client.setPin("pinned", of: [[0x61]])
            #expect(pin.items == 2 && pin.pin == "pinned")
            #expect(pin.failures.map(\.path) == ["/\\xfe"] && pin.failures.map(\.exitStatus) == [5])
            let wrong = await #expect(throws: PromiseError.self) { _ = try await client.setPin("for ever", of: [[0x61]]) }
            #expect(wrong?.exitStatus == 2)
            #expect(service.calls == ["evict 1", "evict 2", "pin 2 pinned"])
        }
    }

    @Test func waitingIsKeptAliveAndEndsWithWhatIsLeft() async throws {
        try await withServer(keepAlive: .milliseconds(10)) { service, client, _ in
            service.setPending(1)
            #expect(try await client.synchronize().pending == 1)
            #expect(try await client.synchronize(wait: true, timeout: .seconds(5)).pending == 1)
            let late = await #expect(throws: PromiseError.self) {
                _ = try await client.synchronize(path: [], wait: true, timeout: .milliseconds(500))
            }
            #expect(late?.exitStatus == 7 && late?.message == "1 item is left")
            #expect(service.calls.contains("sync all true 500000000"))
            let work = try await client.pending().items[0]
            #expect(work.kind == "upload" && work.path == "/a" && work.attempts == 2 && work.error == "no line")
        }
    }

    @Test func verifyAndUnmountCarryTheirOptions() async throws {
        try await withServer { service, client, _ in
            let report = try await client.verify(repair: true, provider: true)
            #expect(report.nodes == 7 && report.problems == report.repaired)
            service.setPending(3)
            #expect(try await client.unmount(wait: true, timeout: .seconds(2), lazy: true).pending == 3)
            #expect(service.calls == ["verify true true", "unmount true 2000000000 true"])
        }
    }

    @Test func theLastReplyArrivesAlthoughTheServerStops() async throws {
        try await withServer { service, client, server in
            let waiting = Task { try await client.synchronize(wait: true).pending }
            while service.calls.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            await server.stop()
            #expect(try await waiting.value == 0)
        }
    }

    @Test func theUnmountReplyArrivesAlthoughTheDaemonEndsAtTheSameMoment() async throws {
        for _ in 0..<30 {
            try await withServer { service, client, server in
                service.setPending(2)
                let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
                service.state.withLock { $0.unmounted = { continuation.yield() } }
                let stopping = Task {
                    for await _ in ended { return await server.stop() }
                }
                let reply = try await client.unmount()
                #expect(reply.pending == 2)
                await stopping.value
            }
        }
    }

    @Test func nobodyAnsweringIsSaidAtOnce() async throws {
        let start = ContinuousClock.now
        let error = await #expect(throws: PromiseError.self) {
            _ = try await PromiseClient(socketPath: "/tmp/promisefs-no-such.sock", domain: "gone").status()
        }
        #expect(error?.kind == .notAnswering && error?.exitStatus == 4)
        #expect(error?.message.contains("'gone'") ?? false)
        #expect(ContinuousClock.now - start < .seconds(30))
    }

    @Test func limitsAndBadRequestsAreProblemDocuments() async throws {
        try await withServer { _, client, server in
            let many = (0...RequestLimit.pathCountMax).map { _ in "/a" }
            let cases: [(String, Int, String)] = [
                ("POST /v1/items/fetch", 413, WireCoding.text(ItemsRequest(paths: many))),
                ("POST /v1/items/evict", 400, WireCoding.text(ItemsRequest(paths: []))),
                ("POST /v1/items/evict", 400, "not json"),
                ("POST /v1/items/evict", 400, WireCoding.text(ItemsRequest(paths: ["/%4"]))),
                ("POST /v1/items/evict", 413, String(repeating: "x", count: RequestLimit.bodyByteCountMax + 1)),
                ("POST /v1/sync", 400, #"{"timeoutSeconds":-1}"#),
                ("GET /v1/items", 400, ""),
                ("GET /v1/items?node=x", 400, ""),
                ("GET /v1/nothing", 404, ""),
            ]
            for (line, status, body) in cases {
                let path = server.socketPath
                let reply = await ControlServerTests.blocking.run { () throws(Never) in rawReply(path, line, Array(body.utf8)) }
                #expect(reply.hasPrefix("HTTP/1.1 \(status) "), "\(line): \(reply.prefix(80))")
                #expect(reply.contains(ProblemDocument.mediaType) && reply.contains("\"exitStatus\":"), "\(line)")
            }
            // Lists that are too long for one request are sent in several.
            let long = (0..<12_000).map { Array("name-\($0)".utf8) }
            let failures = try await client.evict(long).failures
            #expect(failures.count == 12_000)
        }
    }
}

extension [String] {
    fileprivate func count(_ word: String) -> Int { count { $0 == word } }
}

/// A request whose reply is not read; the number of its socket.
private func asking(_ path: String, _ line: String, _ body: String) -> CInt {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    _ = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    let text = "\(line) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    _ = Array(text.utf8).withUnsafeBytes { send(descriptor, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
    return descriptor
}

/// A request as curl would send it, and everything that comes back; with `headOnly` no more than says how it ended.
func rawReply(_ path: String, _ line: String, _ body: [UInt8], headOnly: Bool = false) -> String {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let connected = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard connected == 0 else { return "no connection" }
    let head = "\(line) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n"
    var rest = (Array(head.utf8) + body)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
        guard count > 0 else { break }
        rest = rest.dropFirst(count)
    }
    var reply: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return String(decoding: reply, as: UTF8.self) }
        reply += buffer[..<count]
        let text = String(decoding: reply, as: UTF8.self)
        if headOnly, text.contains("\r\n\r\n") { return text }
    }
}

@Suite struct ExitStatusTests {
    @Test func everyCodeHasAnExitStatusOfTheContract() {
        for code in Failure.Code.allCases {
            #expect([1, 4, 5, 6].contains(code.exitStatus))
            #expect((400...599).contains(code.httpStatus))
        }
        #expect(Failure.Code.offline.exitStatus == 4 && Failure.Code.timedOut.exitStatus == 4)
        #expect(Failure.Code.refused.exitStatus == 5 && Failure.Code.hydrationRefused.exitStatus == 5)
        #expect(Failure.Code.notFound.exitStatus == 1 && Failure.Code.notFound.httpStatus == 404)
    }
}
