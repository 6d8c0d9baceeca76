import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider

// What a server (ownCloud, Nextcloud) makes of files or keeps of them by itself.

extension WebDAVProvider {
    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await acquaintance.complete()
        guard let source = traits.previews, source != .nowhere, try await file(at: reference.path).isOf(version)
        else { return nil }
        let what = "a picture of \(shown(reference.path)) cannot be fetched"
        guard let picture = try await previews.picture(reference.path, size: size, from: source, what) else { return nil }
        // The reply does not say of which version it is.
        return try await file(at: reference.path).isOf(version) ? picture : nil
    }

    var previews: ServerPreviews { ServerPreviews(client: client, location: location) }
    private var earlierFiles: EarlierFiles { EarlierFiles(client: client, location: location, pool: pool) }

    package func earlierVersions(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion] {
        try await earlierFiles.list(of: resource(at: reference.path), "the versions of \(shown(reference.path)) cannot be listed")
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        let what = "a version of \(shown(reference.path)) cannot be fetched"
        try await earlierFiles.fetch(earlier, of: resource(at: reference.path), into: sink, what)
    }
}

extension ResourceStatus {
    fileprivate func isOf(_ version: ContentVersion) -> Bool { WebDAVProvider.version(of: self) == version }
}
