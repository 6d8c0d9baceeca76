import Glibc
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Folders on file systems that keep less than Linux' own: no lasting names for files, no modes, not every name, perhaps no
/// links, upper and lower case for one, nothing in one step but a rename.
@Suite(.serialized, .enabled(if: MemoryStick.canMount(.exfat) && MemoryStick.canMount(.ntfs), "mounting needs root and programs"))
struct MemoryStickTests {
    private func provider(_ stick: MemoryStick) -> FolderProvider {
        FolderProvider(path: Array(stick.cloud.utf8), logger: quietLogger)
    }

    /// A new stick, and a provider of it that is connected.
    private func withStick(
        _ format: MemoryStick.Format = .exfat, _ body: (MemoryStick, FolderProvider) async throws -> Void
    ) async throws {
        let stick = try MemoryStick(format)
        defer { stick.throwAway() }
        let provider = provider(stick)
        try await provider.connect()
        try await body(stick, provider)
    }

    private func root(_ provider: FolderProvider) async throws -> ItemReference {
        ItemReference(identifier: try await provider.root().identifier, path: [])
    }

    private func make(
        _ name: String, _ text: String, _ provider: FolderProvider
    ) async throws -> (item: Item, reference: ItemReference) {
        let root = try await root(provider)
        let time = Timestamp(seconds: 1_600_000_000, nanoseconds: 7)
        let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: time)
        let new = NewItem(name: FileName(name)!, kind: .file, metadata: metadata, target: nil)
        let item = try await provider.create(new, in: root, contents: try MemorySource(Array(text.utf8)))
        return (item, ItemReference(identifier: item.identifier, path: [item.name]))
    }

    private func names(_ stick: MemoryStick) throws -> [String] {
        let folder = try Descriptor.open(Array(stick.cloud.utf8), flags: O_RDONLY | O_DIRECTORY, label: "test.list")
        return try listFolder(folder, label: "test.list").map { String(decoding: $0.name, as: UTF8.self) }
            .filter { $0 != ".promisefs" }.sorted()
    }

    @Test(arguments: MemoryStick.Format.allCases)
    func aStickPassesTheConformanceSuite(_ format: MemoryStick.Format) async throws {
        try await withStick(format) { _, provider in
            let root = try await root(provider)
            let report = await ConformanceSuite(provider: provider, folder: root).run()
            for failure in report.failures { Issue.record("\(failure.name): \(failure.sentence)") }
            #expect(provider.capabilities.isSuperset(of: [.placeIdentifiers, .ranges, .quota, .atomicRename]))
            #expect(provider.capabilities.isDisjoint(with: [.stableIdentifiers, .metadata, .conditionalWrite]))
        }
    }

    @Test func whatAStickHasNoNamesForIsEscapedOnIt() async throws {
        try await withStick { stick, provider in
            _ = try await make("a:b?", "x", provider)
            _ = try await make("ends. ", "x", provider)
            #expect(try names(stick) == ["a‛3Ab‛3F", "ends.‛20"])
            let root = try await root(provider)
            let page = try await provider.enumerateItems(in: root, page: nil)
            #expect(Set(page.items.map(\.name.display)) == ["a:b?", "ends. "])
            #expect(page.items.allSatisfy { $0.metadata.mode == 0o644 }, "all files of a stick are programs")
        }
    }

    @Test func aNameChangesItsCaseWhereCaseDoesNotCount() async throws {
        try await withStick { stick, provider in
            let root = try await root(provider)
            let (item, reference) = try await make("readme", "x", provider)
            let moved = try await provider.modify(
                reference, changes: ItemChanges(place: (root, FileName("README")!)), contents: nil, baseVersion: item.version)
            #expect(moved.name == FileName("README")!)
            #expect(try names(stick) == ["README"])
            #expect(try await provider.item(for: reference).name == moved.name, "it was renamed")
            #expect(await code { _ = try await make("README", "y", provider) } == .conflict)
        }
    }

    @Test func namesThatDifferInCaseOnlyAreTwo() async throws {
        try await withStick { stick, provider in
            let first = try await make("readme", "small", provider)
            let second = try await make("README", "LARGE", provider)
            #expect(try names(stick) == ["readme", "‛52‛45‛41‛44‛4D‛45"])
            // Another daemon, which has listed nothing.
            let other = self.provider(stick)
            try await other.connect()
            for (reference, text) in [(first.reference, "small"), (second.reference, "LARGE")] {
                let sink = MemorySink()
                let item = try await other.item(for: reference)
                try await other.fetchContents(of: reference, version: item.version, range: nil, into: sink)
                #expect(String(decoding: sink.bytes, as: UTF8.self) == text)
            }
            try await other.delete(first.reference, baseVersion: first.item.version)
            #expect(await code { _ = try await provider.item(for: first.reference) } == .notFound)
            #expect(try await provider.item(for: second.reference).version == second.item.version)
            #expect(try names(stick) == ["‛52‛45‛41‛44‛4D‛45"])
        }
    }

    @Test func anotherContentIsAnotherVersionWhereTimesAreRough() async throws {
        try await withStick { _, provider in
            let (item, reference) = try await make("file", "first", provider)
            let changed = try await provider.modify(
                reference, changes: ItemChanges(metadata: item.metadata), contents: try MemorySource(Array("other".utf8)),
                baseVersion: item.version)
            #expect(changed.version != item.version)
            #expect(await code { try await provider.delete(reference, baseVersion: item.version) } == .conflict)
        }
    }

    @Test(arguments: MemoryStick.Format.allCases)
    func aStickThatWasPulledOutIsKnownAgain(_ format: MemoryStick.Format) async throws {
        try await withStick(format) { stick, provider in
            let (item, reference) = try await make("file", "text", provider)
            let identity = try await provider.root().identifier
            try stick.pullOut()
            #expect(await code { _ = try await provider.item(for: reference) } == .offline)
            try makeFolders(Array(stick.cloud.utf8), label: "test.folder")
            #expect(await code { _ = try await provider.item(for: reference) } == .offline, "an empty folder is not the stick")
            #expect(rmdir(stick.cloud) == 0, "nothing was put into it")
            try stick.mount()
            #expect(try await provider.item(for: reference).version == item.version)
            let next = self.provider(stick)
            #expect(try await next.root().identifier == identity)
            try stick.empty()
            let other = self.provider(stick)
            #expect(try await other.root().identifier != identity, "another stick at its place")
        }
    }

    @Test(arguments: MemoryStick.Format.allCases)
    func anotherStickAtItsPlaceIsNotTakenForIt(_ format: MemoryStick.Format) async throws {
        try await withStick(format) { stick, provider in
            let (_, reference) = try await make("file", "text", provider)
            let root = try await root(provider)
            _ = try await provider.enumerateItems(in: root, page: nil)
            try stick.exchange()
            #expect(await code { _ = try await provider.enumerateItems(in: root, page: nil) } == .offline)
            #expect(await code { _ = try await provider.item(for: reference) } == .offline)
            #expect(await code { _ = try await make("other", "text", provider) } == .offline)
        }
    }

    @Test func aRecordThatCannotBeReadIsNotMadeAnew() async throws {
        try await withStick { stick, _ in
            try writeFile(Array("{".utf8), to: Array((stick.cloud + "/.promisefs/store.json").utf8))
            let next = provider(stick)
            #expect(await code { try await next.connect() } == .permanent)
            #expect(try readFile(Array((stick.cloud + "/.promisefs/store.json").utf8)) == Array("{".utf8))
        }
    }
}
