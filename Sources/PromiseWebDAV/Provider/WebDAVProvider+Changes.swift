import FoundationEssentials
import NIOHTTP1
import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

// What others changed. Most servers have no feed, so every folder that is known is looked at again. A few tell what is new in a
// folder since a token that they gave (sync-collection, RFC 6578): a folder without news then costs a short answer.

extension WebDAVProvider {
    package func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        let (folders, tokens) = shared.withLock { ($0.folders, $0.syncTokens) }
        var page = ChangePage(foldersToList: folders, isGuess: !traits.tellsNews, anchor: anchor)
        guard traits.tellsNews else { return page }
        let known = tokens.filter { folders.contains($0.key) }
        let silent = try await concurrently(Array(known), width: 8) { (known) async throws(ProviderError) -> ItemIdentifier? in
            try await self.hasNews(known.value) ? nil : known.key
        }
        page.foldersToList.subtract(silent)
        return page
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "a WebDAV server does not push changes")
    }

    /// Whether a folder's listing is another than when it gave the token. Nothing is taken from the answer but that: the next
    /// listing brings the news and a new token, so that news whose listing fails are not lost.
    func hasNews(_ token: SyncToken) async throws(ProviderError) -> Bool {
        // No limit is asked for: there are servers that leave out what is beyond it and say that this is all.
        let body = """
            <sync-collection xmlns="DAV:"><sync-token>\(token.text.escapedForXML)</sync-token><sync-level>1</sync-level>\
            <prop><getetag/></prop></sync-collection>
            """
        let headers: HTTPHeaders = ["Depth": "0", "Content-Type": "application/xml; charset=utf-8"]
        let reply = try await client.exchange(
            .REPORT, location.url(token.folder, isFolder: true), headers, body: RequestBody(body), timeout: .seconds(300))
        if reply.status == 207, let rows = await parsed(reply.body) {
            // The folder itself may be named, too; as cut off, when there is more than the server tells at once.
            return rows.contains { $0.status == 507 || location.names(ofReference: $0.reference) != .names(token.folder) }
        }
        let error = ProviderError(reply, "\(shown(token.folder)) cannot be asked for what is new")
        // A token that is too old is refused, in many ways: then the folder is looked at as anywhere else.
        switch error.code {
        case .refused, .conflict, .notFound, .stale, .permanent: return true
        default: throw error
        }
    }
}

/// What a folder gave out when it was listed.
struct SyncToken: Sendable, Hashable {
    var folder: [FileName]
    /// Opaque.
    var text: String
}

extension String {
    fileprivate var escapedForXML: String {
        replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
