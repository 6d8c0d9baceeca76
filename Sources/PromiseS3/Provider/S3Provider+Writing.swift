package import PromiseCore
import PromiseHTTP
package import PromiseProvider

// Creating, changing and removing. Nothing takes effect under a key whose content was not what the
// caller expected.

/// Where an item goes: the folder and the name in it.
private typealias Place = (parent: ItemReference, name: FileName)

extension S3Provider {
    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await meeting.acquaintance.complete()
        let path = folder.path + [item.name]
        try await moves.finish(at: path)
        try checkName(path)
        try await bucket.checkBeside(path, item.kind)
        switch item.kind {
        case .folder:
            let known = try await folders.make(path, item.metadata)
            return items.folder(path, known, parent: folder.identifier)
        case .link:
            guard bucket.traits.keepsMetadata, let target = item.target else {
                let lack = "the server cannot keep symbolic links"
                throw ProviderError(.refused, "\(shown(path)) stays on this machine: \(lack)")
            }
            return try await writer.write(
                .bytes(target), at: path, .nothing, item.metadata, target: target,
                parent: folder.identifier)
        default:
            let payload = contents.map { Payload.source($0) } ?? .bytes([])
            await tryAgain(toWrite: payload)
            return try await writer.write(
                payload, at: path, .nothing, item.metadata, target: nil, parent: folder.identifier)
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await meeting.acquaintance.complete()
        var ended = try await moves.finish(at: reference.path, containing: true)
        if let place = changes.place {
            let target = place.parent.path + [place.name]
            ended += try await moves.finish(at: target, containing: true)
            if contents == nil, changes.target == nil,
                ended.contains(where: { moves.isSame($0, reference.path, target) })
            {
                return try await moved(to: place, changes)
            }
        }
        let payload = contents.map { Payload.source($0) } ?? changes.target.map { .bytes($0) }
        var result: Item?
        if let payload { result = try await replace(reference.path, payload, changes, baseVersion) }
        let base = result?.version ?? baseVersion
        if let result, changes.place == nil { return result }
        let metadata = payload == nil ? try await metadata(changes, of: reference) : nil
        if let place = changes.place {
            return try await move(reference.path, to: place, base, metadata)
        }
        if let metadata { return try await store(metadata, at: reference.path, base) }
        return try await item(for: reference)
    }

    /// What is to be kept with an item whose content stays.
    private func metadata(
        _ changes: ItemChanges, of reference: ItemReference
    ) async throws(ProviderError) -> Metadata? {
        guard changes.keepsRights, changes.metadata != nil else { return changes.metadata }
        return changes.metadata(over: try await item(for: reference).metadata)
    }

    /// An earlier attempt has moved it; the rest is left to be done.
    private func moved(
        to place: Place, _ changes: ItemChanges
    ) async throws(ProviderError) -> Item {
        let target = place.parent.path + [place.name]
        var moved = try await item(for: items.reference(target))
        if let metadata = changes.metadata(over: moved.metadata) {
            moved = try await store(metadata, at: target, moved.version)
        }
        moved.parent = place.parent.identifier
        return moved
    }

    private func replace(
        _ path: [FileName], _ payload: Payload, _ changes: ItemChanges, _ base: ContentVersion?
    ) async throws(ProviderError) -> Item {
        let metadata: Metadata
        if let changed = changes.metadata {
            metadata = changed
        } else {
            // Of what is there, when only its content changes.
            metadata = items.item(try await bucket.status(of: path), path, parent: nil).metadata
        }
        await tryAgain(toWrite: payload)
        let expectation = base.map { Expectation.version($0) } ?? .anything
        return try await writer.write(
            payload, at: path, expectation, metadata, keepsRights: changes.keepsRights,
            target: changes.target, parent: nil)
    }

    private func move(
        _ path: [FileName], to place: Place, _ base: ContentVersion?, _ metadata: Metadata?
    ) async throws(ProviderError) -> Item {
        let target = place.parent.path + [place.name]
        try checkName(target)
        try await bucket.checkBeside(target, base == S3Items.folderVersion ? .folder : .file)
        var moved: Item
        switch try await moves.move(path, to: target, base, metadata) {
        case .file(let status):
            moved = items.item(status, target, parent: nil)
            // Nothing was copied that it could have come with.
            if let metadata, bucket.names.key(path) == bucket.names.key(target) {
                moved = try await store(metadata, at: target, status.version)
            }
        case .folder:
            listed.forget(items.identifier(path))
            if let metadata {
                moved = try await store(metadata, at: target, S3Items.folderVersion)
            } else {
                moved = items.folder(target, try await folders.details(of: target), parent: nil)
            }
        }
        moved.parent = place.parent.identifier
        return moved
    }

    private func store(
        _ metadata: Metadata, at path: [FileName], _ base: ContentVersion?
    ) async throws(ProviderError) -> Item {
        // A whole bucket has no object for it.
        if path.isEmpty, bucket.location.prefix.isEmpty { return try await root() }
        return try await self.metadata.store(metadata, at: path, base)
    }

    /// Whether the server takes uploads in parts decides whether what is large can go at all.
    private func tryAgain(toWrite payload: Payload) async {
        if payload.size > ObjectWriter.straightByteCountMax { await meeting.tryAgain() }
    }

    private func checkName(_ path: [FileName]) throws(ProviderError) {
        guard path.first != ReservedName.folder,
            bucket.traits.keepsMarkers || path.last != ReservedName.keeper
        else {
            throw ProviderError(
                .refused, "\(shown(path)) is a name that PromiseFS keeps for itself on the server")
        }
        // A folder's has a slash more.
        guard bucket.names.key(path).count < KeyNames.byteCountMax else {
            throw ProviderError(
                .refused, "\(shown(path)) stays on this machine: its key is longer than 1024 bytes")
        }
    }

    // MARK: Removing

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?)
        async throws(ProviderError)
    {
        try await meeting.acquaintance.complete()
        let path = reference.path
        try await moves.finish(at: path, containing: true)
        // A file is looked at anyway; the one look more is for what nothing is known of, or what is
        // gone.
        let isFile = baseVersion != nil && baseVersion != S3Items.folderVersion
        if isFile, try await deleteFile(path, baseVersion) { return }
        let isFolder = try await bucket.isFolder(path)
        if isFile, isFolder { throw ProviderError.becameFolder(path) }
        // Removing what is gone already is done.
        if isFolder {
            try await folders.delete(path)
            return listed.forget(items.identifier(path))
        }
        if baseVersion == S3Items.folderVersion {
            let what = "\(shown(path)) cannot be looked at"
            guard try await bucket.status(ofKey: bucket.names.key(path), what) == nil else {
                throw ProviderError(.conflict, "\(shown(path)) is a file on the server now")
            }
        } else if baseVersion == nil {
            _ = try await deleteFile(path, nil)
        } else if path.count > 1, try await !bucket.isFolder(Array(path.dropLast())) {
            // Others may have moved the folder: that is no removal.
            throw ProviderError(.notFound, "the folder of \(shown(path)) is not on the server")
        }
    }

    /// False when there is no such file.
    private func deleteFile(_ path: [FileName], _ version: ContentVersion?)
        async throws(ProviderError) -> Bool
    {
        let (key, what) = (bucket.names.key(path), "\(shown(path)) cannot be deleted")
        return try await bucket.turns.take(S3Location.encoded(key)) {
            () async throws(ProviderError) in
            // Where the condition is not met it is looked at what is there: servers call what is
            // gone a conflict, too.
            if let version, folders.isKept(of: path),
                try await remover.removeAtOnce(key, of: version.rawValue)
            {
                return true
            }
            guard
                let found = try await bucket.status(
                    ofKey: key, "\(shown(path)) cannot be looked at")
            else {
                // A deletion that broke off may have left something that stands for nothing.
                return try await remover.hollows.remove(key, what)
            }
            guard version == nil || found.version == version else {
                throw ProviderError.taken(path)
            }
            try await folders.keep(of: path)
            guard try await remover.remove(key, of: found.tag, what) else {
                throw ProviderError.taken(path)
            }
            return true
        }
    }
}
