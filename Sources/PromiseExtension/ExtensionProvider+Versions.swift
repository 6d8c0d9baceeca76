import AsyncHTTPClient
import NIOHTTP1
import PromiseCore
package import PromiseProvider
import PromiseWire

// What an extension keeps of what its files were before.

extension ExtensionProvider {
    /// More of one file are not shown.
    private static let earlierCountMax = 10_000
    /// What this machine calls the versions that were given up on it.
    private static let ownPrefix = "given-up-"

    package func earlierVersions(
        of reference: ItemReference
    ) async throws(ProviderError) -> [EarlierVersion] {
        guard capabilities.contains(.versions) else { return [] }
        let document = try await client.exchange(
            .GET, path(reference) + "/versions", as: ExtensionVersionsDocument.self)
        var versions: [EarlierVersion] = []
        var seen: Set<String> = []
        var wrong: ProviderError?
        for document in document.versions.prefix(ExtensionProvider.earlierCountMax) {
            do throws(ProviderError) {
                let version = try earlier(document)
                if seen.insert(version.identifier).inserted { versions.append(version) }
            } catch {
                wrong = error
            }
        }
        if let wrong { warn(wrong) }
        return versions.sorted { $0.modificationTime > $1.modificationTime }
    }

    private func earlier(
        _ document: ExtensionVersionDocument
    ) throws(ProviderError) -> EarlierVersion {
        let identifier = document.identifier
        guard StorageWords.isWord(identifier), !identifier.hasPrefix(ExtensionProvider.ownPrefix)
        else { throw client.lie("calls an earlier version by what nobody can type") }
        guard let size = UInt64(exactly: document.size), size <= ItemSize.max else {
            throw client.lie("says no size of the earlier version '\(identifier)' that can be")
        }
        let version = document.version ?? identifier
        guard ItemReading.isPlain(version) else {
            throw client.lie("says no version of the earlier version '\(identifier)'")
        }
        return EarlierVersion(
            identifier: identifier, version: ContentVersion(version), size: size,
            modificationTime: Timestamp(nanoseconds: document.modified))
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        guard capabilities.contains(.versions), StorageWords.isWord(earlier.identifier) else {
            throw ProviderError(.notFound, "\(client.title) does not keep it")
        }
        let version = PercentText.encoded(earlier.identifier)
        let place = "\(path(reference))/versions/\(version)/content"
        try await client.transfers.run { () async throws(ProviderError) in
            try await transfer(place, of: earlier.size, into: sink)
        }
    }

    /// A whole content, of which the size is known.
    private func transfer(
        _ place: String, of size: UInt64, into sink: any ContentSink
    ) async throws(ProviderError) {
        let response = try await client.open(.GET, place)
        let length = response.headers.first(name: "content-length").flatMap { UInt64($0) }
        guard response.status.code == 200, length == nil || length == size else {
            throw client.lie(
                "sends \(length ?? 0) bytes of an earlier version of \(size)", .corrupted)
        }
        let count = try await write(response.body, from: 0, wanted: nil, size, into: sink)
        guard count == size else {
            throw client.lie("sent \(count) bytes of an earlier version of \(size)", .corrupted)
        }
        client.contentCame()
    }
}
