import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Pictures that a server makes of files itself (ownCloud, Nextcloud). It keeps none of ours.
struct ServerPreviews: Sendable {
    let client: WebDAVClient
    let location: WebDAVLocation
    let pool: BlockingPool

    private static let byteCountMax = 8 << 20

    /// Nil when the server makes none of this file. `size`: pixels a side, at most.
    func picture(
        _ path: [FileName], size: Int, from source: PreviewSource, _ what: String
    ) async throws(ProviderError) -> [UInt8]? {
        let wanted = "x=\(size)&y=\(size)&a=1"
        let pages = source == .page ? location.previewURL(path).map { "\($0)&\(wanted)&forceIcon=0" } : nil
        guard let url = source == .page ? pages : location.url(path) + "?preview=1&" + wanted else { return nil }
        let reply = try await client.exchange(.GET, url, timeout: .seconds(60))
        if [400, 404, 415].contains(reply.status) { return nil }
        guard reply.isSuccess else { throw ProviderError(reply, what) }
        let kind = reply.header("Content-Type") ?? ""
        let isPicture = kind.hasPrefix("image/png") || kind.hasPrefix("image/jpeg")
        return isPicture && reply.body.count <= ServerPreviews.byteCountMax ? await pool.bytes(of: reply) : nil
    }
}
