import Glibc
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Writes that meet other writers lose nothing.
struct FolderWritingTests {
    /// What another program does in the instant between the last check of a write and its taking effect.
    final class Interference: Sendable {
        private let action = Mutex<(@Sendable () -> Void)?>(nil)
        func once(_ body: @escaping @Sendable () -> Void) { action.withLock { $0 = body } }
        func happen() {
            let body = action.withLock { action in
                defer { action = nil }
                return action
            }
            body?()
        }
    }

    private func fixture(_ name: String) async throws -> (FolderFixture, Interference) {
        let interference = Interference()
        let fixture = try await FolderFixture(name) { interference.happen() }
        try fixture.folder.write("base", to: "file")
        return (fixture, interference)
    }

    /// Its version says nothing of a mode that others gave.
    @Test func contentAndTimeLeaveTheModeThatIsThere() async throws {
        let (fixture, _) = try await fixture("rights")
        let (item, reference) = try await fixture.item("file")
        #expect(chmod(fixture.folder.string + "/file", 0o600) == 0)
        var changes = ItemChanges(metadata: item.metadata)
        changes.metadata?.modificationTime = Timestamp(seconds: 1_000, nanoseconds: 0)
        changes.keepsRights = true
        let edited = try await fixture.provider.modify(
            reference, changes: changes, contents: try MemorySource(Array("edited".utf8)), baseVersion: item.version)
        #expect(edited.metadata.mode == 0o600 && edited.metadata.modificationTime.seconds == 1_000)
        #expect(chmod(fixture.folder.string + "/file", 0o640) == 0)
        changes.metadata?.modificationTime = Timestamp(seconds: 2_000, nanoseconds: 0)
        let touched = try await fixture.provider.modify(
            reference, changes: changes, contents: nil, baseVersion: edited.version)
        #expect(touched.metadata.mode == 0o640 && touched.metadata.modificationTime.seconds == 2_000)
    }

    @Test func anItemIsNotBelievedGoneWhileAFolderAboveItIsMoved() async throws {
        let (fixture, _) = try await fixture("above")
        try fixture.folder.makeFolder("top/a/inner")
        try fixture.folder.write("x", to: "top/a/inner/file")
        let top = try await fixture.item("top").reference
        let (_, moved) = try await fixture.item("top/a")
        let (file, reference) = try await fixture.item("top/a/inner/file")
        let provider = fixture.provider
        let moving = Task {
            for turn in 0..<300 {
                var changes = ItemChanges()
                changes.place = (top, name(turn % 2 == 0 ? "b" : "a"))
                _ = try await provider.modify(moved, changes: changes, contents: nil, baseVersion: nil)
            }
        }
        for _ in 0..<1000 { #expect(try await provider.item(for: reference).identifier == file.identifier) }
        try await moving.value
    }

    /// A provider that has just started remembers no places. Asked to delete an item by a path from before a move, it said that
    /// the item was gone already; the item came back.
    @Test func anItemIsNotBelievedGoneWhenAFolderAboveItWasMovedAfterItsPathWasMade() async throws {
        let before = try await FolderFixture("folder-moved-path")
        try before.folder.makeFolder("a/b")
        try before.folder.write("content", to: "a/b/file")
        let (file, reference) = try await before.item("a/b/file")
        let (_, upper) = try await before.item("a")
        let (_, lower) = try await before.item("a/b")
        let root = try await before.root()

        let fixture = FolderFixture(folder: before.folder)
        try await fixture.provider.connect()
        for (moved, parent, newName) in [(lower, root, "c"), (upper, lower, "d")] {
            let changes = ItemChanges(place: (parent, name(newName)))
            _ = try await fixture.provider.modify(moved, changes: changes, contents: nil, baseVersion: nil)
        }
        #expect(try await fixture.provider.item(for: reference).identifier == file.identifier)
        try await fixture.provider.delete(reference, baseVersion: file.version)
        #expect(!fixture.folder.exists("c/file"))
    }

    @Test func aFileReplacedInTheInstantOfTheExchangeIsPutBack() async throws {
        let (fixture, interference) = try await fixture("exchange")
        let folder = fixture.folder
        interference.once {
            try? folder.write("foreign", to: "temporary")
            try? rename(folder, "temporary", "file")
        }
        #expect(await code { _ = try await fixture.replace("file", "ours") } == .conflict)
        #expect(try folder.read("file") == Array("foreign".utf8))
        #expect(try folder.names(in: ".promisefs/uploads").isEmpty)
        _ = try await fixture.replace("file", "ours")
        #expect(try folder.read("file") == Array("ours".utf8))
    }

    @Test func aFileWrittenInPlaceInTheInstantOfTheExchangeIsPutBack() async throws {
        let (fixture, interference) = try await fixture("in-place")
        let folder = fixture.folder
        interference.once { try? folder.write("foreign", to: "file") }
        #expect(await code { _ = try await fixture.replace("file", "ours") } == .conflict)
        #expect(try folder.read("file") == Array("foreign".utf8))
    }

    /// It got the time back that belongs to the bytes that were there before.
    @Test(arguments: [1_000, 2_000])
    func aFileWrittenInTheInstantOfAChangeOfItsModeKeepsTheTimeOfThat(seconds: Int) async throws {
        let (fixture, interference) = try await fixture("mode")
        let folder = fixture.folder
        func metadata(_ mode: UInt32, _ seconds: Int) -> ItemChanges {
            let time = Timestamp(seconds: seconds, nanoseconds: 0)
            return ItemChanges(
                metadata: Metadata(
                    mode: mode, owner: geteuid(), group: getegid(), modificationTime: time))
        }
        let (item, reference) = try await fixture.item("file")
        let old = try await fixture.provider.modify(
            reference, changes: metadata(0o644, 1_000), contents: nil, baseVersion: item.version)
        interference.once { try? folder.write("foreign", to: "file") }
        let problem = await code {
            _ = try await fixture.provider.modify(
                reference, changes: metadata(0o600, seconds), contents: nil,
                baseVersion: old.version)
        }
        #expect(problem == .conflict)
        let now = try await fixture.item("file").item
        #expect(now.metadata.modificationTime > Timestamp(seconds: 3_000, nanoseconds: 0))
        #expect(now.version != old.version)
    }

    @Test func aFileRemovedInTheInstantOfTheExchangeStaysRemoved() async throws {
        let (fixture, interference) = try await fixture("removed")
        let folder = fixture.folder
        interference.once { try? unlink(folder.path("file"), label: "test") }
        #expect(await code { _ = try await fixture.replace("file", "ours") } == .conflict)
        #expect(!folder.exists("file"))
        #expect(try folder.names(in: ".promisefs/uploads").isEmpty)
    }

    @Test func aFileReplacedInTheInstantOfItsDeletionIsPutBack() async throws {
        let (fixture, interference) = try await fixture("deletion")
        let folder = fixture.folder
        let (item, reference) = try await fixture.item("file")
        interference.once { try? folder.write("foreign", to: "file") }
        #expect(await code { try await fixture.provider.delete(reference, baseVersion: item.version) } == .conflict)
        #expect(try folder.read("file") == Array("foreign".utf8))
    }

    /// It was hidden to be looked at, and a kill at that moment left it there.
    @Test func aFileReplacedBeforeTheTurnOfItsDeletionIsNotTakenAway() async throws {
        let taken = Mutex(0)
        let fixture = try await FolderFixture("turn", beforeTakingEffect: { taken.withLock { $0 += 1 } })
        let folder = fixture.folder
        try folder.write("base", to: "file")
        let (item, reference) = try await fixture.item("file")
        try folder.write("other", to: "first")
        try folder.write("ours", to: "second")
        try await fixture.provider.delete(try await fixture.item("first").reference, baseVersion: nil)
        let others = try Descriptor.open(folder.path(".promisefs/lock"), flags: O_RDWR, label: "test")
        #expect(flock(others.number, LOCK_EX) == 0)
        let remove: @Sendable () async -> ProviderError.Code? = {
            await code { try await fixture.provider.delete(reference, baseVersion: item.version) }
        }
        async let first = remove()
        try await Task.sleep(for: .milliseconds(200))
        try rename(folder.path("second"), to: folder.path("file"), label: "test")
        #expect(flock(others.number, LOCK_UN) == 0)
        var answer = await first
        // Where the other tests keep this one waiting, it gives up the lock after twenty seconds.
        if answer == .retry { answer = await remove() }
        #expect(answer == .conflict)
        #expect(taken.withLock { $0 } == 1, "of the first one only")
        #expect(try folder.read("file") == Array("ours".utf8))
    }

    /// What came out was removed, as it was taken for our own.
    @Test func whatWasReplacedAndCannotBeLookedAtIsPutBack() async throws {
        let before = try await FolderFixture("exchange-unread")
        try before.folder.write("base", to: "file")
        let fixture = FolderFixture(folder: before.folder, afterTakingEffect: FolderWritingTests.unreadable)
        try await fixture.provider.connect()
        #expect(await code { _ = try await fixture.replace("file", "ours") } == .retry)
        #expect(try fixture.folder.read("file") == Array("base".utf8))
        #expect(try fixture.folder.names().count == 2 && fixture.folder.names(in: ".promisefs/uploads").isEmpty)
    }

    /// It was gone from its folder, and the next attempt took it for removed.
    @Test func whatWasRemovedAndCannotBeLookedAtIsPutBack() async throws {
        let before = try await FolderFixture("deletion-unread")
        try before.folder.write("base", to: "file")
        let fixture = FolderFixture(folder: before.folder, afterTakingEffect: FolderWritingTests.unreadable)
        try await fixture.provider.connect()
        let (item, reference) = try await fixture.item("file")
        #expect(await code { try await fixture.provider.delete(reference, baseVersion: item.version) } == .retry)
        #expect(try fixture.folder.read("file") == Array("base".utf8))
        #expect(try fixture.folder.names().count == 2 && fixture.folder.names(in: ".promisefs/uploads").isEmpty)
    }

    private static let unreadable: TakenEffect = { () throws(ProviderError) in
        throw ProviderError(.retry, "the disk cannot be read")
    }

    @Test func aNameTakenInTheInstantOfACreateIsAConflict() async throws {
        let (fixture, interference) = try await fixture("create")
        let folder = fixture.folder
        let root = try await fixture.root()
        interference.once { try? folder.write("foreign", to: "new") }
        let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
        #expect(
            await code {
                _ = try await fixture.provider.create(
                    NewItem(name: name("new"), kind: .file, metadata: metadata), in: root, contents: try MemorySource([1]))
            } == .conflict)
        #expect(try folder.read("new") == Array("foreign".utf8))
        #expect(try folder.names(in: ".promisefs/uploads").isEmpty)
    }

    @Test func anItemReplacedInTheInstantOfItsMoveGoesBack() async throws {
        let (fixture, interference) = try await fixture("move")
        let folder = fixture.folder
        let (_, reference) = try await fixture.item("file")
        let root = try await fixture.root()
        interference.once {
            try? folder.write("foreign", to: "temporary")
            try? rename(folder, "temporary", "file")
        }
        #expect(
            await code {
                _ = try await fixture.provider.modify(
                    reference, changes: ItemChanges(place: (root, name("moved"))), contents: nil, baseVersion: nil)
            } == .conflict)
        #expect(try folder.read("file") == Array("foreign".utf8))
        #expect(!folder.exists("moved"))
    }

    @Test func ofTwoProvidersThatModifyOneVersionExactlyOneWins() async throws {
        let folder = try TemporaryFolder("two")
        try folder.write("0", to: "file")
        let (first, second) = (FolderFixture(folder: folder), FolderFixture(folder: folder))
        for round in 1...60 {
            let (item, reference) = try await first.item("file")
            let winners = await withTaskGroup(of: String?.self) { group in
                for (who, fixture) in [("first", first), ("second", second)] {
                    group.addTask {
                        let text = "\(who) \(round)"
                        guard let source = try? MemorySource(Array(text.utf8)) else { return nil }
                        let changed = try? await fixture.provider.modify(
                            reference, changes: ItemChanges(), contents: source, baseVersion: item.version)
                        return changed == nil ? nil : text
                    }
                }
                return await group.reduce(into: [String]()) { winners, text in if let text { winners.append(text) } }
            }
            #expect(winners.count == 1, "round \(round)")
            #expect(try folder.read("file") == winners.first.map { Array($0.utf8) }, "round \(round)")
            #expect(try await second.item("file").item.identifier == item.identifier)
        }
        #expect(try folder.names(in: ".promisefs/uploads").isEmpty)
    }

    /// A program that saves by rename all the time, against uploads on whatever version is there: each of its saves that is
    /// no longer there was replaced by an upload based on that very save, never by one based on an older one.
    @Test func uploadsNeverReplaceASaveTheyWereNotBasedOn() async throws {
        let fixture = try await FolderFixture("saves")
        let folder = fixture.folder
        try folder.write("save 0", to: "file")
        let isDone = Mutex(false)
        let writer = OwnedThread(name: "saves") {
            var number = 1
            while !isDone.withLock({ $0 }) {
                try? folder.write("save \(number)", to: "temporary")
                try? rename(folder, "temporary", "file")
                number += 1
                usleep(500)
            }
        }
        for _ in 0..<200 {
            guard let (item, reference) = try? await fixture.item("file"),
                let seen = try? await fixture.fetch(item, reference)
            else { continue }
            let source = try MemorySource(Array("upload on ".utf8) + seen)
            let outcome = await code {
                _ = try await fixture.provider.modify(
                    reference, changes: ItemChanges(), contents: source, baseVersion: item.version)
            }
            #expect(outcome == nil || outcome == .conflict || outcome == .notFound)
        }
        isDone.withLock { $0 = true }
        writer.join()
        #expect(try folder.names(in: ".promisefs/uploads").isEmpty)
    }

    @Test func holesStayHoles() async throws {
        let fixture = try await FolderFixture("sparse")
        let size: UInt64 = 100 << 30
        let source = try MemorySource(size: size, pieces: [(0, [1]), (50 << 30, [2]), (size - 1, [3])])
        let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
        let made = try await fixture.provider.create(
            NewItem(name: name("sparse"), kind: .file, metadata: metadata), in: try await fixture.root(), contents: source)
        #expect(made.size == size)
        let status = try FileStatus.of(fixture.folder.path("sparse"), label: "test")
        #expect(status.size == size)
        #expect(status.blocks < 4096)
        let sink = MemorySink()
        let reference = ItemReference(identifier: made.identifier, path: [made.name])
        try await fixture.provider.fetchContents(of: reference, version: made.version, range: ByteRange(0, 2), into: sink)
        #expect(sink.bytes == [1, 0])
    }

    @Test func ownerModeAndTimeAreSet() async throws {
        let fixture = try await FolderFixture("metadata")
        let isRoot = geteuid() == 0
        let (owner, group) = isRoot ? (1234, 4321) : (geteuid(), getegid())
        let time = Timestamp(seconds: 1_111_111_111, nanoseconds: 222_333_444)
        let metadata = Metadata(mode: 0o2751, owner: owner, group: group, modificationTime: time)
        let root = try await fixture.root()
        for kind in [NodeKind.file, .folder] {
            let made = try await fixture.provider.create(
                NewItem(name: name("\(kind)"), kind: kind, metadata: metadata), in: root,
                contents: kind == .file ? try MemorySource([1]) : nil)
            #expect(made.metadata == metadata)
            let reference = ItemReference(identifier: made.identifier, path: [made.name])
            #expect(try await fixture.provider.item(for: reference).metadata == metadata)
        }
        let link = try await fixture.provider.create(
            NewItem(name: name("link"), kind: .link, metadata: metadata, target: Array("x".utf8)), in: root, contents: nil)
        #expect(link.metadata.owner == owner && link.metadata.modificationTime == time)
    }

    @Test func oldTemporaryFilesAreRemovedAtConnectAndYoungOnesKept() async throws {
        let folder = try TemporaryFolder("rubbish")
        try folder.makeFolder(".promisefs/uploads")
        try folder.write("x", to: ".promisefs/uploads/left-behind")
        try await FolderFixture(folder: folder).provider.connect()
        #expect(try folder.names(in: ".promisefs/uploads") == [Array("left-behind".utf8)])
        try await FolderProvider(path: folder.path, logger: quietLogger, clock: ClockOfTomorrow()).connect()
        #expect(try folder.names(in: ".promisefs/uploads").isEmpty)
    }

    private struct ClockOfTomorrow: TimeSource {
        func now() -> Timestamp { SystemClock().now().advanced(by: .seconds(90_000)) }
        func uptime() -> Duration { SystemClock().uptime() }
    }

    @Test func aLongUploadCanBeCancelled() async throws {
        let fixture = try await FolderFixture("cancelled")
        let root = try await fixture.root()
        let source = try MemorySource([UInt8](repeating: 1, count: 64 << 20))
        let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
        let upload = Task {
            try await fixture.provider.create(
                NewItem(name: name("file"), kind: .file, metadata: metadata), in: root, contents: source)
        }
        upload.cancel()
        #expect(await code { _ = try await upload.value } == .cancelled)
        #expect(!fixture.folder.exists("file"))
    }
}
