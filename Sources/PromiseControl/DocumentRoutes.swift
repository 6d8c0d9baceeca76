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
                by: context.principal)
            return jsonResponse(ContainerDocument(standing))
        }
        router.delete("v1/containers") { request, context in
            let standing = try await services.containers.remove(
                try application(of: request), by: context.principal)
            return jsonResponse(ContainerDocument(standing))
        }
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
                ReferencesDocument(references: found.map { ReferenceDocument($0) }))
        }
        router.post("v1/references") { request, context in
            let document = try await routes.decode(ReferenceRequest.self, from: request)
            let made = try await services.references.add(
                to: try names(ofWirePath: document.target), at: try names(ofWirePath: document.path),
                by: context.principal)
            return jsonResponse(ReferenceDocument(made))
        }
        router.delete("v1/references") { request, context in
            guard let path = routes.queryValue("path", of: request) else {
                throw ProblemDocument.request("say which reference: ?path=PERCENT-ENCODED-PATH")
            }
            let removed = try await services.references.remove(
                at: try names(ofWirePath: path), by: context.principal)
            return jsonResponse(ReferenceDocument(removed))
        }
    }

    var services: DocumentServices {
        get throws(Failure) {
            guard let services = routes.service.documents else {
                throw Failure(.notSupported, "this domain keeps nothing for applications")
            }
            return services
        }
    }

    private func application(of request: Request) throws -> String {
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
            containers: found.map { ContainerDocument($0) })
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
            isSent: standing.isSent)
    }
}
