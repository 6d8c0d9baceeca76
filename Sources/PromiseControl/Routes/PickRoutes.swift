import HTTPTypes
import Hummingbird
import NIOCore
import PromiseAccess
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseSystem
import PromiseWire

/// By its socket an application asks for documents; whoever shows pickers to the person hears of it
/// by the owner's.
struct PickRoutes: Sendable {
    typealias Context = ControlRequestContext

    private static let modes: Set<String> = ["open", "import", "create", "save", "export", "move"]
    private static let sourceCountMax = 1_000

    let routes: ControlRoutes

    func add(to router: Router<Context>) {
        router.post("v1/picks") { request, context in try await ask(request, context) }
        router.get("v1/picker-page") { request, _ in try await page(request) }
        router.get("v1/picker-page/item") { request, _ in
            guard let pages = routes.service.documents?.pages,
                let identifier = try routes.text("identifier", of: request)
            else { throw ProblemDocument.request("say which: ?identifier=IDENTIFIER") }
            let (path, kind) = try await pages.path(ofIdentifier: identifier)
            let text = PathText(path)
            return jsonResponse(
                PagePick(path: text.display, pathBytes: text.bytes, isFolder: kind == .folder))
        }
        router.get("v1/picks") { request, context in try show(request, context) }
        router.post("v1/picks/:id/answer") { request, context in
            let answer = try await routes.decode(PickAnswer.self, from: request)
            let id = try context.parameters.require("id", as: UInt64.self)
            return jsonResponse(DoneDocument(done: routes.picks.answer(id, answer)))
        }
    }

    /// The provider's own, for a picker.
    private func page(_ request: Request) async throws -> Response {
        let mode = try routes.text("mode", of: request) ?? "open"
        guard let page = try await routes.service.documents?.pages.page(mode: mode) else {
            throw Failure(.notFound, "the provider has no page of its own for that")
        }
        var headers = HTTPFields()
        headers[.contentType] = "text/html; charset=utf-8"
        headers[.cacheControl] = "no-store"
        return Response(
            status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: page)))
    }

    // MARK: Asking

    private func ask(_ request: Request, _ context: Context) async throws -> Response {
        guard case .application(let application, let launch) = context.principal else {
            throw ProblemDocument.request("only an application asks here; see 'promisefs pick'")
        }
        let document = try await checked(
            try await routes.decode(PickRequest.self, from: request), context.principal)
        let (picks, keepAlive, principal) = (routes.picks, routes.keepAlive, context.principal)
        let connection = context.connection
        return streamResponse { send in
            let (id, answers) = try picks.ask(document, of: application, launch: launch.text)
            defer { picks.withdraw(id) }
            let end = connection.whenClosed { picks.withdraw(id) }
            defer { connection.forget(end) }
            let (beats, beat) = AsyncStream.makeStream(
                of: PickAnswer?.self, bufferingPolicy: .bufferingNewest(4))
            let listener = keepAlive.listen { beat.yield(nil) }
            defer { keepAlive.forget(listener) }
            let waiting = Task {
                for await answer in answers { beat.yield(answer) }
                beat.finish()
            }
            defer { waiting.cancel() }
            for await answer in beats {
                guard let answer else {
                    try await send(nil)
                    continue
                }
                let picked = try await self.picked(answer, principal, launch)
                return try await send(ServerEvent(name: "done", data: WireCoding.text(picked)))
            }
            throw Failure(.gone, "the picker has ended without an answer")
        }
    }

    /// With sources as the mount has them: each is the application's to give away.
    private func checked(
        _ request: PickRequest, _ principal: Principal
    ) async throws -> PickRequest {
        guard PickRoutes.modes.contains(request.mode) else {
            throw ProblemDocument.request("'mode' is none of a picker: '\(request.mode)'")
        }
        let sources = request.sources ?? []
        let brings = request.mode == "export" || request.mode == "move"
        guard brings != sources.isEmpty, sources.count <= PickRoutes.sourceCountMax else {
            throw ProblemDocument.request("'sources' are what is exported or moved, and only that")
        }
        let grants = try grants
        var result = request
        result.sources = []
        for source in sources {
            let item = try await routes.service.item(at: try names(ofWirePath: source))
            try grants.require(
                request.mode == "move" ? .readWrite : .read, principal, item.node, to: "picks.ask")
            guard let path = try grants.shownPath(of: item.node, for: .owner(user: 0, process: 0))
            else { throw Failure(.gone, "a source has no name any more") }
            result.sources?.append(PathText(path).bytes)
        }
        return result
    }

    /// As the application has it. What it cannot reach is told nowhere.
    private func picked(
        _ answer: PickAnswer, _ principal: Principal, _ launch: LaunchID
    ) async throws -> PickedDocuments {
        if let problem = answer.problem { throw Failure(.inputOutput, problem) }
        let own = [ViewFolders.folderName, FileName(trusted: Array(launch.text.utf8))]
        var documents = PickedDocuments(picked: [], cancelled: answer.cancelled)
        for text in answer.paths {
            let path = try names(ofWirePath: text)
            var shown: [FileName]?
            if path.starts(with: own) {
                shown = Array(path.dropFirst(own.count))
            } else {
                shown = try grants.shownPath(ofPath: path, for: principal)
            }
            guard let shown else { continue }
            let known = PathText(shown)
            documents.picked.append(.init(path: known.display, pathBytes: known.bytes))
        }
        return documents
    }

    private var grants: Grants {
        get throws(Failure) {
            guard let services = routes.service.documents else {
                throw Failure(.notSupported, "this domain keeps nothing for applications")
            }
            return services.grants
        }
    }

    // MARK: Showing

    private func show(_ request: Request, _ context: Context) throws -> Response {
        guard context.principal.isOwner else {
            throw Failure(.refused, "only the owner may do that")
        }
        let launch = try routes.text("launch", of: request)
        let (picks, keepAlive, connection) = (routes.picks, routes.keepAlive, context.connection)
        let grants = try grants
        if let launch, !grants.isUnderWay(LaunchID(launch)) {
            throw Failure(.notFound, "there is no such launch")
        }
        return streamResponse { send in
            let (notices, tell) = AsyncStream.makeStream(of: PickDesk.Notice.self)
            let number = picks.show(launch: launch, tell)
            defer { picks.stopShowing(number) }
            let end = connection.whenClosed { tell.finish() }
            defer { connection.forget(end) }
            let (events, event) = AsyncStream.makeStream(of: PickDesk.Notice?.self)
            let listener = keepAlive.listen { event.yield(nil) }
            defer { keepAlive.forget(listener) }
            let passing = Task {
                for await notice in notices { event.yield(notice) }
                event.finish()
            }
            defer { passing.cancel() }
            let first = WireCoding.text(DoneDocument(done: true))
            try await send(ServerEvent(name: "showing", data: first))
            for await notice in events {
                switch notice {
                case .asked(let asked):
                    try await send(ServerEvent(name: "asked", data: WireCoding.text(asked)))
                case .withdrawn(let asked):
                    try await send(ServerEvent(name: "withdrawn", data: WireCoding.text(asked)))
                case nil:
                    // Of one launch: with it.
                    if let launch, !grants.isUnderWay(LaunchID(launch)) { return }
                    try await send(nil)
                }
            }
        }
    }
}
