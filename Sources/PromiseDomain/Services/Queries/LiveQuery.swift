import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseQuery
import PromiseSystem
import Synchronization

/// One question under way: gathers what there is at the speed of its reader, and then, if it is live, tells what changes.
///
/// The reader's task gathers; afterwards the hub's thread evaluates changes and puts events in a queue. The queue is bounded:
/// a reader who is slower than that is told to start again.
package final class LiveQuery: StitchedReader {
    /// Items in events not read yet.
    private static let queuedCountMax = 20_000
    /// Rows looked at while the index's lock is held.
    private static let pageCountMax = 1_000
    private static let firstPageCount = 16
    /// Weight times rows, for as long.
    static let pageWeight = 100_000
    /// Items in one event: adding to it copies it.
    static let eventCountMax = 200
    /// Results that can be sorted or followed; of a sorted query with a limit those that are kept meanwhile.
    private static let resultCountMax = 2_000_000

    package struct State {
        /// The results, with what was last told of each.
        var known: [EntryID: (node: NodeID, hash: Int)] = [:]
        package private(set) var names: [NodeID: [EntryID]] = [:]
        var events: [QueryEvent] = []
        var queuedCount = 0
        var isOverflowed = false
        /// All that there was has been gathered: from now on the hub tells of changes. Before, it may
        /// still tell of what the query was about until it started again.
        var isFollowing = false
        /// What changes up to this one mean is in `events`, or has been.
        var told: Int64 = 0
        /// It has been told what happened while it gathered.
        var isCaughtUp = false
        /// The earliest change that `events` may be about, and that of those which the reader is being given.
        var eventsFrom: Int64?
        var sendingFrom: Int64?

        package init(isOverflowed: Bool = false) { self.isOverflowed = isOverflowed }

        /// The result stands for another node, or is none any more.
        fileprivate mutating func forget(_ entry: EntryID, of node: NodeID) {
            names[node]?.removeAll { $0 == entry }
            if names[node]?.isEmpty == true { names[node] = nil }
        }

        fileprivate mutating func note(_ entry: EntryID, of node: NodeID) {
            names[node, default: []].append(entry)
        }
    }

    let request: QueryRequest
    /// The next change to look at; the hub's thread alone, from joining on.
    let position = Mutex<Int64>(0)
    private let needs: ItemAttributes.Needs
    private let plan: CandidatePlan
    /// What it costs to look at one item.
    let weight: Int
    private let state = RankedMutex(.leaf, State())
    private let hub: QueryHub
    private let places = RankedMutex(.leaf, ContainerPlaces())
    private let wakeups: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    init(_ request: QueryRequest, _ hub: QueryHub) {
        self.request = request
        self.hub = hub
        needs = ItemAttributes.Needs(request.predicate.keys)
        plan = CandidatePlan(request.predicate)
        weight = request.predicate.weight
        (wakeups, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        request.restart?.whenAsked { [weak self] in self?.reset() }
    }

    // MARK: - The reader's side

    /// Tells everything, and returns when that is done, or for a live query when the domain ends; throws what `send` throws.
    /// `aliveInterval`: how often a silent query says that it is still there. Once for each query.
    package func run(aliveInterval: Duration, _ send: (QueryEvent) async throws -> Void) async throws {
        defer {
            hub.leave(self)
            hub.close(self)
        }
        try await gather(send)
        guard request.isLive else { return }
        let timer = Task { [wake] in
            while !Task.isCancelled {
                try? await Task.sleep(for: aliveInterval)
                wake.yield()
            }
        }
        defer { timer.cancel() }
        var isSilent = false
        for await _ in wakeups {
            if let batching = request.batching { try await Task.sleep(for: batching) }
            let (events, isOverflowed) = takeEvents()
            if isOverflowed {
                hub.leave(self)
                state.withLock { $0 = State() }
                try await send(.reset)
                try await gather(send)
                continue
            }
            for event in events { try await send(event) }
            if !events.isEmpty { given() }
            if events.isEmpty, isSilent { try await send(.alive) }
            isSilent = events.isEmpty
        }
    }

    private func takeEvents() -> ([QueryEvent], isOverflowed: Bool) {
        state.withLock { state in
            defer {
                state.events = []
                state.queuedCount = 0
                state.sendingFrom = state.eventsFrom
                state.eventsFrom = nil
            }
            return (state.events, state.isOverflowed)
        }
    }

    private func given() {
        state.withLock { $0.sendingFrom = nil }
        hub.delivered()
    }

    private func gather(_ send: (QueryEvent) async throws -> Void) async throws {
        let start = try await hub.run { index throws(Failure) in
            try index.read { transaction throws(Failure) in try transaction.lastChange() }
        }
        position.withLock { $0 = start }
        let places = try await hub.containers.places(of: request.application, in: request.area)
        self.places.withLock { $0 = places }
        state.withLock { $0.told = start }
        var place = CandidatePosition.start
        var told = 0
        var sorted = SortedItems(by: request.order, limit: request.limit)
        while true {
            try Task.checkCancellation()
            let (items, next) = try await page(from: place, isFirst: told == 0)
            place = next
            let rest = (request.order.isEmpty ? request.limit : nil).map { max($0 - told, 0) } ?? .max
            told += min(items.count, rest)
            guard max(isRemembering ? told : 0, sorted.count) <= LiveQuery.resultCountMax else {
                throw Failure(.tooLarge, "more than \(LiveQuery.resultCountMax) items match; narrow the predicate or the scope")
            }
            if request.order.isEmpty {
                await hub.settle()
                if !items.isEmpty { try await send(.added(Array(items.prefix(rest)))) }
            } else {
                sorted.add(try request.isWanted.map { try items.filter($0) } ?? items)
            }
            if case .end = place { break }
            if request.order.isEmpty, told == request.limit { break }
        }
        await hub.settle()
        if !request.order.isEmpty { try await self.send(sorted.take(), send) }
        if request.isLive {
            state.withLock { $0.isFollowing = true }
            hub.join(self)
        }
        try await send(.gathered)
    }

    /// What comes first comes soon: a few candidates are looked at, then more and more. Later pages are large.
    private func page(
        from place: CandidatePosition, isFirst: Bool
    ) async throws(Failure) -> ([FoundItem], CandidatePosition) {
        try await hub.run { [self] index throws(Failure) in
            let most = min(max(LiveQuery.pageWeight / weight, 1), LiveQuery.pageCountMax)
            var count = isFirst ? min(LiveQuery.firstPageCount, most) : most
            var place = place
            var found: [FoundItem] = []
            repeat {
                found += try index.readInTurn { transaction throws(Failure) in
                    var result: [FoundItem] = []
                    for item in try transaction.candidates(plan, &place, limit: count) {
                        if let item = try matching(item, transaction), isNew(item) { result.append(item) }
                    }
                    return result
                }
                if case .end = place { break }
                count = min(2 * count, most)
            } while found.count < (isFirst ? 1 : 100)
            return (found, place)
        }
    }

    /// Only a plan by names may bring an item twice, as it was found and as it became meanwhile.
    private var isRemembering: Bool { request.isLive || plan.namePart != nil }

    private func isNew(_ item: FoundItem) -> Bool {
        state.withLock { state in
            guard isRemembering else { return true }
            // Who follows is told of the change later.
            return state.known[item.id] == nil && state.insert(item)
        }
    }

    private func send(_ items: [FoundItem], _ send: (QueryEvent) async throws -> Void) async throws {
        var rest = items[...]
        while !rest.isEmpty {
            try await send(.added(Array(rest.prefix(500))))
            rest = rest.dropFirst(500)
        }
    }

    // MARK: - Evaluation

    private func matching(_ item: IndexedItem, _ transaction: borrowing Transaction) throws(Failure) -> FoundItem? {
        guard isReference(item.node) == (request.area == .external) else { return nil }
        let source = try hub.attributes(of: item, needs, transaction)
        guard request.predicate.isSatisfied(by: source) else { return nil }
        guard try isInScope(item.entry, transaction) else { return nil }
        let whole = try hub.attributes(of: item, .all, transaction)
        guard let path = whole.path, let state = whole.state else { return nil }
        var values: [AttributeKey: QueryValue] = [:]
        for key in request.keys + request.order.map(\.key) { values[key] = whole.value(of: key) }
        return FoundItem(
            id: item.entry.id, node: item.node.id, path: path, kind: item.node.kind, size: item.node.size,
            modificationTime: item.node.modificationTime, identifier: item.entry.identifier, state: state,
            isUploaded: whole.value(of: .isUploaded) == .truth(true), values: values)
    }

    private func isReference(_ node: Node) -> Bool {
        guard node.kind == .link, let target = node.target else { return false }
        return ReferenceRecord(target: target) != nil
    }

    private func isInScope(_ entry: Entry, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard try places.withLock({ $0 }).hold(entry, transaction) else { return false }
        if request.scope == .root || entry.parent == request.scope { return true }
        return try transaction.foldersAbove(entry)?.contains(request.scope) ?? false
    }

    /// Whether it looks where containers were that may be elsewhere by now.
    var isOutdated: Bool {
        request.area.isOfContainers && places.withLock { $0.changeCount } != hub.containers.changeCount
    }

    // MARK: - The hub's side

    /// A node may have changed: tells what that means for the results. `items`: its names now.
    func update(_ node: NodeID, _ items: [IndexedItem], _ transaction: borrowing Transaction) throws(Failure) {
        var gone = Set(state.withLock { $0.names[node] ?? [] })
        for item in items {
            let found = try matching(item, transaction)
            gone.remove(item.entry.id)
            state.withLock { state in
                guard state.isFollowing else { return }
                if let found { state.tell(found) } else { state.tellRemoved(item.entry.id) }
            }
        }
        for entry in gone {
            // A name that stands for another node now, as when a document is saved by replacing it.
            if let moved = try transaction.entry(entry), let other = try transaction.node(moved.node),
                let found = try matching(IndexedItem(entry: moved, node: other), transaction)
            {
                state.withLock { if $0.isFollowing { $0.tell(found) } }
            } else {
                state.withLock { if $0.isFollowing { $0.tellRemoved(entry) } }
            }
        }
    }

    /// To be called after changes have been looked at, all of them up to `position`: the reader looks for events.
    func signal(upTo position: Int64? = nil) {
        let hasEvents = state.withLock { state in
            guard state.isFollowing || state.isOverflowed else { return false }
            if let position { state.told = position }
            if state.queuedCount > LiveQuery.queuedCountMax { state.isOverflowed = true }
            // What is not read will not be told, so it need not be kept.
            if state.isOverflowed { state = State(isOverflowed: true) }
            return state.isOverflowed || !state.events.isEmpty
        }
        if hasEvents { wake.yield() }
    }

    var isOverflowed: Bool { state.withLock { $0.isOverflowed } }

    /// It has been told of everything that those who joined earlier have been told of.
    func caughtUp() { state.withLock { $0.isCaughtUp = true } }

    package func owes(upTo position: Int64) -> Bool {
        state.withLock { state in
            if state.isOverflowed { return false }
            let start = state.isCaughtUp ? nil : state.told + 1
            return [start, state.eventsFrom, state.sendingFrom].contains { $0.map { $0 <= position } ?? false }
        }
    }

    func reset() {
        state.withLock { $0 = State(isOverflowed: true) }
        wake.yield()
    }

    func end() { wake.finish() }
}

extension LiveQuery.State {
    /// False when it was known just so.
    mutating func insert(_ item: FoundItem) -> Bool {
        let hash = item.hashValue
        let old = known.updateValue((item.node, hash), forKey: item.id)
        if let old, old.node == item.node { return old.hash != hash }
        if let old { forget(item.id, of: old.node) }
        note(item.id, of: item.node)
        return old?.hash != hash
    }

    package mutating func tell(_ item: FoundItem) {
        let isKnown = known[item.id] != nil
        guard insert(item) else { return }
        noteEvent()
        switch (isKnown, events.last) {
        case (false, .added(let items)?) where items.count < LiveQuery.eventCountMax:
            events[events.count - 1] = .added(items + [item])
        case (true, .changed(let items)?) where items.count < LiveQuery.eventCountMax:
            events[events.count - 1] = .changed(items + [item])
        default: events.append(isKnown ? .changed([item]) : .added([item]))
        }
    }

    private mutating func noteEvent() {
        queuedCount += 1
        if eventsFrom == nil { eventsFrom = told + 1 }
    }

    package mutating func tellRemoved(_ entry: EntryID) {
        guard let old = known.removeValue(forKey: entry) else { return }
        forget(entry, of: old.node)
        noteEvent()
        if case .removed(let items)? = events.last, items.count < LiveQuery.eventCountMax {
            events[events.count - 1] = .removed(items + [(entry, old.node)])
        } else {
            events.append(.removed([(entry, old.node)]))
        }
    }
}
