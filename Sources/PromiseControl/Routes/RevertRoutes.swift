import Hummingbird
import PromiseCore
import PromiseDomain
import PromiseWire

/// Giving up changes, which the owner alone does.
struct RevertRoutes: Sendable {
    let routes: ControlRoutes

    func add(to router: Router<ControlRequestContext>) {
        router.post("v1/items/revert") { request, _ in try await revert(request) }
    }

    private func revert(_ request: Request) async throws -> Response {
        let document = try await routes.decode(ItemsRequest.self, from: request)
        let paths = try await routes.itemPaths(document)
        var result = RevertDocument(reverted: 0, failures: [])
        for path in paths {
            do throws(Failure) {
                guard let reversal else { throw Failure(.notSupported, "nothing can be given up here") }
                let claim = try await held.claim(path, for: document.purpose)
                defer { held.release(claim) }
                let report = try await reversal.revert(path)
                result.reverted += report.count
                result.failures += report.failures.map { ItemFailureDocument(path: $0.path, $0.failure) }
            } catch {
                result.failures.append(ItemFailureDocument(path: path, error))
            }
        }
        return jsonResponse(result)
    }

    private var held: HeldPlaces { HeldPlaces(service: routes.service) }

    /// What was given up of an item, which may be gone itself.
    func givenUp(_ request: Request) throws -> [ItemVersion] {
        guard let path = routes.queryValue("path", of: request), let reversal else { return [] }
        return try reversal.versions(at: try names(ofWirePath: path))
    }

    /// Of an earlier version, or of what was given up.
    func content(of identifier: String, _ request: Request) async throws -> Snapshot {
        if identifier.hasPrefix("given-up-"), let path = routes.queryValue("path", of: request) {
            return try await routes.service.contents(
                ofGivenUp: identifier, of: try names(ofWirePath: path))
        }
        let node = try await routes.item(of: request)
        return try await routes.service.contents(ofEarlier: identifier, of: node)
    }

    /// Nil for an application, whose paths are not those of the mount.
    private var reversal: Reversal? {
        routes.service is ApplicationService ? nil : routes.service.documents?.reversal
    }
}
