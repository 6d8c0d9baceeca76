import Glibc
import Hummingbird
import NIOCore
import PromiseWire

/// An extension of PromiseFS in Swift: a place in memory for what need not last.
///
///     promisefs mount extension+exec:/usr/lib/promisefs/scratch-extension /mnt
///
/// The daemon starts it with the path of its socket in `PROMISEFS_EXTENSION_SOCKET`. docs/extension-openapi.yaml says what it
/// is asked.
@main
enum ScratchExtension {
    private static let contentByteCountMax = 1 << 30

    static func main() async throws {
        guard let path = getenv("PROMISEFS_EXTENSION_SOCKET").map({ String(cString: $0) }) else {
            print("scratch-extension: the daemon of promisefs starts this program")
            exit(2)
        }
        let application = Application(
            router: router(Scratch()), configuration: ApplicationConfiguration(address: .unixDomainSocket(path: path)))
        try await application.runService()
    }

    private static func router(_ scratch: Scratch) -> Router<BasicRequestContext> {
        let router = Router()
        router.add(middleware: Problems())
        router.get("v1/capabilities") { _, _ in
            document(
                ExtensionCapabilitiesDocument(
                    capabilities: [
                        "stable-identifiers", "atomic-rename", "conditional-write", "metadata", "links", "versions",
                        "removed-items",
                    ],
                    limitations: ["what is stored here is gone when the mount ends"]))
        }
        router.get("v1/root") { _, _ in document(await scratch.root()) }
        router.get("v1/items/:identifier") { _, context in
            document(try await scratch.item(try context.parameters.require("identifier")))
        }
        router.get("v1/items/:identifier/children") { request, context in
            let page = query(of: request)["page"].map { String(decoding: $0, as: UTF8.self) }
            return document(try await scratch.children(of: try context.parameters.require("identifier"), after: page))
        }
        router.get("v1/items/:identifier/content") { request, context in
            let version = query(of: request)["version"].map { String(decoding: $0, as: UTF8.self) }
            let bytes = try await scratch.content(of: try context.parameters.require("identifier"), version: version)
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
        addChanges(to: router, scratch)
        addPast(to: router, scratch)
        return router
    }

    /// What files were before, and what was removed.
    private static func addPast(to router: Router<BasicRequestContext>, _ scratch: Scratch) {
        router.get("v1/items/:identifier/versions") { _, context in
            document(try await scratch.versions(of: try context.parameters.require("identifier")))
        }
        router.get("v1/items/:identifier/versions/:version/content") { _, context in
            let bytes = try await scratch.content(
                of: try context.parameters.require("identifier"), earlier: try context.parameters.require("version"))
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
        router.get("v1/removed") { _, _ in document(await scratch.bin()) }
        router.post("v1/removed/:removed/restore") { _, context in
            try await scratch.restore(try context.parameters.require("removed"))
            return Response(status: .noContent)
        }
    }

    private static func addChanges(to router: Router<BasicRequestContext>, _ scratch: Scratch) {
        router.post("v1/items/:identifier/children") { request, context in
            // Throws when the body breaks off: half a content takes no effect.
            let content = try await content(of: request)
            return document(
                try await scratch.create(in: try context.parameters.require("identifier"), query(of: request), content))
        }
        router.put("v1/items/:identifier/content") { request, context in
            let content = try await content(of: request)
            return document(try await scratch.modify(try context.parameters.require("identifier"), query(of: request), content))
        }
        router.patch("v1/items/:identifier") { request, context in
            document(try await scratch.modify(try context.parameters.require("identifier"), query(of: request), nil))
        }
        router.delete("v1/items/:identifier") { request, context in
            try await scratch.delete(try context.parameters.require("identifier"), query(of: request))
            return Response(status: .noContent)
        }
    }

    private static func content(of request: Request) async throws -> [UInt8] {
        Array(try await request.body.collect(upTo: contentByteCountMax).readableBytesView)
    }

    /// The values as bytes: names need not be UTF-8.
    private static func query(of request: Request) -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        for part in (request.uri.query ?? "").split(separator: "&") {
            let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if words.count == 2 { result[String(words[0])] = PercentCoding.decode(words[1]) }
        }
        return result
    }

    static func document(_ document: some Encodable, status: Int = 200) -> Response {
        Response(
            status: .init(code: status), headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: WireCoding.bytes(document))))
    }
}

private struct Problems: RouterMiddleware {
    typealias Context = BasicRequestContext

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as Scratch.Problem {
            return ScratchExtension.document(ExtensionProblemDocument(detail: problem.detail), status: problem.status)
        }
    }
}
