import Hummingbird
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseSystem
import PromiseWire

/// Links that stand for documents, of this domain or of another one.
struct ReferenceRoutes: Sendable {
    typealias Context = ControlRequestContext

    let documents: DocumentRoutes

    private var routes: ControlRoutes { documents.routes }
    private var references: References { get throws(Failure) { try documents.services.references } }

    func add(to router: Router<Context>) {
        router.get("v1/references") { request, context in
            let path = routes.queryValue("path", of: request) ?? ""
            let node = try await routes.service.node(at: try names(ofWirePath: path))
            let (service, principal) = (try references, context.principal)
            let found = try await routes.blocking.run { () throws(Failure) in
                try service.all(below: node, by: principal)
            }
            let asked = principal.isOwner ? await service.asked(await service.settled(found)) : found
            return jsonResponse(
                ReferencesDocument(references: try asked.map { try shown($0, principal) }))
        }
        router.post("v1/references") { request, context in
            let document = try await routes.decode(ReferenceRequest.self, from: request)
            return jsonResponse(try shown(try await made(document, context.principal), context.principal))
        }
        router.delete("v1/references") { request, context in
            let path = try self.path(of: request)
            let principal = context.principal
            let removed = try await references.remove(
                at: try await documents.reach(path, .readWrite, principal), by: principal)
            return jsonResponse(try shown(removed, principal))
        }
        router.get("v1/references/card") { request, context in
            let record = try await references.card(
                of: try names(ofWirePath: path(of: request)), by: context.principal)
            return jsonResponse(
                ReferenceCardDocument(record: String(decoding: record.target, as: UTF8.self)))
        }
        router.post("v1/references/lead") { request, context in
            let document = try await routes.decode(ReferenceLeadRequest.self, from: request)
            let lead = try await references.lead(
                try record(document.record), bound: document.bound, by: context.principal)
            return jsonResponse(ReferenceLeadDocument(lead))
        }
    }

    /// Of an item that is a reference: what it leads to; other domains are asked.
    func reference(of node: NodeID, _ principal: Principal) async throws -> ReferenceDocument? {
        guard let references = routes.service.documents?.references,
            let standing = try references.standing(of: node)
        else { return nil }
        if !principal.isOwner { return try shown(standing, principal) }
        return ReferenceDocument(await references.asked(await references.settled([standing]))[0])
    }

    private func path(of request: Request) throws -> String {
        guard let path = routes.queryValue("path", of: request) else {
            throw ProblemDocument.request("say which item: ?path=PERCENT-ENCODED-PATH")
        }
        return String(path)
    }

    private func record(_ text: String) throws -> ReferenceRecord {
        guard let record = ReferenceRecord(target: Array(text.utf8)) else {
            throw ProblemDocument.request("'record' is to be what GET /v1/references/card says")
        }
        return record
    }

    private func made(
        _ request: ReferenceRequest, _ principal: Principal
    ) async throws -> ReferenceStanding {
        if let text = request.record {
            return try await references.add(
                try record(text), at: try names(ofWirePath: request.path), by: principal)
        }
        guard let target = request.target else {
            throw ProblemDocument.request("say for what: 'target' or 'record'")
        }
        return try await references.add(
            to: try await documents.reach(target, .read, principal),
            at: try await documents.reach(request.path, .readWrite, principal), by: principal)
    }

    /// What leads out of an application's reach is told without its place.
    private func shown(
        _ standing: ReferenceStanding, _ principal: Principal
    ) throws -> ReferenceDocument {
        var document = ReferenceDocument(standing)
        guard !principal.isOwner else { return document }
        let grants = try documents.services.grants
        let path = PathText(try grants.shownPath(of: standing.node, for: principal) ?? [])
        (document.path, document.pathBytes) = (path.display, path.bytes)
        (document.domain, document.place) = (nil, nil)
        let inReach =
            standing.elsewhere == nil
            ? try grants.shownPath(ofPath: standing.target, for: principal) : nil
        let target = PathText(inReach ?? [])
        (document.target, document.targetBytes) = (target.display, target.bytes)
        return document
    }
}

extension ReferenceDocument {
    init(_ standing: ReferenceStanding) {
        let (path, target) = (PathText(standing.path), PathText(standing.target))
        self.init(
            path: path.display, pathBytes: path.bytes, target: target.display,
            targetBytes: target.bytes, kind: standing.kind.wireName, state: standing.fate.rawValue,
            reason: standing.fate.reason, identifier: standing.identifier?.rawValue)
        domain = standing.elsewhere?.domain
        place = standing.elsewhere?.place.map { PercentCoding.encode($0) }
    }
}

extension ReferenceLeadDocument {
    init(_ lead: ReferenceLead) {
        switch lead {
        case .notHere: self.init(isHere: false)
        case .here(let fate, let path, let record, let bound):
            self.init(
                isHere: true, state: fate.rawValue, pathBytes: PathText(path).bytes,
                record: record.map { String(decoding: $0.target, as: UTF8.self) }, bound: bound)
        }
    }
}
