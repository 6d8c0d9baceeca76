import PromiseCore
import PromiseExtension
import PromiseProvider
import PromiseTestSupport
import Testing

/// How far an upload has come, which people are told.
struct ExtensionProgressTests {
    @Test(arguments: [4, 1_000_000]) func whatGoesToAnExtensionCountsAsSent(size: UInt64) async throws {
        let made = described("2", ["size": "\(size)"])
        try await withExtension({ _ in reply("201 Created", made) }) { provider, _ in
            let folder = try TemporaryFolder("progress")
            let source = try CountedSource(folder.path("content"), size: size)
            let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
            let root = ItemReference(identifier: ItemIdentifier("1"), path: [])
            _ = try await provider.create(
                NewItem(name: FileName("file")!, kind: .file, metadata: metadata), in: root, contents: source)
            #expect(source.counts.reduce(0, +) == size)
        }
    }
}
