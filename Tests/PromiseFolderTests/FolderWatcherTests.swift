import Glibc
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// What other programs do in folders that were listed is told, soon on a machine that is not busy.
struct FolderWatcherTests {
    /// A folder `a/b` with a file, every folder of it listed.
    private func fixture(_ name: String) async throws -> (
        FolderFixture, root: ItemIdentifier, a: ItemIdentifier, b: ItemIdentifier
    ) {
        let fixture = try await FolderFixture(name)
        try fixture.folder.makeFolder("a/b")
        try fixture.folder.write("x", to: "a/b/file")
        let (a, _) = try await fixture.item("a")
        let (b, reference) = try await fixture.item("a/b")
        _ = try await fixture.list(reference)
        return (fixture, try await fixture.root().identifier, a.identifier, b.identifier)
    }

    /// The folders named after `action`; returns as soon as `expected` are among them, or after a minute.
    private func named(_ provider: FolderProvider, _ expected: Set<ItemIdentifier>, _ action: () throws -> Void) async throws
        -> Set<ItemIdentifier>
    {
        let anchor = try await provider.currentAnchor()
        try action()
        let clock = ContinuousClock()
        let start = clock.now
        while clock.now - start < .seconds(60) {
            let page = try await provider.changes(since: anchor)
            if expected.isSubset(of: page.foldersToList) { return page.foldersToList }
            try await Task.sleep(for: .milliseconds(5))
        }
        return try await provider.changes(since: anchor).foldersToList
    }

    @Test func createModifyRenameDeleteAreTold() async throws {
        let (fixture, root, a, b) = try await fixture("events")
        let folder = fixture.folder
        #expect(try await named(fixture.provider, [b]) { try folder.write("new", to: "a/b/new") } == [b])
        #expect(try await named(fixture.provider, [b]) { try folder.write("longer", to: "a/b/file") } == [b])
        #expect(try await named(fixture.provider, [b]) { try rename(folder, "a/b/new", "a/b/newer") } == [b])
        #expect(try await named(fixture.provider, [a, b]) { try rename(folder, "a/b/newer", "a/up") } == [a, b])
        #expect(try await named(fixture.provider, [a]) { try unlink(folder.path("a/up"), label: "test") } == [a])
        #expect(try await named(fixture.provider, [root]) { try folder.makeFolder("c") } == [root])
        #expect(try await named(fixture.provider, [b]) { _ = chmod(folder.string + "/a/b/file", 0o600) } == [b])
    }

    @Test func aFolderThatMovedKeepsItsWatch() async throws {
        let (fixture, root, a, b) = try await fixture("moved")
        let folder = fixture.folder
        #expect(try await named(fixture.provider, [root, a]) { try rename(folder, "a/b", "b") } == [root, a])
        #expect(try await named(fixture.provider, [b]) { try folder.write("x", to: "b/new") } == [b])
    }

    /// What others do in a folder that was just made by us, and not listed yet, is told when it is listed; then it is watched.
    @Test func aFolderThatWeMadeIsWatchedWhenItIsListed() async throws {
        let (fixture, root, _, _) = try await fixture("made")
        let folder = fixture.folder
        let metadata = Metadata(mode: 0o755, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
        let name = FileName("made")!
        let made = try await fixture.provider.create(
            NewItem(name: name, kind: .folder, metadata: metadata), in: try await fixture.root(), contents: nil)
        #expect(try await named(fixture.provider, [root]) { try folder.makeFolder("beside") }.contains(root))
        try folder.write("x", to: "made/early")
        let reference = ItemReference(identifier: made.identifier, path: [name])
        #expect(try await fixture.list(reference).map(\.name) == [FileName("early")!])
        let told = try await named(fixture.provider, [made.identifier]) { try folder.write("x", to: "made/late") }
        #expect(told == [made.identifier])
    }

    @Test func aFileThatIsWrittenToWithoutClosingIsTold() async throws {
        let (fixture, _, _, b) = try await fixture("open")
        let file = try Descriptor.open(fixture.folder.path("a/b/file"), flags: O_WRONLY, label: "test")
        let number = file.number
        #expect(try await named(fixture.provider, [b]) { _ = write(number, "more", 4) } == [b])
        _ = consume file
    }

    @Test func whatHappensInsideTheStoreIsNotTold() async throws {
        let (fixture, _, a, _) = try await fixture("store")
        let folder = fixture.folder
        // What is done last is told last.
        let told = try await named(fixture.provider, [a]) {
            try folder.makeFolder(".promisefs/uploads")
            try folder.write("x", to: ".promisefs-upload-1")
            try folder.write("x", to: "a/new")
        }
        #expect(told == [a])
    }

    @Test func waitersWakeAndAnchorsOfOtherInstancesExpire() async throws {
        let (fixture, _, _, b) = try await fixture("wait")
        let provider = fixture.provider
        let anchor = try await provider.currentAnchor()
        let waits = (0..<20).map { _ in Task { try await provider.waitForChanges(since: anchor) } }
        try await Task.sleep(for: .milliseconds(20))
        try fixture.folder.write("x", to: "a/b/new")
        for wait in waits { try await wait.value }
        let page = try await provider.changes(since: anchor)
        #expect(page.foldersToList == [b])
        #expect(try await provider.changes(since: page.anchor).foldersToList.isSubset(of: [b]))
        let other = FolderFixture(folder: fixture.folder)
        let foreign = try await other.provider.currentAnchor()
        #expect(await code { _ = try await provider.changes(since: foreign) } == .anchorExpired)
        #expect(await code { _ = try await provider.changes(since: Anchor(rawValue: "nonsense")) } == .anchorExpired)
    }

    @Test func anOverflowOfEventsExpiresAnchorsOnce() async throws {
        let (fixture, _, _, _) = try await fixture("overflow")
        let anchor = try await fixture.provider.currentAnchor()
        let limit =
            Int(
                String(decoding: try readSmallFile("/proc/sys/fs/inotify/max_queued_events"), as: UTF8.self).prefix {
                    $0.isNumber
                }) ?? 0
        guard limit > 0, limit <= 20_000 else { return }
        // Chains of renames cannot be merged by the kernel; many threads outrun the one that reads.
        let folder = fixture.folder
        let threads = (0..<4).map { thread in
            OwnedThread(name: "storm") {
                let names = (0..<2).map { strdup(folder.string + "/a/b/storm-\(thread)-\($0)") }
                defer { for name in names { free(name) } }
                try? folder.write([], to: "a/b/storm-\(thread)-0")
                for index in 0..<(limit * 2) { _ = Glibc.rename(names[index % 2]!, names[(index + 1) % 2]!) }
            }
        }
        for thread in threads { thread.join() }
        let outcome = await code { _ = try await fixture.provider.changes(since: anchor) }
        // On a machine whose reader keeps up nothing overflows, and then nothing may expire.
        print("event storm: \(outcome.map { "\($0)" } ?? "the reader kept up")")
        #expect(outcome == nil || outcome == .anchorExpired)
        try await Task.sleep(for: .milliseconds(200))
        let now = try await fixture.provider.currentAnchor()
        #expect(await code { _ = try await fixture.provider.changes(since: now) } == nil)
    }
}

private func readSmallFile(_ path: String) throws -> [UInt8] {
    let file = try Descriptor.open(Array(path.utf8), flags: O_RDONLY, label: "test")
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = try buffer.withUnsafeMutableBytes { try readFully(file.number, into: $0, at: 0, label: "test") }
    return Array(buffer[..<count])
}
