import HTTPTypes
import Hummingbird
import NIOCore
import PromiseCore
import PromiseDomain
import PromiseQuery
import PromiseSystem
import PromiseWire

// Questions about many items, and the change feed.

extension ControlRoutes {
    private static let listedCountMax = 10_000
    private static let listedCountDefault = 1_000

    func addQueryRoutes(to router: Router<ControlRequestContext>) {
        router.get("v1/queries") { request, _ in try await list(request) }
        router.post("v1/queries") { request, _ in try await stream(request) }
        router.get("v1/changes") { request, _ in try await changes(request) }
    }

    // MARK: - Queries

    private func list(_ request: Request) async throws -> Response {
        var document = QueryDocument(predicate: try text("predicate", of: request) ?? "TRUEPREDICATE")
        document.scope = queryValue("scope", of: request).map(String.init)
        (document.area, document.application) = (try text("area", of: request), try text("application", of: request))
        document.sort = try text("sort", of: request)?.split(separator: ",").map(String.init)
        document.attributes = try text("attributes", of: request)?.split(separator: ",").map(String.init)
        let limit = try number("limit", of: request) ?? ControlRoutes.listedCountDefault
        guard limit <= ControlRoutes.listedCountMax else {
            throw ProblemDocument.request("'limit' is at most \(ControlRoutes.listedCountMax); POST /v1/queries gives any number")
        }
        // One more tells whether there are more.
        document.limit = limit + 1
        var items: [FoundItemDocument] = []
        try await service.run(try await queryRequest(document), aliveInterval: keepAlive.interval) { event in
            if case .added(let found) = event { items += found.map { FoundItemDocument($0) } }
        }
        return jsonResponse(FoundItemsDocument(items: Array(items.prefix(limit)), isComplete: items.count <= limit))
    }

    private func stream(_ request: Request) async throws -> Response {
        let query = try await queryRequest(try await decode(QueryDocument.self, from: request))
        return streamResponse { [service, keepAlive] send in
            var sequence = 0
            try await service.run(query, aliveInterval: keepAlive.interval) { event in
                guard let name = event.name else { return try await send(nil) }
                for part in event.parts {
                    sequence += 1
                    var document = part
                    document.sequence = sequence
                    try await send(ServerEvent(name: name, data: WireCoding.text(document)))
                }
            }
        }
    }

    private func queryRequest(_ document: QueryDocument) async throws -> QueryRequest {
        let predicate: Predicate
        do throws(PredicateError) {
            predicate = try PredicateParser.parse(
                document.predicate, arguments: (document.arguments ?? []).map { QueryValue($0) })
        } catch {
            throw ProblemDocument.request("the predicate is not understood at \(error.position): \(error.message)")
        }
        var result = QueryRequest(predicate: predicate, area: try QueryArea(document), isLive: document.live ?? false)
        result.application = document.application
        if let scope = document.scope { result.scope = try await service.node(at: try names(ofWirePath: scope)) }
        for word in document.sort ?? [] {
            let isDescending = word.hasPrefix("-")
            result.sort(by: try key(isDescending ? word.dropFirst() : word[...]), isDescending: isDescending)
        }
        for word in document.attributes ?? [] { result.tell(try key(word[...])) }
        if let seconds = document.batchingSeconds {
            guard seconds >= 0, seconds <= 3600 else { throw ProblemDocument.request("'batchingSeconds' is 0 to 3600") }
            result.batching = .seconds(seconds)
        }
        if let limit = document.limit {
            guard limit >= 0 else { throw ProblemDocument.request("'limit' is not negative") }
            guard !result.isLive else {
                throw ProblemDocument.request("a live query has no limit: what should go when more comes?")
            }
            result.limit = limit
        }
        return result
    }

    func key(_ name: Substring) throws -> AttributeKey {
        guard let key = AttributeKey(spelled: String(name)) else {
            throw ProblemDocument.request("'\(name)' is no attribute; docs/QUERIES.md has them all")
        }
        return key
    }

    // MARK: - Changes

    private func changes(_ request: Request) async throws -> Response {
        let since = Int64(try number("since", of: request) ?? 0)
        let journal = try text("journal", of: request)
        let limit = min(try number("limit", of: request) ?? ControlRoutes.listedCountDefault, ControlRoutes.listedCountMax)
        guard queryValue("follow", of: request) == "true" else {
            let page = try await page(since: since, of: journal, limit: limit)
            return jsonResponse(ChangesDocument(page, since: since))
        }
        return streamResponse { send in
            var position = since
            while true {
                let page = try await page(since: position, of: journal, limit: 500)
                guard let last = page.changes.last else {
                    try await send(nil)
                    await service.waitForChange(after: position, timeout: keepAlive.interval)
                    try Task.checkCancellation()
                    continue
                }
                await service.settle()
                let data = WireCoding.text(ChangesDocument(page, since: position))
                try await send(ServerEvent(name: "changes", data: data))
                position = last.sequence
            }
        }
    }

    private func page(since: Int64, of journal: String?, limit: Int) async throws(Failure) -> ChangePage {
        try await blocking.run { [service] () throws(Failure) in
            try service.changes(since: since, of: journal, limit: limit)
        }
    }

    // MARK: - Fields of the query

    /// A field's text; a `+` is a plus.
    func text(_ name: String, of request: Request) throws -> String? {
        guard let raw = queryValue(name, of: request) else { return nil }
        guard let bytes = PercentCoding.decode(raw), let text = String(validating: bytes, as: UTF8.self) else {
            throw ProblemDocument.request("'\(name)' is no percent-encoded text")
        }
        return text
    }

    func number(_ name: String, of request: Request) throws -> Int? {
        guard let raw = queryValue(name, of: request) else { return nil }
        guard let number = Int(raw), number >= 0 else { throw ProblemDocument.request("'\(name)' is no number: '\(raw)'") }
        return number
    }
}

/// A response of server-sent events that are sent one after the other, as fast as the client reads; nil sends a comment,
/// which tells whether the client is still there. A failure is the event `problem`.
func streamResponse(
    _ body: @escaping @Sendable (_ send: (ServerEvent?) async throws -> Void) async throws -> Void
) -> Response {
    var headers = HTTPFields()
    headers[.contentType] = "text/event-stream"
    headers[.cacheControl] = "no-store"
    let content = ResponseBody { writer in
        var hasClientGone = false
        do {
            try await body { event in
                do {
                    try await writer.write(ByteBuffer(string: event?.encoded ?? ServerEvent.keepAlive))
                } catch {
                    hasClientGone = true
                    throw error
                }
            }
        } catch {
            if hasClientGone || error is CancellationError { throw error }
            let problem = ProblemDocument(anything: error)
            try await writer.write(ByteBuffer(string: ServerEvent(name: "problem", data: WireCoding.text(problem)).encoded))
        }
        try await writer.finish(nil)
    }
    return Response(status: .ok, headers: headers, body: content)
}

extension ProblemDocument {
    init(anything error: any Error) {
        switch error {
        case let failure as Failure: self.init(failure)
        case let problem as ProblemDocument: self = problem
        default: self.init(Failure(.inputOutput, "the daemon could not go on: \(error)"))
        }
    }
}

extension QueryArea {
    init(_ document: QueryDocument) throws(ProblemDocument) {
        let word = document.area ?? (document.external == true ? QueryArea.external : .everywhere).rawValue
        guard let area = QueryArea(rawValue: word) else {
            let words = QueryArea.allCases.map(\.rawValue).joined(separator: ", ")
            throw ProblemDocument.request("'area' is one of \(words), not '\(word)'")
        }
        if document.external == true, area != .external {
            throw ProblemDocument.request("'external' is the area external, and not '\(word)'")
        }
        if document.application != nil, !area.isOfContainers {
            throw ProblemDocument.request("'application' says whose documents or data: give that as the 'area'")
        }
        self = area
    }
}
