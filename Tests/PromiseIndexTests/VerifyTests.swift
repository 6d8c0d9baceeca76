import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

/// Each invariant, broken alone, is named by `verify`, and holds again after `repair`.
@Suite struct VerifyTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    private func problems(after body: (borrowing Transaction) throws(Failure) -> Void) throws -> [String] {
        let index = try folder.open()
        try index.write(body)
        let found = try index.verify()
        let done = try index.write { transaction throws(Failure) in
            try transaction.repair(now: .zero, hasContent: { $0.content == .whole }, keep: { _ in [] })
        }
        #expect(!done.isEmpty)
        #expect(try index.verify() == [])
        #expect(try index.verifyQueue() == [])
        return found
    }

    @Test func anEntryOfAMissingNode() throws {
        let found = try problems { transaction throws(Failure) in
            _ = try transaction.insertEntry(in: .root, named: name("a"), node: NodeID(77), identifier: nil)
        }
        #expect(found == ["entry 1 names node 77, which does not exist"])
    }

    @Test func anEntryInAFile() throws {
        let found = try problems { transaction throws(Failure) in
            let file = try transaction.make(named: name("a"))
            try transaction.make(in: file.node.id, named: name("b"))
        }
        #expect(found == ["entry 2 is in node 2, which is no folder or does not exist"])
    }

    @Test func aNodeWithoutAnEntry() throws {
        let found = try problems { transaction throws(Failure) in
            _ = try transaction.insert(Node(id: .root, kind: .file, mode: 0, owner: 0, group: 0, time: .zero))
        }
        #expect(found == ["node 2 has the link count 1 but no entry"])
    }

    @Test func aWrongLinkCount() throws {
        let found = try problems { transaction throws(Failure) in try transaction.make(named: name("a")) { $0.linkCount = 2 } }
        #expect(found == ["node 2 has the link count 2 but 1 entries"])
    }

    @Test func aFolderWithTwoNames() throws {
        let found = try problems { transaction throws(Failure) in
            let made = try transaction.make(.folder, named: name("a"))
            _ = try transaction.insertEntry(in: .root, named: name("b"), node: made.node.id, identifier: nil)
        }
        #expect(found == ["folder 2 has 2 entries"])
    }

    @Test func aCircleOfFolders() throws {
        let found = try problems { transaction throws(Failure) in
            let outer = try transaction.make(.folder, named: name("a"))
            let inner = try transaction.make(.folder, in: outer.node.id, named: name("b"))
            var entry = outer.entry
            entry.parent = inner.node.id
            try transaction.update(entry)
        }
        #expect(found.count == 2 && found.allSatisfy { $0.contains("cannot be reached from the root") })
    }

    /// What is below a circle comes with it.
    @Test func circlesBesideEachOther() throws {
        let found = try problems { transaction throws(Failure) in
            for number in 0..<3 { try makeCircle(number, transaction) }
        }
        #expect(found.count == 9)
        let index = try folder.open()
        let names = try index.read { transaction throws(Failure) in try transaction.children(of: .root) }
        #expect(names.count == 3)
    }

    private func makeCircle(_ number: Int, _ transaction: borrowing Transaction) throws(Failure) {
        let outer = try transaction.make(.folder, named: name("outer \(number)"))
        let inner = try transaction.make(.folder, in: outer.node.id, named: name("inner \(number)"))
        try transaction.make(in: inner.node.id, named: name("file"))
        var entry = outer.entry
        entry.parent = inner.node.id
        try transaction.update(entry)
    }

    /// The name by which it could be reached was removed, and a circle was left.
    @Test func aFolderWithAFirstNameInACircle() throws {
        let found = try problems { transaction throws(Failure) in
            let outer = try transaction.make(.folder, named: name("a"))
            let inner = try transaction.make(.folder, in: outer.node.id, named: name("b"))
            _ = try transaction.insertEntry(in: .root, named: name("c"), node: outer.node.id, identifier: nil)
            var entry = outer.entry
            entry.parent = inner.node.id
            try transaction.update(entry)
        }
        #expect(found == ["folder 2 has 2 entries"])
    }

    /// A mount waits for it.
    @Test(arguments: ["in files", "in circles", "of one file"]) func manyLooseNamesAreAsQuickAsFew(_ kind: String) throws {
        func steps(_ count: Int) throws -> Int {
            let folder = try TemporaryFolder("index")
            let index = try folder.open()
            defer { index.close() }
            try index.write { transaction throws(Failure) in
                let file = try transaction.make(named: name("file"))
                let other = try transaction.make(named: name("other"))
                for number in 0..<count {
                    switch kind {
                    case "in files": try transaction.make(in: file.node.id, named: name("\(number)"))
                    case "in circles": try makeCircle(number, transaction)
                    default:
                        _ = try transaction.insertEntry(
                            in: file.node.id, named: name("\(number)"), node: other.node.id, identifier: nil)
                    }
                }
            }
            let before = try index.stepCount()
            try index.write { transaction throws(Failure) in
                _ = try transaction.repair(now: .zero, hasContent: { _ in true }, keep: { _ in [] })
            }
            let done = try index.stepCount() - before
            #expect(try index.verify() == [])
            return done
        }
        let (few, many) = (try steps(200), try steps(800))
        #expect(many < 7 * few, "\(few) steps of SQLite's for 200, \(many) for 800")
    }

    /// As `problems`, of what no call makes: each of `damage` is run on the closed database.
    private func problems(
        ofDamage damage: [StaticString], after body: (borrowing Transaction) throws(Failure) -> Void
    ) throws -> [String] {
        let index = try folder.open()
        try index.write(body)
        index.close()
        for sql in damage { try Index.runAside(sql, path: folder.database) }
        return try problems { _ throws(Failure) in }
    }

    /// It could be neither listed nor renamed nor removed, and its folder not be listed: no repair mended it.
    @Test func nodesThatAreSaidToBeAsSynced() throws {
        let found = try problems(ofDamage: ["UPDATE node SET is_as_synced = 1 WHERE kind = 0"]) { transaction throws(Failure) in
            try transaction.make(named: name("absent"), identifier: "i")
            try transaction.make(named: name("whole"), identifier: "j") { $0.content = .whole }
            try transaction.make(named: name("new")) { $0.content = .whole }
            try transaction.make(named: name("synced"), identifier: "k") { $0.version = ContentVersion("1") }
            try transaction.setSynced(SyncedItem(item: item("k", in: "root", named: name("synced")), edits: 0))
        }
        #expect(found.count == 4 && found.allSatisfy { $0.contains("is said to be as synced, but has no item") })
        let index = try folder.open()
        try index.read { transaction throws(Failure) in
            // What is not here comes back from the provider.
            #expect(try transaction.children(of: .root).map(\.name.display) == ["new", "synced", "whole"])
            #expect(try transaction.synced(ItemIdentifier("k"))?.item.version == ContentVersion("1"))
            #expect(try transaction.entry(in: .root, named: name("synced"))?.identifier == ItemIdentifier("k"))
        }
        try index.write { transaction throws(Failure) in
            for entry in try transaction.children(of: .root) { try transaction.delete(entry.id) }
        }
    }

    @Test func rowsOfNodesOfAnotherKind() throws {
        let found = try problems(
            ofDamage: [
                "INSERT INTO hole VALUES (2, 0, 1), (77, 0, 1)",
                "INSERT INTO displaced VALUES (2, 1, x'61', 0, NULL), (77, 1, x'61', 0, NULL)",
            ]
        ) { transaction throws(Failure) in try transaction.make(named: name("a")) }
        #expect(found.count == 4)
    }

    @Test func whatWasRemovedAndIsThere() throws {
        let found = try problems { transaction throws(Failure) in
            let made = try transaction.make(named: name("a")) { $0.content = .whole }
            try RemovedRows.insert(RemovedItem(made.node, at: [name("a")], removed: .zero), transaction)
        }
        #expect(found == ["node 2 is kept as one that was removed, but has a name"])
    }

    /// All of it is here and stays so.
    @Test func rangesThatTouch() throws {
        let found = try problems(ofDamage: ["INSERT INTO local_range VALUES (2, 3, 5)"]) { transaction throws(Failure) in
            let made = try transaction.make(named: name("a")) { node in
                node.content = .partial
                node.size = 9
            }
            try transaction.setRanges(of: made.node.id, to: ByteRangeSet([ByteRange(0, 3)]))
        }
        #expect(found == ["node 2 has a local range from 3 on that touches one up to 3"])
        let index = try folder.open()
        let ranges = try index.read { transaction throws(Failure) in try transaction.ranges(of: NodeID(2)) }
        #expect(ranges == ByteRangeSet([ByteRange(0, 5)]))
    }

    @Test func anItemThatNobodyKnows() throws {
        let found = try problems { transaction throws(Failure) in try transaction.make(named: name("a"), identifier: "i") }
        #expect(found == ["entry 1 stands for the item i, which is neither synced nor remote"])
    }

    @Test func pendingRowsOfNothing() throws {
        let found = try problems { transaction throws(Failure) in
            try transaction.setPending(Pending(subject: .entry(EntryID(5)), since: .zero, due: .zero))
            try transaction.setPending(Pending(subject: .deletion(ItemIdentifier("i")), since: .zero, due: .zero))
        }
        #expect(found.count == 2)
    }

    @Test func rangesBeyondTheSizeAndOfWholeContent() throws {
        let found = try problems { transaction throws(Failure) in
            let partial = try transaction.make(named: name("a")) { node in
                node.content = .partial
                node.size = 5
            }
            try transaction.setRanges(of: partial.node.id, to: ByteRangeSet([ByteRange(0, 6)]))
            let whole = try transaction.make(named: name("b")) { node in
                node.content = .whole
                node.size = 5
            }
            try transaction.setRanges(of: whole.node.id, to: ByteRangeSet([ByteRange(0, 5)]))
        }
        #expect(found == ["node 3 has local ranges but no partial content", "node 2 of 5 bytes has the local range 0..<6"])
    }

    @Test func attributesOfNothing() throws {
        let found = try problems { transaction throws(Failure) in try transaction.setAttribute([1], of: NodeID(9), to: []) }
        #expect(found == ["there are extended attributes of node 9, which does not exist"])
    }

    /// The kernel was not told, and went on showing what was; folders' links were what they had been.
    @Test func whatProgramsSeeOfARepairIsInTheFeed() throws {
        let index = try folder.open()
        let before: Int64 = try index.write { transaction throws(Failure) in
            try transaction.make(named: name("linked")) { $0.linkCount = 7 }
            let made = try transaction.make(.folder, named: name("a"))
            try transaction.make(.folder, in: made.node.id, named: name("below"))
            _ = try transaction.insertEntry(in: .root, named: name("b"), node: made.node.id, identifier: nil)
            return try transaction.lastChange()
        }
        let changes: [Change] = try index.write { transaction throws(Failure) in
            _ = try transaction.repair(now: .zero, hasContent: { _ in true }, keep: { _ in [] })
            return try transaction.changes(since: before, limit: .max)
        }
        #expect(changes.map { "\($0.kind) \($0.name?.display ?? "")" } == ["deleted b", "modified linked", "modified a"])
        let root = try index.read { transaction throws(Failure) in try transaction.node(.root) }
        #expect(root?.linkCount == 3)
    }

    /// What is missing looked like a removal: the provider was told to delete what nobody had removed.
    @Test func anItemWhoseNameIsLostIsNotDeletedAtTheProvider() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            for id in [NodeID.root, try transaction.make(.folder, named: name("a"), identifier: "f").node.id] {
                guard var folder = try transaction.node(id) else { continue }
                folder.isPopulated = true
                try transaction.update(folder)
            }
            for (identifier, parent) in [("f", "root"), ("i", "f"), ("j", "root"), ("removed", "root"), ("below", "removed")] {
                try transaction.setSynced(SyncedItem(item: item(identifier, in: parent, named: name(identifier)), edits: 0))
            }
            let removed = Pending.Subject.deletion(ItemIdentifier("removed"))
            try transaction.setPending(Pending(subject: removed, since: .zero, due: .zero))
        }
        let found = try index.verifyQueue()
        #expect(found.count == 2 && found.allSatisfy { $0.hasSuffix("nobody has removed it") }, "\(found)")
        try index.write { transaction throws(Failure) in
            _ = try transaction.repair(now: .zero, hasContent: { _ in true }, keep: { _ in [] })
        }
        #expect(try index.verify() == [])
        #expect(try index.verifyQueue() == [])
        try index.read { transaction throws(Failure) in
            for identifier in ["i", "j", "removed", "below"] {
                let isLost = ["i", "j"].contains(identifier)
                let item = ItemIdentifier(identifier)
                #expect(try (transaction.remote(item) != nil) == isLost)
                #expect(try (transaction.pending(.deletion(item)) == nil) == isLost)
            }
        }
    }

    @Test func noMoreThanAThousandSentences() throws {
        let found = try problems { transaction throws(Failure) in
            for number in 0..<1_500 { try transaction.make(named: name("\(number)"), identifier: "\(number)") }
        }
        #expect(found.count == 1_000)
    }
}
