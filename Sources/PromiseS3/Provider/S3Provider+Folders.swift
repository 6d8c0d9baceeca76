import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

// Folders are what keys have in common; what we make has a marker: an empty object whose key ends with a slash.

extension S3Provider {
    private static let folderType = "application/x-directory"

    func makeFolder(
        _ path: [FileName], _ metadata: Metadata, parent: ItemIdentifier
    ) async throws(ProviderError) -> Item {
        let key = names.folderKey(path)
        return try await turns.take(S3Location.encoded(names.key(path))) { () async throws(ProviderError) in
            try await check(.nothing, at: path)
            if try await isFolder(path) { throw S3Provider.taken(shown(path)) }
            let known = try await putMarker(key, metadata, isNew: true, "the folder \(shown(path)) cannot be made")
            seenFolders.made(key, in: names.folderKey(path.dropLast()), at: clock.uptime())
            return item(path, kind: .folder, tag: "", size: 0, lastModified: .zero, known, parent: parent)
        }
    }

    private func putMarker(
        _ key: [UInt8], _ metadata: Metadata?, isNew: Bool, _ what: String
    ) async throws(ProviderError) -> ObjectDetails {
        var headers: HTTPHeaders = [:]
        if let metadata, traits.keepsMetadata { headers = ObjectDetails.headers(metadata, kind: .folder) }
        headers.add(name: "Content-Type", value: S3Provider.folderType)
        if isNew, traits.refusesTaken { headers.add(name: "If-None-Match", value: "*") }
        _ = try await client.succeed(S3Request(.PUT, key, [], headers), what)
        shared.withLock { _ = $0.markers.insert(key) }
        let known = metadata.map { ObjectDetails($0) } ?? ObjectDetails()
        details.note(key, .folder, known)
        return known
    }

    /// Whether it is known that the folder of a path stays when all in it goes.
    func isFolderKept(of path: [FileName]) -> Bool {
        let folder = path.dropLast()
        if folder.isEmpty { return true }
        let key = names.folderKey(folder)
        return shared.withLock { $0.markers.contains(key) }
    }

    /// A folder that is nothing but the beginning of its only key would go with it.
    func keepFolder(of path: [FileName]) async throws(ProviderError) {
        if isFolderKept(of: path) { return }
        let key = names.folderKey(path.dropLast())
        let what = "the folder \(shown(path.dropLast())) cannot be kept"
        if try await status(ofKey: key, what) == nil {
            do throws(ProviderError) {
                _ = try await putMarker(key, nil, isNew: true, what)
            } catch {
                // Somebody was faster.
                if error.code != .conflict { throw error }
            }
        }
        _ = shared.withLock { $0.markers.insert(key) }
    }

    func deleteFolder(_ path: [FileName]) async throws(ProviderError) {
        let key = names.folderKey(path)
        let objects = try await first(2, key, "\(shown(path)) cannot be looked at")
        guard objects.allSatisfy({ $0.key == key }) else {
            throw ProviderError(.conflict, "the folder \(shown(path)) is not empty on the server")
        }
        guard objects.allSatisfy({ $0.size == 0 }) else {
            throw ProviderError(.conflict, "the folder \(shown(path)) is an object with content on the server")
        }
        try await keepFolder(of: path)
        _ = try await client.succeed(S3Request(.DELETE, key), "the folder \(shown(path)) cannot be deleted")
        details.forget(key)
        shared.withLock { shared in
            shared.markers.remove(key)
            shared.folders[identifier(path)] = nil
        }
    }

    func storeOfFolder(_ metadata: Metadata, at path: [FileName]) async throws(ProviderError) -> ObjectDetails {
        let key = names.folderKey(path)
        let what = "the mode and time of \(shown(path)) cannot be stored"
        // What somebody else keeps under a folder's key is not written over.
        guard let found = try await status(ofKey: key, what), found.size > 0 else {
            return try await putMarker(key, metadata, isNew: false, what)
        }
        guard traits.keepsMetadata else { return ObjectDetails() }
        _ = try await copy(key, found, to: key, metadata, what)
        let known = ObjectDetails(metadata)
        details.note(key, .folder, known)
        return known
    }
}
