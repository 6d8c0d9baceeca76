import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem

/// What Nextcloud keeps of what was removed (`dav/trashbin/USER/trash/`), or ownCloud
/// (`dav/trash-bin/USER/`).
/// <https://docs.nextcloud.com/server/latest/developer_manual/client_apis/WebDAV/trashbin.html>
struct NextcloudBin: ProviderBin {
    /// Where a server has it, below `dav`.
    private enum Kind: String, CaseIterable {
        case nextcloud = "trashbin"
        case ownCloud = "trash-bin"
    }

    /// Older ones are not shown.
    private static let countMax = 10_000
    private static let timeout = Duration.seconds(60)
    private static let moveTimeout = Duration.seconds(600)

    private let provider: WebDAVProvider
    private let dav: String
    private let user: String
    /// The folder that is mounted, below the user's files.
    private let base: [FileName]

    /// Nil for what is no address of such a server.
    init?(_ provider: WebDAVProvider) {
        guard let place = provider.location.userPlace,
            let files = provider.location.placeOfFiles
        else { return nil }
        (self.provider, dav, user, base) = (provider, place.dav, place.user, files.folder)
    }

    private var client: WebDAVClient { provider.resources.client }

    private func folder(_ kind: Kind) -> String {
        "\(dav)/\(kind.rawValue)/\(user)/" + (kind == .nextcloud ? "trash/" : "")
    }

    // MARK: Listing

    private static let request = """
        <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/>\
        <trashbin-original-location xmlns="http://nextcloud.org/ns"/>\
        <trashbin-deletion-time xmlns="http://nextcloud.org/ns"/>\
        <trashbin-original-location xmlns="http://owncloud.org/ns"/>\
        <trashbin-delete-timestamp xmlns="http://owncloud.org/ns"/></prop></propfind>
        """

    func list() async throws(ProviderError) -> [BinItem] {
        let what = "what was removed cannot be listed"
        let headers: HTTPHeaders = ["Depth": "1", "Content-Type": "application/xml; charset=utf-8"]
        for kind in Kind.allCases {
            let reply = try await client.exchange(
                .PROPFIND, folder(kind), headers, body: RequestBody(NextcloudBin.request),
                timeout: NextcloudBin.timeout)
            if [404, 405, 501].contains(reply.status) { continue }
            guard reply.status == 207 else { throw ProviderError(reply, what) }
            let pool = provider.resources.pool
            guard let rows = await pool.run({ MultiStatusParser.parse(reply.body) })
            else { throw ProviderError(.retry, "\(what): the server's answer is not whole") }
            let items = rows.compactMap { item($0, kind) }.sorted { $0.removalTime > $1.removalTime }
            return Array(items.prefix(NextcloudBin.countMax))
        }
        throw ProviderError(.refused, "\(what): the server keeps nothing of it, or does not show it")
    }

    /// Nil for the bin itself, for what was elsewhere than in the mounted folder, and for what is
    /// our own and no item.
    private func item(_ row: ResourceStatus, _ kind: Kind) -> BinItem? {
        guard let name = row.reference.split(separator: "/").last.map(String.init),
            let identifier = NextcloudBin.word(name), let trash = row.trash,
            let seconds = trash.time.flatMap({ Int($0) }), (0..<1 << 33).contains(seconds),
            let path = trash.place.flatMap({ path($0) }), path.count > base.count,
            path.starts(with: base)
        else { return nil }
        let inner = Array(path.dropFirst(base.count))
        guard inner.first != ReservedName.folder else { return nil }
        return BinItem(
            identifier: "\(kind.rawValue)/\(identifier)", path: inner,
            kind: row.isCollection ? .folder : .file,
            size: row.isCollection ? 0 : row.contentLength ?? 0,
            modificationTime: row.lastModified.flatMap { HTTPDate.timestamp($0) },
            removalTime: Timestamp(seconds: seconds, nanoseconds: 0))
    }

    /// From the user's root, as text of the server's.
    private func path(_ text: String) -> [FileName]? {
        var names: [FileName] = []
        for part in text.utf8.split(separator: UInt8(ascii: "/")) {
            guard let name = StoredName.decoded(Array(part), provider.location.escapes) else {
                return nil
            }
            names.append(name)
        }
        return names
    }

    /// One part of an address, escaped as we do it; nil for what would lead elsewhere.
    private static func word(_ part: String) -> String? {
        PercentEncoding.decoded(part).flatMap { FileName($0[...]) }.map {
            PercentEncoding.encoded($0.bytes)
        }
    }

    // MARK: Bringing back

    /// Nextcloud itself puts it into the user's root where its folder is gone, and gives it another
    /// name where that is taken; so it is looked at before.
    func restore(_ item: BinItem) async throws(ProviderError) {
        let shown = provider.resources.shown(item.path)
        let what = "\(shown) cannot be brought back"
        let parts = item.identifier.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let kind = Kind(rawValue: String(parts[0])),
            let name = NextcloudBin.word(String(parts[1]))
        else { throw ProviderError(.notFound, "\(what): the server does not keep it") }
        let parent = Array(item.path.dropLast())
        guard try await provider.resources.resourceIfAny(at: parent)?.isCollection == true else {
            throw ProviderError(.conflict, "\(what): its folder is gone; bring that back before")
        }
        guard try await provider.resources.resourceIfAny(at: item.path) == nil else {
            throw ProviderError(.conflict, "\(what): its name is taken")
        }
        let target =
            kind == .nextcloud
            ? "\(dav)/trashbin/\(user)/restore/\(name)"
            : provider.location.url(item.path)
        let reply = try await client.exchange(
            .MOVE, folder(kind) + name, ["Destination": target, "Overwrite": "F"],
            timeout: NextcloudBin.moveTimeout)
        guard reply.isSuccess, reply.status != 207 else { throw ProviderError(reply, what) }
        guard try await provider.resources.resourceIfAny(at: item.path) != nil else {
            throw ProviderError(
                .refused, "\(what): the server says that it has done so, and it is not there")
        }
    }
}

extension WebDAVProvider {
    package var bin: (any ProviderBin)? { NextcloudBin(self) }
}
