import HTTPTypes
import Hummingbird
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire

/// What applications keep in a domain besides values.
struct DocumentRoutes: Sendable {
    typealias Context = ControlRequestContext

    let routes: ControlRoutes

    func add(to router: Router<Context>) {
        router.get("v1/containers") { request, context in
            jsonResponse(try await containers(request, context.principal))
        }
        router.post("v1/containers") { request, context in
            let document = try await routes.decode(ContainerRequest.self, from: request)
            let standing = try await services.containers.add(
                document.application, name: document.name, isPublic: document.isPublic,
                icon: try IconRoutes.icon(document.icon), by: context.principal)
            try await services.grants.giveContainer(to: context.principal)
            return jsonResponse(try shown(standing, context.principal))
        }
        router.delete("v1/containers") { request, context in
            let standing = try await services.containers.remove(
                try application(of: request), by: context.principal)
            try await services.grants.takeContainers(of: standing.application)
            return jsonResponse(try shown(standing, context.principal))
        }
        router.post("v1/views") { request, context in
            let document = try await routes.decode(ViewRequest.self, from: request)
            let place = try await services.views.open(
                for: document.application, by: context.principal)
            return jsonResponse(
                ViewDocument(
                    launch: place.launch, handover: place.handover, socket: place.socket))
        }
        IconRoutes(routes: self).add(to: router)
        addReferences(to: router)
        addBookmarks(to: router)
        router.post("v1/adopt") { request, context in
            let document = try await routes.decode(AdoptionRequest.self, from: request)
            return jsonResponse(try await adopted(document, context.principal))
        }
    }

    private func adopted(
        _ request: AdoptionRequest, _ principal: Principal
    ) async throws -> AdoptionDocument {
        let files = try await routes.itemPaths(ItemsRequest(paths: request.files))
        guard let folder = PercentCoding.decode(request.folder[...]) else {
            throw ProblemDocument.request("'folder' is to be a percent-encoded path")
        }
        let report = try await services.adoption.take(
            files, of: folder, below: try names(ofWirePath: request.path), by: principal)
        return AdoptionDocument(
            taken: report.taken, bytesTaken: report.bytesTaken, alreadyHere: report.alreadyHere,
            failures: report.failures.map { ItemFailureDocument(path: $0.path, $0.failure) })
    }

    private func addReferences(to router: Router<Context>) {
        router.get("v1/references") { request, context in
            let path = routes.queryValue("path", of: request) ?? ""
            let node = try await routes.service.node(at: try names(ofWirePath: path))
            let (service, principal) = (try services.references, context.principal)
            let found = try await routes.blocking.run { () throws(Failure) in
                try service.all(below: node, by: principal)
            }
            return jsonResponse(
                ReferencesDocument(references: try found.map { try reference($0, principal) }))
        }
        router.post("v1/references") { request, context in
            let document = try await routes.decode(ReferenceRequest.self, from: request)
            let principal = context.principal
            let made = try await services.references.add(
                to: try await reach(document.target, .read, principal),
                at: try await reach(document.path, .readWrite, principal), by: principal)
            return jsonResponse(try reference(made, principal))
        }
        router.delete("v1/references") { request, context in
            guard let path = routes.queryValue("path", of: request) else {
                throw ProblemDocument.request("say which reference: ?path=PERCENT-ENCODED-PATH")
            }
            let principal = context.principal
            let removed = try await services.references.remove(
                at: try await reach(String(path), .readWrite, principal), by: principal)
            return jsonResponse(try reference(removed, principal))
        }
    }

    /// A path in the mount, of one as the caller has it, who may do as much there: to what is at the
    /// place, or to its folder where nothing is.
    private func reach(
        _ path: String, _ rights: Rights, _ principal: Principal
    ) async throws -> [FileName] {
        let shown = try names(ofWirePath: path)
        if principal.isOwner { return shown }
        let grants = try services.grants
        guard let inMount = try grants.path(ofShown: shown, for: principal) else {
            throw grants.refuse(principal, "references", PathText(shown).display)
        }
        var node = try? await routes.service.node(at: shown)
        if node == nil { node = try await routes.service.node(at: Array(shown.dropLast())) }
        guard let node else { return inMount }
        try grants.require(rights, principal, node, to: "references")
        return inMount
    }

    /// What leads out of an application's reach is told without its place.
    private func reference(
        _ standing: ReferenceStanding, _ principal: Principal
    ) throws -> ReferenceDocument {
        var document = ReferenceDocument(standing)
        guard !principal.isOwner else { return document }
        let grants = try services.grants
        let path = PathText(try grants.shownPath(of: standing.node, for: principal) ?? [])
        (document.path, document.pathBytes) = (path.display, path.bytes)
        let target = PathText(try grants.shownPath(ofPath: standing.target, for: principal) ?? [])
        (document.target, document.targetBytes) = (target.display, target.bytes)
        return document
    }

    /// An application sees the place of its own folder, and of no other.
    private func shown(
        _ standing: ContainerStanding, _ principal: Principal
    ) throws -> ContainerDocument {
        var result = standing
        if case .application(let application, _) = principal, let path = standing.path {
            let isOwn = application == standing.application
            result.path =
                isOwn ? try services.grants.shownPath(ofPath: path, for: principal) : nil
        }
        return ContainerDocument(result)
    }

    var services: DocumentServices {
        get throws(Failure) {
            guard let services = routes.service.documents else {
                throw Failure(.notSupported, "this domain keeps nothing for applications")
            }
            return services
        }
    }

    func application(of request: Request) throws -> String {
        guard let application = try routes.text("application", of: request) else {
            throw ProblemDocument.request("say which application: ?application=com.example.editor")
        }
        return application
    }

    private func containers(
        _ request: Request, _ principal: Principal
    ) async throws -> ContainersDocument {
        let service = try services.containers
        let found: [ContainerStanding]
        if let application = try routes.text("application", of: request) {
            found = [try await service.container(of: application, by: principal)]
        } else {
            found = try await service.all(by: principal)
        }
        let availability = service.availability
        return ContainersDocument(
            domain: availability.domain, provider: availability.provider,
            account: availability.account, isReachable: availability.message == nil,
            connectionMessage: availability.message, trouble: service.trouble,
            containers: try found.map { try shown($0, principal) })
    }
}

extension ReferenceDocument {
    init(_ standing: ReferenceStanding) {
        let (path, target) = (PathText(standing.path), PathText(standing.target))
        self.init(
            path: path.display, pathBytes: path.bytes, target: target.display,
            targetBytes: target.bytes, kind: standing.kind.wireName, state: standing.fate.rawValue,
            reason: standing.fate.reason, identifier: standing.identifier?.rawValue)
    }
}

extension ControlService {
    /// What applications keep, with other machines.
    func exchangeKept() async {
        await keyValues.exchangeAll()
        await documents?.containers.exchangeAll(isThorough: true)
    }
}

extension ContainerDocument {
    init(_ standing: ContainerStanding) {
        let documents = FileName(trusted: Array(Containers.documentsName.utf8))
        let path = standing.path.map { PathText($0) }
        self.init(
            application: standing.application, name: standing.name, isPublic: standing.isPublic,
            path: path?.display, pathBytes: path?.bytes,
            documentsPath: standing.path.map { PathText($0 + [documents]).display },
            identifier: standing.identifier?.rawValue, reason: standing.reason,
            isSent: standing.isSent, hasIcon: standing.hasIcon)
        documentsPathBytes = standing.path.map { PathText($0 + [documents]).bytes }
    }
}
