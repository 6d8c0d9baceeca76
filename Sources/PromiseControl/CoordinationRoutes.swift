import HTTPTypes
import Hummingbird
import NIOCore
import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseWire
import Synchronization

// Claims and presenters. Both live as long as the stream of events that tells of them: who dies lets go.

extension ControlRoutes {
    private static let claimItemCountMax = 1_000
    /// Events for a presenter that does not read them; then it is one no more.
    private static let presenterEventCountMax = 10_000

    func addCoordinationRoutes(to router: Router<ControlRequestContext>) {
        router.post("v1/claims") { request, context in try await claim(request, context) }
        router.delete("v1/claims/:id") { _, context in
            let id = try context.parameters.require("id", as: UInt64.self)
            return jsonResponse(DoneDocument(done: open.end(ClaimID(rawValue: id))))
        }
        router.post("v1/presenters") { request, context in try await present(request, context) }
        router.post("v1/presenters/:id/answers") { request, context in
            let id = try context.parameters.require("id", as: UInt64.self)
            let answer = try await decode(AnswerDocument.self, from: request)
            return jsonResponse(DoneDocument(done: service.answered(answer.question, by: PresenterID(rawValue: id))))
        }
    }

    // MARK: - Claims

    private func claim(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let document = try await decode(ClaimDocument.self, from: request)
        guard !document.items.isEmpty, document.items.count <= ControlRoutes.claimItemCountMax else {
            throw ProblemDocument.request("a claim names 1 to \(ControlRoutes.claimItemCountMax) items")
        }
        var items: [(path: [FileName], access: Access)] = []
        for item in document.items { items.append((try names(ofWirePath: item.path), try access(item))) }
        let wanted = ClaimRequest(
            items: items, purpose: document.purpose.map { Purpose(rawValue: $0) }, process: try await context.peerProcess(),
            timeout: try duration(document.timeoutSeconds))
        return streamResponse { [service, open, keepAliveInterval] send in
            try await send(nil)
            let granted = try await untilGone(
                context, keepAliveInterval, send, giveBack: { service.release($0.id) }, { try await service.claim(wanted) })
            defer { service.release(granted.id) }
            let ending = open.begin(granted.id)
            defer { open.forget(granted.id) }
            var document = GrantedClaimDocument(claim: granted.id.rawValue, items: [])
            for node in granted.nodes {
                let path = PathText(try service.currentPath(of: node) ?? [])
                document.items.append(.init(node: node.rawValue, path: path.display, pathBytes: path.bytes))
            }
            let nodes = zip(granted.nodes, wanted.items).map { $1.access.isForUploading ? $0 : nil }
            let snapshots = try await untilGone(context, keepAliveInterval, send) { try await makeSnapshots(of: nodes) }
            for (index, snapshot) in snapshots.enumerated() {
                document.items[index].snapshotBytes = snapshot.map { PercentCoding.encode($0.path) }
            }
            // Whoever writes need not wait for what is done with the snapshots.
            if !nodes.contains(nil) { service.release(granted.id) }
            defer { withExtendedLifetime(snapshots) {} }
            try await send(ServerEvent(name: "granted", data: WireCoding.text(document)))
            _ = try await untilGone(context, keepAliveInterval, send) { for await _ in ending {} }
            service.release(granted.id)
            try await send(ServerEvent(name: "released", data: WireCoding.text(DoneDocument(done: true))))
        }
    }

    private func makeSnapshots(of nodes: [NodeID?]) async throws(Failure) -> [Snapshot?] {
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

    private func access(_ item: ClaimDocument.Item) throws -> Access {
        switch item.access {
        case "read":
            var options = ReadingOptions()
            for name in item.options ?? [] {
                switch name {
                case "withoutChanges": options.insert(.withoutChanges)
                case "resolvesSymbolicLink": options.insert(.resolvesSymbolicLink)
                case "immediatelyAvailableMetadataOnly": options.insert(.immediatelyAvailableMetadataOnly)
                case "forUploading": options.insert(.forUploading)
                default: throw ProblemDocument.request("'\(name)' is no option for reading")
                }
            }
            return .read(options)
        case "write":
            var options = WritingOptions()
            for name in item.options ?? [] {
                switch name {
                case "forDeleting": options.insert(.forDeleting)
                case "forMoving": options.insert(.forMoving)
                case "forMerging": options.insert(.forMerging)
                case "forReplacing": options.insert(.forReplacing)
                case "contentIndependentMetadataOnly": options.insert(.contentIndependentMetadataOnly)
                default: throw ProblemDocument.request("'\(name)' is no option for writing")
                }
            }
            return .write(options)
        default: throw ProblemDocument.request("'access' is 'read' or 'write', not '\(item.access)'")
        }
    }

    // MARK: - Presenters

    private func present(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let document = try await decode(PresenterDocument.self, from: request)
        let path = try names(ofWirePath: document.path)
        return streamResponse { [service, keepAliveInterval] send in
            let (events, continuation) = AsyncStream.makeStream(
                of: Coordinator.PresenterEvent.self, bufferingPolicy: .bufferingOldest(ControlRoutes.presenterEventCountMax))
            let purpose = document.purpose.map { Purpose(rawValue: $0) }
            let presenter = try await service.present(path, purpose: purpose) { event in
                // Who does not read is no presenter: nobody waits for it.
                if case .enqueued = continuation.yield(event), !event.isLast { return true }
                continuation.finish()
                return false
            }
            defer { service.removePresenter(presenter.id) }
            let alive = Task {
                while !Task.isCancelled {
                    try? await Task.sleep(for: keepAliveInterval)
                    continuation.yield(.alive)
                }
            }
            defer { alive.cancel() }
            context.channel.closeFuture.whenComplete { _ in continuation.finish() }
            // A document that is saved as a new file has another node.
            let entry = try service.entry(of: presenter.node)
            let first = PresenterEventDocument(presenter.id, nil, presenter.node, service)
            try await send(ServerEvent(name: "presenting", data: WireCoding.text(first)))
            for await event in events {
                let node = event.node ?? entry.flatMap { try? service.currentNode(of: $0) } ?? presenter.node
                var document = PresenterEventDocument(presenter.id, event.what, node, service)
                document.question = event.question
                document.version = event.version.map { PercentCoding.encode($0.bytes) }
                try await send(event.name.map { ServerEvent(name: $0, data: WireCoding.text(document)) })
            }
        }
    }
}

/// Runs `body`, and gives it up when the client has gone; what it has by then is handed to `giveBack`.
private func untilGone<Value: Sendable>(
    _ context: ControlRequestContext, _ interval: Duration, _ send: (ServerEvent?) async throws -> Void,
    giveBack: (Value) -> Void = { _ in }, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let (beats, beat) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let work = Task {
        defer { beat.finish() }
        return try await body()
    }
    // Seen at once where the system says so, else by the next write that fails.
    context.channel.closeFuture.whenComplete { _ in work.cancel() }
    let timer = Task {
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            beat.yield()
        }
    }
    defer { timer.cancel() }
    do {
        return try await withTaskCancellationHandler {
            for await _ in beats { try await send(nil) }
            return try await work.value
        } onCancel: {
            work.cancel()
        }
    } catch {
        work.cancel()
        if let value = try? await work.value { giveBack(value) }
        throw error
    }
}

/// Claims whose streams are open, so that another request can end them.
final class OpenClaims: Sendable {
    private let state = Mutex<[ClaimID: AsyncStream<Void>.Continuation]>([:])

    /// A stream that ends when somebody ends the claim.
    func begin(_ claim: ClaimID) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        state.withLock { $0[claim] = continuation }
        return stream
    }

    func end(_ claim: ClaimID) -> Bool {
        guard let continuation = state.withLock({ $0.removeValue(forKey: claim) }) else { return false }
        continuation.finish()
        return true
    }

    func endAll() {
        let continuations = state.withLock { state in
            defer { state = [:] }
            return Array(state.values)
        }
        for continuation in continuations { continuation.finish() }
    }

    func forget(_ claim: ClaimID) { state.withLock { _ = $0.removeValue(forKey: claim) } }
}

extension Coordinator.PresenterEvent {
    fileprivate var name: String? {
        switch self {
        case .ask: "ask"
        case .tell: "tell"
        case .alive, .ended: nil
        }
    }

    fileprivate var isLast: Bool { if case .ended = self { true } else { false } }

    fileprivate var question: UInt64? { if case .ask(_, let number, _) = self { number } else { nil } }

    fileprivate var node: NodeID? {
        switch self {
        case .ask(_, _, let node), .tell(.subitemDidAppear(let node)), .tell(.subitemDidChange(let node)),
            .tell(.subitemDidMove(let node)), .tell(.subitemDidDelete(let node)), .tell(.subitemVersion(_, _, let node)):
            node
        case .tell, .alive, .ended: nil
        }
    }

    fileprivate var version: FileName? {
        switch self {
        case .tell(.version(_, let name)), .tell(.subitemVersion(_, let name, _)): name
        case .ask, .tell, .alive, .ended: nil
        }
    }

    fileprivate var what: String? {
        switch self {
        case .ask(let question, _, _): question.rawValue
        case .tell(let notice):
            switch notice {
            case .reacquire: "reacquire"
            case .didChange: "didChange"
            case .didMove: "didMove"
            case .didDelete: "didDelete"
            case .subitemDidAppear: "subitemDidAppear"
            case .subitemDidChange: "subitemDidChange"
            case .subitemDidMove: "subitemDidMove"
            case .subitemDidDelete: "subitemDidDelete"
            case .version(let change, _): "did\(change.verb)Version"
            case .subitemVersion(let change, _, _): "subitemDid\(change.verb)Version"
            }
        case .alive, .ended: nil
        }
    }
}

extension VersionChange {
    fileprivate var verb: String {
        switch self {
        case .gained: "Gain"
        case .lost: "Lose"
        case .resolved: "Resolve"
        }
    }
}

extension PresenterEventDocument {
    fileprivate init(_ presenter: PresenterID, _ what: String?, _ node: NodeID, _ service: any ControlService) {
        let path = (try? service.currentPath(of: node)).flatMap { $0 }.map { PathText($0) }
        self.init(
            presenter: presenter.rawValue, what: what, node: node.rawValue, path: path?.display, pathBytes: path?.bytes)
    }
}

extension Access {
    fileprivate var isForUploading: Bool {
        if case .read(let options) = self { options.contains(.forUploading) } else { false }
    }
}
