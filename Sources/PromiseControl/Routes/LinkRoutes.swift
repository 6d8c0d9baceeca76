import Hummingbird
import PromiseCore
import PromiseDomain
import PromiseQuery
import PromiseWire

/// Links for strangers, which the owner alone makes.
struct LinkRoutes: Sendable {
    let routes: ControlRoutes

    func add(to router: Router<ControlRequestContext>) {
        router.post("v1/links") { request, _ in try await share(request) }
        router.get("v1/links") { _, _ in
            jsonResponse(LinksDocument(links: try await sharing().list().map(document)))
        }
        router.delete("v1/links/:link") { _, context in
            try await sharing().revoke(try context.parameters.require("link"))
            return jsonResponse(DoneDocument(done: true))
        }
    }

    private func share(_ request: Request) async throws -> Response {
        let wanted = try await routes.decode(LinkRequest.self, from: request)
        let end = try wanted.until.map { text throws in
            guard let nanoseconds = DateLiteral.nanoseconds(Array(text.utf8)) else {
                throw ProblemDocument.request("'until' is a date as 2027-01-31T12:00:00Z, not '\(text)'")
            }
            return Timestamp(nanoseconds: nanoseconds)
        }
        let path = try names(ofWirePath: wanted.path)
        let node = try await routes.service.node(at: path)
        return jsonResponse(document(try await sharing().share(path, node, until: end)))
    }

    private func document(_ link: Sharing.Link) -> LinkDocument {
        let path = link.path.map { PathText($0) }
        return LinkDocument(
            id: link.identifier, url: link.address, path: path?.display, pathBytes: path?.bytes,
            until: link.end?.wireText)
    }

    /// Not for an application, whose paths are not those of the mount.
    private func sharing() throws(Failure) -> Sharing {
        guard !(routes.service is ApplicationService), let sharing = routes.service.documents?.sharing else {
            throw Failure(.refused, "nothing can be shared from here")
        }
        return sharing
    }
}
