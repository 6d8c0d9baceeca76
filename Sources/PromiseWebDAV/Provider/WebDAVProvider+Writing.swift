import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider

// Creating, changing and removing. Nothing takes effect under a name whose content was not what the
// caller expected.

extension WebDAVProvider {
    private var traits: ServerTraits { resources.traits }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await acquaintance.complete()
        let path = folder.path + [item.name]
        try checkName(path)
        resources.listed.note(folder)
        return try await TwinNames(provider: self, path: path).watching {
            () async throws(ProviderError) in
            try await make(item, at: path, in: folder, contents)
        }
    }

    private func make(
        _ item: NewItem, at path: [FileName], in folder: ItemReference,
        _ contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        switch item.kind {
        case .folder:
            return try await makeFolder(path, item.metadata, parent: folder.identifier)
        case .link:
            guard traits.keepsProperties, let target = item.target else {
                throw ProviderError(
                    .refused,
                    "\(resources.shown(path)) stays on this machine: "
                        + "the server cannot keep symbolic links"
                )
            }
            return try await writer.write(
                .bytes(target), at: path, .nothing, item.metadata, target: target,
                parent: folder.identifier)
        default:
            let payload = contents.map { Payload.source($0) } ?? .bytes([])
            return try await writer.write(
                payload, at: path, .nothing, item.metadata, target: nil, parent: folder.identifier)
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await acquaintance.complete()
        var path = reference.path
        let payload = contents.map { Payload.source($0) } ?? changes.target.map { .bytes($0) }
        var result: Item?
        // A move or a mode would hide that somebody wrote something else meanwhile.
        let isMovedByTag =
            changes.place != nil && traits.movesOnlyTagged == true
            && baseVersion != ResourceStatus.folderVersion
        if payload == nil, !isMovedByTag, let baseVersion {
            try await resources.check(.version(baseVersion), at: path)
        }
        if let payload {
            let expectation = baseVersion.map { Expectation.version($0) } ?? .anything
            // A target is kept as a property; where there are none there is no link either.
            result = try await writer.write(
                payload, at: path, expectation, changes.metadata, keepsRights: changes.keepsRights,
                target: changes.target, parent: nil)
        }
        if let place = changes.place {
            let target = place.parent.path + [place.name]
            try checkName(target)
            let source = path
            if traits.keepsProperties { await properties.noteKeeping(in: place.parent.path) }
            // Some servers want to be told that it is one.
            let isFolder = baseVersion == ResourceStatus.folderVersion
            try await resources.turns.take(location.urlPath(target)) {
                () async throws(ProviderError) in
                let version = payload == nil && isMovedByTag ? baseVersion : nil
                let twins = TwinNames(provider: self, path: target)
                try await twins.watchingMove(from: source) { () async throws(ProviderError) in
                    try await mover.move(source, to: target, isFolder: isFolder, having: version)
                }
            }
            path = target
            result?.name = place.name
            if result?.identifier.isNumber == false {
                result?.identifier = items.identifier(target)
            }
            result?.parent = place.parent.identifier
        }
        if payload == nil { try await properties.store(changes, at: path) }
        if let result { return result }
        let found = try await resources.client.completed(
            try await resources.resource(at: path), location.url(path))
        var changed = try items.item(found, path: path, parent: changes.place?.parent.identifier)
        // Another tag may be the move's doing or another program's content: at the next look it is
        // taken for theirs.
        if let baseVersion { changed.version = baseVersion }
        return changed
    }

    private func checkName(_ path: [FileName]) throws(ProviderError) {
        guard path.count > 1 || path.first != ReservedName.folder else {
            throw ProviderError(
                .refused,
                "\(resources.shown(path)) is a name that PromiseFS keeps for itself on the server")
        }
        // What is in no listing would be taken for removed, and what comes back with another name
        // for something new.
        guard
            traits.keepsEscapes != false
                || path.last.map({ location.wireName($0) == $0.bytes }) != false
        else {
            throw ProviderError(
                .refused,
                "the server cannot keep the name \(resources.shown(path)): it stays on this machine"
            )
        }
    }

    private func makeFolder(
        _ path: [FileName], _ metadata: Metadata, parent: ItemIdentifier
    ) async throws(ProviderError) -> Item {
        let what = "the folder \(resources.shown(path)) cannot be made"
        return try await resources.turns.take(location.urlPath(path)) {
            () async throws(ProviderError) in
            // Some servers take it for done where a folder is.
            try await resources.check(.nothing, at: path)
            let reply = try await locks.exchangeBeyondStaleLocks(.MKCOL, path, isFolder: true)
            // 405: something has the name (RFC 4918, section 9.3.1).
            guard reply.status != 405 else {
                throw ProviderError(.conflict, "\(what): the name is taken on the server")
            }
            guard reply.isSuccess else { throw ProviderError(reply, what, puts: true) }
            if traits.keepsProperties {
                let state = KeptState(
                    metadata: metadata, version: ResourceStatus.folderVersion.rawValue)
                await properties.noteKeeping(in: path.dropLast())
                // Something will be.
                try await properties.store(state, at: path, isFolder: true, keeps: true, token: nil)
            }
            return try items.item(
                try await resources.resource(at: path, isFolder: true), path: path, parent: parent)
        }
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?)
        async throws(ProviderError)
    {
        try await acquaintance.complete()
        try await remover.delete(reference, baseVersion: baseVersion)
    }
}
