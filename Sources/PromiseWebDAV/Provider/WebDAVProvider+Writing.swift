import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

// Creating, changing and removing. Nothing takes effect under a name whose content was not what the caller expected.

/// What a file is to hold.
enum Payload: Sendable {
    case source(any ContentSource)
    /// A link's target, or nothing.
    case bytes([UInt8])

    var size: UInt64 {
        switch self {
        case .source(let source): source.size
        case .bytes(let bytes): UInt64(bytes.count)
        }
    }
}

extension WebDAVProvider {
    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await acquaintance.complete()
        let path = folder.path + [item.name]
        try checkName(path)
        if folder.identifier.isNumber { shared.withLock { $0.numbers[folder.path] = folder.identifier } }
        return try await TwinNames(provider: self, path: path).watching { () async throws(ProviderError) in
            try await make(item, at: path, in: folder, contents)
        }
    }

    private func make(
        _ item: NewItem, at path: [FileName], in folder: ItemReference, _ contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        switch item.kind {
        case .folder:
            return try await makeFolder(path, item.metadata, parent: folder.identifier)
        case .link:
            guard traits.keepsProperties, let target = item.target else {
                throw ProviderError(.refused, "\(shown(path)) stays on this machine: the server cannot keep symbolic links")
            }
            return try await write(.bytes(target), at: path, .nothing, item.metadata, target: target, parent: folder.identifier)
        default:
            let payload = contents.map { Payload.source($0) } ?? .bytes([])
            return try await write(payload, at: path, .nothing, item.metadata, target: nil, parent: folder.identifier)
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await acquaintance.complete()
        var path = reference.path
        let payload = contents.map { Payload.source($0) } ?? changes.target.map { .bytes($0) }
        var result: Item?
        // A move or a mode would hide that somebody wrote something else meanwhile.
        let isMovedByTag = changes.place != nil && traits.movesOnlyTagged == true && baseVersion != WebDAVProvider.folderVersion
        if payload == nil, !isMovedByTag, let baseVersion { try await check(.version(baseVersion), at: path) }
        if let payload {
            let expectation = baseVersion.map { Expectation.version($0) } ?? .anything
            // A target is kept as a property; where there are none there is no link either.
            result = try await write(payload, at: path, expectation, changes.metadata, target: changes.target, parent: nil)
        }
        if let place = changes.place {
            let target = place.parent.path + [place.name]
            try checkName(target)
            let source = path
            if traits.keepsProperties { await noteKeeping(in: place.parent.path) }
            // Some servers want to be told that it is one.
            let isFolder = baseVersion == WebDAVProvider.folderVersion
            try await turns.take(location.urlPath(target)) { () async throws(ProviderError) in
                let version = payload == nil && isMovedByTag ? baseVersion : nil
                try await TwinNames(provider: self, path: target).watching { () async throws(ProviderError) in
                    try await move(source, to: target, isFolder: isFolder, having: version)
                }
            }
            path = target
            result?.name = place.name
            if result?.identifier.isNumber == false { result?.identifier = identifier(target) }
            result?.parent = place.parent.identifier
        }
        if payload == nil, let metadata = changes.metadata { try await store(metadata, at: path) }
        if let result { return result }
        let found = try await client.completed(try await resource(at: path), location.url(path))
        var changed = try item(found, path: path, parent: changes.place?.parent.identifier)
        // Another tag may be the move's doing or another program's content: at the next look it is taken for theirs.
        if let baseVersion { changed.version = baseVersion }
        return changed
    }

    private func checkName(_ path: [FileName]) throws(ProviderError) {
        guard path.count > 1 || path.first != ReservedName.folder else {
            throw ProviderError(.refused, "\(shown(path)) is a name that PromiseFS keeps for itself on the server")
        }
        // What is in no listing would be taken for removed, and what comes back with another name for something new.
        guard traits.keepsEscapes != false || path.last.map({ location.wireName($0) == $0.bytes }) != false else {
            throw ProviderError(.refused, "the server cannot keep the name \(shown(path)): it stays on this machine")
        }
    }

    // MARK: Folders

    private func makeFolder(
        _ path: [FileName], _ metadata: Metadata, parent: ItemIdentifier
    ) async throws(ProviderError) -> Item {
        let what = "the folder \(shown(path)) cannot be made"
        return try await turns.take(location.urlPath(path)) { () async throws(ProviderError) in
            // Some servers take it for done where a folder is.
            try await check(.nothing, at: path)
            let reply = try await exchangeBeyondStaleLocks(.MKCOL, path, isFolder: true)
            // 405: something has the name (RFC 4918, section 9.3.1).
            guard reply.status != 405 else { throw ProviderError(.conflict, "\(what): the name is taken on the server") }
            guard reply.isSuccess else { throw ProviderError(reply, what, puts: true) }
            if traits.keepsProperties {
                let state = KeptState(metadata: metadata, version: WebDAVProvider.folderVersion.rawValue)
                await noteKeeping(in: path.dropLast())
                // Something will be.
                try await store(state, at: path, isFolder: true, keeps: true, token: nil)
            }
            return try item(try await resource(at: path, isFolder: true), path: path, parent: parent)
        }
    }

    // MARK: Moving

    /// Never over something else. The caller has the turn for the target.
    func move(
        _ path: [FileName], to target: [FileName], isFolder: Bool = false, having version: ContentVersion? = nil
    ) async throws(ProviderError) {
        let isAside = path.first == ReservedName.folder
        let what = isAside ? "\(shown(target)) cannot be uploaded" : "\(shown(path)) cannot be moved to \(shown(target))"
        if !traits.honoursOverwrite { try await check(.nothing, at: target) }
        var headers: HTTPHeaders = ["Destination": location.url(target, isFolder: isFolder), "Overwrite": "F"]
        if let version { headers.add(name: "If", value: WriteTurn.condition(location.url(path), has: version)) }
        let reply = try await exchangeBeyondStaleLocks(
            .MOVE, path, to: target, isFolder: isFolder, headers, timeout: .seconds(600))
        if reply.isSuccess && reply.status != 207 { return }
        // Of the source, or of the target.
        if reply.status == 412, let version { try await check(.version(version), at: path) }
        if reply.status == 400, !isFolder, try await resource(at: path).isCollection {
            return try await move(path, to: target, isFolder: true)
        }
        switch reply.status {
        case 403, 409, 500, 502, 207:
            // Servers disagree about what it is to move into a folder that is gone, or something that is gone.
            if try await resourceIfAny(at: path) == nil {
                // And one may fail after it has moved it, as it keeps properties somewhere else.
                if reply.status != 403, try await resourceIfAny(at: target) != nil { return }
                throw ProviderError(.notFound, "\(shown(path)) is not on the server")
            }
            _ = try await resource(at: Array(target.dropLast()), isFolder: true)
            throw ProviderError(status: reply.status == 207 ? 423 : reply.status, what)
        default: throw ProviderError(reply, what)
        }
    }

    // MARK: Removing

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await acquaintance.complete()
        let presence = ServerPresence(provider: self, removed: reference.path)
        if let baseVersion, try await deleteMatching(reference.path, baseVersion) { return }
        do throws(ProviderError) {
            if let baseVersion, baseVersion != WebDAVProvider.folderVersion {
                try await deleteFile(reference.path, baseVersion)
                return shared.withLock { $0.vainDeletionCount += 1 }
            }
            // Removing what is gone already is done, where it is the server that says so.
            guard let found = try await resourceIfAny(at: reference.path) else { return try await presence.confirm() }
            if baseVersion != nil, !found.isCollection {
                throw ProviderError(.conflict, "\(shown(reference.path)) is another item on the server now")
            }
            if found.isCollection { try await deleteFolder(reference) } else { try await deleteFile(reference.path, nil) }
        } catch {
            // A folder above may be gone, too, in which case there is nothing to lock.
            guard error.code == .notFound || error.code == .conflict else { throw error }
            guard try await resourceIfAny(at: reference.path) != nil else { return try await presence.confirm() }
            // Servers say that also of what they have: taken for gone, it would come back as something new.
            throw error.code == .conflict ? error : ProviderError(.refused, "\(error.message), and yet it is")
        }
    }

    /// A file in its version by one request, where a lock and a look cost four. False where it takes those to know what is there:
    /// anything but success, as there are servers that match no tag in the first second.
    private func deleteMatching(_ path: [FileName], _ version: ContentVersion) async throws(ProviderError) -> Bool {
        guard version != WebDAVProvider.folderVersion, let headers = deletionHeaders(path, version), traits.listsTags,
            shared.withLock({ $0.vainDeletionCount < WebDAVProvider.vainDeletionsMax })
        else { return false }
        let isDone = try await turns.take(location.urlPath(path)) { () async throws(ProviderError) in
            let reply = try await client.exchange(.DELETE, location.url(path), headers)
            return reply.isSuccess && reply.status != 207
        }
        if isDone { shared.withLock { $0.vainDeletionCount = 0 } }
        return isDone
    }

    /// Nil where the server honours no condition.
    private func deletionHeaders(_ path: [FileName], _ version: ContentVersion) -> HTTPHeaders? {
        let traits = traits
        if traits.deletesOnlyTagged == true { return ["If": WriteTurn.condition(location.url(path), has: version)] }
        return traits.deletesOnlyMatching == true ? ["If-Match": "\"\(version.rawValue)\""] : nil
    }

    /// There are servers whose tags match nothing.
    private static let vainDeletionsMax = 16

    private func deleteFile(_ path: [FileName], _ version: ContentVersion?) async throws(ProviderError) {
        let expectation = version.map { Expectation.version($0) } ?? .anything
        try await withTurn(at: path, expectation) { (turn) async throws(ProviderError) in
            let headers = turn.token == nil && traits.deletesOnlyMatching != true ? [:] : turn.headers
            let reply = try await client.exchange(.DELETE, location.url(path), headers)
            // A multi-status tells of a lock on the folder (RFC 4918, section 9.6.1).
            guard reply.isSuccess, reply.status != 207 else {
                throw ProviderError(
                    status: WriteTurn.status(of: reply, isLocked: turn.token != nil), retryAfter: reply.header("Retry-After"),
                    "\(shown(path)) cannot be deleted")
            }
            if let token = turn.token, traits.locksEndWithItem == true { noteEnded(path, isFolder: false, token) }
        }
    }

    /// DELETE takes everything in a folder with it (RFC 4918, section 9.6.1), so it is sent only for what is empty, and
    /// locked against additions where the server has locks.
    private func deleteFolder(_ reference: ItemReference) async throws(ProviderError) {
        for _ in 0..<WebDAVProvider.lostLockAttempts {
            if try await deleteFolderUnderLock(reference) { return }
        }
        throw ProviderError(.retry, "\(shown(reference.path)) cannot be deleted: the server loses its locks")
    }

    /// False when the lock was lost.
    private func deleteFolderUnderLock(_ reference: ItemReference) async throws(ProviderError) -> Bool {
        let path = reference.path
        var token: String?
        if traits.locks { token = try await lock(path, isFolder: true, depth: "infinity").token }
        do throws(ProviderError) {
            let isEmpty =
                if let token {
                    try await renewing(path, isFolder: true, token) { () async throws(ProviderError) in
                        try await holdsNothing(path)
                    }
                } else {
                    try await holdsNothing(path)
                }
            guard isEmpty else {
                throw ProviderError(.conflict, "the folder \(shown(path)) is not empty on the server")
            }
            let url = location.url(path, isFolder: true)
            let headers: HTTPHeaders = token.map { ["If": WriteTurn.condition(url, $0)] } ?? [:]
            let reply = try await exchangeBeyondStaleLocks(.DELETE, path, isFolder: true, headers)
            guard reply.isSuccess, reply.status != 207 else {
                if let token, WriteTurn.status(of: reply, isLocked: true) == 412 {
                    await unlock(path, isFolder: true, token)
                    return false
                }
                let error = ProviderError(reply, "\(shown(path)) cannot be deleted")
                // Only what a folder holds is a conflict, for which it would come back.
                throw error.code == .conflict ? ProviderError(.retry, error.message) : error
            }
            forget(reference.identifier, at: path)
            guard let token else { return true }
            if traits.locksEndWithItem == true {
                noteEnded(path, isFolder: true, token)
            } else {
                await unlock(path, isFolder: true, token)
            }
            return true
        } catch {
            if let token { await unlock(path, isFolder: true, token) }
            throw error
        }
    }

    // MARK: Metadata

    /// Nothing happens on a server that keeps no properties.
    private func store(_ metadata: Metadata, at path: [FileName]) async throws(ProviderError) {
        guard traits.keepsProperties else { return }
        let now = try await client.completed(try await resource(at: path), location.url(path))
        let item = try item(now, path: path, parent: nil)
        let state = KeptState(metadata: metadata, target: item.target, version: item.version.rawValue)
        await noteKeeping(in: path.dropLast())
        try await store(state, at: path, isFolder: now.isCollection, token: nil)
    }

    /// `keeps`: of a folder, that something may be kept with what is in it. Nil leaves what is there.
    func store(
        _ state: KeptState?, at path: [FileName], isFolder: Bool = false, keeps: Bool = false, token: String?
    ) async throws(ProviderError) {
        let space = MultiStatusParser.ownSpace
        let properties =
            (state.map { "<state xmlns=\"\(space)\">\($0.text)</state>" } ?? "")
            + (keeps ? "<keeps xmlns=\"\(space)\">1</keeps>" : "")
        let body = "<propertyupdate xmlns=\"DAV:\"><set><prop>\(properties)</prop></set></propertyupdate>"
        let url = location.url(path, isFolder: isFolder)
        var headers: HTTPHeaders = ["Content-Type": "application/xml; charset=utf-8"]
        if let token { headers.add(name: "If", value: WriteTurn.condition(url, token)) }
        let reply = try await exchangeBeyondStaleLocks(
            .PROPPATCH, path, isFolder: isFolder, headers, body: RequestBody(body))
        let what = "the mode and time of \(shown(path)) cannot be stored"
        guard reply.isSuccess else {
            throw ProviderError(
                status: WriteTurn.status(of: reply, isLocked: token != nil), retryAfter: reply.header("Retry-After"), what)
        }
        guard reply.status == 207 else { return }
        guard let rows = await parsed(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        let statuses = rows.flatMap { Array($0.refusals) + ($0.status.map { [$0] } ?? []) }
        if let worst = statuses.max(), worst >= 300 { throw ProviderError(status: worst, what) }
    }
}
