import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

/// Moves a resource where nothing is (MOVE with `Overwrite: F`; RFC 4918, section 9.9).
struct ResourceMover: Sendable {
    let resources: WebDAVResources
    let locks: WriteLocks
    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }
    private var traits: ServerTraits { resources.traits }

    /// Never over something else. The caller has the turn for the target.
    func move(
        _ path: [FileName], to target: [FileName], isFolder: Bool = false,
        having version: ContentVersion? = nil
    ) async throws(ProviderError) {
        let isAside = path.first == ReservedName.folder
        let what =
            isAside
            ? "\(resources.shown(target)) cannot be uploaded"
            : "\(resources.shown(path)) cannot be moved to \(resources.shown(target))"
        if !traits.honoursOverwrite { try await resources.check(.nothing, at: target) }
        var headers: HTTPHeaders = [
            "Destination": location.url(target, isFolder: isFolder), "Overwrite": "F",
        ]
        if let version {
            headers.add(name: "If", value: WriteTurn.condition(location.url(path), has: version))
        }
        let reply = try await locks.exchangeBeyondStaleLocks(
            .MOVE, path, to: target, isFolder: isFolder, headers, timeout: .seconds(600))
        if reply.isSuccess && reply.status != 207 { return }
        // Of the source, or of the target.
        if reply.status == 412, let version {
            try await resources.check(.version(version), at: path)
        }
        if reply.status == 400, !isFolder, try await resources.resource(at: path).isCollection {
            return try await move(path, to: target, isFolder: true)
        }
        switch reply.status {
        case 403, 409, 500, 502, 207:
            // Servers disagree about what it is to move into a folder that is gone, or something
            // that is gone.
            if try await resources.resourceIfAny(at: path) == nil {
                // And one may fail after it has moved it, as it keeps properties somewhere else.
                if reply.status != 403, try await resources.resourceIfAny(at: target) != nil {
                    return
                }
                throw ProviderError(.notFound, "\(resources.shown(path)) is not on the server")
            }
            _ = try await resources.resource(at: Array(target.dropLast()), isFolder: true)
            throw ProviderError(status: reply.status == 207 ? 423 : reply.status, what)
        default: throw ProviderError(reply, what)
        }
    }
}
