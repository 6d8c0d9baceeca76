import PromiseCoordination
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseQuery
import Synchronization

/// The part of the fake that answers questions: three items by name, one change.
extension FakeService {
    func run(_ query: QueryRequest, aliveInterval: Duration, _ send: (QueryEvent) async throws -> Void) async throws {
        state.withLock { $0.asked = query }
        let items = (1...3).map { number in
            FoundItem(
                id: EntryID(Int64(number)), node: NodeID(UInt64(number) + 10), path: [FileName("item \(number)")!], kind: .file,
                size: 7, modificationTime: .zero, identifier: nil, state: .modified, isUploaded: false,
                values: Dictionary(query.keys.map { ($0, .text("é")) }) { $1 })
        }
        try await send(.added(Array(items.prefix(query.limit ?? .max))))
        try await send(.gathered)
        guard query.isLive else { return }
        try await send(.alive)
        if state.withLock({ $0.tellsWithoutEnd }) {
            defer { remember("query left") }
            while true { try await send(.changed([items[0]])) }
        }
        try await send(.changed([items[0]]))
        try await send(.removed([(items[1].id, items[1].node)]))
        try await send(.reset)
    }

    func values(of items: [NamedItem], _ keys: [AttributeKey]) throws(Failure) -> [PromisedValues] {
        items.map { item in
            PromisedValues(
                node: item.node, path: [FileName("now")!],
                values: Dictionary(uniqueKeysWithValues: keys.map { ($0, .integer(1)) }))
        }
    }

    func versions(of node: NodeID) throws(Failure) -> [ItemVersion] {
        [
            ItemVersion(
                kind: .current, node: node, path: [FileName("now")!], version: nil, size: 1, modificationTime: .zero,
                isLocal: true)
        ]
    }

    func resolve(
        _ node: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?, decidedOn states: Set<String>?
    ) async throws(Failure) -> [ItemVersion] {
        let which = version.map { "\($0)" } ?? "all"
        state.withLock { $0.calls.append("\(action) \(which) of \(node) for \(purpose?.rawValue ?? "")") }
        return try versions(of: node)
    }

    func thumbnail(of node: NodeID, size: Int) async throws(Failure) -> [UInt8] { Array(repeating: 7, count: size) }
    func saveThumbnail(_ picture: [UInt8], of node: NodeID) throws(Failure) {
        remember("thumbnail \(node) \(picture.count)")
    }
    func hasThumbnail(_ node: NodeID) -> Bool { true }

    func entry(of node: NodeID, at path: [FileName]) throws(Failure) -> EntryID? { nil }
    func currentNode(of entry: EntryID) throws(Failure) -> NodeID? { nil }
    func currentPath(of entry: EntryID) throws(Failure) -> [FileName]? { nil }

    var earlierVersionsNote: String { "none" }
    func earlierVersions(of node: NodeID) async throws(Failure) -> [ItemVersion] {
        [
            ItemVersion(
                kind: .earlier, node: nil, path: [FileName("now")!], version: nil, size: 1, modificationTime: .zero,
                isLocal: false, earlierIdentifier: "a/1")
        ]
    }
    func contents(ofGivenUp identifier: String, of path: [FileName]) async throws(Failure) -> Snapshot {
        throw Failure(.notFound, "nothing was given up")
    }

    func contents(ofEarlier identifier: String, of node: NodeID) async throws(Failure) -> Snapshot {
        throw Failure(.notFound, "there is no version \(identifier)")
    }

    func changes(since sequence: Int64, of journal: String?, limit: Int) throws(Failure) -> ChangePage {
        let change = ChangeRecord(
            sequence: 5, kind: "created", node: NodeID(2), count: 1, parent: .root, name: FileName("a"), path: [FileName("b")!])
        return ChangePage(changes: sequence < 5 ? [change] : [], first: 5, last: 5)
    }

    func waitForChange(after sequence: Int64, timeout: Duration) async { try? await pause(timeout) }

    func settle() async {}

    /// A path with an odd node is free at once, others never.
    func claim(_ request: ClaimRequest) async throws(Failure) -> GrantedClaim {
        var nodes: [NodeID] = []
        for item in request.items { nodes.append(try await node(at: item.path)) }
        if nodes.contains(where: { $0.rawValue % 2 == 0 }) {
            do { try await pause(request.timeout ?? .seconds(60)) } catch {
                state.withLock { $0.calls.append("cancelled claim") }
                throw Failure(.interrupted, "cancelled")
            }
            throw Failure(.timedOut, "not free in time")
        }
        return GrantedClaim(id: ClaimID(rawValue: 77), nodes: nodes)
    }

    func snapshot(of node: NodeID) async throws(Failure) -> Snapshot { throw Failure(.notSupported, "there are no snapshots") }

    func release(_ claim: ClaimID) { remember("release \(claim)") }

    private func remember(_ call: String) { if !isQuick { state.withLock { $0.calls.append(call) } } }

    func present(
        _ path: [FileName], purpose: Purpose?, events: @escaping @Sendable (Coordinator.PresenterEvent) -> Bool
    ) async throws(Failure) -> (id: PresenterID, node: NodeID) {
        let node = try await node(at: path)
        state.withLock { $0.presenterEvents.append(events) }
        _ = events(.ask(.saveChanges, number: 9, node: node))
        _ = events(.tell(.didChange))
        return (PresenterID(rawValue: 5), node)
    }

    func removePresenter(_ id: PresenterID) { remember("removed \(id)") }

    func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool) -> Bool { number == 9 && presenter.rawValue == 5 }

    func currentPath(of node: NodeID) throws(Failure) -> [FileName]? { [FileName("now")!] }
    func currentPath(of node: NodeID, inside folder: NodeID) throws(Failure) -> [FileName]? { try currentPath(of: node) }
    var isCoordinated: Bool { false }
    func paths(of claim: GrantedClaim) throws(Failure) -> [[FileName]] { claim.nodes.map { _ in [FileName("now")!] } }
}
