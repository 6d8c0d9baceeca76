import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

/// Names that no file can have, and what is wrong with the root itself: named, but never mended, or not even named.
@Suite struct NameRepairTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    /// What `verify` says of `damage`, which is run on the closed database. It holds again after `repair`.
    private func problems(
        of damage: [StaticString], after body: (borrowing Transaction) throws(Failure) -> Void
    ) throws -> [String] {
        let index = try folder.open()
        try index.write(body)
        index.close()
        for sql in damage { try Index.runAside(sql, path: folder.database) }
        let damaged = try folder.open()
        defer { damaged.close() }
        let found = try damaged.verify()
        let done = try damaged.write { transaction throws(Failure) in
            try transaction.repair(now: .zero, hasContent: { $0.content == .whole }, keep: { _ in [] })
        }
        #expect(!done.isEmpty)
        #expect(try damaged.verify() == [])
        #expect(try damaged.verifyQueue() == [])
        return found
    }

    private func read<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws -> Value {
        let index = try folder.open()
        defer { index.close() }
        return try index.read(body)
    }

    private func names() throws -> [String] {
        try read { transaction throws(Failure) in try transaction.children(of: .root).map(\.name.display) }
    }

    /// The kernel refused to list their folder.
    @Test func namesThatNoFileCanHaveBecomeNames() throws {
        let found = try problems(of: [
            "UPDATE entry SET name = x'' WHERE id = 1", "UPDATE entry SET name = x'612F62' WHERE id = 2",
            "UPDATE entry SET name = zeroblob(300) WHERE id = 3", "UPDATE entry SET name = 'text' WHERE id = 4",
            "UPDATE entry SET name = x'2E2E' WHERE id = 5", "UPDATE entry SET name = x'6100' WHERE id = 6",
        ]) { transaction throws(Failure) in
            for text in ["a", "b", "c", "d", "e", "f"] { try transaction.make(named: name(text)) { $0.content = .whole } }
        }
        #expect(found.count == 6, "\(found)")
        #expect(try names() == ["recovered 2", "recovered 3", "recovered 4", "recovered 6", "recovered 7", "text"])
    }

    /// In its folder, where it belongs.
    @Test func aNameThatNoFileCanHaveStaysInItsFolder() throws {
        _ = try problems(of: ["UPDATE entry SET name = x'2F' WHERE id = 2"]) { transaction throws(Failure) in
            let made = try transaction.make(.folder, named: name("a"))
            try transaction.make(in: made.node.id, named: name("b"))
            try transaction.make(in: made.node.id, named: name("recovered 3"))
        }
        let below = try read { transaction throws(Failure) in
            try transaction.children(of: NodeID(2)).map(\.name.display)
        }
        #expect(below == ["recovered 3", "recovered 3 1"])
    }

    /// The provider would have been told of a made-up name as if somebody had chosen it.
    @Test func whatTheProviderHasIsCalledAsThereOrLookedAtAgain() throws {
        let found = try problems(of: [
            "UPDATE entry SET name = x'622F' WHERE identifier = 'i'", "UPDATE entry SET name = x'00' WHERE identifier = 'j'",
        ]) { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            try transaction.make(named: name("b"), identifier: "i") { node in
                node.version = ContentVersion("1")
                node.size = 3
            }
            try transaction.setSynced(SyncedItem(item: item("i", in: "root", named: name("b")), edits: 0))
            var node = Node(id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 3, time: time(5))
            node.version = ContentVersion("1")
            _ = try transaction.insertListed(node, of: item("j", in: "root", named: name("listed")), in: .root)
        }
        #expect(found.count == 2, "\(found)")
        #expect(try names() == ["b", "recovered 3"])
        try read { transaction throws(Failure) in
            #expect(try transaction.allPending(limit: 9).isEmpty)
            #expect(try transaction.synced(ItemIdentifier("j"))?.item.name.display == "recovered 3")
        }
    }

    @Test func namesOfItemsThatNoFileCanHave() throws {
        let found = try problems(of: [
            "UPDATE synced SET name = x'2F'", "UPDATE displaced SET name = x''",
            """
            INSERT INTO remote (is_deleted, identifier, parent, name, kind, size, mode, owner, owner_group,
                modification_time, version) VALUES (0, 'r', 'root', x'2E', 0, 0, 0, 0, 0, 0, '1')
            """,
        ]) { transaction throws(Failure) in
            try transaction.make(named: name("b"), identifier: "i")
            try transaction.setSynced(SyncedItem(item: item("i", in: "root", named: name("b")), edits: 0))
            try transaction.setSynced(SyncedItem(item: item("gone", in: "root", named: name("c")), edits: 0))
            let open = try transaction.insert(
                {
                    var node = Node(id: .root, kind: .file, mode: 0, owner: 0, group: 0, time: .zero)
                    node.linkCount = 0
                    return node
                }())
            try transaction.setDisplaced(
                DisplacedNode(node: open.id, parent: .root, name: name("d"), edits: 0, conflictsWith: nil))
        }
        #expect(found.count == 4, "\(found)")
        try read { transaction throws(Failure) in
            #expect(try transaction.synced(ItemIdentifier("i"))?.item.name == name("b"))
            #expect(try transaction.synced(ItemIdentifier("gone")) == nil)
            #expect(try transaction.remote(ItemIdentifier("r")) == nil)
            #expect(try transaction.displaced(NodeID(3))?.name == name("recovered 3"))
        }
    }

    // MARK: The root

    /// Everything in it was taken for lost, and got made-up names.
    @Test func aRootThatIsNoFolderIsOneAgainAndKeepsItsNames() throws {
        let found = try problems(of: ["UPDATE node SET kind = 0, content = 2, link_count = 0 WHERE id = 1"]) {
            transaction throws(Failure) in
            try transaction.make(named: name("a"))
            try transaction.make(.folder, named: name("b"))
        }
        #expect(found.contains("node 1 is not the root folder"), "\(found)")
        #expect(try names() == ["a", "b"])
        let root = try read { transaction throws(Failure) in try transaction.node(.root) }
        #expect(root?.kind == .folder && root?.content == .absent && root?.linkCount == 3)
    }

    /// The next start would have taken it for a file that was removed while it was open.
    @Test func aRootWithoutLinks() throws {
        let found = try problems(of: ["UPDATE node SET link_count = 0 WHERE id = 1"]) { _ throws(Failure) in }
        #expect(found == ["the root folder has the link count 0 and content 0"])
    }

    @Test func aNameOfTheRoot() throws {
        let found = try problems(of: ["INSERT INTO entry VALUES (99, 1, x'7A', 1, NULL, 0, NULL)"]) {
            transaction throws(Failure) in
            try transaction.make(named: name("a"))
        }
        #expect(found == ["entry 99 names the root folder, which has no name"])
        #expect(try names() == ["a"])
    }

    /// The next mount would have taken any storage for the domain's, and all items for gone.
    @Test func aRootOfNoStorage() throws {
        let found = try problems(of: []) { transaction throws(Failure) in
            try transaction.setSynced(SyncedItem(item: item("r", in: nil, named: name("x"), kind: .folder), edits: 0))
        }
        #expect(found == ["the index does not say that it belongs to the storage r"])
        #expect(try read { transaction throws(Failure) in try transaction.setting("root.identifier") } == "r")
    }
}
