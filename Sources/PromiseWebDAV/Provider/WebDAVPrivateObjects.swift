import NIOHTTP1
import PromiseCore
import PromiseHTTP
package import PromiseProvider

/// Files in `.promisefs/KIND`, written as any file: under a lock, or by a condition that the server
/// honours.
struct WebDAVPrivateObjects: PrivateObjects {
    let provider: WebDAVProvider

    func read(_ name: PrivateName) async throws(ProviderError) -> PrivateObject? {
        for _ in 0..<WebDAVPrivateObjects.attemptsMax {
            guard let found = try await provider.resources.resourceIfAny(at: path(name)),
                !found.isCollection
            else { return nil }
            let size = found.contentLength ?? 0
            guard size <= PrivateObject.byteCountMax else { throw PrivateObject.tooLarge(name) }
            let version = found.version
            if found.entityTag != nil, let known = provider.rememberedObjects.object(name, version)
            {
                return known
            }
            let url = provider.location.url(path(name))
            guard let reply = try await provider.resources.client.content(url, byteCount: size),
                reply.status != 404
            else { continue }
            guard reply.isSuccess else { throw ProviderError(reply, "\(name) cannot be read") }
            // Somebody wrote in between.
            let tag = reply.header("ETag").map { ContentVersion(EntityTag.opaque($0)) }
            if provider.resources.traits.listsTags, found.entityTag != nil, let tag, tag != version
            {
                continue
            }
            let object = PrivateObject(
                bytes: await provider.resources.pool.bytes(of: reply), version: version)
            provider.rememberedObjects.note(object, as: name)
            return object
        }
        let reason = "what the server sends is not of the size or version that it says"
        throw ProviderError(.retry, "\(name) cannot be read: \(reason)")
    }

    private static let attemptsMax = 5

    func write(
        _ bytes: [UInt8], to name: PrivateName, base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion {
        try await settle()
        do throws(ProviderError) {
            return try await put(bytes, name, base)
        } catch {
            guard error.code == .notFound else { throw error }
            guard base == nil else {
                throw ProviderError(.conflict, "\(name) was removed by another machine meanwhile")
            }
        }
        try await makeFolder(name.kind)
        return try await put(bytes, name, base)
    }

    private func settle() async throws(ProviderError) {
        try await provider.acquaintance.complete()
        guard provider.privateObjects != nil else {
            throw ProviderError(
                .refused,
                "the server has neither locks nor conditions: nothing of ours is kept there")
        }
    }

    private func put(
        _ bytes: [UInt8], _ name: PrivateName, _ base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion {
        let expectation = base.map { Expectation.version($0) } ?? .nothing
        return try await provider.writer.write(
            .bytes(bytes), at: path(name), expectation, nil, target: nil, parent: nil
        ).version
    }

    private func makeFolder(_ kind: PrivateName.Kind) async throws(ProviderError) {
        for path in [[ReservedName.folder], [ReservedName.folder, kind.folderName]] {
            let reply = try await provider.resources.client.exchange(
                .MKCOL, provider.location.url(path, isFolder: true))
            guard reply.isSuccess || reply.status == 405 else {
                throw ProviderError(
                    reply, "the folder \(provider.resources.shown(path)) cannot be made", puts: true
                )
            }
        }
    }

    func list(_ kind: PrivateName.Kind) async throws(ProviderError) -> [PrivateName] {
        let folder = [ReservedName.folder, kind.folderName]
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>"
        do throws(ProviderError) {
            let rows = try await provider.resources.propfind(
                folder, isFolder: true, depth: "1", body: body)
            return rows.compactMap { row in
                guard row.path.count == 3, let last = row.path.last, !row.resource.isCollection
                else { return nil }
                return PrivateName(kind, last.display)
            }
        } catch {
            if error.code == .notFound { return [] }
            throw error
        }
    }

    func delete(_ name: PrivateName, base: ContentVersion) async throws(ProviderError) {
        try await settle()
        let path = path(name)
        try await provider.delete(
            ItemReference(identifier: provider.items.identifier(path), path: path),
            baseVersion: base)
    }

    func fetchTooLarge(
        _ name: PrivateName, into sink: any ContentSink
    ) async throws(ProviderError) -> ContentVersion? {
        let path = path(name)
        guard let found = try await provider.resources.resourceIfAny(at: path), !found.isCollection,
            (found.contentLength ?? 0) > PrivateObject.byteCountMax
        else { return nil }
        let version = found.version
        let reference = ItemReference(identifier: provider.items.identifier(path), path: path)
        try await provider.fetchContents(of: reference, version: version, range: nil, into: sink)
        return version
    }

    private func path(_ name: PrivateName) -> [FileName] {
        [ReservedName.folder, name.kind.folderName, name.fileName]
    }
}

extension WebDAVProvider {
    package var privateObjects: (any PrivateObjects)? {
        let traits = resources.traits
        let mayBe = traits.locks || traits.honoursConditionsOnPut || !resources.isAcquainted
        return mayBe ? WebDAVPrivateObjects(provider: self) : nil
    }
}
