import Hummingbird
import PromiseCore
import PromiseSystem
import PromiseWire

/// Whether the daemon answers, rests or goes on, and its end.
struct LifeRoutes: Sendable {
    let routes: ControlRoutes

    func add(to router: Router<ControlRequestContext>) {
        let (service, blocking) = (routes.service, routes.blocking)
        router.get("v1/ping") { _, _ in Response(status: .noContent) }
        router.post("v1/pause") { _, _ in try await setPaused(true) }
        router.post("v1/resume") { _, _ in try await setPaused(false) }
        router.post("v1/unmount") { request, _ in try await unmount(request) }
        // Without an answer: the connection breaks when the process ends.
        router.post("v1/restart") { _, _ -> Response in throw await blocking.run { service.restart() } }
    }

    private func setPaused(_ isPaused: Bool) async throws -> Response {
        try await routes.service.setPaused(isPaused)
        return jsonResponse(StatusDocument(await routes.service.status()))
    }

    private func unmount(_ request: Request) async throws -> Response {
        let document = try await routes.decode(UnmountRequest.self, from: request)
        let (waits, timeout) = (document.wait ?? false, try routes.duration(document.timeoutSeconds))
        if waits { await routes.service.sendRecords(within: min(timeout ?? .seconds(10), .seconds(10))) }
        let pending = try await routes.service.unmount(
            wait: waits, timeout: timeout, lazy: document.lazy ?? false)
        return jsonResponse(UnmountDocument(pending: pending + routes.service.unsentRecords))
    }
}
