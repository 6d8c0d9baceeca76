package import PromiseCoordination
package import PromiseCore
package import PromiseDomain
package import PromiseFilesystem
package import PromiseQuery

/// A domain as its owner has it: each call goes to the service that answers it.
package struct DomainService: ControlService {
    private let domain: Domain
    private let items: Items
    private let versions: Versions
    private let thumbnails: Thumbnails
    private let coordination: Coordination
    private let queries: Queries
    private let work: Work

    package init(_ domain: Domain) {
        self.domain = domain
        items = domain.itemServices.items
        versions = domain.itemServices.versions
        thumbnails = domain.itemServices.thumbnails
        coordination = domain.itemServices.coordination
        queries = domain.itemServices.queries
        work = domain.itemServices.work
    }

    // MARK: The whole

    package var trace: RequestTrace { domain.trace }
    package var keyValues: Values { domain.keyValues }
    package var documents: DocumentServices? { domain.services }
    package func status() async -> DomainStatus { await domain.status() }
    package func restart() -> Failure { domain.restart() }

    package func unmount(wait: Bool, timeout: Duration?, lazy: Bool) async throws(Failure) -> Int {
        try await domain.unmount(wait: wait, timeout: timeout, lazy: lazy)
    }

    package func verify(repair: Bool, provider: Bool) async throws(Failure) -> VerifyReport {
        try await domain.itemServices.verification.run(repair: repair, provider: provider)
    }

    // MARK: Items

    package func node(at path: [FileName]) async throws(Failure) -> NodeID {
        try await items.node(at: path)
    }

    package func item(at path: [FileName]) async throws(Failure) -> NamedItem {
        try await items.item(at: path)
    }

    package func information(of item: NamedItem) throws(Failure) -> ItemInformation {
        try items.information(of: item)
    }

    package func values(
        of items: [NamedItem], _ keys: [AttributeKey]
    ) throws(Failure) -> [PromisedValues] {
        try self.items.values(of: items, keys)
    }

    package func fetch(
        _ node: NodeID, progress: @escaping @Sendable (FetchProgress) -> Void
    ) async throws(Failure) -> FetchProgress {
        try await items.fetch(node, progress: progress)
    }

    package func evict(
        _ node: NodeID, purpose: Purpose?
    ) async throws(Failure) -> EvictionReport {
        try await items.evict(node, purpose: purpose)
    }

    package func setPin(_ pin: Pin, of node: NodeID) async throws(Failure) -> PinReport {
        try await items.setPin(pin, of: node)
    }

    package func currentPath(of node: NodeID) throws(Failure) -> [FileName]? {
        try items.currentPath(of: node)
    }

    package func currentPath(
        of node: NodeID, inside folder: NodeID
    ) throws(Failure) -> [FileName]? {
        try items.currentPath(of: node, inside: folder)
    }

    package func currentPath(of entry: EntryID) throws(Failure) -> [FileName]? {
        try items.currentPath(of: entry)
    }

    package func entry(of node: NodeID, at path: [FileName]) throws(Failure) -> EntryID? {
        try items.entry(of: node, at: path)
    }

    package func currentNode(of entry: EntryID) throws(Failure) -> NodeID? {
        try items.currentNode(of: entry)
    }

    // MARK: Versions and pictures

    package var earlierVersionsNote: String { versions.earlierNote }

    package func versions(of node: NodeID) throws(Failure) -> [ItemVersion] {
        try versions.all(of: node)
    }

    package func resolve(
        _ node: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?,
        decidedOn states: Set<String>?
    ) async throws(Failure) -> [ItemVersion] {
        try await versions.resolve(
            node, action, version: version, purpose: purpose, decidedOn: states)
    }

    package func earlierVersions(of node: NodeID) async throws(Failure) -> [ItemVersion] {
        try await versions.earlier(of: node)
    }

    package func contents(
        ofEarlier identifier: String, of node: NodeID
    ) async throws(Failure) -> Snapshot {
        try await versions.contents(ofEarlier: identifier, of: node)
    }

    package func contents(
        ofGivenUp identifier: String, of path: [FileName]
    ) async throws(Failure) -> Snapshot {
        try await versions.contents(ofGivenUp: identifier, of: path)
    }

    package func snapshot(of node: NodeID) async throws(Failure) -> Snapshot {
        try await domain.itemServices.snapshots.make(of: node)
    }

    package func thumbnail(of node: NodeID, size: Int) async throws(Failure) -> [UInt8] {
        try await thumbnails.picture(of: node, size: size)
    }

    package func saveThumbnail(_ picture: [UInt8], of node: NodeID) throws(Failure) {
        try thumbnails.save(picture, of: node)
    }

    package func hasThumbnail(_ node: NodeID) -> Bool { thumbnails.has(node) }

    // MARK: Work

    package func pending(below node: NodeID?) throws(Failure) -> PendingList {
        try work.pending(below: node)
    }

    package func excluded(below node: NodeID?) throws(Failure) -> [PendingWork] {
        try work.excluded(below: node)
    }

    package func setPaused(_ isPaused: Bool) async throws(Failure) {
        try await work.setPaused(isPaused)
    }

    package func setLimits(_ change: LimitsChange) async throws(Failure) {
        try await work.setLimits(change)
    }

    package func stepPending() async throws(Failure) -> PendingWork? { try await work.step() }

    package func synchronize(
        below node: NodeID?, wait: Bool, timeout: Duration?
    ) async throws(Failure) {
        try await work.synchronize(below: node, wait: wait, timeout: timeout)
    }

    // MARK: Questions

    package func run(
        _ query: QueryRequest, aliveInterval: Duration, _ send: (QueryEvent) async throws -> Void
    ) async throws {
        try await queries.open(query).run(aliveInterval: aliveInterval, send)
    }

    package func changes(
        since sequence: Int64, of journal: String?, limit: Int
    ) throws(Failure) -> ChangePage {
        try queries.changes(since: sequence, of: journal, limit: limit)
    }

    package func waitForChange(after sequence: Int64, timeout: Duration) async {
        await queries.waitForChange(after: sequence, timeout: timeout)
    }

    package func settle() async { await queries.settle() }

    // MARK: Coordination

    package var isCoordinated: Bool { coordination.isActive }

    package func claim(_ request: ClaimRequest) async throws(Failure) -> GrantedClaim {
        try await coordination.claim(request)
    }

    package func release(_ claim: ClaimID) { coordination.release(claim) }

    package func paths(of claim: GrantedClaim) throws(Failure) -> [[FileName]] {
        try coordination.paths(of: claim)
    }

    package func present(
        _ path: [FileName], purpose: Purpose?,
        events: @escaping @Sendable (Coordinator.PresenterEvent) -> Bool
    ) async throws(Failure) -> (id: PresenterID, node: NodeID) {
        try await coordination.present(path, purpose: purpose, events: events)
    }

    package func removePresenter(_ id: PresenterID) { coordination.removePresenter(id) }

    package func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool) -> Bool {
        coordination.answered(number, by: presenter, hasFailed: hasFailed)
    }
}
