import NIOCore
public import PromiseWire

extension PromiseClient {
    /// Makes a link by which anybody reaches the item at the provider. `until`: as RFC 3339 has it,
    /// or a date; nil: as late as the provider lets it.
    public func share(_ path: [UInt8], until: String? = nil) async throws(PromiseError) -> LinkDocument {
        try await reply("POST", "links", LinkRequest(path: "/" + PercentCoding.encode(path), until: until), deadline: .minutes(5))
    }

    /// Links to what is in the domain, also those that other programs have made.
    public func links() async throws(PromiseError) -> LinksDocument { try await reply("GET", "links", deadline: .minutes(5)) }

    /// By the `id` of a link.
    public func revokeLink(_ identifier: String) async throws(PromiseError) {
        let name = PercentCoding.encode(Array(identifier.utf8))
        let _: DoneDocument = try await reply("DELETE", "links/\(name)", deadline: .minutes(5))
    }
}
