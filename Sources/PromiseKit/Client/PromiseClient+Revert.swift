import NIOCore
public import PromiseWire

extension PromiseClient {
    /// Gives up the changes of these items, and of everything below them, that the provider was not told of or refuses. Paths are
    /// bytes from the root of the domain, also of what was removed.
    public func revert(_ paths: [[UInt8]]) async throws(PromiseError) -> RevertDocument {
        var sum = RevertDocument(reverted: 0, failures: [])
        for part in pieces(of: paths) {
            let request = ItemsRequest(paths: part, purpose: FileCoordinator.inheritedPurpose)
            let reply: RevertDocument = try await reply(
                "POST", "items/revert", request, deadline: .hours(24))
            sum.reverted += reply.reverted
            sum.failures += reply.failures
        }
        return sum
    }
}
