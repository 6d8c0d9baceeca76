import AsyncHTTPClient
import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// What a file was before, as Nextcloud keeps it (`dav/versions/USER/versions/NUMBER/`), or ownCloud (`dav/meta/NUMBER/v/`).
/// <https://docs.nextcloud.com/server/latest/developer_manual/client_apis/WebDAV/versions.html>
struct EarlierFiles: Sendable {
    let client: WebDAVClient
    let location: WebDAVLocation
    let pool: BlockingPool

    /// More of one file are not shown.
    private static let countMax = 10_000

    /// The newest first. `now`: the file as it is. Nothing where the server does not number files, or keeps none.
    func list(of now: ResourceStatus, _ what: String) async throws(ProviderError) -> [EarlierVersion] {
        guard let number = now.number else { return [] }
        let headers: HTTPHeaders = ["Depth": "1", "Content-Type": "application/xml; charset=utf-8"]
        let body = RequestBody(WebDAVResources.propertyRequest(hasState: false))
        for folder in location.earlierURLs(ofNumber: number) {
            let reply = try await client.exchange(.PROPFIND, folder, headers, body: body, timeout: .seconds(60))
            if [404, 405, 501].contains(reply.status) { continue }
            guard reply.status == 207 else { throw ProviderError(reply, what) }
            guard let rows = await pool.run({ MultiStatusParser.parse(reply.body) }) else {
                throw ProviderError(.retry, "\(what): the server's answer is not whole")
            }
            let versions = rows.prefix(EarlierFiles.countMax).compactMap { EarlierFiles.version($0, now: now) }
            return versions.sorted { $0.modificationTime > $1.modificationTime }
        }
        return []
    }

    /// Nil for the folder of versions itself, for the file as it is now, which newer servers list as
    /// well, and for what has no size, as nobody knows how much of it is to come, or no time.
    private static func version(_ row: ResourceStatus, now: ResourceStatus) -> EarlierVersion? {
        let name = row.reference.split(separator: "/").last.map(String.init) ?? ""
        guard !row.isCollection, isName(name), let size = row.contentLength else { return nil }
        // Servers call a version by the second that it is of.
        let second = Int(name).flatMap { $0 > 0 && $0 < 1 << 33 ? $0 : nil }
        let time =
            row.lastModified.flatMap { HTTPDate.timestamp($0) }
            ?? second.map { Timestamp(seconds: $0, nanoseconds: 0) }
        let tag = row.entityTag.map { EntityTag.opaque($0) }
        if let tag, tag == now.entityTag.map({ EntityTag.opaque($0) }) { return nil }
        let nowTime = now.lastModified.flatMap { HTTPDate.timestamp($0) }
        guard let time, time != nowTime || size != now.contentLength else { return nil }
        return EarlierVersion(
            identifier: name, version: ContentVersion(tag ?? name), size: size,
            modificationTime: time)
    }

    /// They are numbers; what has to be escaped, or leads elsewhere, is none of them.
    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255 && text.first != "."
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
    }

    /// Throws `.notFound` when it is not kept any more.
    func fetch(
        _ earlier: EarlierVersion, of now: ResourceStatus, into sink: any ContentSink, _ what: String
    ) async throws(ProviderError) {
        guard let number = now.number, EarlierFiles.isName(earlier.identifier) else {
            throw ProviderError(.notFound, "\(what): the server does not keep it")
        }
        var last = ProviderError(.notFound, "\(what): the server does not keep it any more")
        for folder in location.earlierURLs(ofNumber: number) {
            let response = try await client.open(.GET, folder + earlier.identifier)
            guard response.status.code == 200 else {
                last = ProviderError(
                    status: Int(response.status.code), retryAfter: response.headers.first(name: "Retry-After"), what)
                guard last.code == .notFound else { throw last }
                continue
            }
            // The page of a network that wants a login comes with success, too, and has no tag that
            // would tell.
            let told = ReplyContent.wholeSize(response)
            guard told == nil || told == earlier.size else {
                throw ProviderError(.retry, "\(what): the server sends something else")
            }
            let content = ReplyContent(response: response, range: nil, size: earlier.size, what: what)
            return try await content.write(into: sink, verifiedBy: nil, pool: pool, server: location.origin)
        }
        throw last
    }
}

extension WebDAVLocation {
    /// Where earlier versions of a file may be, each with a slash at the end; none for another address than `…/dav/files/USER/`.
    func earlierURLs(ofNumber number: String) -> [String] {
        guard let place = userPlace, !number.isEmpty, number.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return [] }
        return [
            "\(place.dav)/versions/\(place.user)/versions/\(number)/", "\(place.dav)/meta/\(number)/v/",
        ]
    }
}
