import NIOCore
public import PromiseWire

/// A process that shows an item: it is asked before others change the item, and told afterwards, whoever they are.
///
///     for try await event in try await FilePresenter(client).events(of: path) {
///         switch event {
///         case .asked(let question):
///             if question.kind == "saveChanges" { try save() }
///             try await question.answer()
///         case .told(let what, _): reload(because: what)
///         }
///     }
///
/// It is one as long as its events are read. Who does not answer within five seconds is not waited for.
public struct FilePresenter: Sendable {
    /// Something to be done before somebody else gets at the item. Until it is answered, that one waits.
    public struct Question: Sendable {
        /// `relinquishToReader`, `relinquishToWriter`, `saveChanges`, `accommodateDeletion`, `accommodateSubitemDeletion` or
        /// `accommodateEviction`.
        public let kind: String
        /// Where the item is that it is about.
        public let path: String?
        /// All bytes of it, percent-encoded.
        public let pathBytes: String?
        let client: PromiseClient
        let presenter: UInt64
        let number: UInt64

        /// It is done. Too late does no harm. `failed`: it could not be done, as when there is no room to save; whoever asked
        /// is told so, and does not get at the item.
        public func answer(failed: Bool = false) async throws(PromiseError) {
            let answer = AnswerDocument(question: number, failed: failed ? true : nil)
            let _: DoneDocument = try await client.reply(
                "POST", "presenters/\(presenter)/answers", answer, deadline: .seconds(30))
        }
    }

    public enum Event: Sendable {
        case asked(Question)
        /// `didChange`, `didMove`, `didDelete`, `reacquire`, `subitemDidAppear`, `subitemDidChange`, `subitemDidMove` or
        /// `subitemDidDelete`; and what it is about, with its path now, which is nil when it has gone.
        case told(String, PresenterEventDocument)
    }

    public let client: PromiseClient
    /// Claims of this purpose do not ask it. By default `FileCoordinator.inheritedPurpose`.
    public let purpose: String?

    public init(_ client: PromiseClient, purpose: String? = nil) {
        self.client = client
        self.purpose = FileCoordinator.said(purpose) ?? FileCoordinator.inheritedPurpose
    }

    /// Presents an item: bytes of its path from the root of the domain. Returns when the daemon knows of it. `id`: that of
    /// earlier events, after the daemon was replaced; the item is presented wherever it is now, and what else has its path is
    /// not. The problem `gone` says that it is no more.
    public func events(of path: [UInt8], id: Int64? = nil) async throws(PromiseError) -> Events {
        let request = PresenterDocument(path: "/" + PercentCoding.encode(path), purpose: purpose, id: id)
        var events = try await client.stream("POST", "presenters", request).makeAsyncIterator()
        while let event = try await events.next() {
            guard event.name == "presenting" else { continue }
            let first = WireCoding.decode(PresenterEventDocument.self, from: Array(event.data.utf8))
            let path = first?.pathBytes.flatMap { PercentCoding.decode($0[...]) }
            return Events(client: client, events: events, id: first?.id, path: path.map { Array($0.drop { $0 == 0x2F }) })
        }
        throw PromiseError(.brokenReply, "the daemon of '\(client.domain)' ended before it knew of the presenter", exitStatus: 4)
    }

    /// What a presenter is asked and told, in order.
    public struct Events: AsyncSequence {
        public typealias Element = Event
        public typealias Failure = PromiseError

        let client: PromiseClient
        let events: ServerEvents.Iterator
        /// Stays with the item, also when it is renamed, moved, or saved as a new file; nil for the root.
        public let id: Int64?
        /// Where it was when this began: bytes from the root of the domain.
        public let path: [UInt8]?

        public func makeAsyncIterator() -> Iterator { Iterator(client: client, events: events) }

        public struct Iterator: AsyncIteratorProtocol {
            let client: PromiseClient
            var events: ServerEvents.Iterator

            public mutating func next(isolation actor: isolated (any Actor)?) async throws(PromiseError) -> Event? {
                while let event = try await events.next(isolation: actor) {
                    guard let data = WireCoding.decode(PresenterEventDocument.self, from: Array(event.data.utf8)),
                        let what = data.what
                    else { continue }
                    if event.name == "tell" { return .told(what, data) }
                    guard event.name == "ask", let number = data.question else { continue }
                    return .asked(
                        Question(
                            kind: what, path: data.path, pathBytes: data.pathBytes, client: client,
                            presenter: data.presenter, number: number))
                }
                return nil
            }

            public mutating func next() async throws(PromiseError) -> Event? { try await next(isolation: nil) }
        }
    }
}
