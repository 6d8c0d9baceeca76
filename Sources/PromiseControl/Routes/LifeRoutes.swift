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
        router.post("v1/limits") { request, _ in try await setLimits(request) }
        router.post("v1/unmount") { request, _ in try await unmount(request) }
        // Without an answer: the connection breaks when the process ends.
        router.post("v1/restart") { _, _ -> Response in throw await blocking.run { service.restart() } }
    }

    private func setPaused(_ isPaused: Bool) async throws -> Response {
        try await routes.service.setPaused(isPaused)
        return jsonResponse(StatusDocument(await routes.service.status()))
    }

    private func setLimits(_ request: Request) async throws -> Response {
        let document = try await routes.decode(LimitsRequest.self, from: request)
        try await routes.service.setLimits(try LimitsChange(document))
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

extension LimitsChange {
    /// Throws a sentence on what is no limit, or one under which nothing could be sent.
    fileprivate init(_ document: LimitsRequest) throws(ProblemDocument) {
        self.init()
        switch document.cache {
        case nil: cache = nil
        case LimitsRequest.asConfigured: cache = .asConfigured
        case LimitsRequest.none: cache = Limits.Cache.none
        case .some(let text): cache = .bytes(try LimitsChange.bytes(text, least: 0))
        }
        if let text = document.upload { up = .some(try LimitsChange.rate(text, least: LineRates.upMin)) }
        if let text = document.download { down = .some(try LimitsChange.rate(text, least: LineRates.downMin)) }
    }

    private static func rate(
        _ text: String, least: UInt64
    ) throws(ProblemDocument) -> UInt64? {
        text == LimitsRequest.none ? nil : try bytes(text, least: least)
    }

    private static func bytes(
        _ text: String, least: UInt64
    ) throws(ProblemDocument) -> UInt64 {
        guard let count = UInt64(text), count <= UInt64(Int64.max) else {
            let shown = escapedForDisplay(Array(text.utf8))
            throw ProblemDocument.request("'\(shown)' is no number of bytes")
        }
        guard count >= least else {
            throw ProblemDocument.request("requests break off below \(least) bytes a second")
        }
        return count
    }
}
