import Hummingbird
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
    }

    private func versions(_ request: Request) async throws -> Response {
        let node = try await item(of: request)
        let versions = try await blocking.run { [service] () throws(Failure) in try service.versions(of: node) }
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
