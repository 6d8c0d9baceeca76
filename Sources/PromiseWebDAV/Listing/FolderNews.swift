import AsyncHTTPClient
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

/// What others changed. Most servers have no feed, so every folder that is known is looked at
/// again. A few tell what is new in a folder since a token that they gave (sync-collection, RFC
/// 6578): a folder without news then costs a short answer.
struct FolderNews: Sendable {
    let resources: WebDAVResources

    func page(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        let (folders, tokens) = (resources.listed.all, resources.listed.tokens)
        let tellsNews = resources.traits.tellsNews
        var page = ChangePage(foldersToList: folders, isGuess: !tellsNews, anchor: anchor)
        guard tellsNews else { return page }
        let silent = try await concurrently(Array(tokens), width: 8) {
            (known) async throws(ProviderError) -> ItemIdentifier? in
            try await self.hasNews(known.value) ? nil : known.key
        }
        page.foldersToList.subtract(silent)
        return page
    }

    /// Whether a folder's listing is another than when it gave the token. Nothing is taken from the
    /// answer but that: the next listing brings the news and a new token, so that news whose
    /// listing fails are not lost.
    func hasNews(_ token: SyncToken) async throws(ProviderError) -> Bool {
        // No limit is asked for: there are servers that leave out what is beyond it and say that
        // this is all.
        let body = """
            <sync-collection xmlns="DAV:"><sync-token>\(token.text.escapedForXML)</sync-token>\
            <sync-level>1</sync-level>\
            <prop><getetag/></prop></sync-collection>
            """
        let headers: HTTPHeaders = ["Depth": "0", "Content-Type": "application/xml; charset=utf-8"]
        let reply = try await resources.client.exchange(
            .REPORT, resources.location.url(token.folder, isFolder: true), headers,
            body: RequestBody(body), timeout: .seconds(300))
        if reply.status == 207, let rows = await resources.parsed(reply.body) {
            // The folder itself may be named, too; as cut off, when there is more than the server
            // tells at once.
            return rows.contains {
                $0.status == 507
                    || resources.location.names(ofReference: $0.reference) != .names(token.folder)
            }
        }
        let error = ProviderError(
            reply, "\(resources.shown(token.folder)) cannot be asked for what is new")
        // A token that is too old is refused, in many ways: then the folder is looked at as
        // anywhere else.
        switch error.code {
        case .refused, .conflict, .notFound, .stale, .permanent: return true
        default: throw error
        }
    }
}

extension String {
    fileprivate var escapedForXML: String {
        replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
