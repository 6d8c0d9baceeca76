package import PromiseCoordination
package import PromiseCore
package import PromiseDomain
package import PromiseFilesystem
package import PromiseQuery

/// What the control API asks of a domain. `DomainService` is the one outside tests that is no view of another.
///
/// Every method may be called from any thread. The synchronous ones read the index and may block for milliseconds, so they
/// are called from threads of the server's own.
package protocol ControlService: Sendable {
    func status() async -> DomainStatus
    func node(at path: [FileName]) async throws(Failure) -> NodeID
    func item(at path: [FileName]) async throws(Failure) -> NamedItem
    func information(of item: NamedItem) throws(Failure) -> ItemInformation
    func values(of items: [NamedItem], _ keys: [AttributeKey]) throws(Failure) -> [PromisedValues]
    func versions(of node: NodeID) throws(Failure) -> [ItemVersion]
    func resolve(
        _ node: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?, decidedOn states: Set<String>?
    ) async throws(Failure) -> [ItemVersion]
    var earlierVersionsNote: String { get }
    func earlierVersions(of node: NodeID) async throws(Failure) -> [ItemVersion]
    func contents(ofEarlier identifier: String, of node: NodeID) async throws(Failure) -> Snapshot
    func contents(ofGivenUp identifier: String, of path: [FileName]) async throws(Failure) -> Snapshot
    func thumbnail(of node: NodeID, size: Int) async throws(Failure) -> [UInt8]
    func saveThumbnail(_ picture: [UInt8], of node: NodeID) throws(Failure)
    func hasThumbnail(_ node: NodeID) -> Bool
    func fetch(_ node: NodeID, progress: @escaping @Sendable (FetchProgress) -> Void) async throws(Failure) -> FetchProgress
    func evict(_ node: NodeID, purpose: Purpose?) async throws(Failure) -> EvictionReport
    func setPin(_ pin: Pin, of node: NodeID) async throws(Failure) -> PinReport
    func pending(below node: NodeID?) throws(Failure) -> PendingList
    func excluded(below node: NodeID?) throws(Failure) -> [PendingWork]
    func setPaused(_ isPaused: Bool) async throws(Failure)
    func setLimits(_ change: LimitsChange) async throws(Failure)
    func stepPending() async throws(Failure) -> PendingWork?
    func synchronize(below node: NodeID?, wait: Bool, timeout: Duration?) async throws(Failure)
    func verify(repair: Bool, provider: Bool) async throws(Failure) -> VerifyReport
    func unmount(wait: Bool, timeout: Duration?, lazy: Bool) async throws(Failure) -> Int
    var trace: RequestTrace { get }
    var keyValues: Values { get }
    /// Nil where there is no tree to keep anything in.
    var documents: DocumentServices? { get }
    /// Returns only when the process cannot be replaced.
    func restart() -> Failure
    /// Tells the results of a query, and what becomes of them if it is live. Throws what `send` throws, or a `Failure`.
    func run(_ query: QueryRequest, aliveInterval: Duration, _ send: (QueryEvent) async throws -> Void) async throws
    func changes(since sequence: Int64, of journal: String?, limit: Int) throws(Failure) -> ChangePage
    func waitForChange(after sequence: Int64, timeout: Duration) async
    func settle() async
    /// Whether anybody has a claim, waits for one, or shows an item.
    var isCoordinated: Bool { get }
    func claim(_ request: ClaimRequest) async throws(Failure) -> GrantedClaim
    func release(_ claim: ClaimID)
    func snapshot(of node: NodeID) async throws(Failure) -> Snapshot
    func present(
        _ path: [FileName], purpose: Purpose?, events: @escaping @Sendable (Coordinator.PresenterEvent) -> Bool
    ) async throws(Failure) -> (id: PresenterID, node: NodeID)
    func removePresenter(_ id: PresenterID)
    func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool) -> Bool
    func currentPath(of node: NodeID) throws(Failure) -> [FileName]?
    func currentPath(of node: NodeID, inside folder: NodeID) throws(Failure) -> [FileName]?
    func paths(of claim: GrantedClaim) throws(Failure) -> [[FileName]]
    func entry(of node: NodeID, at path: [FileName]) throws(Failure) -> EntryID?
    func currentNode(of entry: EntryID) throws(Failure) -> NodeID?
    func currentPath(of entry: EntryID) throws(Failure) -> [FileName]?
}
