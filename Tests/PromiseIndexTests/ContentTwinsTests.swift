import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

/// Which other items may have the bytes of one.
@Suite struct ContentTwinsTests {
    private let folder: TemporaryFolder
    private let index: Index

    init() throws {
        folder = try TemporaryFolder("index")
        index = try Index(path: folder.database)
    }

    private func add(
        _ identifier: String, version: String, time nanoseconds: Int64 = 5, digest: String? = nil, size: UInt64 = 3,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        var item = item(identifier, in: "root", named: name(identifier), version: version)
        item.size = size
        item.metadata.modificationTime = time(nanoseconds)
        try transaction.setSynced(SyncedItem(item: item, edits: 0))
        guard let digest else { return }
        try transaction.setFingerprint(
            Fingerprint(version: item.version, size: size, digest: digest), of: item.identifier)
    }

    private func twins(of identifier: String, _ transaction: borrowing Transaction) throws(Failure) -> [String] {
        guard let known = try transaction.synced(ItemIdentifier(identifier)) else { return [] }
        let found = try ContentTwins.alike(known.item, transaction)
        for other in found { #expect(try ContentTwins.areAlike(known.item, other, transaction), "\(other)") }
        return found.map(\.rawValue)
    }

    private func areAlike(
        _ identifier: String, _ other: String, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let known = try transaction.synced(ItemIdentifier(identifier)) else { return false }
        return try ContentTwins.areAlike(known.item, ItemIdentifier(other), transaction)
    }

    @Test func theSameVersionComesBeforeTheSameDigest() throws {
        try index.write { transaction throws(Failure) in
            try add("a", version: "1", digest: "x", transaction)
            try add("digest", version: "2", time: 6, digest: "x", transaction)
            try add("version", version: "1", time: 6, transaction)
            try add("other", version: "3", digest: "y", transaction)
            #expect(try twins(of: "a", transaction) == ["version", "digest"])
        }
    }

    @Test func theTimeCountsWhereADigestIsNotKnown() throws {
        try index.write { transaction throws(Failure) in
            try add("a", version: "1", transaction)
            try add("same", version: "2", digest: "x", transaction)
            try add("later", version: "3", time: 6, transaction)
            #expect(try twins(of: "a", transaction) == ["same"])
        }
    }

    /// A digest of an older version says nothing of this one.
    @Test func anOldDigestIsNone() throws {
        try index.write { transaction throws(Failure) in
            try add("a", version: "1", digest: "x", transaction)
            try add("b", version: "2", time: 6, digest: "x", transaction)
            try transaction.setFingerprint(
                Fingerprint(version: ContentVersion("0"), size: 3, digest: "x"), of: ItemIdentifier("b"))
            #expect(try twins(of: "a", transaction).isEmpty)
        }
    }

    @Test func whatHasAnotherSizeOrIsEmptyHasNone() throws {
        try index.write { transaction throws(Failure) in
            try add("a", version: "1", transaction)
            try add("longer", version: "1", size: 4, transaction)
            try add("empty", version: "2", size: 0, transaction)
            try add("alsoEmpty", version: "2", size: 0, transaction)
            #expect(try twins(of: "a", transaction).isEmpty)
            #expect(try twins(of: "empty", transaction).isEmpty)
        }
    }

    /// What a listing brought has no row of its own.
    @Test func whatWasOnlyListedIsOne() throws {
        try index.write { transaction throws(Failure) in
            try add("a", version: "1", transaction)
            let listed = item("listed", in: "root", named: name("listed"), version: "1")
            let node = Node(
                id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 3, time: time(5), version: listed.version)
            #expect(try transaction.insertListed(node, of: listed, in: .root))
            #expect(try twins(of: "a", transaction) == ["listed"])
        }
    }

    @Test func oneOfThemCanBeAskedFor() throws {
        try index.write { transaction throws(Failure) in
            for name in ["a", "b", "no"] {
                try add(name, version: name == "no" ? "2" : "1", digest: name, transaction)
            }
            #expect(try areAlike("a", "b", transaction))
            #expect(try !areAlike("a", "no", transaction))
            #expect(try !areAlike("a", "a", transaction))
            #expect(try !areAlike("a", "nobody", transaction))
        }
    }
}
