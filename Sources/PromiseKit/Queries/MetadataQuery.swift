public import PromiseWire

/// A question about the items of a domain, in NSPredicate's string format; live if it is to go on. Nothing is hydrated.
///
///     let query = MetadataQuery("kMDItemFSName LIKE[c] '*.txt' AND kMDItemFSSize > %@", [.integer(1000)])
///     for try await update in try await query.updates(of: client) {
///         if case .added(let items) = update { items.forEach { print($0.path) } }
///     }
///
/// Attributes and operators are in docs/QUERIES.md.
public struct MetadataQuery: Sendable {
    /// What a query tells: `added` until `finishedGathering`, and for a live one what changes after that.
    public enum Update: Sendable, Equatable {
        case added([FoundItemDocument])
        /// Everything there was has been told.
        case finishedGathering
        case changed([FoundItemDocument])
        /// By the `id` of each.
        case removed([Int64])
        /// The reader was too slow: forget everything, it is told again.
        case reset
    }

    public var document: QueryDocument

    /// `arguments` stand for `%@` and `%K`, in order.
    public init(_ predicate: String, _ arguments: [WireValue] = []) {
        document = QueryDocument(predicate: predicate, arguments: arguments.isEmpty ? nil : arguments)
    }

    /// Only what is below a folder: bytes of its path from the root of the domain.
    public func scope(_ path: [UInt8]) -> MetadataQuery { changed { $0.scope = "/" + PercentCoding.encode(path) } }

    /// The scope of external documents: references, and nothing else. Other queries leave them out.
    public func external() -> MetadataQuery { changed { $0.area = "external" } }

    /// The scope of documents: what is below the `Documents` folders of containers, of one application or of all.
    public func documents(of application: String? = nil) -> MetadataQuery {
        changed { ($0.area, $0.application) = ("documents", application) }
    }

    /// The scope of data: what else is below the folders of containers, of one application or of all.
    public func data(of application: String? = nil) -> MetadataQuery {
        changed { ($0.area, $0.application) = ("data", application) }
    }

    /// Goes on after gathering, with what changes.
    public func live() -> MetadataQuery { changed { $0.live = true } }

    /// Changes are gathered for so long before they are told, at most an hour; NSMetadataQuery.notificationBatchingInterval.
    public func batching(_ interval: Duration) -> MetadataQuery {
        changed { $0.batchingSeconds = Double(interval.components.seconds) + Double(interval.components.attoseconds) / 1e18 }
    }

    /// By these attributes, the first one first; `-` before one turns its order around.
    public func sorted(by attributes: String...) -> MetadataQuery { changed { $0.sort = attributes } }

    public func limit(_ count: Int) -> MetadataQuery { changed { $0.limit = count } }

    /// Tells these attributes of each item besides the usual ones.
    public func attributes(_ names: String...) -> MetadataQuery { changed { $0.attributes = names } }

    private func changed(_ change: (inout QueryDocument) -> Void) -> MetadataQuery {
        var copy = self
        change(&copy.document)
        return copy
    }

    /// Asks. Throws `.refused` for what is no predicate; leaving the loop ends the query.
    public func updates(of client: PromiseClient) async throws(PromiseError) -> Updates {
        Updates(events: try await client.stream("POST", "queries", document))
    }

    /// All results at once; the query must not be live.
    public func results(of client: PromiseClient) async throws(PromiseError) -> [FoundItemDocument] {
        var result: [FoundItemDocument] = []
        var iterator = try await updates(of: client).makeAsyncIterator()
        while let update = try await iterator.next() {
            if case .added(let items) = update { result += items }
            if case .finishedGathering = update { break }
        }
        return result
    }

    /// The updates of one query, in order and each once.
    public struct Updates: AsyncSequence {
        public typealias Element = Update
        public typealias Failure = PromiseError

        let events: ServerEvents

        public func makeAsyncIterator() -> Iterator { Iterator(events: events.makeAsyncIterator()) }

        public struct Iterator: AsyncIteratorProtocol {
            var events: ServerEvents.Iterator
            private var sequence = 0

            init(events: ServerEvents.Iterator) { self.events = events }

            public mutating func next(isolation actor: isolated (any Actor)?) async throws(PromiseError) -> Update? {
                while let event = try await events.next(isolation: actor) {
                    guard let data = WireCoding.decode(QueryEventDocument.self, from: Array(event.data.utf8)),
                        data.sequence == sequence + 1
                    else {
                        throw PromiseError(.brokenReply, "the daemon gave an event of a query that makes no sense", exitStatus: 1)
                    }
                    sequence = data.sequence
                    if let update = Update(event.name, data) { return update }
                }
                return nil
            }

            public mutating func next() async throws(PromiseError) -> Update? { try await next(isolation: nil) }
        }
    }
}

extension MetadataQuery.Update {
    /// Nil for events of later versions.
    fileprivate init?(_ name: String, _ data: QueryEventDocument) {
        switch name {
        case "added": self = .added(data.items ?? [])
        case "gathered": self = .finishedGathering
        case "changed": self = .changed(data.items ?? [])
        case "removed": self = .removed(data.removed ?? [])
        case "reset": self = .reset
        default: return nil
        }
    }
}
