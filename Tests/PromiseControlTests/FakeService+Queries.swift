import PromiseCore
import PromiseDomain

/// The part of the fake that answers questions: three items by name, one change.
extension FakeService {
    func run(_ query: QueryRequest, aliveInterval: Duration, _ send: (QueryEvent) async throws -> Void) async throws {
        let items = (1...3).map { number in
            FoundItem(
                id: EntryID(Int64(number)), node: NodeID(UInt64(number) + 10), path: [FileName("item \(number)")!], kind: .file,
                size: 7, modificationTime: .zero, identifier: nil, state: .modified, isUploaded: false,
                values: Dictionary(uniqueKeysWithValues: query.keys.map { ($0, .text("é")) }))
        }
        try await send(.added(Array(items.prefix(query.limit ?? .max))))
        try await send(.gathered)
        guard query.isLive else { return }
        try await send(.alive)
        try await send(.changed([items[0]]))
        try await send(.removed([(items[1].id, items[1].node)]))
        try await send(.reset)
    }

    func changes(since sequence: Int64, limit: Int) throws(Failure) -> ChangePage {
        let change = ChangeRecord(
            sequence: 5, kind: "created", node: NodeID(2), count: 1, parent: .root, name: FileName("a"), path: [FileName("b")!])
        return ChangePage(changes: sequence < 5 ? [change] : [], first: 5, last: 5)
    }

    func waitForChange(after sequence: Int64, timeout: Duration) async { try? await Task.sleep(for: timeout) }
}
