import Glibc
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
        router.get("v1/items/versions/content") { request, _ in try await earlierContent(request) }
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
        let givenUp = try RevertRoutes(routes: self).givenUp(request)
        let node: NodeID
        do {
            node = try await item(of: request)
        } catch let failure as Failure where failure.code == .notFound && !givenUp.isEmpty {
            return reply(givenUp)
        }
        let known = try await blocking.run { [service] () throws(Failure) in try service.versions(of: node) }
        guard try text("earlier", of: request) == "true", let document = known.first?.node else {
            return reply(known + givenUp)
        }
        return reply(known + givenUp + (try await service.earlierVersions(of: document)))
    }

    private func earlierContent(_ request: Request) async throws -> Response {
        guard let identifier = try text("version", of: request) else {
            throw ProblemDocument.request("'version' says which one: the identifier of an earlier version")
        }
        let snapshot = try await RevertRoutes(routes: self).content(of: identifier, request)
        let file = try await blocking.run { () throws(SystemError) in
            SharedDescriptor(try Descriptor.open(snapshot.path, flags: O_RDONLY, label: "control.version.open"))
        }
        let size = try FileStatus.of(descriptor: file.number, label: "control.version.size").size
        var headers = HTTPFields()
        headers[.contentType] = "application/octet-stream"
        let body = ResponseBody(contentLength: Int(size)) { [blocking] writer in
            var offset: UInt64 = 0
            while offset < size {
                let piece = try await blocking.run { [offset] () throws(SystemError) in
                    try readPiece(of: file.number, at: offset)
                }
                offset += UInt64(piece.readableBytes)
                guard piece.readableBytes > 0 else { break }
                try await writer.write(piece)
            }
            // The file is there as long as somebody reads it.
            withExtendedLifetime(snapshot) {}
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: headers, body: body)
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
        let purpose = Purpose(said: document.purpose)
        let versions = try await service.resolve(
            node, action, version: version, purpose: purpose, decidedOn: document.states.map { Set($0) })
        return reply(versions)
    }

    private func reply(_ versions: [ItemVersion]) -> Response {
        let documents = versions.map { version in
            let path = PathText(version.path)
            return VersionDocument(
                identifier: version.earlierIdentifier, kind: version.kind.rawValue, node: version.node?.rawValue,
                path: path.display, pathBytes: path.bytes, version: version.version?.rawValue, size: version.size,
                modificationTime: version.modificationTime.wireText,
                isLocal: version.isLocal, state: version.state)
        }
        return jsonResponse(VersionsDocument(versions: documents, note: service.earlierVersionsNote))
    }

    private func values(_ request: Request) async throws -> Response {
        let document = try await decode(ItemsRequest.self, from: request)
        let keys = try document.keys?.map { try key($0[...]) } ?? AttributeKey.allCases
        var items: [NamedItem] = []
        var result = PromisedValuesDocument(items: [], failures: [])
        for path in try await itemPaths(document) {
            do throws(Failure) {
                items.append(try await service.item(at: path))
            } catch {
                result.failures.append(ItemFailureDocument(path: path, error))
            }
        }
        let found = try await blocking.run { [service, items] () throws(Failure) in try service.values(of: items, keys) }
        result.items = found.map { item in
            let path = PathText(item.path)
            return PromisedItemDocument(
                node: item.node.rawValue, path: path.display, pathBytes: path.bytes, values: item.values.wire)
        }
        return jsonResponse(result)
    }
}

/// Pieces of a file in an answer.
private let pieceByteCount = 1 << 18

private func readPiece(of file: CInt, at offset: UInt64) throws(SystemError) -> ByteBuffer {
    var bytes = [UInt8](repeating: 0, count: pieceByteCount)
    let outcome: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
        do throws(SystemError) {
            return .success(try readFully(file, into: buffer, at: offset, label: "control.version.read"))
        } catch {
            return .failure(error)
        }
    }
    return ByteBuffer(bytes: bytes[..<(try outcome.get())])
}
