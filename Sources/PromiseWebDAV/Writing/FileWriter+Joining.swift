import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

// What the server joins of its parts.

extension FileWriter {
    /// Straight over the base version, in one step: the file stays the same one, with its number,
    /// its earlier versions and whom it is shared with. What a MOVE of another file replaces goes
    /// into the server's trash.
    func writeJoined(
        _ payload: Payload, at path: [FileName], over version: ContentVersion,
        _ metadata: Metadata?, keepsRights: Bool, target: [UInt8]?
    ) async throws(ProviderError) -> ResourceStatus {
        var written = try await join(payload, at: path, over: version)
        let renewal = TagRenewal(
            resources, givenTags, of: payload, over: .version(version), isLink: target != nil)
        try await renewal.run(&written, at: path) { (_) async throws(ProviderError) in
            try await join(payload, at: path, over: version)
        }
        // The file is the one that it was: what is kept with it came through, and its number, too.
        if keepsRights, metadata != nil, traits.keepsProperties {
            let found = try await resources.resource(at: path)
            written.number = found.number
            let kept = try WriteTurn(url: location.url(path), found: found)
                .kept(metadata, keepsRights: true, path, items)
            return try await properties.keep(kept, target, with: written, at: path, token: nil)
        }
        return try await properties.keep(metadata, target, with: written, at: path, token: nil)
    }

    private func join(
        _ payload: Payload, at path: [FileName], over version: ContentVersion
    ) async throws(ProviderError) -> ResourceStatus {
        if case .source(let source) = payload, parts.takes(source) {
            return try await parts.withSent(source, for: path) {
                (record) async throws(ProviderError) in
                try await join(record, at: path, over: version)
            }
        }
        let record = UploadJournal.Record(
            key: location.urlPath(path), upload: try await uploads.name(), size: payload.size,
            partByteCount: max(payload.size, 1),
            began: resources.clock.now(), digests: [])
        do throws(ProviderError) {
            try await chunks.make(record)
            let reply = try await chunks.send(try await sender.body(of: payload), 1, record)
            guard reply.isSuccess else {
                throw ProviderError(
                    reply, "\(resources.shown(path)) cannot be uploaded", puts: true)
            }
            return try await join(record, at: path, over: version)
        } catch {
            await chunks.remove(record)
            throw error
        }
    }

    private func join(
        _ record: UploadJournal.Record, at path: [FileName], over version: ContentVersion
    ) async throws(ProviderError) -> ResourceStatus {
        let condition = WriteTurn.condition(location.url(path), has: version)
        let reply = try await resources.turns.take(location.urlPath(path)) {
            () async throws(ProviderError) in
            try await chunks.requestJoin(record, to: path, ["If": condition])
        }
        try await checkCondition(reply, version, at: path)
        // The length was compared by the server.
        guard let tag = reply.header("ETag") ?? reply.header("OC-ETag") else {
            return try await resources.file(at: path)
        }
        var written = ResourceStatus()
        (written.entityTag, written.contentLength) = (tag, record.size)
        return written
    }
}
