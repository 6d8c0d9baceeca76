import PromiseContent
import PromiseCore
import PromiseTestSupport
import Testing

@Suite struct ProviderPictureTests {
    /// They were taken for sent when another storage took the provider's place.
    @Test func picturesAreSentAgainToAnotherStorage() throws {
        let folder = try TemporaryFolder("pictures")
        let store = ThumbnailStore(folder: folder.path("thumbnails"))
        let key = PictureKey(modificationTime: .zero, edits: 0, generation: Generation(0), version: nil)
        for node in [NodeID(7), NodeID(8)] { try store.keep([1], of: node, key, isUnsent: false) }
        store.noteKept("a.picture 1", of: NodeID(7))
        // Its document has gone.
        store.noteKept("b.picture 1", of: NodeID(9))
        store.forgetProvider()
        #expect(store.unsent() == [NodeID(7), NodeID(8)] && store.kept().isEmpty)
        #expect(store.picture(of: NodeID(7), key) == [1])
    }
}
