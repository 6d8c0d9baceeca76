import HTTPTypes
import Hummingbird
import NIOCore
import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseQuery
import PromiseSystem
import PromiseWire

// What is known of items without their content.

extension ControlRoutes {
    func addValueRoutes(to router: Router<ControlRequestContext>) {
        router.post("v1/items/values") { request, _ in try await values(request) }
        router.get("v1/items/versions") { request, _ in try await versions(request) }
        router.post("v1/items/versions") { request, _ in try await resolve(request) }
        router.get("v1/items/thumbnail") { request, _ in try await thumbnail(request) }
        router.put("v1/items/thumbnail") { request, _ in try await saveThumbnail(request) }
    }

    private static let thumbnailSizeMax = 1024

    private func thumbnail(_ request: Request) async throws -> Response {
        let size = try number("size", of: request) ?? ControlRoutes.thumbnailSizeMax
        guard (1...ControlRoutes.thumbnailSizeMax).contains(size) else {
            throw ProblemDocument.request("'size' is 1 to \(ControlRoutes.thumbnailSizeMax) pixels a side")
        }
        let picture = try await service.thumbnail(of: try await item(of: request), size: size)
        var headers = HTTPFields()
        headers[.contentType] = "image/png"
        headers[.cacheControl] = "no-store"
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: picture)))
    }

    private func saveThumbnail(_ request: Request) async throws -> Response {
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: RequestLimit.thumbnailByteCountMax)
        } catch is NIOTooManyBytesError {
            throw ProblemDocument.request("a thumbnail has at most \(RequestLimit.thumbnailByteCountMax) bytes", status: 413)
        }
        let node = try await item(of: request)
        let picture = Array(body.readableBytesView)
        try await blocking.run { [service] () throws(Failure) in try service.saveThumbnail(picture, of: node) }
        return jsonResponse(DoneDocument(done: true))
    }

    private func versions(_ request: Request) async throws -> Response {
        let node = try await item(of: request)
        return reply(try await blocking.run { [service] () throws(Failure) in try service.versions(of: node) })
    }

    private func resolve(_ request: Request) async throws -> Response {
        let document = try await decode(VersionsRequest.self, from: request)
        guard let action = VersionAction(rawValue: document.action) else {
            throw ProblemDocument.request("'action' is 'replace', 'remove' or 'markResolved', not '\(document.action)'")
        }
        var version: NodeID?
        if let identifier = document.version {
            guard let number = UInt64(identifier) else {
                throw ProblemDocument.request("'\(identifier)' is not the identifier of an unresolved version")
            }
            version = NodeID(number)
        }
        let node = try await service.node(at: try names(ofWirePath: document.path[...]))
        let purpose = document.purpose.map { Purpose(rawValue: $0) }
        return reply(try await service.resolve(node, action, version: version, purpose: purpose))
    }

    private func reply(_ versions: [ItemVersion]) -> Response {
        let documents = versions.map { version in
            let path = PathText(version.path)
            return VersionDocument(
                kind: version.kind.rawValue, node: version.node?.rawValue, path: path.display, pathBytes: path.bytes,
                version: version.version?.rawValue, size: version.size, modificationTime: version.modificationTime.wireText,
                isLocal: version.isLocal)
        }
        return jsonResponse(VersionsDocument(versions: documents, note: service.earlierVersionsNote))
    }

    private func values(_ request: Request) async throws -> Response {
        let document = try await decode(ItemsRequest.self, from: request)
        let keys = try document.keys?.map { try key($0[...]) } ?? AttributeKey.allCases
        var nodes: [NodeID] = []
        var result = PromisedValuesDocument(items: [], failures: [])
        for path in try await itemPaths(document) {
            do throws(Failure) {
                nodes.append(try await service.node(at: path))
            } catch {
                result.failures.append(ItemFailureDocument(path: path, error))
            }
        }
        let found = try await blocking.run { [service, nodes] () throws(Failure) in try service.values(of: nodes, keys) }
        result.items = found.map { item in
            let path = PathText(item.path)
            return PromisedItemDocument(
                node: item.node.rawValue, path: path.display, pathBytes: path.bytes, values: item.values.wire)
        }
        return jsonResponse(result)
    }
}
