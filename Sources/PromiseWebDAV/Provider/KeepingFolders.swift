import PromiseCore
import PromiseHTTP
import PromiseProvider

/// Which folders hold something with which something of ours is kept, as far as the server has
/// told.
struct KeepingFolders: Sendable {
    /// What would be beyond is looked at.
    private static let othersMax = 100_000

    private var keeping: Set<[FileName]> = []
    /// Those that nobody has listed yet and that did not, with what the server said of them then:
    /// whoever adds something changes that.
    private var others: [[FileName]: String] = [:]

    func contains(_ path: [FileName]) -> Bool { keeping.contains(path) }

    /// What the server said of a folder when it kept nothing; nil when that is not known.
    func stampOfOther(_ path: [FileName]) -> String? { others[path] }

    mutating func note(keeps: Bool, _ stamp: String?, in path: [FileName]) {
        others[path] = nil
        if keeps {
            keeping.insert(path)
        } else {
            keeping.remove(path)
            noteOther(stamp, in: path)
        }
    }

    /// The folder above kept nothing, nor does what is in it; what says that it does is believed.
    mutating func noteOther(_ stamp: String?, in path: [FileName]) {
        guard let stamp, !keeping.contains(path),
            others.count < KeepingFolders.othersMax || others[path] != nil
        else { return }
        others[path] = stamp
    }

    /// From then on everything is asked for.
    mutating func isListed(_ path: [FileName]) { others[path] = nil }

    mutating func forget(_ path: [FileName]) {
        keeping.remove(path)
        others[path] = nil
    }
}

/// A folder's listing without what is kept; `stamp`: what the server said of the folder when it
/// kept nothing.
struct PlainListing: Sendable {
    var stamp: String?

    /// Nil: everything is asked for. Else a folder's first listing asks for nothing of ours, and
    /// what it tells of modes, owners and times is a guess.
    static func of(
        _ folder: ItemReference, by resources: WebDAVResources
    ) async throws(ProviderError) -> PlainListing? {
        let path = folder.path
        guard let stamp = resources.listed.firstListing(folder),
            resources.traits.keepsProperties || !resources.isAcquainted
        else { return nil }
        // It was told a while ago: the listing itself says whether it is so still.
        if stamp != nil || path.isEmpty { return PlainListing(stamp: stamp) }
        let found = try await resources.resource(at: path, isFolder: true)
        return found.keeps ? nil : PlainListing(stamp: found.folderStamp)
    }

    /// Nothing was added to the folder since.
    func isStill(_ own: ResourceStatus?) -> Bool { own.map { $0.folderStamp == stamp } ?? false }
}

extension ResourceStatus {
    /// Another one when something was added to the folder; nil where the server says nothing of it.
    var folderStamp: String? {
        let tag = entityTag.map { EntityTag.opaque($0) }
        return tag == nil && lastModified == nil ? nil : "\(tag ?? "") \(lastModified ?? "")"
    }
}
