import HTTPTypes
import Hummingbird
import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseWire

// Presenters. One lives as long as the stream of events that tells it: who dies is one no more.

extension ControlRoutes {
    /// Events for a presenter that does not read them; then it is one no more.
    private static let presenterEventCountMax = 10_000

    func addPresenterRoutes(to router: Router<ControlRequestContext>) {
        router.post("v1/presenters") { request, context in try await present(request, context) }
        router.post("v1/presenters/:id/answers") { request, context in
            let id = try context.parameters.require("id", as: UInt64.self)
            let answer = try await decode(AnswerDocument.self, from: request)
            let done = service.answered(
                answer.question, by: PresenterID(rawValue: id), hasFailed: answer.failed ?? false)
            return jsonResponse(DoneDocument(done: done))
        }
    }

    /// Where an item is that was presented before.
    private func place(of entry: EntryID) throws(Failure) -> [FileName] {
        guard let path = try service.currentPath(of: entry) else { throw Failure(.gone, "the item is no more") }
        return path
    }

    private func present(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let document = try await decode(PresenterDocument.self, from: request)
        let named = try names(ofWirePath: document.path)
        return streamResponse { [service, keepAlive] send in
            let (events, continuation) = AsyncStream.makeStream(
                of: Coordinator.PresenterEvent.self, bufferingPolicy: .bufferingOldest(ControlRoutes.presenterEventCountMax))
            let purpose = Purpose(said: document.purpose)
            let path = try document.id.map { try place(of: EntryID($0)) } ?? named
            let presenter = try await service.present(path, purpose: purpose) { event in
                // Who does not read is no presenter: nobody waits for it.
                if case .enqueued = continuation.yield(event), !event.isLast { return true }
                continuation.finish()
                return false
            }
            defer { service.removePresenter(presenter.id) }
            let beat = keepAlive.listen { continuation.yield(.alive) }
            defer { keepAlive.forget(beat) }
            let end = context.connection.whenClosed { continuation.finish() }
            defer { context.connection.forget(end) }
            // A document that is saved as a new file has another node.
            let entry = try service.entry(of: presenter.node, at: path)
            // It may have been moved while this began.
            if let id = document.id, entry?.rawValue != id { throw Failure(.gone, "the item is no more") }
            var first = PresenterEventDocument(presenter, nil, presenter.node, at: entry, service)
            first.id = entry?.rawValue
            try await send(ServerEvent(name: "presenting", data: WireCoding.text(first)))
            for await event in events {
                let node = event.node ?? entry.flatMap { try? service.currentNode(of: $0) } ?? presenter.node
                let name = event.node == nil ? entry : event.entry
                var document = PresenterEventDocument(presenter, event.what, node, at: name, service)
                document.question = event.question
                // Other names of what has gone from there are not what this is about.
                if event.isOfNameGone { (document.path, document.pathBytes) = (nil, nil) }
                if let old = event.oldPlace, let folder = try? service.currentPath(of: old.parent) {
                    let path = PathText(folder + [old.name])
                    (document.oldPath, document.oldPathBytes) = (path.display, path.bytes)
                }
                document.version = event.version.map { PercentCoding.encode($0.bytes) }
                try await send(event.name.map { ServerEvent(name: $0, data: WireCoding.text(document)) })
            }
        }
    }
}

extension Coordinator.PresenterEvent {
    fileprivate var name: String? {
        switch self {
        case .ask: "ask"
        case .tell: "tell"
        case .alive, .ended: nil
        }
    }

    fileprivate var isLast: Bool { if case .ended = self { true } else { false } }

    fileprivate var question: UInt64? { if case .ask(_, let number, _) = self { number } else { nil } }

    fileprivate var node: NodeID? {
        switch self {
        case .ask(_, _, let node), .tell(.subitemDidAppear(let node, _)), .tell(.subitemDidChange(let node, _)),
            .tell(.subitemDidMove(let node, _, _)), .tell(.subitemDidDelete(let node, _)),
            .tell(.subitemVersion(_, _, let node)):
            node
        case .tell, .alive, .ended: nil
        }
    }

    /// Of what is in a folder, the name that it is about.
    fileprivate var entry: EntryID? {
        switch self {
        case .tell(.subitemDidAppear(_, let name)), .tell(.subitemDidChange(_, let name)),
            .tell(.subitemDidMove(_, let name, _)):
            name
        case .ask, .tell, .alive, .ended: nil
        }
    }

    fileprivate var oldPlace: OldPlace? {
        switch self {
        case .tell(.subitemDidMove(_, _, let place)), .tell(.subitemDidDelete(_, let place)): place
        case .ask, .tell, .alive, .ended: nil
        }
    }

    fileprivate var isOfNameGone: Bool { if case .tell(.subitemDidDelete) = self { true } else { false } }

    fileprivate var version: FileName? {
        switch self {
        case .tell(.version(_, let name)), .tell(.subitemVersion(_, let name, _)): name
        case .ask, .tell, .alive, .ended: nil
        }
    }

    fileprivate var what: String? {
        switch self {
        case .ask(let question, _, _): question.rawValue
        case .tell(let notice):
            switch notice {
            case .reacquire: "reacquire"
            case .didChange: "didChange"
            case .didMove: "didMove"
            case .didDelete: "didDelete"
            case .subitemDidAppear: "subitemDidAppear"
            case .subitemDidChange: "subitemDidChange"
            case .subitemDidMove: "subitemDidMove"
            case .subitemDidDelete: "subitemDidDelete"
            case .version(let change, _): "did\(change.verb)Version"
            case .subitemVersion(let change, _, _): "subitemDid\(change.verb)Version"
            }
        case .alive, .ended: nil
        }
    }
}

extension VersionChange {
    fileprivate var verb: String {
        switch self {
        case .gained: "Gain"
        case .lost: "Lose"
        case .resolved: "Resolve"
        }
    }
}

extension PresenterEventDocument {
    /// `name`: the one that it is about, of an item that may have others; without one what is in it is named as it is there.
    fileprivate init(
        _ presenter: (id: PresenterID, node: NodeID), _ what: String?, _ node: NodeID, at name: EntryID?,
        _ service: any ControlService
    ) {
        let names =
            try? name.map { try service.currentPath(of: $0) }
            ?? service.currentPath(of: node, inside: presenter.node)
        let path = names.flatMap { $0 }.map { PathText($0) }
        self.init(
            presenter: presenter.id.rawValue, what: what, node: node.rawValue, path: path?.display, pathBytes: path?.bytes)
    }
}
