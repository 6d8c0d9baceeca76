import Glibc
import Logging
import PromiseControl
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseQuery
import PromiseSystem
import PromiseWire
import Synchronization
import Testing

/// Questions and coordination over a real socket, answered by the fake.
@Suite(.serialized, .timeLimit(.minutes(2))) struct QueryProtocolTests {
    private func withServer(_ body: (FakeService, PromiseClient) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path + "/runtime/d.sock"
        try ControlServer.prepare(socketPath: path)
        let service = FakeService()
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let server = ControlServer(service: service, socketPath: path, logger: logger, keepAliveInterval: .milliseconds(50))
        let (ready, continuation) = AsyncStream.makeStream(of: Void.self)
        let serving = Task { try await server.run { continuation.yield() } }
        var iterator = ready.makeAsyncIterator()
        await iterator.next()
        do {
            try await body(service, PromiseClient(socketPath: path, domain: "fake"))
        } catch {
            await server.stop()
            _ = await serving.result
            throw error
        }
        await server.stop()
        try await serving.value
    }

    private func waitFor(_ call: String, _ service: FakeService) async throws {
        for _ in 0..<6_000 where !service.calls.contains(call) { try await Task.sleep(for: .milliseconds(10)) }
        #expect(service.calls.contains(call), "\(call) in \(service.calls)")
    }

    @Test func queriesTellEverythingInOrder() async throws {
        try await withServer { _, client in
            let query = MetadataQuery("kMDItemFSName LIKE %@", [.text("*")]).attributes("kMDItemPath")
            let items = try await query.results(of: client)
            #expect(items.map(\.path) == ["/item 1", "/item 2", "/item 3"])
            #expect(items[0].attributes == ["kMDItemPath": .text("é")])
            var updates: [MetadataQuery.Update] = []
            var iterator = try await query.live().updates(of: client).makeAsyncIterator()
            while let update = try await iterator.next() { updates.append(update) }
            #expect(updates == [.added(items), .finishedGathering, .changed([items[0]]), .removed([2]), .reset])
        }
    }

    /// Each was looked up and sorted by as often as it was named, for every item that was found.
    @Test func anAttributeThatIsNamedAThousandTimesIsOne() async throws {
        try await withServer { service, client in
            var query = MetadataQuery("TRUEPREDICATE")
            query.document.attributes = Array(repeating: "kMDItemPath", count: 1_000) + ["kMDItemFSName"]
            query.document.sort = Array(repeating: "-kMDItemFSSize", count: 1_000) + ["kMDItemFSSize", "kMDItemFSName"]
            #expect(try await query.results(of: client).map(\.attributes?.count) == [2, 2, 2])
            let asked = try #require(service.state.withLock { $0.asked })
            #expect(asked.keys == [.path, .name])
            #expect(asked.order.map(\.key) == [.size, .name])
            #expect(asked.order.map(\.isDescending) == [true, false])
        }
    }

    @Test(arguments: ["kMDItemFSName ==", "foo = 1", "kMDItemFSSize > 'x'"])
    func badPredicatesAreProblems(predicate: String) async throws {
        try await withServer { _, client in
            let error = await #expect(throws: PromiseError.self) { _ = try await MetadataQuery(predicate).results(of: client) }
            guard case .refused(let problem)? = error?.kind else { return #expect(Bool(false), "a problem document") }
            #expect(problem.status == 400 && problem.exitStatus == 2)
        }
    }

    @Test func theFeedSaysWhenItDoesNotReachBack() async throws {
        try await withServer { _, client in
            let page = try await client.changes(since: 0)
            #expect(page.isIncomplete && page.changes.map(\.path) == ["/b"])
            #expect(try await client.changes(since: 5).changes.isEmpty)
        }
    }

    @Test func versionsAreNamedByTheirIdentifiers() async throws {
        try await withServer { service, client in
            service.add([Array("a".utf8)], node: 3)
            let path = Array("a".utf8)
            let versions = FileVersions(client, purpose: "p")
            let known = try await versions.all(of: path)
            service.add([Array("now".utf8)], node: 4)
            let earlier = try await versions.earlier(of: path)
            #expect(earlier.map(\.id) == ["a/1"] && earlier[0].kind == .earlier && !earlier[0].hasLocalContents)
            let problem = await #expect(throws: PromiseError.self) { try await versions.contents(of: earlier[0]) { _ in } }
            #expect(problem?.message.contains("there is no version a/1") == true)
            #expect(known.map(\.id) == ["current"] && known.map(\.path) == [Array("now".utf8)])
            try await versions.markResolved(of: path)
            try await waitFor("markResolved all of 3 for p", service)
            // The current version is no unresolved one.
            let refusal = await #expect(throws: PromiseError.self) { try await versions.remove(known[0], of: path) }
            #expect(refusal?.exitStatus == 2)
        }
    }

    @Test func aClaimEndsWithItsClosureItsTaskAndItsTimeout() async throws {
        try await withServer { service, client in
            service.add([Array("free".utf8)], node: 3)
            service.add([Array("taken".utf8)], node: 4)
            let coordinator = FileCoordinator(client)
            let path = try await coordinator.coordinate([.writing(Array("free".utf8), .forMerging)]) { $0.items[0].path }
            #expect(path == "/now")
            try await waitFor("release 77", service)
            let late = await #expect(throws: PromiseError.self) {
                _ = try await coordinator.coordinate([.reading(Array("taken".utf8))], timeout: .milliseconds(50)) { _ in 0 }
            }
            #expect(late?.exitStatus == 4)
            let task = Task { try await coordinator.coordinate([.reading(Array("taken".utf8))]) { _ in } }
            try await Task.sleep(for: .milliseconds(100))
            task.cancel()
            _ = await task.result
            try await waitFor("cancelled claim", service)
        }
    }

    @Test func anAccessEndsWithItsBodyItsConnectionAndByRequest() async throws {
        try await withServer { service, client in
            service.add([Array("free".utf8)], node: 3)
            let body = Array(#"{"items":[{"path":"/free","access":"write"}]}"#.utf8)
            let path = client.socketPath
            let blocking = BlockingPool(name: "access", threads: 1)
            defer { blocking.stop() }
            // A whole body ends at once; a connection that is closed ends what it was in.
            let reply = await blocking.run { () throws(Never) in rawReply(path, "POST /v1/accesses", body) }
            #expect(reply.contains("event: granted") && reply.hasSuffix("0\r\n\r\n"))
            try await waitFor("release 77", service)
            let bad = await blocking.run { () throws(Never) in rawReply(path, "POST /v1/accesses", Array("{".utf8)) }
            #expect(bad.hasPrefix("HTTP/1.1 400"))
            // By request: the connection goes, and with it the claim.
            let ended = try? await FileCoordinator(client).coordinate([.writing(Array("free".utf8))]) { _ in
                await blocking.run { () throws(Never) in rawReply(path, "DELETE /v1/claims/77", []) }
            }
            #expect(ended == nil, "the access did not end in order")
        }
    }

    /// How fast, printed: four clients of PromiseKit, in this process. The long version of the tests alone.
    @Test(.enabled(if: getenv("PROMISEFS_SCALE").map { String(cString: $0) } == "full")) func accessesASecond() async throws {
        try await withServer { service, client in
            for number in 0..<4 { service.add([Array("file \(number)".utf8)], node: UInt64(number) * 2 + 1) }
            let count = 20_000
            let time = try await ContinuousClock().measure {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<4 {
                        group.addTask {
                            let coordinator = FileCoordinator(client)
                            for _ in 0..<count / 4 {
                                try await coordinator.coordinate([.writing(Array("file \(number)".utf8))]) { _ in }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            print("accesses a second: \(Int(Double(count) / (time / .seconds(1))))")
        }
    }

    @Test func aPresenterIsAskedAndToldAsLongAsItListens() async throws {
        try await withServer { service, client in
            service.add([Array("a".utf8)], node: 3)
            var events = try await FilePresenter(client).events(of: Array("a".utf8)).makeAsyncIterator()
            guard case .asked(let question)? = try await events.next() else { return #expect(Bool(false)) }
            #expect(question.kind == "saveChanges" && question.path == "/now")
            try await question.answer()
            guard case .told("didChange", _)? = try await events.next() else { return #expect(Bool(false)) }
        }
    }
}
