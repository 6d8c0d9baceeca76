import NIOCore
import NIOHTTP1
import PromiseHTTP
import PromiseProvider

/// Whether an answer that says "done" comes from the server. The login page of a guest network
/// answers everything with 200 and a page. What the protocol does not answer with is not believed,
/// but looked at.
struct SuccessOfStrangers {
    let client: WebDAVClient
    let method: HTTPMethod
    let url: String
    let headers: HTTPHeaders
    let body: RequestBody?

    /// The statuses that say in RFC 4918, section 9, that it is done. `207` is read by whoever
    /// asked.
    private var expected: Set<Int>? {
        switch method {
        case .DELETE, .PROPPATCH: [204, 207]
        case .MKCOL: [201, 207]
        case .MOVE, .COPY: [201, 204, 207]
        default: nil
        }
    }

    /// Throws `.retry` where it was not done, or nobody can say.
    func check(_ reply: HTTPReply) async throws(ProviderError) {
        guard reply.isSuccess else { return }
        // What was put is looked at by whoever put it: its size, and its tag.
        if [.PUT, .PATCH].contains(method), isPage(reply) {
            // A page may have a tag, too: it is that of what is there now, or the page's own.
            guard let tag = reply.header("ETag").map({ EntityTag.opaque($0) }),
                let found = try await look(url)?.entityTag, EntityTag.opaque(found) == tag
            else { throw stranger }
        }
        guard let expected, !expected.contains(reply.status) else { return }
        guard try await isDone() else { throw stranger }
    }

    /// A page for people, and nothing that a server says of what it stores.
    private func isPage(_ reply: HTTPReply) -> Bool {
        guard reply.status == 200, !reply.body.isEmpty else { return false }
        return reply.header("Content-Type")?.lowercased().hasPrefix("text/html") == true
    }

    private var stranger: ProviderError {
        ProviderError(
            .retry,
            "\(client.location.origin) says that \(method.rawValue) is done, and it is not: is there a login page?"
        )
    }

    private func isDone() async throws(ProviderError) -> Bool {
        switch method {
        case .DELETE: return try await look(url) == nil
        case .MKCOL: return try await look(url)?.isCollection == true
        case .COPY, .MOVE:
            guard let target = headers.first(name: "Destination"), try await look(target) != nil
            else { return false }
            if method == .COPY { return true }
            return try await look(url) == nil
        case .PROPPATCH:
            guard case .bytes(let sent, _)? = body, let found = try await look(url) else {
                return false
            }
            let text = String(decoding: sent.readableBytesView, as: UTF8.self)
            let keeps = !text.contains("<keeps ") || found.keeps
            return keeps
                && (!text.contains("<state ")
                    || text.contains(">\(found.keptState ?? "?")</state>"))
        default: return false
        }
    }

    /// Nil when the server says that nothing is there. Throws when it is not the server that
    /// answers.
    private func look(_ url: String) async throws(ProviderError) -> ResourceStatus? {
        let headers: HTTPHeaders = ["Depth": "0", "Content-Type": "application/xml; charset=utf-8"]
        let request = RequestBody(WebDAVResources.propertyRequest())
        let reply = try await client.exchange(.PROPFIND, url, headers, body: request)
        if reply.status == 404 || reply.status == 410 { return nil }
        guard reply.status == 207, let rows = MultiStatusParser.parse(reply.body),
            let row = rows.first, rows.count == 1
        else { throw stranger }
        if let status = row.status, status == 404 || status == 410 { return nil }
        guard row.trouble == nil else { throw stranger }
        return row.isNothing ? nil : row
    }
}
