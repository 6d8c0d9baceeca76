import Glibc
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Who an item is, whatever happens to its name and content.
struct FolderIdentityTests {
    @Test func identifierSurvivesRenamesBehindTheProvidersBack() async throws {
        let fixture = try await FolderFixture("renames")
        try fixture.folder.makeFolder("a/deep")
        try fixture.folder.makeFolder("b")
        try fixture.folder.write("content", to: "a/deep/file")
        let (before, old) = try await fixture.item("a/deep/file")
        try rename(fixture.folder, "a/deep/file", "a/deep/renamed")
        // By the old path, then from a folder that moved, then by listing.
        #expect(try await fixture.provider.item(for: old).name == name("renamed"))
        try rename(fixture.folder, "a/deep", "b/moved")
        let (after, reference) = try await fixture.item("b/moved/renamed")
        #expect(after.identifier == before.identifier)
        #expect(after.version == before.version)
        #expect(try await fixture.provider.item(for: old).identifier == before.identifier)
        #expect(try await fixture.fetch(after, reference) == Array("content".utf8))
    }

    @Test func aFolderThatMovedBehindTheProvidersBackIsStillFoundByItsPathOnly() async throws {
        let fixture = try await FolderFixture("memory")
        try fixture.folder.makeFolder("a")
        try fixture.folder.write("content", to: "a/file")
        let (item, reference) = try await fixture.item("a/file")
        // A provider that never listed anything knows only the path it is given.
        let second = FolderFixture(folder: fixture.folder)
        #expect(try await second.provider.item(for: reference) == item)
        try rename(fixture.folder, "a/file", "a/other")
        #expect(try await second.provider.item(for: reference).name == name("other"))
    }

    /// Each of many files that were removed at once had its whole folder looked through: 300 of 2,000 took minutes, and nothing
    /// else was answered meanwhile.
    @Test func manyItemsThatAreGoneAreLookedForOnce() async throws {
        let folder = try TemporaryFolder("many-gone")
        let provider = FolderProvider(path: folder.path, logger: quietLogger, clock: LaterClock())
        try await provider.connect()
        try folder.makeFolder("large")
        for index in 0..<60 { try folder.write("x", to: "large/\(index)") }
        let root = ItemReference(identifier: try await provider.root().identifier, path: [])
        let large = try #require(try await provider.enumerateItems(in: root, page: nil).items.first)
        let items = try await provider.enumerateItems(
            in: ItemReference(identifier: large.identifier, path: [large.name]), page: nil).items
        let gone = items.prefix(40).map { ItemReference(identifier: $0.identifier, path: [large.name, $0.name]) }
        for reference in gone { unlink(folder.string + "/large/" + reference.path[1].display) }
        for reference in gone { #expect(await code { _ = try await provider.item(for: reference) } == .notFound) }
        #expect(provider.searches.lookCount == 1)
        // What comes by another name is found all the same.
        let moved = items[50]
        usleep(20_000)
        try rename(folder, "large/\(moved.name.display)", "large/other")
        let reference = ItemReference(identifier: moved.identifier, path: [large.name, moved.name])
        #expect(try await provider.item(for: reference).name == name("other"))
        #expect(provider.searches.lookCount == 2)
    }

    /// It counted as removed, and its content here went. In a process of its own, as a fault is
    /// meant for the whole process.
    @Test func whatCannotBeLookedAtMayBeWhatIsLookedFor() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("left-out")
            let provider = FolderProvider(
                path: folder.path, logger: quietLogger, clock: LaterClock())
            try await provider.connect()
            try folder.write("x", to: "before")
            let root = ItemReference(identifier: try await provider.root().identifier, path: [])
            let items = try await provider.enumerateItems(in: root, page: nil).items
            let reference = ItemReference(
                identifier: try #require(items.first).identifier, path: [name("before")])
            try rename(folder, "before", "after")
            // The old name is looked at first, and is not there.
            for trouble in [EIO, ESTALE, EACCES] {
                FaultInjection.arm(from: "folder.entry.status:\(trouble):1")
                let found = await code { _ = try await provider.item(for: reference) }
                try #require(FaultInjection.met == "folder.entry.status")
                try #require(found == (trouble == ESTALE ? .away : .retry))
            }
            // What was seen without it is not remembered.
            try #require(try await provider.item(for: reference).name == name("after"))
            // A listing looks at its folder first, and leaves out what cannot be looked at.
            FaultInjection.arm(from: "folder.entry.status:\(EIO):1")
            try #require(try await provider.enumerateItems(in: root, page: nil).items.isEmpty)
        }
    }

    /// Long after the folder was changed.
    private struct LaterClock: TimeSource {
        func now() -> Timestamp { SystemClock().now().advanced(by: .seconds(60)) }
        func uptime() -> Duration { SystemClock().uptime() }
    }

    @Test func identifierSurvivesNewContentAndAnotherProviderSeesTheSame() async throws {
        let fixture = try await FolderFixture("replaced")
        try fixture.folder.write("one", to: "file")
        let (before, _) = try await fixture.item("file")
        let inode = try FileStatus.of(fixture.folder.path("file"), label: "test").inode
        let second = try await fixture.replace("file", "two, longer")
        // Looked at now: the number is free for the next file.
        #expect(try FileStatus.of(fixture.folder.path("file"), label: "test").inode != inode, "content is replaced by a new file")
        let third = try await fixture.replace("file", "three")
        #expect(second.identifier == before.identifier && third.identifier == before.identifier)
        #expect(try fixture.folder.read("file") == Array("three".utf8))
        try rename(fixture.folder, "file", "moved")
        let other = FolderFixture(folder: fixture.folder)
        #expect(try await other.item("moved").item.identifier == before.identifier)
        #expect(try await other.item("moved").item.version == third.version)
    }

    @Test func copiesOfAnUploadedFileAreItemsOfTheirOwn() async throws {
        let fixture = try await FolderFixture("copies")
        try fixture.folder.write("one", to: "file")
        let uploaded = try await fixture.replace("file", "two")
        try run("cp", "-a", fixture.folder.string + "/file", fixture.folder.string + "/copy")
        let copy = try await fixture.item("copy").item
        #expect(copy.identifier != uploaded.identifier)
        #expect(try await fixture.item("file").item.identifier == uploaded.identifier)
    }

    @Test func everyHardLinkIsAnItemOfItsOwn() async throws {
        let fixture = try await FolderFixture("links")
        try fixture.folder.write("one", to: "a")
        try run("ln", fixture.folder.string + "/a", fixture.folder.string + "/b")
        let (a, _) = try await fixture.item("a")
        let (b, referenceOfB) = try await fixture.item("b")
        #expect(a.identifier != b.identifier)
        #expect(try await fixture.provider.item(for: referenceOfB) == b)
        // New content of one name leaves the other name its content, and both their identifiers apart.
        let replaced = try await fixture.replace("a", "two")
        #expect(replaced.identifier == a.identifier)
        #expect(try fixture.folder.read("b") == Array("one".utf8))
        #expect(Set(try await fixture.list().map(\.identifier)).count == 2)
    }

    @Test func aSecondNameMadeDuringAnUploadIsAConflictAndKeepsTheContent() async throws {
        let folder = try TemporaryFolder("second-name")
        try folder.write("one", to: "file")
        let fixture = FolderFixture(folder: folder) {
            _ = folder.path("file").withUnsafeBufferPointer { _ in link(folder.string + "/file", folder.string + "/second") }
        }
        #expect(await code { _ = try await fixture.replace("file", "two") } == .conflict)
        #expect(try folder.read("file") == Array("one".utf8))
        #expect(try folder.read("second") == Array("one".utf8))
        #expect(Set(try await fixture.list().map(\.identifier)).count == 2)
    }

    @Test func anotherFileAtThePathIsNeverTouched() async throws {
        let fixture = try await FolderFixture("other")
        try fixture.folder.write("one", to: "file")
        let (item, reference) = try await fixture.item("file")
        try unlink(fixture.folder.path("file"), label: "test")
        try fixture.folder.write("two", to: "file")
        try await fixture.provider.delete(reference, baseVersion: item.version)
        #expect(try fixture.folder.read("file") == Array("two".utf8), "what was to be deleted is gone; this is another file")
        #expect(
            await code {
                _ = try await fixture.provider.modify(
                    reference, changes: ItemChanges(metadata: item.metadata), contents: nil, baseVersion: nil)
            } == .notFound)
    }

    @Test func nothingOutsideTheFolderIsReachedThroughALink() async throws {
        let outside = try TemporaryFolder("outside")
        try outside.write("secret", to: "file")
        let fixture = try await FolderFixture("inside")
        try fixture.folder.makeFolder("folder")
        try fixture.folder.write("inside", to: "folder/file")
        let (folder, folderReference) = try await fixture.item("folder")
        let (file, fileReference) = try await fixture.item("folder/file")
        // The folder is replaced by a link behind the provider's back.
        try removeTreeOf(fixture.folder, "folder")
        try fixture.folder.makeLink("folder", to: outside.string)
        #expect(try await fixture.item("folder").item.kind == .link)
        #expect(await code { _ = try await fixture.list(folderReference) } == .notFound)
        #expect(await code { _ = try await fixture.provider.item(for: fileReference) } == .notFound)
        let sink = MemorySink()
        #expect(
            await code {
                try await fixture.provider.fetchContents(of: fileReference, version: file.version, range: nil, into: sink)
            } == .notFound)
        #expect(
            await code {
                _ = try await fixture.provider.create(
                    NewItem(name: name("new"), kind: .folder, metadata: folder.metadata), in: folderReference, contents: nil)
            } == .notFound)
        try await fixture.provider.delete(fileReference, baseVersion: nil)
        #expect(try outside.names() == [Array("file".utf8)])
        #expect(try outside.read("file") == Array("secret".utf8))
    }

    @Test func whatIsReservedIsNeitherListedNorMade() async throws {
        let fixture = try await FolderFixture("reserved")
        let root = try await fixture.root()
        #expect(!fixture.folder.exists(".promisefs"), "nothing is made before the first upload")
        try fixture.folder.write("one", to: "file")
        _ = try await fixture.replace("file", "two")
        try fixture.folder.write("left behind", to: ".promisefs-upload-1")
        #expect(fixture.folder.exists(".promisefs/uploads"))
        #expect(try await fixture.list().map(\.name) == [name("file")])
        let metadata = Metadata(mode: 0o755, owner: 0, group: 0, modificationTime: .zero)
        for reserved in [".promisefs", ".promisefs-upload-x"] {
            #expect(
                await code {
                    _ = try await fixture.provider.create(
                        NewItem(name: name(reserved), kind: .folder, metadata: metadata), in: root, contents: nil)
                } == .refused)
        }
    }

    @Test func specialFilesAreNotListed() async throws {
        let fixture = try await FolderFixture("special")
        try run("mkfifo", fixture.folder.string + "/fifo")
        try fixture.folder.write("one", to: "file")
        #expect(try await fixture.list().map(\.name) == [name("file")])
    }
}

func removeTreeOf(_ folder: TemporaryFolder, _ name: String) throws { removeTree(folder.path(name)) }
