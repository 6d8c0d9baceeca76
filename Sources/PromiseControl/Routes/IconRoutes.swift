import HTTPTypes
import Hummingbird
import NIOCore
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseKeyValue
import PromiseWire

/// The pictures of containers, and whether the domain can be used.
struct IconRoutes: Sendable {
    let routes: DocumentRoutes

    func add(to router: Router<ControlRequestContext>) {
        router.get("v1/containers/icon") { request, context in
            let picture = try await routes.services.containers.icon(
                of: try routes.application(of: request), by: context.principal)
            var headers = HTTPFields()
            headers[.contentType] = "image/png"
            headers[.cacheControl] = "no-store"
            return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: picture)))
        }
        router.get("v1/availability/events") { _, context in try availabilityEvents(context.principal) }
    }

    /// Nil where none is said.
    static func icon(_ text: String?) throws -> [UInt8]? {
        guard let text else { return nil }
        guard let bytes = Base64.bytes(text) else { throw ProblemDocument.request("'icon' is to be a PNG in Base64") }
        return bytes
    }

    private func availabilityEvents(_ principal: Principal) throws -> Response {
        let containers = try routes.services.containers
        return streamResponse { [keepAlive = routes.routes.keepAlive] send in
            let (events, continuation) = AsyncStream.makeStream(
                of: ContainerAvailability?.self, bufferingPolicy: .bufferingNewest(1000))
            let listener = keepAlive.listen { continuation.yield(nil) }
            defer { keepAlive.forget(listener) }
            let pump = Task {
                for await availability in containers.availabilities() { continuation.yield(availability) }
                continuation.finish()
            }
            defer { pump.cancel() }
            for await availability in events {
                let event = (availability?.told(to: principal)).map { now in
                    let document = AvailabilityDocument(
                        domain: now.domain, provider: now.provider, account: now.account, isReachable: now.message == nil,
                        connectionMessage: now.message)
                    return ServerEvent(name: "availability", data: WireCoding.text(document))
                }
                try await send(event)
            }
        }
    }
}
