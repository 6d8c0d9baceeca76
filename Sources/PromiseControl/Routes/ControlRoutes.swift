import HTTPTypes
import Hummingbird
import NIOCore
import PromiseAccess
import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire
import Synchronization

/// The endpoints of one domain. Paths are percent-encoded bytes from the root of the mount.
struct ControlRoutes: Sendable {
    let service: any ControlService
    /// For the service's synchronous calls, which may block.
    let blocking: BlockingPool
    let keepAlive: KeepAlive
    let open = OpenClaims()
    var picks = PickDesk()

    /// How many paths of one fetch run at once; the engine limits transfers by itself.
    private static let concurrentFetches = 4

    func responder() -> some HTTPResponder<ControlRequestContext> {
        let router = Router(context: ControlRequestContext.self)
        router.add(middleware: ProblemReplies())
        router.add(middleware: PeerCheck(grants: service.documents?.grants))
        router.add(middleware: SettledAnswers(service: service))
        router.get("v1/status") { _, _ in jsonResponse(StatusDocument(await service.status())) }
        router.get("v1/items") { request, context in try await information(request, context.principal) }
        router.post("v1/items/fetch") { request, _ in try await fetch(request) }
        router.post("v1/items/evict") { request, _ in try await evict(request) }
        router.post("v1/items/pin") { request, _ in try await pin(request) }
        router.get("v1/pending") { request, _ in try await pending(request) }
        router.post("v1/pending/step") { _, _ in try await stepPending() }
        router.post("v1/sync") { request, _ in try await synchronize(request) }
        router.post("v1/verify") { request, _ in
            let document = try await decode(VerifyRequest.self, from: request)
            let report = try await service.verify(repair: document.repair ?? false, provider: document.provider ?? false)
            return jsonResponse(VerifyDocument(nodes: report.nodes, problems: report.problems, repaired: report.repaired))
        }
        LifeRoutes(routes: self).add(to: router)
        addQueryRoutes(to: router)
        addValueRoutes(to: router)
        RevertRoutes(routes: self).add(to: router)
        LinkRoutes(routes: self).add(to: router)
        TrashRoutes(routes: self).add(to: router)
        addKeyValueRoutes(to: router)
        DocumentRoutes(routes: self).add(to: router)
        GrantRoutes(routes: self).add(to: router)
        ListingRoutes(routes: self).add(to: router)
        addTraceRoutes(to: router)
        addClaimRoutes(to: router)
        addPresenterRoutes(to: router)
        return router.buildResponder()
    }

    // MARK: - Endpoints

    /// The item that a request without a body names.
    func item(of request: Request) async throws -> NodeID { try await namedItem(of: request).node }

    private func namedItem(of request: Request) async throws -> NamedItem {
        if let text = queryValue("node", of: request) {
            guard let number = UInt64(text) else { throw ProblemDocument.request("'\(text)' is no node number") }
            return NamedItem(node: NodeID(number))
        }
        guard let path = queryValue("path", of: request) else {
            throw ProblemDocument.request("say which item: ?path=PERCENT-ENCODED-PATH or ?node=NUMBER")
        }
        return try await service.item(at: try names(ofWirePath: path))
    }

    private func information(_ request: Request, _ principal: Principal) async throws -> Response {
        let item = try await namedItem(of: request)
        let references = ReferenceRoutes(documents: DocumentRoutes(routes: self))
        let reference = try await references.reference(of: item.node, principal)
        let document = try await blocking.run { [service] () throws(Failure) in
            var document = ItemDocument(try service.information(of: item))
            document.hasThumbnail = service.hasThumbnail(item.node)
            document.reference = reference
            return document
        }
        return jsonResponse(document)
    }

    private func fetch(_ request: Request) async throws -> Response {
        let paths = try await itemPaths(try await decode(ItemsRequest.self, from: request))
        return eventResponse(keepAlive) { reporter in
            let parts = Mutex([Int: ProgressDocument]())
            let update: @Sendable (Int, ProgressDocument) -> Void = { index, part in
                parts.withLock { $0[index] = part }
                reporter.report { ProgressDocument(sum: parts.withLock { Array($0.values) }, tellsFailures: false) }
            }
            await withTaskGroup(of: Void.self) { group in
                for (index, path) in paths.enumerated() {
                    if index >= ControlRoutes.concurrentFetches { await group.next() }
                    group.addTask { update(index, await fetchOne(path) { update(index, $0) }) }
                }
            }
            let all = parts.withLock { parts in paths.indices.compactMap { parts[$0] } }
            return ProgressDocument(sum: all, tellsFailures: true)
        }
    }

    private func fetchOne(_ path: [FileName], progress: @escaping @Sendable (ProgressDocument) -> Void) async -> ProgressDocument
    {
        do throws(Failure) {
            let node = try await service.node(at: path)
            return ProgressDocument(try await service.fetch(node) { progress(ProgressDocument($0)) })
        } catch {
            let failure = ItemFailureDocument(path: path, error)
            return ProgressDocument(filesDone: 0, filesTotal: 0, bytesDone: 0, bytesTotal: 0, failures: [failure])
        }
    }

    private func evict(_ request: Request) async throws -> Response {
        var result = EvictionDocument(evicted: 0, bytesFreed: 0, kept: [], failures: [])
        let document = try await decode(ItemsRequest.self, from: request)
        for path in try await itemPaths(document) {
            do throws(Failure) {
                let part = EvictionDocument(
                    try await service.evict(try await service.node(at: path), purpose: Purpose(said: document.purpose)))
                result.evicted += part.evicted
                result.bytesFreed += part.bytesFreed
                result.kept += part.kept
            } catch {
                result.failures.append(ItemFailureDocument(path: path, error))
            }
        }
        return jsonResponse(result)
    }

    private func pin(_ request: Request) async throws -> Response {
        let document = try await decode(ItemsRequest.self, from: request)
        guard let name = document.pin, let pin = Pin(name: name) else {
            throw ProblemDocument.request("'pin' is 'pinned', 'online-only' or 'automatic', not '\(document.pin ?? "")'")
        }
        var result = PinDocument(pin: pin.name, items: 0, failures: [])
        for path in try await itemPaths(document) {
            do throws(Failure) {
                result.add(try await service.setPin(pin, of: try await service.node(at: path)))
            } catch {
                result.failures.append(ItemFailureDocument(path: path, error))
            }
        }
        return jsonResponse(result)
    }

    private func pending(_ request: Request) async throws -> Response {
        let node = try await optionalNode(queryValue("path", of: request))
        let isExcluded = queryValue("excluded", of: request) == "true"
        guard isExcluded else {
            return jsonResponse(PendingDocument(try await pendingWork(below: node)))
        }
        let work = try await blocking.run { [service] () throws(Failure) in
            try service.excluded(below: node)
        }
        return jsonResponse(PendingDocument(items: work.map { PendingItemDocument($0) }))
    }

    private func stepPending() async throws -> Response {
        let work = try await service.stepPending()
        return jsonResponse(PendingDocument(items: work.map { [PendingItemDocument($0)] } ?? []))
    }

    private func synchronize(_ request: Request) async throws -> Response {
        let document = try await decode(SyncRequest.self, from: request)
        let timeout = try duration(document.timeoutSeconds)
        let node = try await optionalNode(document.path?[...])
        // It has a limit of its own, and what waits for items does not wait for it.
        Task { [service] in await service.exchangeKept() }
        guard document.wait ?? false else {
            try await service.synchronize(below: node, wait: false, timeout: timeout)
            return jsonResponse(SyncDocument(pending: try await pendingWork(below: node).count))
        }
        return eventResponse(keepAlive) { _ in
            do throws(Failure) {
                try await service.synchronize(below: node, wait: true, timeout: timeout)
            } catch {
                throw ProblemDocument(ofWait: error, for: try? await pendingWork(below: node))
            }
            // Downloads are not waited for.
            return SyncDocument(pending: try await pendingWork(below: node).toBeSentCount)
        }
    }

    // MARK: - Requests

    private func pendingWork(below node: NodeID?) async throws(Failure) -> PendingList {
        try await blocking.run { [service] () throws(Failure) in try service.pending(below: node) }
    }

    private func optionalNode(_ path: Substring?) async throws(Failure) -> NodeID? {
        guard let path else { return nil }
        let names = try names(ofWirePath: path)
        return names.isEmpty ? nil : try await service.node(at: names)
    }

    func itemPaths(_ document: ItemsRequest) async throws -> [[FileName]] {
        guard !document.paths.isEmpty else { throw ProblemDocument.request("'paths' is empty; name at least one item") }
        guard document.paths.count <= RequestLimit.pathCountMax else {
            throw ProblemDocument.request(
                "a request names at most \(RequestLimit.pathCountMax) paths, not \(document.paths.count); send several",
                status: 413)
        }
        return try document.paths.map { path throws(Failure) in try names(ofWirePath: path) }
    }

    /// An empty body stands for a document without any field.
    func decode<Document: Decodable>(_ type: Document.Type, from request: Request) async throws -> Document {
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: RequestLimit.bodyByteCountMax)
        } catch is NIOTooManyBytesError {
            throw ProblemDocument.request("a request body has at most \(RequestLimit.bodyByteCountMax) bytes", status: 413)
        }
        return try decode(type, from: body.readableBytesView, of: request)
    }

    func decode<Document: Decodable>(
        _ type: Document.Type, from bytes: some Collection<UInt8>, of request: Request
    ) throws -> Document {
        let document = bytes.isEmpty ? WireCoding.decode(type, from: "{}".utf8) : WireCoding.decode(type, from: bytes)
        guard let document else {
            throw ProblemDocument.request("the body is not the JSON document that \(request.uri.path) takes")
        }
        return document
    }

    /// The raw value of a query field: decoding it to text first would lose bytes that are not UTF-8.
    func queryValue(_ name: String, of request: Request) -> Substring? {
        guard let mark = request.head.path?.firstIndex(of: "?"), let target = request.head.path else { return nil }
        for field in target[target.index(after: mark)...].split(separator: "&") {
            let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts[0] == name { return parts.count == 2 ? parts[1] : "" }
        }
        return nil
    }

    func duration(_ seconds: Double?) throws -> Duration? {
        guard let seconds else { return nil }
        guard seconds >= 0, seconds <= 3_000_000_000 else {
            throw ProblemDocument.request("'timeoutSeconds' is out of range: \(seconds)")
        }
        return .seconds(seconds)
    }
}
