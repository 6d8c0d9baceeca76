import HTTPTypes
import Hummingbird
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseKeyValue
import PromiseQuery
import PromiseSystem
import PromiseWire

extension DocumentRoutes {
    /// What a bookmark carries when nobody says what.
    private static let attributes: [AttributeKey] = [
        .name, .contentType, .size, .contentModificationDate, .path,
    ]

    func addBookmarks(to router: Router<Context>) {
        router.post("v1/bookmarks") { request, context in
            let document = try await routes.decode(BookmarkRequest.self, from: request)
            let item = try await routes.service.item(at: try names(ofWirePath: document.path))
            let keys = try document.attributes?.map { try routes.key($0[...]) } ?? Self.attributes
            let text = try await services.bookmarks.create(
                item, for: document.application, isReadOnly: document.isReadOnly ?? false,
                attributes: try await attributes(keys, of: item), by: context.principal)
            return jsonResponse(BookmarkDocument(bookmark: text))
        }
        router.post("v1/bookmarks/resolve") { request, context in
            let document = try await routes.decode(BookmarkResolution.self, from: request)
            return jsonResponse(try await resolved(document, context.principal))
        }
    }

    private func resolved(
        _ request: BookmarkResolution, _ principal: Principal
    ) async throws -> ResolvedBookmarkDocument {
        let service = try services.bookmarks
        let standing = try await service.resolve(
            request.bookmark, for: request.application, by: principal)
        var kept = standing.bookmark.attributes
        var renewed: String?
        if standing.isStale, let item = standing.item {
            let keys = kept.keys.compactMap { try? routes.key($0.text[...]) }
            kept = try await attributes(keys, of: item)
            renewed = try await service.renewed(
                standing, for: request.application, attributes: kept, by: principal)
        }
        var names = standing.path
        if !principal.isOwner {
            names = try standing.item.flatMap { item throws(Failure) in
                try services.grants.shownPath(of: item.node, for: principal)
            }
            tell(&kept, onlyOf: names)
        }
        let path = names.map { PathText($0) }
        return ResolvedBookmarkDocument(
            path: path?.display, pathBytes: path?.bytes, node: standing.item?.node.rawValue,
            kind: standing.bookmark.key.kind.wireName, isReadOnly: standing.bookmark.isReadOnly,
            isStale: standing.isStale, reason: standing.reason, renewed: renewed,
            attributes: WireCoding.decode(
                [String: WireValue].self, from: JSON.map(kept).encoded) ?? [:],
            scope: standing.scope?.grant.id.rawValue)
    }

    /// Who made a bookmark may have noted where the item is: an application hears of the place that
    /// it has, or of none.
    private func tell(_ kept: inout [Key: JSON], onlyOf names: [FileName]?) {
        let shown = names.map { PathText($0) }
        let places: [(AttributeKey, String?)] = [
            (.path, shown?.display), (.pathBytes, shown?.bytes),
            (.locationInContainer, nil), (.identifier, nil), (.linkTarget, nil),
            (.downloadingError, nil), (.uploadingError, nil),
        ]
        for (key, text) in places where kept[Key(key.rawValue)] != nil {
            kept[Key(key.rawValue)] = text.map { .string($0) }
        }
    }

    private func attributes(_ keys: [AttributeKey], of item: NamedItem) async throws -> [Key: JSON] {
        let service = routes.service
        let found = try await routes.blocking.run { () throws(Failure) in
            try service.values(of: [item], keys).first?.values ?? [:]
        }
        return JSONReader.read(WireCoding.bytes(found.wire))?.fields ?? [:]
    }
}
