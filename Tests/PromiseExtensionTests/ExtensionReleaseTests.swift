import PromiseCore
import PromiseExtension
import PromiseProvider
import Synchronization
import Testing

@Suite struct ExtensionReleaseTests {
    @Test func anExtensionHearsWhichVersionIsNotKeptAnyMore() async throws {
        let asked = Mutex<[String]>([])
        try await withExtension(
            capabilities: "\"release\"",
            { request in
                asked.withLock { $0.append("\(request.method) \(request.path)") }
                return reply("204 No Content")
            }
        ) { provider, _ in
            #expect(provider.capabilities.contains(.release))
            let item = ItemReference(identifier: ItemIdentifier("a/b"), path: [FileName("b")!])
            try await provider.contentsReleased(of: item, version: ContentVersion("1 2"))
        }
        #expect(asked.withLock { $0 } == ["POST items/a%2Fb/release?version=1%202"])
    }
}
