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
            var taker: DeviceListener.ProcessEnd?
            if document.isOfCaller == true, case .owner(_, let process) = context.principal {
                taker = DeviceListener.ProcessEnd(of: process)
            }
            let place = try await services.views.open(
                for: document.application, by: context.principal,
                isForSession: document.isForSession ?? false, takenBy: taker)
            return jsonResponse(
                ViewDocument(
                    launch: place.launch, handover: place.handover, socket: place.socket))
        }
        IconRoutes(routes: self).add(to: router)
        ReferenceRoutes(documents: self).add(to: router)
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

    /// A path in the mount, of one as the caller has it, who may do as much there: to what is at the
    /// place, or to its folder where nothing is.
    func reach(
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
        let availability = ContainerAvailability(service.availability).told(to: principal)
        return ContainersDocument(
            domain: availability.domain, provider: availability.provider,
            account: availability.account, isReachable: availability.message == nil,
            connectionMessage: availability.message, trouble: principal.isOwner ? service.trouble : nil,
            containers: try found.map { try shown($0, principal) })
    }
}

extension ControlService {
    /// What applications keep, with other machines.
    func exchangeKept() async {
        await keyValues.exchangeAll()
        await documents?.containers.exchangeAll(isThorough: true)
        await documents?.moveWatch.look()
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
