import PromiseCore
import PromiseDomain
import Testing

/// What a live query remembers of its results.
@Suite struct LiveQueryStateTests {
    private func item(_ entry: Int64, _ node: UInt64) -> FoundItem {
        FoundItem(
            id: EntryID(entry), node: NodeID(node), path: [FileName("document")!], kind: .file, size: 1,
            modificationTime: .zero, identifier: nil, state: .current, isUploaded: true, values: [:])
    }

    /// An editor that replaces the file with each save gives the document another node.
    @Test func savesLeaveNothingBehind() {
        var state = LiveQuery.State()
        for node in 2..<1_000 { state.tell(item(1, UInt64(node))) }
        state.tell(item(2, 999))
        #expect(state.names == [NodeID(999): [EntryID(1), EntryID(2)]])
        state.tellRemoved(EntryID(1))
        #expect(state.names == [NodeID(999): [EntryID(2)]])
        state.tellRemoved(EntryID(2))
        #expect(state.names.isEmpty)
    }
}
