import HTTPTypes
import Hummingbird
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseKeyValue
import PromiseQuery
import PromiseWire

/// What applications were given.
struct GrantRoutes: Sendable {
    typealias Context = ControlRequestContext

    private static let auditCountMax = 10_000

    let routes: ControlRoutes

    func add(to router: Router<Context>) {
        router.get("v1/grants") { request, context in
            let found = try await grants.list(
                of: try routes.text("application", of: request), by: context.principal)
            let unbalanced = context.principal.isOwner ? try grants.unbalancedStarts : [:]
            return jsonResponse(
                GrantsDocument(
                    grants: try found.map { try document($0, context.principal) },
                    unbalanced: unbalanced))
        }
        router.post("v1/grants") { request, context in
            let document = try await routes.decode(GrantRequest.self, from: request)
            let made = try await grants.add(
                try await routes.service.item(at: try names(ofWirePath: document.path)),
                to: document.application, try rights(document.rights),
                until: try end(document.until, document.launch), by: context.principal)
            return jsonResponse(try self.document(made, context.principal))
        }
        router.get("v1/grants/audit") { request, context in
            jsonResponse(try await audit(request, context.principal))
        }
        router.get("v1/grants/:id") { _, context in
            let found = try await grants.show(try id(context), by: context.principal)
            return jsonResponse(try document(found, context.principal))
        }
        router.delete("v1/grants/:id") { _, context in
            let removed = try await grants.revoke(try id(context), by: context.principal)
            return jsonResponse(GrantsDocument(grants: removed.map { gone($0) }))
        }
        router.delete("v1/grants") { request, context in
            guard let application = try routes.text("application", of: request) else {
                throw ProblemDocument.request("say whose grants: ?application=com.example.editor")
            }
            let removed = try await grants.revokeAll(of: application, by: context.principal)
            return jsonResponse(GrantsDocument(grants: removed.map { gone($0) }))
        }
        router.post("v1/grants/:id/pass") { request, context in
            let document = try await routes.decode(GrantPassing.self, from: request)
            var item: NamedItem?
            if let path = document.path {
                item = try await routes.service.item(at: try names(ofWirePath: path))
            }
            let made = try await grants.passOn(
                try id(context), item, to: document.application, try rights(document.rights),
                until: try end(document.until, nil), by: context.principal)
            return jsonResponse(try self.document(made, context.principal))
        }
        router.post("v1/scopes/:id/stop") { _, context in
            let id = try id(context)
            let left = try await grants.stopScope(id, by: context.principal)
            return jsonResponse(ScopeDocument(grant: id.rawValue, remaining: left))
        }
        addLaunches(to: router)
        PickRoutes(routes: routes).add(to: router)
    }

    // MARK: Launches

    private func addLaunches(to router: Router<Context>) {
        router.post("v1/launches") { request, context in try await launch(request, context) }
        router.put("v1/launches/:id") { request, context in
            let document = try await routes.decode(LaunchBinding.self, from: request)
            let launch = LaunchID(try context.parameters.require("id"))
            try grants.bind(launch, to: .mount(document.mountNamespace), by: context.principal)
            return jsonResponse(DoneDocument(done: true))
        }
        router.delete("v1/launches/:id") { _, context in
            guard context.principal.isOwner else { throw Failure(.refused, "only the owner may do that") }
            let launch = LaunchID(try context.parameters.require("id"))
            let isThere = try grants.isUnderWay(launch)
            try await grants.endLaunch(launch)
            return jsonResponse(DoneDocument(done: isThere))
        }
    }

    /// A launch lives as long as the stream that tells of it.
    private func launch(_ request: Request, _ context: Context) async throws -> Response {
        let document = try await routes.decode(LaunchRequest.self, from: request)
        let (grants, keepAlive) = (try grants, routes.keepAlive)
        let principal = context.principal
        let begun = try await grants.beginLaunch(of: document.application, by: principal)
        let connection = context.connection
        // Also when it has closed already, and the answer is never begun.
        _ = connection.whenClosed { Task { await grants.endLaunch(begun.launch) } }
        if let namespace = document.mountNamespace {
            do throws(Failure) {
                try grants.bind(begun.launch, to: .mount(namespace), by: principal)
            } catch {
                await grants.endLaunch(begun.launch)
                throw error
            }
        }
        return streamResponse { send in
            let (beats, beat) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            let listener = keepAlive.listen { beat.yield() }
            let end = connection.whenClosed { beat.finish() }
            var thrown: (any Error)?
            do {
                let first = LaunchDocument(
                    launch: begun.launch.text, application: document.application,
                    socket: begun.socket ?? "")
                try await send(ServerEvent(name: "launched", data: WireCoding.text(first)))
                for await _ in beats {
                    guard grants.isUnderWay(begun.launch) else { break }
                    try await send(nil)
                }
            } catch {
                thrown = error
            }
            keepAlive.forget(listener)
            connection.forget(end)
            // Also when this task was cancelled, as a launch must not outlive its stream.
            await Task { await grants.endLaunch(begun.launch) }.value
            if let thrown { throw thrown }
        }
    }

    // MARK: Parts

    private var grants: Grants {
        get throws(Failure) {
            guard let services = routes.service.documents else {
                throw Failure(.notSupported, "this domain keeps nothing for applications")
            }
            return services.grants
        }
    }

    private func id(_ context: Context) throws -> GrantID {
        GrantID(try context.parameters.require("id", as: Int64.self))
    }

    private func rights(_ text: String) throws -> Rights {
        guard let rights = Rights(name: text), rights > .none else {
            throw ProblemDocument.request("'rights' is 'read' or 'read-write', not '\(text)'")
        }
        return rights
    }

    private func end(_ until: String?, _ launch: String?) throws -> Grant.End {
        if let launch { return .launch(LaunchID(launch)) }
        guard let until else { return .revoked }
        guard let nanoseconds = DateLiteral.nanoseconds(Array(until.utf8)) else {
            throw ProblemDocument.request("'until' is a date as 2027-01-31T12:00:00Z, not '\(until)'")
        }
        return .date(Timestamp(nanoseconds: nanoseconds))
    }

    private func audit(_ request: Request, _ principal: Principal) async throws -> AuditDocument {
        guard principal.isOwner, let audit = routes.service.documents?.audit else {
            throw try grants.refuse(principal, "grants.audit", "the audit log")
        }
        let limit = try routes.number("limit", of: request) ?? 1_000
        let lines = await audit.lines(
            of: try routes.text("application", of: request), limit: min(limit, Self.auditCountMax))
        return AuditDocument(lines: lines.map { AuditLineDocument($0) })
    }

    private func document(
        _ standing: GrantStanding, _ principal: Principal
    ) throws(Failure) -> GrantDocument {
        var document = gone(standing.grant)
        document.nameBytes = PercentCoding.encode(standing.grant.name.bytes)
        document.rights = standing.rights.name
        document.scopes = standing.scopes
        document.reason = standing.fate.reason
        if standing.fate == .found {
            var path: [FileName]? = standing.path
            if !principal.isOwner {
                let node = try grants.node(of: standing.grant)
                path = try node.flatMap { node throws(Failure) in
                    try grants.shownPath(of: node, for: principal)
                }
            }
            let text = path.map { PathText($0) }
            (document.path, document.pathBytes) = (text?.display, text?.bytes)
        }
        return document
    }

    /// Of one that gives nothing any more.
    private func gone(_ grant: Grant) -> GrantDocument {
        GrantDocument(
            id: grant.id.rawValue, kind: grant.kind.rawValue, application: grant.application.text,
            rights: Rights.none.name, path: nil, pathBytes: nil, reason: nil,
            name: grant.name.display, until: grant.end.date?.wireText,
            launch: grant.end.launch?.text, parent: grant.parent?.rawValue,
            giver: grant.giver?.text, made: grant.made.wireText, scopes: 0)
    }
}

extension AuditLineDocument {
    init(_ json: JSON) {
        let time = json["time"]?.integer(Int64.self) ?? 0
        self.init(
            time: TimeText.format(nanoseconds: time), by: json["by"]?.text ?? "",
            call: json["call"]?.text ?? "", outcome: json["outcome"]?.text ?? "",
            application: json["application"]?.text, launch: json["launch"]?.text,
            grant: json["grant"]?.integer(Int64.self), detail: json["detail"]?.text)
    }
}
