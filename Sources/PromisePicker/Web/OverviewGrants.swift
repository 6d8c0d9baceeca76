import PromiseCore
import PromiseKit
import PromiseWire

// What applications were given, what they did with it, and taking it back.

extension OverviewSite {
    private static let lineCountMax = 200

    struct Grants: Encodable {
        var grants: [GrantDocument]
        /// The newest first.
        var lines: [AuditLineDocument]
    }

    func grants(_ request: WebRequest) async throws -> Grants {
        let client = try PromiseClient(mount: try mount(request.query["domain"]))
        let lines = try await client.audit(limit: OverviewSite.lineCountMax)
        return Grants(grants: try await client.grants().grants, lines: lines.reversed())
    }

    func revoke(_ choice: Choice) async throws -> Done {
        guard let grant = choice.grant else {
            throw PromiseError(.local, "say which grant", exitStatus: 2)
        }
        let gone = try await PromiseClient(mount: try mount(choice.domain)).revoke(grant)
        let more = gone.count - 1
        return Done(text: more <= 0 ? "revoked" : "revoked, with \(more) made from it")
    }
}
