import NIOCore
public import PromiseWire

extension PromiseClient {
    /// What was removed on the mount at a path, or below it, and can come back, the newest first.
    /// Paths are bytes from the root of the domain; nil: of all of it.
    public func trash(below path: [UInt8]? = nil) async throws(PromiseError) -> TrashDocument {
        let query = path.map { "?path=/" + PercentCoding.encode($0) } ?? ""
        return try await reply("GET", "trash" + query, deadline: .minutes(2))
    }

    /// Brings back the newest that was removed at each path, a folder with what was removed with
    /// it: to where it was, or into `folder` under a free name.
    public func restore(_ paths: [[UInt8]], to folder: [UInt8]? = nil) async throws(PromiseError)
        -> RestoreDocument
    {
        var sum = RestoreDocument(restored: 0, places: [], failures: [])
        let place = folder.map { "/" + PercentCoding.encode($0) }
        for part in pieces(of: paths) {
            let reply: RestoreDocument = try await reply(
                "POST", "trash/restore", RestoreRequest(paths: part, to: place),
                deadline: .hours(24))
            sum.restored += reply.restored
            sum.places += reply.places
            sum.failures += reply.failures
        }
        return sum
    }

    /// What was removed there goes for good.
    public func emptyTrash(below path: [UInt8]? = nil) async throws(PromiseError)
        -> EmptiedTrashDocument
    {
        let request = EmptyTrashRequest(path: path.map { "/" + PercentCoding.encode($0) })
        return try await reply("POST", "trash/empty", request, deadline: .hours(1))
    }
}
