import FoundationEssentials
import Glibc
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem

/// Public links of Nextcloud and ownCloud, by their OCS Share API.
struct NextcloudLinks: SharingLinks {
    private static let publicLink = 3
    /// More are not shown.
    private static let countMax = 10_000

    let provider: WebDAVProvider
    /// Of the server's root, and of the folder that is mounted below the user's files.
    private let root: String
    private let base: [FileName]

    /// Nil for what is no address of such a server.
    init?(_ provider: WebDAVProvider) {
        guard let place = provider.location.placeOfFiles else { return nil }
        (self.provider, root, base) = (provider, place.root, place.folder)
    }

    private struct Answer<Value: Decodable & Sendable>: Decodable, Sendable {
        struct Body: Decodable, Sendable {
            var meta: Meta
            var data: Value?
        }
        var ocs: Body
    }

    private struct Meta: Decodable, Sendable {
        var statuscode: Int
        var message: String?
    }

    private struct Share: Decodable {
        /// A number or its digits.
        var id: String
        var type: Int?
        var path: String?
        var url: String?
        var expiration: String?

        private enum Keys: String, CodingKey {
            case id, path, url, expiration
            case type = "share_type"
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Keys.self)
            id = try (try? values.decode(Int.self, forKey: .id)).map { "\($0)" } ?? values.decode(String.self, forKey: .id)
            type = try? values.decode(Int.self, forKey: .type)
            path = try? values.decode(String.self, forKey: .path)
            url = try? values.decode(String.self, forKey: .url)
            expiration = try? values.decode(String.self, forKey: .expiration)
        }
    }

    private struct Nothing: Decodable { init(from decoder: any Decoder) {} }

    func make(
        to reference: ItemReference, kind: NodeKind, until end: Timestamp?
    ) async throws(ProviderError) -> SharingLink {
        // The server says of it that there is no such share.
        if let end, end <= provider.resources.clock.now() {
            throw ProviderError(.refused, "that date has passed")
        }
        let names = base + reference.path
        let path = "/" + names.map { String(decoding: provider.location.wireName($0), as: UTF8.self) }.joined(separator: "/")
        var fields = [("path", path), ("shareType", "\(NextcloudLinks.publicLink)")]
        if let end { fields.append(("expireDate", DayText.text(end))) }
        let shown = provider.resources.shown(reference.path)
        let share: Share = try await ask(
            .POST, "", NextcloudLinks.form(fields), "a link to \(shown) cannot be made")
        return try await renewed(try made(share), until: end, shown)
    }

    private func made(_ share: Share) throws(ProviderError) -> SharingLink {
        if let link = link(share) { return link }
        throw ProviderError(
            .retry, "the server does not say which link it has made: see 'promisefs share list'")
    }

    /// Some servers have one link to an item, and give it whenever one is to be made; some end by
    /// themselves what is to have no end. Nobody is to have a link that lasts longer than its owner
    /// believes.
    private func renewed(
        _ link: SharingLink, until end: Timestamp?, _ shown: String
    ) async throws(ProviderError) -> SharingLink {
        let day = end.map { DayText.text($0) }
        if day == link.end.map({ DayText.text($0) }) { return link }
        var now = link
        if let identifier = link.identifier, NextcloudLinks.isIdentifier(identifier) {
            do throws(ProviderError) {
                let share: Share = try await ask(
                    .PUT, "/\(identifier)", NextcloudLinks.form([("expireDate", day ?? "")]),
                    "the end of the link \(identifier) to \(shown) cannot be set")
                now = try made(share)
            } catch {
                // It lasts as long as the server lets it.
                if end == nil, error.code == .refused { return link }
                throw error
            }
        }
        // By the server's clock the day may be another one than by ours.
        if let end, now.end.map({ $0.seconds > end.seconds + 86_400 }) ?? true {
            throw NextcloudLinks.lasting(now, shown)
        }
        return now
    }

    private static func lasting(_ link: SharingLink, _ shown: String) -> ProviderError {
        let end = link.end.map { "ends on \(DayText.text($0))" } ?? "does not end"
        return ProviderError(
            .refused,
            "there is a link to \(shown), \(link.address), which \(end), and the server gives it no "
                + "other end: see 'promisefs share list'")
    }

    private static func form(_ fields: [(String, String)]) -> String {
        fields.map { "\($0)=\(PercentEncoding.encoded(Array($1.utf8)))" }.joined(separator: "&")
    }

    private static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (48...57).contains($0) }
    }

    func list() async throws(ProviderError) -> [SharingLink] {
        let shares: [Share] = try await ask(.GET, "", nil, "the links cannot be listed")
        let links = shares.compactMap { $0.type == NextcloudLinks.publicLink ? link($0) : nil }
        return Array(links.prefix(NextcloudLinks.countMax))
    }

    func revoke(_ identifier: String) async throws(ProviderError) {
        guard NextcloudLinks.isIdentifier(identifier) else {
            throw ProviderError(.notFound, "there is no link '\(escapedForDisplay(Array(identifier.utf8)))'")
        }
        let _: Nothing? = try await ask(.DELETE, "/\(identifier)", nil, "the link \(identifier) cannot be revoked")
    }

    /// Nil for what is outside of the mounted folder, or has no address.
    private func link(_ share: Share) -> SharingLink? {
        guard let address = share.url, let path = share.path else { return nil }
        var names: [FileName] = []
        for part in path.utf8.split(separator: UInt8(ascii: "/")) {
            guard let name = StoredName.decoded(Array(part), provider.location.escapes) else { return nil }
            names.append(name)
        }
        guard names.starts(with: base) else { return nil }
        let end = share.expiration.flatMap { DayText.timestamp($0) }
        return SharingLink(identifier: share.id, address: address, path: Array(names.dropFirst(base.count)), end: end)
    }

    private func ask<Value: Decodable & Sendable>(
        _ method: HTTPMethod, _ path: String, _ form: String?, _ what: String
    ) async throws(ProviderError) -> Value {
        var headers: HTTPHeaders = ["OCS-APIRequest": "true", "Accept": "application/json"]
        if form != nil { headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded") }
        let url = "\(root)/ocs/v2.php/apps/files_sharing/api/v1/shares\(path)?format=json"
        // Not `exchange`, which would look by WebDAV whether it is done: who answers is known by what it says.
        let client = provider.resources.client
        let response = try await client.open(method, url, headers, body: form.map { RequestBody($0) }, timeout: .seconds(60))
        let reply = try await client.whole(response, method)
        let pool = provider.resources.pool
        // As many links as there are come in one answer.
        let answer = await pool.run(over: reply.body.count) {
            try? JSONDecoder().decode(Answer<Value>.self, from: reply.body)
        }
        guard reply.isSuccess, let answer, [100, 200].contains(answer.ocs.meta.statuscode), let value = answer.ocs.data else {
            // What it refuses has no data that could be read.
            let meta = await pool.run(over: reply.body.count) {
                try? JSONDecoder().decode(Answer<Nothing>.self, from: reply.body).ocs.meta
            }
            let words = meta?.message.map { ": " + escapedForDisplay(Array($0.utf8.prefix(300))) } ?? ""
            let status = reply.isSuccess ? meta?.statuscode ?? 502 : reply.status
            if status == 404 { throw ProviderError(.notFound, "\(what): the server does not know it\(words)") }
            let code = ProviderError(status: status, what).code
            throw ProviderError(code, "\(what): the server answers \(status)\(words)")
        }
        return value
    }
}

extension WebDAVProvider {
    package var sharingLinks: (any SharingLinks)? { NextcloudLinks(self) }
}

/// Days as OCS writes them, in UTC: `2026-12-24`, or with a time behind that does not matter.
package enum DayText {
    package static func timestamp(_ text: String) -> Timestamp? {
        let parts = text.prefix(10).split(separator: "-").compactMap { Int($0) }
        guard parts.count == 3 else { return nil }
        return HTTPDate.timestamp(year: parts[0], month: parts[1], day: parts[2], clock: [0, 0, 0])
    }

    package static func text(_ time: Timestamp) -> String {
        var seconds = time_t(time.seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let digits = [parts.tm_mon + 1, parts.tm_mday].map { $0 < 10 ? "0\($0)" : "\($0)" }
        return "\(parts.tm_year + 1900)-\(digits[0])-\(digits[1])"
    }
}
