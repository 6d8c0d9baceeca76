import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseTestSupport
import Testing

/// What was noted of an item before the domain went to another storage.
@Suite struct FormerIdentifierTests {
    private static let time = Timestamp(seconds: 1_000_000, nanoseconds: 0)
    private static let old = ["first": "1", "second": "2", "gone": "3", "third": "4"]
    /// The new storage gives the numbers that the old one had given to others.
    private static let new = ["first": "2", "second": "1", "third": "3"]

    private func make(_ names: [String: String], _ index: Index) throws -> [String: EntryID] {
        try index.write { transaction throws(Failure) in
            var made: [String: EntryID] = [:]
            for (name, identifier) in names {
                let node = try transaction.insert(
                    Node(
                        id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 5,
                        time: FormerIdentifierTests.time, content: .absent))
                let entry = try transaction.insertEntry(
                    in: .root, named: FileName(name)!, node: node.id,
                    identifier: ItemIdentifier(identifier))
                made[name] = entry.id
            }
            return made
        }
    }

    private func migrate(_ path: [UInt8]) throws {
        func renaming(_ old: String, _ new: String) -> ProviderChange.Renaming {
            ProviderChange.Renaming(
                old: ItemIdentifier(old), new: ItemIdentifier(new), version: ContentVersion("v"),
                newVersion: ContentVersion("w"), target: nil)
        }
        let renamings = Self.new.map { name, new in renaming(Self.old[name]!, new) }
        try ProviderChange(path: path).apply(renamings, to: "new", root: renaming("root", "new root"))
    }

    private func found(_ name: String, _ identifier: String, _ bound: EntryID, _ index: Index) throws -> EntryID? {
        let key = ItemKey(
            identifier: ItemIdentifier(identifier), machine: nil, kind: .file, path: [FileName(name)!])
        return try index.read { transaction throws(Failure) in
            try ItemFinder(key, bound: bound).find(transaction).entry?.id
        }
    }

    /// A bookmark of a document opened the one that the new storage calls what the old one had called it.
    @Test func whatIsCalledSoNowIsNotWhatWasCalledSoBefore() throws {
        let folder = try TemporaryFolder("former")
        let path = folder.path("index.sqlite")
        var index = try Index(path: path, cacheCountMax: 1_000)
        let made = try make(Self.old, index)
        index.close()
        try migrate(path)
        index = try Index(path: path, cacheCountMax: 1_000)
        defer { index.close() }
        for name in ["first", "second", "third"] {
            let entry = try #require(made[name])
            // By what was noted before, and by what would be noted now.
            #expect(try found(name, Self.old[name]!, entry, index) == entry, "\(name)")
            #expect(try found(name, Self.new[name]!, entry, index) == entry, "\(name)")
        }
        // As soon as it is known that the new storage does not have it.
        let gone = try #require(made["gone"])
        try index.write { transaction throws(Failure) in try transaction.delete(gone) }
        #expect(try found("gone", "3", gone, index) == nil)
    }
}
