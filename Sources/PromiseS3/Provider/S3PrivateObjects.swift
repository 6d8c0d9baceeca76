import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

/// Objects below `.promisefs/KIND/`, written by conditional PUT.
struct S3PrivateObjects: PrivateObjects {
    let provider: S3Provider
    private var bucket: S3Bucket { provider.bucket }

    func read(_ name: PrivateName) async throws(ProviderError) -> PrivateObject? {
        let what = "\(name) cannot be read"
        guard let found = try await bucket.status(ofKey: key(name), what) else { return nil }
        guard found.size <= PrivateObject.byteCountMax else { throw PrivateObject.tooLarge(name) }
        if let known = provider.rememberedObjects.object(name, found.version) { return known }
        let reply = try await bucket.client.exchange(S3Request(.GET, key(name)))
        if reply.status == 404 { return nil }
        guard reply.isSuccess else { throw bucket.client.refusal(reply).error(what) }
        let tag = EntityTag.opaque(reply.header("ETag") ?? "")
        // A body without a length that broke off looks whole, and would be remembered so.
        guard reply.body.count == found.size || !tag.isEmpty && tag != found.tag else {
            let counts = "\(reply.body.count) bytes for \(found.size)"
            throw ProviderError(.retry, "\(what): the server sends \(counts)")
        }
        let object = PrivateObject(
            bytes: await bucket.pool.bytes(of: reply),
            version: ContentVersion(tag.isEmpty ? found.tag : tag))
        provider.rememberedObjects.note(object, as: name)
        return object
    }

    func write(
        _ bytes: [UInt8], to name: PrivateName, base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion {
        try await settle()
        let expectation = base.map { Expectation.version($0) } ?? .nothing
        do throws(ProviderError) {
            return ContentVersion(
                try await provider.writer.write(bytes, at: path(name), expectation))
        } catch {
            guard error.code == .notFound, base != nil else { throw error }
            throw ProviderError(.conflict, "\(name) was removed by another machine meanwhile")
        }
    }

    func list(_ kind: PrivateName.Kind) async throws(ProviderError) -> [PrivateName] {
        let folder = bucket.names.folderKey([ReservedName.folder, kind.folderName])
        let what = "'.promisefs/\(kind.rawValue)' cannot be listed"
        var result: [PrivateName] = []
        var next: S3Listing.Next?
        var turns = PageTurns()
        repeat {
            let page = try await bucket.list(folder, delimiter: true, from: next, what)
            result += page.objects.compactMap { object in
                bucket.names.name(of: object.key, in: folder).flatMap {
                    PrivateName(kind, $0.display)
                }
            }
            next = try page.turn(&turns)
        } while next != nil
        return result
    }

    func delete(_ name: PrivateName, base: ContentVersion) async throws(ProviderError) {
        try await settle()
        guard let found = try await bucket.status(ofKey: key(name), "\(name) cannot be looked at")
        else { return }
        var isRemoved = found.version == base
        if isRemoved {
            let what = "\(name) cannot be deleted"
            isRemoved = try await provider.remover.remove(key(name), of: found.tag, what)
        }
        guard isRemoved else {
            throw ProviderError(.conflict, "\(name) was changed by another machine meanwhile")
        }
    }

    func fetchTooLarge(
        _ name: PrivateName, into sink: any ContentSink
    ) async throws(ProviderError) -> ContentVersion? {
        guard let found = try await bucket.status(ofKey: key(name), "\(name) cannot be looked at"),
            found.size > PrivateObject.byteCountMax
        else { return nil }
        try await provider.fetcher.fetch(path(name), version: found.version, range: nil, into: sink)
        return found.version
    }

    private func settle() async throws(ProviderError) {
        try await provider.meeting.acquaintance.complete()
        guard provider.privateObjects != nil else {
            throw ProviderError(
                .refused, "the server honours no conditions: nothing of ours is kept there")
        }
    }

    private func path(_ name: PrivateName) -> [FileName] {
        [ReservedName.folder, name.kind.folderName, name.fileName]
    }
    private func key(_ name: PrivateName) -> [UInt8] { bucket.names.key(path(name)) }
}
