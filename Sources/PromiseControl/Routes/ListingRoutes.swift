import Hummingbird
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire

/// Windows of folders, for lists that people scroll.
struct ListingRoutes: Sendable {
    private static let countMax = 1_000

    let routes: ControlRoutes

    func add(to router: Router<ControlRequestContext>) {
        router.get("v1/items/children") { request, _ in try await window(request) }
    }

    private func window(_ request: Request) async throws -> Response {
        guard let windows = routes.service.documents?.windows else {
            throw Failure(.notSupported, "there is no tree to list")
        }
        var window = WindowRequest(try await scope(of: request))
        window.offset = try routes.number("offset", of: request) ?? 0
        window.limit = min(try routes.number("limit", of: request) ?? 200, ListingRoutes.countMax)
        let sort = try routes.text("sort", of: request) ?? "name"
        window.isDescending = sort.hasPrefix("-")
        guard
            let key = WindowRequest.Key(
                rawValue: sort.hasPrefix("-") ? String(sort.dropFirst()) : sort)
        else {
            let known = WindowRequest.Key.allCases.map(\.rawValue).joined(separator: ", ")
            throw ProblemDocument.request("'sort' is one of \(known), not '\(sort)'")
        }
        window.key = key
        window.text = try routes.text("text", of: request) ?? ""
        window.types =
            try routes.text("types", of: request)?.split(separator: ",").map(String.init) ?? []
        window.showsHidden = routes.queryValue("hidden", of: request) == "true"
        window.foldersOnly = routes.queryValue("folders", of: request) == "true"
        var reason: String?
        if case .folder(let folder) = window.scope { reason = await windows.list(folder) }
        let (wanted, why) = (window, reason)
        let found = try await routes.blocking.run { () throws(Failure) in
            try windows.window(wanted, reason: why)
        }
        return jsonResponse(
            FolderWindowDocument(
                total: found.total, items: found.items.map { FoundItemDocument($0) },
                reason: found.reason))
    }

    private func scope(of request: Request) async throws -> WindowRequest.Scope {
        switch routes.queryValue("scope", of: request) {
        case "recent"?: return .recent
        case "everywhere"?: return .everywhere
        case "folder"?, nil:
            let names = try names(ofWirePath: routes.queryValue("path", of: request) ?? "")
            return .folder(try await routes.service.node(at: names))
        case let other?:
            throw ProblemDocument.request("'scope' is folder, everywhere or recent, not '\(other)'")
        }
    }
}
