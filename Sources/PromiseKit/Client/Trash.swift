import NIOCore
public import PromiseWire

/// What was removed on a mount and can come back.
public struct Trash: Sendable {
    private let client: PromiseClient

    public init(_ client: PromiseClient) { self.client = client }

    /// What was removed on the mount at a path, or below it, and can come back, the newest first.
    /// Paths are bytes from the root of the domain; nil: of all of it. `atProvider`: what the
    /// provider keeps, whoever removed it, instead of what is kept here.
    public func list(
        below path: [UInt8]? = nil, atProvider: Bool = false
    ) async throws(PromiseError) -> TrashDocument {
        let fields =
            (path.map { ["path=/" + PercentCoding.encode($0)] } ?? [])
            + (atProvider ? ["provider=true"] : [])
        let query = fields.isEmpty ? "" : "?" + fields.joined(separator: "&")
        return try await client.reply("GET", "trash" + query, deadline: .minutes(2))
    }

    /// Brings back the newest that was removed at each path, a folder with what was removed with
    /// it: to where it was, or into `folder` under a free name. `atProvider`: of what the provider
    /// keeps, always to where it was.
    public func restore(
        _ paths: [[UInt8]], to folder: [UInt8]? = nil, atProvider: Bool = false
    ) async throws(PromiseError) -> RestoreDocument {
        var sum = RestoreDocument(restored: 0, places: [], failures: [])
        let place = folder.map { "/" + PercentCoding.encode($0) }
        for part in client.pieces(of: paths) {
            let reply: RestoreDocument = try await client.reply(
                "POST", "trash/restore",
                RestoreRequest(
                    paths: part, to: place, purpose: FileCoordinator.inheritedPurpose,
                    atProvider: atProvider ? true : nil),
                deadline: .hours(24))
            sum.restored += reply.restored
            sum.places += reply.places
            sum.failures += reply.failures
        }
        return sum
    }

    /// What was removed there goes for good.
    public func empty(below path: [UInt8]? = nil) async throws(PromiseError)
        -> EmptiedTrashDocument
    {
        let request = EmptyTrashRequest(path: path.map { "/" + PercentCoding.encode($0) })
        return try await client.reply("POST", "trash/empty", request, deadline: .hours(1))
    }
}
