import PromiseAccess
import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseQuery
import Synchronization

/// A domain as the socket of one launch has it: what the application was given, by the paths that
/// its view has, and nothing else. Whatever is not named here is refused.
///
/// **Threads.** As a service's; `presenters`, `claims` and `questions` are leaves.
final class ApplicationService: ControlService {
    let base: any ControlService
    let grants: Grants
    let principal: Principal
    private let presenters = Mutex<[PresenterID: EntryID?]>([:])
    let claims = Mutex(HeldClaims())
    let questions = Mutex(HeldQuestions())

    init(_ base: any ControlService, _ grants: Grants, for principal: Principal) {
        self.base = base
        self.grants = grants
        self.principal = principal
    }

    // MARK: Finding

    /// The path in the mount, of one as the application has it.
    private func inMount(_ path: [FileName], _ call: StaticString) throws(Failure) -> [FileName] {
        if let found = try grants.path(ofShown: path, for: principal) { return found }
        throw grants.refuse(principal, call, PathText(path).display)
    }

    private func shown(_ node: NodeID, _ call: StaticString) throws(Failure) -> [FileName] {
        if let path = try grants.shownPath(of: node, for: principal) { return path }
        throw grants.refuse(principal, call, "node \(node)")
    }

    private func require(_ rights: Rights, _ node: NodeID, _ call: StaticString) throws(Failure) {
        try grants.require(rights, principal, node, to: call)
    }

    func node(at path: [FileName]) async throws(Failure) -> NodeID {
        let node = try await base.node(at: try inMount(path, "items.find"))
        try require(.read, node, "items.find")
        return node
    }

    func item(at path: [FileName]) async throws(Failure) -> NamedItem {
        let item = try await base.item(at: try inMount(path, "items.find"))
        try require(.read, item.node, "items.find")
        return item
    }

    // MARK: Looking

    func information(of item: NamedItem) throws(Failure) -> ItemInformation {
        try require(.read, item.node, "items.show")
        var information = try base.information(of: item)
        information.path = try shown(item.node, "items.show")
        information.values = try own(information.values, of: item.node, information.path)
        information.identifier = information.identifier.map(ApplicationSight.identifier)
        information.error = information.error.map(ApplicationSight.sentence)
        if try isReference(item.node) { information.linkTarget = nil }
        return information
    }

    func values(of items: [NamedItem], _ keys: [AttributeKey]) throws(Failure) -> [PromisedValues] {
        for item in items { try require(.read, item.node, "items.values") }
        return try base.values(of: items, keys).map { found throws(Failure) in
            let path = try shown(found.node, "items.values")
            return PromisedValues(
                node: found.node, path: path, values: try own(found.values, of: found.node, path))
        }
    }

    /// Without what tells where an item is.
    private func own(
        _ values: [AttributeKey: QueryValue], of node: NodeID, _ path: [FileName]
    ) throws(Failure) -> [AttributeKey: QueryValue] {
        var values = values
        if case .text? = values[.linkTarget], try isReference(node) { values[.linkTarget] = .null }
        let shown = PathText(path)
        if values[.path] != nil { values[.path] = .text(shown.display) }
        if values[.pathBytes] != nil { values[.pathBytes] = .text(shown.bytes) }
        if case .text? = values[.locationInContainer] { values[.locationInContainer] = .text(shown.display) }
        if case .text(let identifier)? = values[.identifier] {
            let opaque = ApplicationSight.identifier(ItemIdentifier(String(decoding: identifier, as: UTF8.self)))
            values[.identifier] = .text(opaque.rawValue)
        }
        for key in [AttributeKey.downloadingError, .uploadingError] {
            guard case .text(let sentence)? = values[key] else { continue }
            values[key] = .text(ApplicationSight.sentence(String(decoding: sentence, as: UTF8.self)))
        }
        return values
    }

    private func isReference(_ node: NodeID) throws(Failure) -> Bool {
        try base.documents?.references.standing(of: node) != nil
    }

    /// By what is compared or sorted names are learnt letter by letter.
    private static let keysOfPlaces: Set<AttributeKey> = [
        .path, .pathBytes, .locationInContainer, .identifier, .linkTarget, .downloadingError,
        .uploadingError,
    ]

    private func requireNoPlaces(_ query: QueryRequest) throws(Failure) {
        let asked = query.predicate.keys.union(query.order.map(\.key)).intersection(Self.keysOfPlaces)
        guard let key = asked.map(\.rawValue).min() else { return }
        throw Failure(
            .invalid, "an application's query names a folder: \(key) is compared and sorted for the owner only")
    }

    func versions(of node: NodeID) throws(Failure) -> [ItemVersion] {
        try require(.read, node, "versions.list")
        var result: [ItemVersion] = []
        for var version in try base.versions(of: node) {
            // The second version of a conflict is an item of its own, which may not have been given.
            guard let node = version.node, let path = try reach(node) else { continue }
            version.path = path
            result.append(version)
        }
        return result
    }

    func thumbnail(of node: NodeID, size: Int) async throws(Failure) -> [UInt8] {
        try require(.read, node, "thumbnails.read")
        return try await base.thumbnail(of: node, size: size)
    }

    func saveThumbnail(_ picture: [UInt8], of node: NodeID) throws(Failure) {
        try require(.readWrite, node, "thumbnails.write")
        try base.saveThumbnail(picture, of: node)
    }

    func hasThumbnail(_ node: NodeID) -> Bool {
        ((try? grants.allowed(principal, node)) ?? .none) > .none && base.hasThumbnail(node)
    }

    func fetch(
        _ node: NodeID, progress: @escaping @Sendable (FetchProgress) -> Void
    ) async throws(Failure) -> FetchProgress {
        try require(.read, node, "items.fetch")
        let shown = try shown(node, "items.fetch")
        let hidden = try base.information(of: NamedItem(node: node)).path
        let own: @Sendable (FetchProgress) -> FetchProgress = { told in
            var told = told
            told.failures = told.failures.map { failed in
                let isBelow = failed.path.starts(with: hidden)
                let rest = isBelow ? failed.path.dropFirst(hidden.count) : []
                let sentence = ApplicationSight.sentence(failed.failure.message)
                return (shown + rest, Failure(failed.failure.code, sentence))
            }
            return told
        }
        return own(try await base.fetch(node) { progress(own($0)) })
    }

    /// Below a folder that it was given, or all that it was given.
    func run(
        _ query: QueryRequest, aliveInterval: Duration, _ send: (QueryEvent) async throws -> Void
    ) async throws {
        if query.scope != .root { try require(.read, query.scope, "queries.run") }
        try requireNoPlaces(query)
        var query = query
        if case .application(let own, _) = principal { query.application = own }
        // It is of what the application has, of which the domain's index does not know.
        let limit = query.limit
        if query.order.isEmpty {
            query.limit = nil
        } else {
            query.isWanted = { [self] in try !reachable([$0]).isEmpty }
        }
        let observer = query.isLive ? beginAgainWhenGiven(&query) : nil
        defer { if let observer { grants.forget(observer) } }
        do {
            try await runWhole(query, limit, aliveInterval, send)
        } catch is Enough {
            try await send(.gathered)
        }
    }

    /// What is given or taken is no change of the items. Returns what `grants.forget` takes.
    private func beginAgainWhenGiven(_ query: inout QueryRequest) -> UInt64 {
        let restart = QueryRestart()
        query.restart = restart
        let known = Mutex<Set<GrantID>>([])
        let observer = grants.whenChanged { [grants, principal] _ in
            let now = grants.open(to: principal)
            let isOther = known.withLock { known in
                defer { known = now }
                return known != now
            }
            if isOther { restart.ask() }
        }
        known.withLock { $0 = grants.open(to: principal) }
        return observer
    }

    /// There are as many results as were asked for.
    private struct Enough: Error {}

    private func runWhole(
        _ query: QueryRequest, _ limit: Int?, _ aliveInterval: Duration,
        _ send: (QueryEvent) async throws -> Void
    ) async throws {
        var known: Set<EntryID> = []
        try await base.run(query, aliveInterval: aliveInterval) { event in
            switch event {
            case .added(let found):
                let rest = limit.map { $0 - known.count } ?? .max
                let own = Array(try reachable(found).prefix(rest))
                known.formUnion(own.map(\.id))
                if !own.isEmpty { try await send(.added(own)) }
                if known.count == limit { throw Enough() }
            case .changed(let found):
                let own = try reachable(found)
                let gone = found.filter { item in
                    known.contains(item.id) && !own.contains { $0.id == item.id }
                }
                known.subtract(gone.map(\.id))
                let (new, old) = (own.filter { !known.contains($0.id) }, own.filter { known.contains($0.id) })
                known.formUnion(new.map(\.id))
                if !gone.isEmpty { try await send(.removed(gone.map { ($0.id, $0.node) })) }
                if !new.isEmpty { try await send(.added(new)) }
                // Nothing at all of what it was not given: not even when that changes.
                if !old.isEmpty { try await send(.changed(old)) }
            case .removed(let items):
                let own = items.filter { known.remove($0.id) != nil }
                if !own.isEmpty { try await send(.removed(own)) }
            case .reset:
                known = []
                try await send(.reset)
            case .gathered, .alive: try await send(event)
            }
        }
    }

    private func reachable(_ found: [FoundItem]) throws(Failure) -> [FoundItem] {
        var result: [FoundItem] = []
        for var item in found {
            // Most of what is found is nothing to it: to look for paths takes longer.
            guard try grants.allowed(principal, item.node) > .none,
                let path = try grants.shownPath(of: item.node, named: item.id, for: principal)
            else { continue }
            item.path = path
            item.identifier = item.identifier.map(ApplicationSight.identifier)
            item.values = try own(item.values, of: item.node, path)
            result.append(item)
        }
        return result
    }

    /// The path that the application has; nil of what it was not given.
    private func reach(_ node: NodeID) throws(Failure) -> [FileName]? {
        guard try grants.allowed(principal, node) > .none else { return nil }
        return try grants.shownPath(of: node, for: principal)
    }

    // MARK: Coordination

    func claim(_ request: ClaimRequest) async throws(Failure) -> GrantedClaim {
        var request = request
        var wanted: [Rights] = []
        for (number, item) in request.items.enumerated() {
            request.items[number].path = try inMount(item.path, "claims.begin")
            if case .read = item.access { wanted.append(.read) } else { wanted.append(.readWrite) }
        }
        request.isConfined = true
        // A claim that another launch has does not become this one's, and no purpose of somebody else's is its own.
        request.within = request.within.map { within in claims.withLock { within.intersection($0.all) } }
        request.purpose = request.purpose.map(own)
        request.whenOverdue = { [weak self] claim in Task { self?.endOverdue(claim) } }
        for (item, rights) in zip(request.items, wanted) {
            // What is to be made new is in a folder that was given.
            let node: NodeID
            do throws(Failure) {
                node = try await base.node(at: item.path)
            } catch where error.code == .notFound && item.path.count > 1 {
                node = try await base.node(at: Array(item.path.dropLast()))
            }
            try require(rights, node, "claims.begin")
            if isHoldingUp, try grants.allowed(principal, node) < .readWrite { throw HeldClaims.refusal }
        }
        let claim = try await base.claim(request)
        do throws(Failure) {
            // A link that was followed may lead anywhere.
            for (number, rights) in wanted.enumerated() {
                if let holder = claim.holder(number) { try require(rights, holder.node, "claims.begin") }
            }
        } catch {
            base.release(claim.id)
            throw error
        }
        note(claim, request)
        return claim
    }

    func release(_ claim: ClaimID) {
        if claims.withLock({ $0.forget(claim) }) { base.release(claim) }
    }

    func snapshot(of node: NodeID) async throws(Failure) -> Snapshot {
        throw grants.refuse(principal, "claims.snapshot", "node \(node)")
    }

    func present(
        _ path: [FileName], purpose: Purpose?,
        events: @escaping @Sendable (Coordinator.PresenterEvent) -> Bool
    ) async throws(Failure) -> (id: PresenterID, node: NodeID) {
        let path = try inMount(path, "presenters.begin")
        try require(.read, try await base.node(at: path), "presenters.begin")
        let asked = AskedPresenter()
        let found = try await base.present(path, purpose: purpose.map(own)) { [weak self] event in
            if case .ask(_, let number, _) = event, let id = asked.ask(number) { self?.limit(number, of: id) }
            return events(event)
        }
        let name = try? base.entry(of: found.node, at: path)
        presenters.withLock { $0[found.id] = .some(name) }
        for number in asked.begin(found.id) { limit(number, of: found.id) }
        return found
    }

    func removePresenter(_ id: PresenterID) {
        guard presenters.withLock({ $0.removeValue(forKey: id) }) != nil else { return }
        base.removePresenter(id)
        questions.withLock { $0.removed(id, now: .now) }
    }

    func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool) -> Bool {
        guard let name = presenters.withLock({ $0[presenter] }) else {
            _ = grants.refuse(principal, "presenters.answer", "presenter \(presenter.rawValue)")
            return false
        }
        questions.withLock { $0.answered(number, now: .now) }
        // Who may not write it has nothing to save, and refuses nobody.
        return base.answered(number, by: presenter, hasFailed: hasFailed && name.map(mayWrite) ?? false)
    }

    /// Not of a name that has gone: another one of the file may be there.
    func mayWriteWhatShows(_ presenter: PresenterID) -> Bool {
        guard let name = presenters.withLock({ $0[presenter] }) ?? nil,
            let node = try? base.currentNode(of: name)
        else { return false }
        return (try? grants.allowed(principal, node)) == .readWrite
    }

    /// Of what has left its reach it is told no place.
    func currentPath(of node: NodeID) throws(Failure) -> [FileName]? {
        try reach(node)
    }

    func currentPath(of node: NodeID, inside folder: NodeID) throws(Failure) -> [FileName]? {
        try reach(node)
    }

    var isCoordinated: Bool { base.isCoordinated }

    func paths(of claim: GrantedClaim) throws(Failure) -> [[FileName]] {
        try claim.nodes.indices.map { number throws(Failure) in
            let (node, missing) = claim.holder(number) ?? (claim.nodes[number], nil)
            return try shown(node, "claims.begin") + (missing.map { [$0] } ?? [])
        }
    }

    func entry(of node: NodeID, at path: [FileName]) throws(Failure) -> EntryID? {
        try require(.read, node, "items.find")
        return try base.entry(of: node, at: path)
    }

    func currentNode(of entry: EntryID) throws(Failure) -> NodeID? {
        guard let node = try base.currentNode(of: entry) else { return nil }
        try require(.read, node, "items.find")
        return node
    }

    func currentPath(of entry: EntryID) throws(Failure) -> [FileName]? {
        guard let node = try base.currentNode(of: entry) else { return nil }
        return try currentPath(of: node)
    }

    func settle() async { await base.settle() }
    var trace: RequestTrace { base.trace }
    var keyValues: Values { base.keyValues }
    var documents: DocumentServices? { base.documents }
    var earlierVersionsNote: String { base.earlierVersionsNote }
}
