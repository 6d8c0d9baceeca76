import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

/// Removes a resource only in the version that is known, and a folder only when it is empty
/// (DELETE; RFC 4918, section 9.6).
final class ResourceRemover: Sendable {
    private let resources: WebDAVResources
    private let locks: WriteLocks
    /// Files in a row that were not removed by their tag alone, and had that version all the same.
    private let vainCount = Atomic(0)

    init(_ resources: WebDAVResources, _ locks: WriteLocks) {
        self.resources = resources
        self.locks = locks
    }

    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }
    private var traits: ServerTraits { resources.traits }

    func delete(_ reference: ItemReference, baseVersion: ContentVersion?)
        async throws(ProviderError)
    {
        let presence = ServerPresence(resources, removed: reference.path)
        if let baseVersion, try await deleteMatching(reference.path, baseVersion) { return }
        do throws(ProviderError) {
            if let baseVersion, baseVersion != ResourceStatus.folderVersion {
                try await deleteFile(reference.path, baseVersion)
                vainCount.add(1, ordering: .relaxed)
                return
            }
            // Removing what is gone already is done, where it is the server that says so.
            guard let found = try await resources.resourceIfAny(at: reference.path) else {
                return try await presence.confirm()
            }
            if baseVersion != nil, !found.isCollection {
                throw ProviderError(
                    .conflict,
                    "\(resources.shown(reference.path)) is another item on the server now")
            }
            if found.isCollection {
                try await deleteFolder(reference)
            } else {
                try await deleteFile(reference.path, nil)
            }
        } catch {
            // A folder above may be gone, too, in which case there is nothing to lock.
            guard error.code == .notFound || error.code == .conflict else { throw error }
            guard try await resources.resourceIfAny(at: reference.path) != nil else {
                return try await presence.confirm()
            }
            // Servers say that also of what they have: taken for gone, it would come back as
            // something new.
            throw error.code == .conflict
                ? error : ProviderError(.refused, "\(error.message), and yet it is")
        }
    }

    /// A file in its version by one request, where a lock and a look cost four. False where it
    /// takes those to know what is there: anything but success, as there are servers that match no
    /// tag in the first second.
    private func deleteMatching(_ path: [FileName], _ version: ContentVersion)
        async throws(ProviderError) -> Bool
    {
        guard version != ResourceStatus.folderVersion, let headers = deletionHeaders(path, version),
            traits.listsTags,
            vainCount.load(ordering: .relaxed) < ResourceRemover.vainDeletionsMax
        else { return false }
        let isDone = try await resources.turns.take(location.urlPath(path)) {
            () async throws(ProviderError) in
            let reply = try await client.exchange(.DELETE, location.url(path), headers)
            return reply.isSuccess && reply.status != 207
        }
        if isDone { vainCount.store(0, ordering: .relaxed) }
        return isDone
    }

    /// Nil where the server honours no condition.
    private func deletionHeaders(_ path: [FileName], _ version: ContentVersion) -> HTTPHeaders? {
        let traits = traits
        if traits.deletesOnlyTagged == true {
            return ["If": WriteTurn.condition(location.url(path), has: version)]
        }
        return traits.deletesOnlyMatching == true ? ["If-Match": "\"\(version.rawValue)\""] : nil
    }

    /// There are servers whose tags match nothing.
    private static let vainDeletionsMax = 16

    private func deleteFile(_ path: [FileName], _ version: ContentVersion?)
        async throws(ProviderError)
    {
        let expectation = version.map { Expectation.version($0) } ?? .anything
        try await locks.withTurn(at: path, expectation) { (turn) async throws(ProviderError) in
            let headers =
                turn.token == nil && traits.deletesOnlyMatching != true ? [:] : turn.headers
            let reply = try await client.exchange(.DELETE, location.url(path), headers)
            // A multi-status tells of a lock on the folder (RFC 4918, section 9.6.1).
            guard reply.isSuccess, reply.status != 207 else {
                throw ProviderError(
                    status: WriteTurn.status(of: reply, isLocked: turn.token != nil),
                    retryAfter: reply.header("Retry-After"),
                    "\(resources.shown(path)) cannot be deleted")
            }
            if let token = turn.token, traits.locksEndWithItem == true {
                locks.noteEnded(path, isFolder: false, token)
            }
        }
    }

    /// DELETE takes everything in a folder with it (RFC 4918, section 9.6.1), so it is sent only
    /// for what is empty, and locked against additions where the server has locks.
    private func deleteFolder(_ reference: ItemReference) async throws(ProviderError) {
        for _ in 0..<WriteLocks.lostLockAttempts {
            if try await deleteFolderUnderLock(reference) { return }
        }
        throw ProviderError(
            .retry,
            "\(resources.shown(reference.path)) cannot be deleted: the server loses its locks")
    }

    /// False when the lock was lost.
    private func deleteFolderUnderLock(_ reference: ItemReference) async throws(ProviderError)
        -> Bool
    {
        let path = reference.path
        var token: String?
        if traits.locks {
            token = try await locks.lock(path, isFolder: true, depth: "infinity").token
        }
        do throws(ProviderError) {
            let isEmpty =
                if let token {
                    try await locks.renewing(path, isFolder: true, token) {
                        () async throws(ProviderError) in
                        try await resources.holdsNothing(path)
                    }
                } else {
                    try await resources.holdsNothing(path)
                }
            guard isEmpty else {
                throw ProviderError(
                    .conflict, "the folder \(resources.shown(path)) is not empty on the server")
            }
            let url = location.url(path, isFolder: true)
            let headers: HTTPHeaders = token.map { ["If": WriteTurn.condition(url, $0)] } ?? [:]
            let reply = try await locks.exchangeBeyondStaleLocks(
                .DELETE, path, isFolder: true, headers)
            guard reply.isSuccess, reply.status != 207 else {
                if let token, WriteTurn.status(of: reply, isLocked: true) == 412 {
                    await locks.unlock(path, isFolder: true, token)
                    return false
                }
                let error = ProviderError(reply, "\(resources.shown(path)) cannot be deleted")
                // Only what a folder holds is a conflict, for which it would come back.
                throw error.code == .conflict ? ProviderError(.retry, error.message) : error
            }
            resources.listed.forget(reference.identifier, at: path)
            guard let token else { return true }
            if traits.locksEndWithItem == true {
                locks.noteEnded(path, isFolder: true, token)
            } else {
                await locks.unlock(path, isFolder: true, token)
            }
            return true
        } catch {
            if let token { await locks.unlock(path, isFolder: true, token) }
            throw error
        }
    }
}
