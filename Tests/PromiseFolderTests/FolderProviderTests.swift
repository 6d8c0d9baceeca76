import Glibc
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// The folder as a whole: its name, its absence, its size.
struct FolderProviderTests {
    @Test(arguments: [
        ("folder:/srv/cloud", "/srv/cloud"), ("folder:/srv/cloud//", "/srv/cloud"), ("folder:/", "/"),
        ("folder:/a b%20", "/a b%20"),
    ])
    func namesOfFoldersAreParsed(_ text: String, _ path: String) throws {
        #expect(try FolderProvider.parse(text) == Array(path.utf8))
    }

    @Test(arguments: ["folder:", "folder:relative", "webdav:/x", "/srv", "folder:/a\0b"])
    func otherNamesAreRefusedWithASentence(_ text: String) {
        let error = #expect(throws: ProviderError.self) { try FolderProvider.parse(text) }
        #expect(error?.code == .permanent)
        #expect(error?.message.contains("folder:/path") == true)
    }

    @Test func aMissingFolderIsPermanentAndSaysWhatToDo() async throws {
        let folder = try TemporaryFolder("missing")
        let provider = FolderProvider(path: folder.path("none"), logger: quietLogger)
        let error = await #expect(throws: ProviderError.self) { try await provider.connect() }
        #expect(error?.code == .permanent)
        #expect(error?.message == "the folder '\(folder.string)/none' does not exist: create it or name another")
    }

    @Test func aFileIsNoFolder() async throws {
        let folder = try TemporaryFolder("file")
        try folder.write("x", to: "file")
        let provider = FolderProvider(path: folder.path("file"), logger: quietLogger)
        let error = await #expect(throws: ProviderError.self) { try await provider.connect() }
        #expect(error?.code == .permanent)
        #expect(error?.message == "'\(folder.string)/file' is not a folder: name another")
    }

    @Test func aFolderThatVanishesIsOfflineAndNotEmpty() async throws {
        let fixture = try await FolderFixture("vanishing")
        try fixture.folder.makeFolder("cloud")
        try fixture.folder.write("x", to: "cloud/file")
        let provider = FolderProvider(path: fixture.folder.path("cloud"), logger: quietLogger)
        try await provider.connect()
        let root = ItemReference(identifier: try await provider.root().identifier, path: [])
        try rename(fixture.folder, "cloud", "gone")
        #expect(await code { _ = try await provider.enumerateItems(in: root, page: nil) } == .offline)
        // As an unmounted disk leaves its mount point behind.
        try fixture.folder.makeFolder("cloud")
        #expect(await code { _ = try await provider.enumerateItems(in: root, page: nil) } == .offline)
        #expect(await code { try await provider.connect() } == .offline)
        removeTree(fixture.folder.path("cloud"))
        try rename(fixture.folder, "gone", "cloud")
        #expect(try await provider.enumerateItems(in: root, page: nil).items.count == 1)
    }

    @Test func aFetchOfAFileThatIsWrittenToIsStale() async throws {
        let fixture = try await FolderFixture("stale")
        try fixture.folder.write([UInt8](repeating: 1, count: 3 << 20), to: "file")
        let (item, reference) = try await fixture.item("file")
        let folder = fixture.folder
        let sink = InterruptingSink { try? folder.write([UInt8](repeating: 2, count: 3 << 20), to: "file") }
        #expect(
            await code {
                try await fixture.provider.fetchContents(of: reference, version: item.version, range: nil, into: sink)
            } == .stale)
    }

    @Test func aFetchCanBeCancelled() async throws {
        let fixture = try await FolderFixture("cancel")
        try fixture.folder.write([UInt8](repeating: 1, count: 1 << 20), to: "file")
        try truncateFile(fixture.folder.path("file"), to: 1 << 30)
        let (item, reference) = try await fixture.item("file")
        let sink = InterruptingSink { usleep(20_000) }
        let fetch = Task {
            try await fixture.provider.fetchContents(of: reference, version: item.version, range: nil, into: sink)
        }
        try await Task.sleep(for: .milliseconds(30))
        fetch.cancel()
        #expect(await code { try await fetch.value } == .cancelled)
    }

    @Test func aLargeFolderIsListedInPagesAndQuickly() async throws {
        let fixture = try await FolderFixture("large")
        try fixture.folder.makeFolder("ten")
        for index in 0..<10_000 { try fixture.folder.write([], to: "ten/file-\(index).txt") }
        let (_, ten) = try await fixture.item("ten")
        let clock = ContinuousClock()
        for marks in [false, true] {
            if marks {
                try fixture.folder.write("x", to: "file")
                _ = try await fixture.replace("file", "y")
            }
            for _ in 0..<3 {
                let (start, usedBefore) = (clock.now, processorTime())
                let count = try await fixture.list(ten).count
                let used = processorTime() - usedBefore
                print("listing of \(count) entries, \(marks ? "with" : "without") marks: \(clock.now - start), processor \(used)")
                #expect(count == 10_000)
            }
        }
        for index in 10_000..<40_000 { try fixture.folder.write([], to: "ten/file-\(index).txt") }
        let items = try await fixture.list(ten)
        #expect(items.count == 40_000)
        #expect(Set(items.map(\.name)).count == 40_000, "no page repeats what another had")
        #expect(try await fixture.provider.enumerateItems(in: ten, page: nil).next != nil)
    }

    @Test func uploadsAreMeasuredWithAndWithoutDurability() async throws {
        let folder = try TemporaryFolder("durable")
        let clock = ContinuousClock()
        let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
        for isDurable in [false, true] {
            let provider = FolderProvider(path: folder.path, logger: quietLogger, isDurable: isDurable)
            let root = ItemReference(identifier: try await provider.root().identifier, path: [])
            for parallel in [1, 6] {
                let start = clock.now
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for worker in 0..<parallel {
                        group.addTask {
                            let source = try MemorySource([UInt8](repeating: 1, count: 4096))
                            for index in 0..<(60 / parallel) {
                                let new = NewItem(
                                    name: name("\(isDurable)-\(parallel)-\(worker)-\(index)"), kind: .file, metadata: metadata)
                                _ = try await provider.create(new, in: root, contents: source)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                print("60 uploads of 4 KiB, \(parallel) at a time, durable: \(isDurable): \((clock.now - start) / 60) each")
            }
        }
    }
}

/// Does something at the first piece, then takes it.
final class InterruptingSink: ContentSink {
    private let wrapped = MemorySink()
    private let action: @Sendable () -> Void

    init(_ action: @escaping @Sendable () -> Void) { self.action = action }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) { try wrapped.write(bytes, at: offset) }

    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError) -> UInt64 {
        action()
        return count
    }
}

func truncateFile(_ path: [UInt8], to size: UInt64) throws {
    let file = try Descriptor.open(path, flags: O_WRONLY, label: "test")
    try truncate(file.number, to: size, label: "test")
}

/// What this process has used, which other work on the machine does not lengthen as it does elapsed time.
func processorTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
