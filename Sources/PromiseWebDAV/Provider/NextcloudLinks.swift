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
        if let end { try checkIsLater(end) }
        let names = base + reference.path
        let path =
            "/"
            + names.map { String(decoding: provider.location.wireName($0), as: UTF8.self) }
            .joined(separator: "/")
        let shown = provider.resources.shown(reference.path)
        let target = NextcloudLinks.form([("path", path)])
        guard let end else {
            // Its end is never changed unasked: others may have it, and its owner believe in it.
            return try made(try await share(reference.path, target, shown))
        }
        let before = try await identifiers(target)
        let day = DayText.text(end)
        let share = try await share(reference.path, target + "&expireDate=\(day)", shown)
        let link = try made(share)
        if link.end.map({ DayText.text($0) }) == day { return link }
        do throws(ProviderError) {
            return try await renewed(link, until: end, shown)
        } catch {
            let isOwn = before?.contains(share.id) == false && NextcloudLinks.isIdentifier(share.id)
            throw await parted(from: link, shown, isOwn: isOwn, error)
        }
    }

    /// The server says of what ends sooner that there is no such share.
    private func checkIsLater(_ end: Timestamp) throws(ProviderError) {
        let now = provider.resources.clock.now()
        guard end > now else { throw ProviderError(.refused, "that date has passed") }
        guard end.seconds / 86_400 > now.seconds / 86_400 else {
            throw ProviderError(.refused, "links end with a day there: say tomorrow or later")
        }
    }

    /// The link that the server makes, or gives again where it has one to the item.
    private func share(
        _ path: [FileName], _ form: String, _ shown: String
    ) async throws(ProviderError) -> Share {
        do throws(ProviderError) {
            return try await ask(
                .POST, "", form + "&shareType=\(NextcloudLinks.publicLink)",
                "a link to \(shown) cannot be made")
        } catch where error.code == .notFound {
            // Of an end that is too far away it says that, too.
            let item = try? await provider.resources.resourceIfAny(at: path)
            throw item == nil ? error : ProviderError(.refused, error.message)
        }
    }

    /// Of the links to an item; nil where the server does not tell them all.
    private func identifiers(_ target: String) async throws(ProviderError) -> Set<String>? {
        do throws(ProviderError) {
            let shares: [Share] = try await ask(
                .GET, "", query: "&" + target, nil, "the links cannot be listed")
            return Set(shares.map(\.id))
        } catch where error.code != .cancelled {
            return nil
        }
    }

    private func made(_ share: Share) throws(ProviderError) -> SharingLink {
        if let link = link(share) { return link }
        throw ProviderError(
            .retry, "the server does not say which link it has made: see 'promisefs share list'")
    }

    /// Some servers have one link to an item, and give it whenever one is to be made. Nobody is to
    /// have a link that lasts longer than its owner believes.
    private func renewed(
        _ link: SharingLink, until end: Timestamp, _ shown: String
    ) async throws(ProviderError) -> SharingLink {
        var now = link
        if let identifier = link.identifier, NextcloudLinks.isIdentifier(identifier) {
            let form = NextcloudLinks.form([("expireDate", DayText.text(end))])
            let share: Share = try await ask(
                .PUT, "/\(identifier)", form, "the end of the link cannot be set")
            now = try made(share)
        }
        // By the server's clock the day may be another one than by ours.
        guard let last = now.end, last.seconds <= end.seconds + 86_400 else {
            let end = now.end.map { "ends on \(DayText.text($0))" } ?? "does not end"
            throw ProviderError(.refused, "it \(end), and the server gives it no other end")
        }
        return now
    }

    /// What is said of a link whose end is not the one that was asked for. One that was there
    /// before may be in use; what was made for this is taken back.
    private func parted(
        from link: SharingLink, _ shown: String, isOwn: Bool, _ error: ProviderError
    ) async -> ProviderError {
        let identifier = link.identifier ?? ""
        let name = "the link \(identifier) to \(shown), \(link.address)"
        guard isOwn else {
            return ProviderError(
                error.code,
                "there is \(name): \(error.message); see 'promisefs share list'")
        }
        // Also when nobody waits for it any more.
        let removal = Task { () -> ProviderError? in
            do throws(ProviderError) {
                try await revoke(identifier)
                return nil
            } catch {
                return error
            }
        }
        if let trouble = await removal.value, trouble.code != .notFound {
            return ProviderError(
                error.code,
                "\(name), was made: \(error.message); it is not taken back: \(trouble.message); "
                    + "see 'promisefs share list'")
        }
        return ProviderError(error.code, "\(name), was taken back: \(error.message)")
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
        _ method: HTTPMethod, _ path: String, query: String = "", _ form: String?, _ what: String
    ) async throws(ProviderError) -> Value {
        var headers: HTTPHeaders = ["OCS-APIRequest": "true", "Accept": "application/json"]
        if form != nil { headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded") }
        let url = "\(root)/ocs/v2.php/apps/files_sharing/api/v1/shares\(path)?format=json\(query)"
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
            if status == 404 {
                let reason = words.isEmpty ? ": the server does not know it" : words
                throw ProviderError(.notFound, what + reason)
            }
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
