import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Whoever may write one file of the folder may write a mark on it, also that of a file that is not theirs.
@Suite struct StrangersMarkTests {
    /// `secret` with a mark, and `sub/x`, which says to be `secret`. Returns what is known of `secret`.
    private func attacked(_ fixture: FolderFixture) async throws -> Item {
        try fixture.folder.write("one", to: "secret")
        try fixture.folder.makeFolder("sub")
        try fixture.folder.write("stranger", to: "sub/x")
        let secret = try await fixture.replace("secret", "two")
        let own = try await fixture.item("sub/x").item.identifier
        try mark(fixture, "sub/x", "\(secret.identifier.rawValue) \(own.rawValue)")
        return secret
    }

    private func mark(_ fixture: FolderFixture, _ path: String, _ text: String) throws {
        let file = try Descriptor.open(fixture.folder.path(path), flags: 2, label: "test.mark")
        try setAttribute("user.promisefs.identifier", to: Array(text.utf8), of: file.number, label: "test.mark.set")
    }

    /// As a daemon that has begun anew: it knows where the item was, and has listed nothing.
    private func anew(_ fixture: FolderFixture, knowing secret: Item) async throws -> FolderFixture {
        let places = KnownPlaces()
        places.know { item, _, name in
            item == secret.identifier && name != secret.name ? [secret.name] : nil
        }
        let result = FolderFixture(folder: fixture.folder, knownPlaces: places)
        try await result.provider.connect()
        return result
    }

    @Test func aFileElsewhereThatSaysToBeAnItemDoesNotTakeItAway() async throws {
        let first = try await FolderFixture("stranger")
        let secret = try await attacked(first)
        let fixture = try await anew(first, knowing: secret)
        let (x, reference) = try await fixture.item("sub/x")
        #expect(x.identifier != secret.identifier)
        #expect(try await fixture.item("secret").item.identifier == secret.identifier)
        // An edit of the item goes to it, and one of the other file to that.
        _ = try await fixture.replace("secret", "three")
        let edited = try await fixture.provider.modify(
            reference, changes: ItemChanges(), contents: try MemorySource(Array("mine".utf8)), baseVersion: x.version)
        #expect(edited.identifier == x.identifier)
        #expect(try fixture.folder.read("secret") == Array("three".utf8))
        #expect(try fixture.folder.read("sub/x") == Array("mine".utf8))
    }

    private final class Switch: Sendable {
        let isOn = Mutex(false)
    }

    /// Each of the two led to the other, without end: the daemon died of it, and so did its successors.
    @Test func ofTwoFilesThatSayToBeOneItemTheOneThatIsKnownIs() async throws {
        let first = try await FolderFixture("two marks")
        for folder in ["other", "sub"] { try first.folder.makeFolder(folder) }
        try first.folder.write("one", to: "other/secret")
        try first.folder.write("stranger", to: "sub/x")
        let secret = try await first.replace("other/secret", "two")
        let own = try await first.item("sub/x").item.identifier
        try mark(first, "sub/x", "\(secret.identifier.rawValue) \(own.rawValue)")
        let (places, knows) = (KnownPlaces(), Switch())
        places.know { item, _, name in
            guard knows.isOn.withLock({ $0 }), item == secret.identifier, name != secret.name else { return nil }
            return [FileName("other")!, secret.name]
        }
        let fixture = FolderFixture(folder: first.folder, knownPlaces: places)
        try await fixture.provider.connect()
        // The one that was seen first, as long as nothing is known.
        #expect(try await fixture.item("sub/x").item.identifier == secret.identifier)
        knows.isOn.withLock { $0 = true }
        #expect(try await fixture.item("other/secret").item.identifier == secret.identifier)
        #expect(try await fixture.item("sub/x").item.identifier != secret.identifier)
        #expect(try await fixture.item("other/secret").item.identifier == secret.identifier)
    }

    @Test func anItemThatOthersMovedIsStillFoundByItsMark() async throws {
        let first = try await FolderFixture("moved mark")
        try first.folder.write("one", to: "secret")
        try first.folder.makeFolder("sub")
        let secret = try await first.replace("secret", "two")
        let fixture = try await anew(first, knowing: secret)
        try rename(fixture.folder, "secret", "sub/moved")
        #expect(try await fixture.item("sub/moved").item.identifier == secret.identifier)
    }

    /// Of a disk that somebody brings along, and of what no file is called.
    @Test func aMarkIsBelievedAsFarAsItsFileSystemsNumbersGo() async throws {
        let fixture = try await FolderFixture("numbers")
        _ = try await attacked(fixture)
        try mark(fixture, "sub/x", "")
        let own = try await fixture.item("sub/x").item.identifier.rawValue
        let root = try await fixture.root().identifier.rawValue
        for claim in [root, "12ab@77", "12ab~77", "../secret", "12 ab", String(repeating: "a", count: 600)] {
            try mark(fixture, "sub/x", "\(claim) \(own)")
            #expect(try await fixture.item("sub/x").item.identifier.rawValue == own, "\(claim)")
        }
        try mark(fixture, "sub/x", "12ab \(own)")
        #expect(try await fixture.item("sub/x").item.identifier.rawValue == "12ab")
    }
}
