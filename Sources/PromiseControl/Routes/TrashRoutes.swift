import Hummingbird
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire

/// What was removed and can come back, which is the owner's alone.
struct TrashRoutes: Sendable {
    let routes: ControlRoutes

    func add(to router: Router<ControlRequestContext>) {
        router.get("v1/trash") { request, _ in try await list(request) }
        router.post("v1/trash/restore") { request, _ in try await restore(request) }
        router.post("v1/trash/empty") { request, _ in try await empty(request) }
    }

    /// An application has other paths, and what others have removed is none of its business.
    private func documents() throws(Failure) -> DocumentServices {
        guard !(routes.service is ApplicationService) else {
            throw Failure(.refused, "the trash is the owner's alone")
        }
        guard let documents = routes.service.documents else {
            throw Failure(.notSupported, "nothing can be removed here")
        }
        return documents
    }

    private func removed() throws(Failure) -> RemovedItems { try documents().removed }

    private func list(_ request: Request) async throws -> Response {
        let removed = try removed()
        let path = try names(ofWirePath: routes.queryValue("path", of: request) ?? "")
        if routes.queryValue("provider", of: request) == "true" {
            let items = try await documents().removedAtProvider.list(below: path)
            return jsonResponse(TrashDocument(items: items.map { TrashItemDocument($0) }))
        }
        let items = try await routes.blocking.run { () throws(Failure) in
            try removed.list(below: path)
        }
        return jsonResponse(TrashDocument(items: items.map { TrashItemDocument($0) }))
    }

    private func restore(_ request: Request) async throws -> Response {
        let removed = try removed()
        let document = try await routes.decode(RestoreRequest.self, from: request)
        let folder = try document.to.map { text throws(Failure) in try names(ofWirePath: text) }
        let isAtProvider = document.atProvider == true
        if isAtProvider, folder != nil {
            throw ProblemDocument.request("what the provider keeps comes back to where it was")
        }
        var result = RestoreDocument(restored: 0, places: [], failures: [])
        for path in try await routes.itemPaths(ItemsRequest(paths: document.paths)) {
            do throws(Failure) {
                let report =
                    isAtProvider
                    ? try await restoreAtProvider(path, for: document.purpose)
                    : try await restore(path, into: folder, of: removed, for: document.purpose)
                result.restored += report.restored
                if let place = report.place.map({ PathText($0) }) {
                    result.places.append(
                        RestoredPlaceDocument(path: place.display, pathBytes: place.bytes))
                }
                result.failures += report.failures.map {
                    ItemFailureDocument(path: $0.path, $0.failure)
                }
            } catch {
                result.failures.append(ItemFailureDocument(path: path, error))
            }
        }
        if isAtProvider, result.restored > 0 { await lookAtProvider() }
        return jsonResponse(result)
    }

    private static let lookPatience = Duration.seconds(20)

    /// So that what is back there is seen here. It is back also when that takes longer.
    private func lookAtProvider() async {
        do throws(Failure) {
            try await routes.service.synchronize(
                below: nil, wait: false, timeout: TrashRoutes.lookPatience)
        } catch {}
    }

    private func restoreAtProvider(
        _ path: [FileName], for purpose: String?
    ) async throws(Failure) -> RestorationReport {
        let held = HeldPlaces(service: routes.service)
        let claim = try await held.claim(path, for: purpose)
        defer { held.release(claim) }
        return try await documents().removedAtProvider.restore(path)
    }

    /// Whoever has a claim on the place, or on the folder, is waited for.
    private func restore(
        _ path: [FileName], into folder: [FileName]?, of removed: RemovedItems, for purpose: String?
    ) async throws(Failure) -> RestorationReport {
        let held = HeldPlaces(service: routes.service)
        let place = try await removed.freePlace(for: path, in: folder)
        let claim = try await held.claim(place, for: purpose)
        defer { held.release(claim) }
        return try await removed.restore(path, to: place)
    }

    private func empty(_ request: Request) async throws -> Response {
        let removed = try removed()
        let path = try names(
            ofWirePath: try await routes.decode(EmptyTrashRequest.self, from: request).path ?? "")
        let gone = try await routes.blocking.run { () throws(Failure) in
            try removed.empty(below: path)
        }
        return jsonResponse(EmptiedTrashDocument(emptied: gone.count, bytesFreed: gone.byteCount))
    }
}

extension TrashItemDocument {
    init(_ item: RemovedDescription) {
        let path = PathText(item.path)
        self.init(
            path: path.display, pathBytes: path.bytes, kind: item.kind.wireName, size: item.size,
            modificationTime: item.modificationTime.wireText, removed: item.removalTime.wireText,
            isKept: item.isKept)
    }
}
