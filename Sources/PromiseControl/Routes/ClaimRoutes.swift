import HTTPTypes
import Hummingbird
import NIOCore
import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseWire
import Synchronization

// Claims. A claim lives as long as the stream that tells of it, or as the request's body: who dies lets go.

extension ControlRoutes {
    private static let claimItemCountMax = 1_000

    func addClaimRoutes(to router: Router<ControlRequestContext>) {
        router.post("v1/claims") { request, context in try await claim(request, context) }
        router.delete("v1/claims/:id") { _, context in
            let id = try context.parameters.require("id", as: UInt64.self)
            return jsonResponse(DoneDocument(done: open.end(ClaimID(rawValue: id))))
        }
        router.post("v1/accesses") { request, context in try await access(request, context) }
    }

    /// A claim that ends with its stream, or by another request.
    private func claim(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let wanted = try claimRequest(try await decode(ClaimDocument.self, from: request), context)
        return streamResponse { send in
            let (beats, beat) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            try await hold(wanted, context, send, ending: { beat.finish() }) {
                let listener = keepAlive.listen { beat.yield() }
                let end = context.connection.whenClosed { beat.finish() }
                defer {
                    keepAlive.forget(listener)
                    context.connection.forget(end)
                }
                for await _ in beats { try await send(nil) }
            }
            try await send(ServerEvent(name: "released", data: WireCoding.text(DoneDocument(done: true))))
        }
    }

    /// A claim that ends with the request's body: one exchange for a whole access. The document is the body's first line.
    private func access(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let body = LineReader(request.body)
        let document = try decode(ClaimDocument.self, from: try await body.firstLine(), of: request)
        let wanted = try claimRequest(document, context)
        return streamResponse { send in
            try await hold(wanted, context, send, ending: { context.connection.close() }) { try await body.readToEnd() }
        }
    }

    /// Of several names of an item that which was asked for; of a place, never where what was there is now.
    private func item(
        _ number: Int, at path: [FileName], of granted: GrantedClaim, asked: [FileName]
    ) throws(Failure) -> GrantedClaimDocument.Item {
        let node = granted.nodes[number]
        var entry = node.isVacancy ? nil : try service.entry(of: node, at: granted.isAboutPlace(number) ? path : asked)
        var names = path
        if let found = entry, let current = try service.currentPath(of: found), current != path {
            if granted.isAboutPlace(number) { entry = nil } else { names = current }
        }
        let text = PathText(names)
        var item = GrantedClaimDocument.Item(
            node: node.isVacancy ? nil : node.rawValue, path: text.display, pathBytes: text.bytes)
        item.id = entry?.rawValue
        return item
    }

    /// Waits for a claim, tells that it is granted, and has it until `body` returns, which it is to do after `ending`.
    private func hold(
        _ wanted: ClaimRequest, _ context: ControlRequestContext, _ send: (ServerEvent?) async throws -> Void,
        ending: @escaping @Sendable () -> Void, _ body: () async throws -> Void
    ) async throws {
        let limit = TimeLimit(wanted.timeout)
        let wanted = wanted.ended(by: ending)
        let granted = try await untilGone(
            context, keepAlive, limit, send, giveBack: { [service] in service.release($0.id) }
        ) { [service] in try await service.claim(wanted) }
        defer { service.release(granted.id) }
        open.begin(granted.id, ending: ending)
        defer { open.forget(granted.id) }
        var document = GrantedClaimDocument(claim: granted.id.rawValue, items: [])
        for (index, names) in try service.paths(of: granted).enumerated() {
            document.items.append(try item(index, at: names, of: granted, asked: wanted.items[index].path))
        }
        let nodes = zip(granted.nodes, wanted.items).map { $1.access.isForUploading && !wanted.isPreparation ? $0 : nil }
        var snapshots: [Snapshot?] = []
        if nodes.contains(where: { $0 != nil }) {
            snapshots = try await untilGone(context, keepAlive, limit, send) { [service] in
                try await makeSnapshots(of: nodes, by: service)
            }
        }
        for (index, snapshot) in snapshots.enumerated() {
            document.items[index].snapshotBytes = snapshot.map { PercentCoding.encode($0.path) }
        }
        // Whoever writes need not wait for what is done with the snapshots.
        if !nodes.contains(nil) { service.release(granted.id) }
        defer { withExtendedLifetime(snapshots) {} }
        try await send(ServerEvent(name: "granted", data: WireCoding.text(document)))
        try await body()
    }

    private func claimRequest(_ document: ClaimDocument, _ context: ControlRequestContext) throws -> ClaimRequest {
        guard !document.items.isEmpty, document.items.count <= ControlRoutes.claimItemCountMax else {
            throw ProblemDocument.request("a claim names 1 to \(ControlRoutes.claimItemCountMax) items")
        }
        var items: [(path: [FileName], access: Access)] = []
        for item in document.items { items.append((try names(ofWirePath: item.path), try item.wanted())) }
        var result = ClaimRequest(
            items: items, purpose: Purpose(said: document.purpose),
            process: context.connection.peer?.process ?? 0, timeout: try duration(document.timeoutSeconds))
        result.isPreparation = document.isPreparation ?? false
        result.within = document.within.map { Set($0.map { ClaimID(rawValue: $0) }) }
        return result
    }
}

private func makeSnapshots(
    of nodes: [NodeID?], by service: any ControlService
) async throws(Failure) -> [Snapshot?] {
    var result: [Snapshot?] = []
    for node in nodes {
        guard let node else {
            result.append(nil)
            continue
        }
        result.append(try await service.snapshot(of: node))
    }
    return result
}

private final class Flag: Sendable {
    private let value = Mutex(false)
    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
}

/// Until when whatever a claim waits for may take: others, programs that write, listings, content for a snapshot.
private struct TimeLimit {
    /// The claim's own limit, which is exact, is to come first.
    private static let grace = Duration.milliseconds(100)

    private let end: ContinuousClock.Instant?

    init(_ timeout: Duration?) { end = timeout.map { .now + $0 + TimeLimit.grace } }

    /// Calls `body` when the time is over, unless it is cancelled before.
    func watch(_ body: @escaping @Sendable () -> Void) -> Task<Void, Never>? {
        end.map { end in
            Task {
                guard (try? await Task.sleep(until: end)) != nil else { return }
                body()
            }
        }
    }
}

/// Runs `body`, and gives it up when the client has gone or the time is over; what it has by then is handed to `giveBack`.
private func untilGone<Value: Sendable>(
    _ context: ControlRequestContext, _ keepAlive: KeepAlive, _ limit: TimeLimit,
    _ send: (ServerEvent?) async throws -> Void,
    giveBack: @escaping @Sendable (Value) -> Void = { _ in }, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let (beats, beat) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    // On the connection's own thread, like the request itself.
    let work = Task(executorPreference: context.connection.executor) {
        defer { beat.finish() }
        return try await body()
    }
    let isLate = Flag()
    let timer = limit.watch {
        isLate.set()
        beat.finish()
    }
    // Seen at once where the system says so, else by the next write that fails.
    let end = context.connection.whenClosed { work.cancel() }
    let listener = keepAlive.listen { beat.yield() }
    defer {
        timer?.cancel()
        context.connection.forget(end)
        keepAlive.forget(listener)
    }
    do {
        return try await withTaskCancellationHandler {
            for await _ in beats { try await send(nil) }
            if isLate.isSet {
                throw Failure(.timedOut, "what the claim waits for was not there in time")
            }
            return try await work.value
        } onCancel: {
            work.cancel()
        }
    } catch {
        work.cancel()
        // A listing or a fetch ends when the provider answers: nobody waits for that.
        Task { if let value = try? await work.value { giveBack(value) } }
        throw error
    }
}

/// The body of a request, read by the request's task alone: its first line, and later its end.
///
/// Unchecked because the iterator belongs to one task at a time: first to the route, then to the stream that it returns.
private final class LineReader: @unchecked Sendable {
    private var iterator: RequestBody.AsyncIterator

    init(_ body: RequestBody) { iterator = body.makeAsyncIterator() }

    /// Without the newline; the whole body when it has none. What follows the newline in the same piece is dropped.
    func firstLine() async throws -> [UInt8] {
        var line: [UInt8] = []
        while let piece = try await iterator.next() {
            let bytes = piece.readableBytesView
            let newline = bytes.firstIndex(of: 0x0A)
            line += bytes[..<(newline ?? bytes.endIndex)]
            guard line.count <= RequestLimit.bodyByteCountMax else {
                throw ProblemDocument.request("a request body has at most \(RequestLimit.bodyByteCountMax) bytes", status: 413)
            }
            if newline != nil { break }
        }
        return line
    }

    func readToEnd() async throws { while try await iterator.next() != nil {} }
}

/// Claims that are held, so that another request can end them.
final class OpenClaims: Sendable {
    private struct Ending { let call: @Sendable () -> Void }
    private let state = Mutex<[ClaimID: Ending]>([:])

    /// `ending` is called once at most, by whoever ends the claim.
    func begin(_ claim: ClaimID, ending: @escaping @Sendable () -> Void) {
        state.withLock { $0[claim] = Ending(call: ending) }
    }

    func end(_ claim: ClaimID) -> Bool {
        guard let ending = state.withLock({ $0.removeValue(forKey: claim) }) else { return false }
        ending.call()
        return true
    }

    func endAll() {
        let endings = state.withLock { state in
            defer { state = [:] }
            return Array(state.values)
        }
        for ending in endings { ending.call() }
    }

    func forget(_ claim: ClaimID) { state.withLock { _ = $0.removeValue(forKey: claim) } }
}

extension Access {
    fileprivate var isForUploading: Bool {
        if case .read(let options) = self { options.contains(.forUploading) } else { false }
    }
}

extension ClaimDocument.Item {
    fileprivate func wanted() throws -> Access {
        switch access {
        case "read":
            var result = ReadingOptions()
            for name in options ?? [] {
                switch name {
                case "withoutChanges": result.insert(.withoutChanges)
                case "resolvesSymbolicLink": result.insert(.resolvesSymbolicLink)
                case "immediatelyAvailableMetadataOnly": result.insert(.immediatelyAvailableMetadataOnly)
                case "forUploading": result.insert(.forUploading)
                default: throw ProblemDocument.request("'\(name)' is no option for reading")
                }
            }
            return .read(result)
        case "write":
            var result = WritingOptions()
            for name in options ?? [] {
                switch name {
                case "forDeleting": result.insert(.forDeleting)
                case "forMoving": result.insert(.forMoving)
                case "forMerging": result.insert(.forMerging)
                case "forReplacing": result.insert(.forReplacing)
                case "contentIndependentMetadataOnly": result.insert(.contentIndependentMetadataOnly)
                default: throw ProblemDocument.request("'\(name)' is no option for writing")
                }
            }
            return .write(result)
        default: throw ProblemDocument.request("'access' is 'read' or 'write', not '\(access)'")
        }
    }
}
