import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider

// Pictures that a server makes of files itself (ownCloud, Nextcloud). It keeps none of ours.

extension WebDAVProvider {
    private static let previewByteCountMax = 8 << 20

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await acquaintance.complete()
        guard let source = traits.previews, source != .nowhere, try await has(version, reference.path),
            let picture = try await preview(reference.path, size: size, from: source)
        else { return nil }
        // The reply does not say of which version it is.
        return try await has(version, reference.path) ? picture : nil
    }

    private func has(_ version: ContentVersion, _ path: [FileName]) async throws(ProviderError) -> Bool {
        WebDAVProvider.version(of: try await file(at: path)) == version
    }

    /// Nil when the server makes none of this file. `size`: pixels a side, at most.
    func preview(_ path: [FileName], size: Int, from source: PreviewSource) async throws(ProviderError) -> [UInt8]? {
        let wanted = "x=\(size)&y=\(size)&a=1"
        let pages = source == .page ? location.previewURL(path).map { "\($0)&\(wanted)&forceIcon=0" } : nil
        guard let url = source == .page ? pages : location.url(path) + "?preview=1&" + wanted else { return nil }
        let reply = try await client.exchange(.GET, url, timeout: .seconds(60))
        if [400, 404, 415].contains(reply.status) { return nil }
        guard reply.isSuccess else { throw ProviderError(reply, "a picture of \(shown(path)) cannot be fetched") }
        let kind = reply.header("Content-Type") ?? ""
        let isPicture = kind.hasPrefix("image/png") || kind.hasPrefix("image/jpeg")
        return isPicture && reply.body.count <= WebDAVProvider.previewByteCountMax ? Array(reply.body) : nil
    }
}
