import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

@Suite struct NodeAndEntryTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    @Test func firstOpenMakesTheRootFolder() throws {
        let index = try folder.open()
        let root = try #require(try index.read { transaction throws(Failure) in try transaction.node(.root) })
        #expect(root.kind == .folder && root.mode == 0o755 && root.linkCount == 2 && !root.isPopulated)
        #expect(try index.verify() == [])
    }

    /// An older program took any number of a server for one.
    @Test func aSizeThatNoFileHasIsReadAsTheLargest() throws {
        let index = try folder.open()
        var node = Node(
            id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 1 << 63, time: time(1), content: .absent)
        node.version = ContentVersion("1")
        let stored = try index.write { [node] transaction throws(Failure) in try transaction.insert(node) }
        index.close()
        let again = try folder.open()
        let read = try again.read { transaction throws(Failure) in try transaction.node(stored.id) }
        #expect(read?.size == UInt64(Int64.max))
    }

    @Test func everyFieldOfANodeSurvivesReopening() throws {
        var node = Node(
            id: .root, kind: .link, mode: 0o4755, owner: .max, group: 7, size: UInt64(Int64.max),
            time: time(-1), content: .partial,
            version: ContentVersion("vé\u{0}x"))
        node.accessTime = time(.max)
        node.modificationTime = time(2)
        node.changeTime = time(3)
        node.birthTime = time(4)
        node.linkCount = 0
        node.device = 0x8000_0000_0000_0001
        node.target = [0xFF, 0, 0x2F]
        node.generation = Generation(9)
        node.edits = 10
        node.isOpenForWriting = true
        node.pin = .onlineOnly
        node.lastUse = time(11)
        node.localBytes = 12
        node.isPopulated = true
        node.durability = .begun
        let index = try folder.open()
        let stored = try index.write { [node] transaction throws(Failure) in try transaction.insert(node) }
        index.close()
        node.id = stored.id
        let again = try folder.open()
        #expect(try again.read { transaction throws(Failure) in try transaction.node(stored.id) } == node)
        node.target = []
        node.version = nil
        node.isPopulated = false
        try again.write { [node] transaction throws(Failure) in try transaction.update(node) }
        again.close()
        #expect(try folder.open().read { transaction throws(Failure) in try transaction.node(stored.id) } == node)
    }

    @Test func idsAreNeverReusedAfterReopening() throws {
        var seen: Set<UInt64> = [1]
        var entries: Set<Int64> = []
        for round in 0..<3 {
            let index = try folder.open()
            for number in 0..<10 {
                let made = try index.write { transaction throws(Failure) in
                    try transaction.make(named: name("\(round) \(number)"))
                }
                #expect(seen.insert(made.node.id.rawValue).inserted)
                #expect(entries.insert(made.entry.id.rawValue).inserted)
                try index.write { transaction throws(Failure) in
                    try transaction.delete(made.entry.id)
                    try transaction.delete(made.node.id)
                }
            }
            index.close()
        }
    }

    /// Who had noted it before the provider had it could not find it any more.
    @Test func whatTheProviderCallsAnItemThatWasNotedIsKnownWhenItsNameHasGone() throws {
        let index = try folder.open()
        let (noted, other) = try index.write { transaction throws(Failure) in
            let made = [
                try transaction.make(named: name("noted")).entry, try transaction.make(named: name("other")).entry,
            ]
            try NotedName.noteUnsent(made[0].id, transaction)
            return (made[0], made[1])
        }
        func known(_ entry: Entry) throws -> ItemIdentifier? {
            try index.read { transaction throws(Failure) in try NotedName.identifier(of: entry.id, transaction) }
        }
        #expect(try known(noted) == nil)
        for identifier in ["first", "second"] {
            try index.write { transaction throws(Failure) in
                for entry in [noted, other] {
                    var sent = entry
                    sent.identifier = ItemIdentifier("\(identifier) \(entry.id)")
                    try transaction.update(sent)
                    // Noted again, as by another application.
                    try NotedName.noteUnsent(noted.id, transaction)
                }
            }
            #expect(try known(noted) == ItemIdentifier("\(identifier) \(noted.id)") && known(other) == nil)
        }
        try index.write { transaction throws(Failure) in try transaction.delete(noted.id) }
        index.close()
        let again = try folder.open()
        let kept = try again.read { transaction throws(Failure) in try NotedName.identifier(of: noted.id, transaction) }
        #expect(kept == ItemIdentifier("second \(noted.id)"))
    }

    /// What was given of a new document, and bookmarks of it, were lost when an editor saved it so.
    @Test func whatIsMadeInThePlaceOfWhatWasNotedIsTheDocument() throws {
        let index = try folder.open()
        func make(_ text: String, at seconds: Int64) throws -> Entry {
            try index.write { transaction throws(Failure) in
                var node = try transaction.insert(
                    Node(id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, time: time(seconds)))
                node.birthTime = time(seconds * 1_000_000_000)
                try transaction.update(node)
                return try transaction.insertEntry(
                    in: .root, named: name(text), node: node.id, identifier: nil)
            }
        }
        func leave(_ entry: Entry, at seconds: Int64) throws {
            try index.write { transaction throws(Failure) in
                try NotedName.noteLeft(entry, .file, at: time(seconds * 1_000_000_000), transaction)
                try transaction.delete(entry.id)
            }
        }
        func heir(_ entry: Entry) throws -> EntryID? {
            try index.read { transaction throws(Failure) in try NotedName.heir(of: entry.id, transaction)?.id }
        }
        let document = try make("doc", at: 1_000)
        try index.write { transaction throws(Failure) in try NotedName.noteUnsent(document.id, transaction) }
        try leave(document, at: 1_001)
        #expect(try heir(document) == nil)
        var saved = try make("doc", at: 1_002)
        #expect(try heir(document) == saved.id)
        saved.identifier = ItemIdentifier("saved")
        try index.write { [saved] transaction throws(Failure) in try transaction.update(saved) }
        let known = try index.read { transaction throws(Failure) in
            try NotedName.identifier(of: document.id, transaction)
        }
        #expect(known == ItemIdentifier("saved"))
        // What is made there much later is another one, and so is what nobody noted.
        let other = try make("other", at: 2_000)
        let unnoted = try make("unnoted", at: 2_000)
        try index.write { transaction throws(Failure) in try NotedName.noteUnsent(other.id, transaction) }
        try leave(other, at: 2_001)
        try leave(unnoted, at: 2_001)
        _ = try make("other", at: 2_700)
        _ = try make("unnoted", at: 2_002)
        #expect(try heir(other) == nil && heir(unnoted) == nil)
    }

    @Test func reservedIdsAreNobodyElses() throws {
        let index = try folder.open()
        // More than the index itself reserves at a time.
        let count = 5_000
        let first = try index.write { transaction throws(Failure) in try transaction.reserveNodes(count) }
        let later = try index.write { transaction throws(Failure) in try transaction.make(named: name("later")).node }
        #expect(later.id.rawValue >= first.rawValue + UInt64(count))
        let used = NodeID(first.rawValue + 7)
        let made = try index.write { transaction throws(Failure) in try transaction.insert(later, as: used) }
        #expect(made.id == used)
        index.close()
        let again = try folder.open()
        #expect(try again.read { transaction throws(Failure) in try transaction.node(used) } == made)
        let next = try again.write { transaction throws(Failure) in try transaction.make(named: name("next")).node.id }
        #expect(next > later.id)
    }

    @Test func idsAreNotReusedWhenTheReservationIsRolledBack() throws {
        let index = try folder.open()
        var first = NodeID.root
        #expect(
            failure {
                try index.write { transaction throws(Failure) in
                    first = try transaction.make(named: name("gone")).node.id
                    throw Failure(.interrupted, "the body gives up")
                }
            } == .interrupted)
        let second = try index.write { transaction throws(Failure) in try transaction.make(named: name("kept")).node.id }
        #expect(second > first)
        index.close()
        let third = try folder.open().write { transaction throws(Failure) in try transaction.make(named: name("later")).node.id }
        #expect(third > second)
    }

    @Test func namesAreComparedBytewise() throws {
        let names = [
            FileName([0xFF])!, FileName([0xFE])!, name("e\u{301}"), name("\u{E9}"), FileName([0x0A])!,
            FileName([UInt8](repeating: 0x61, count: 255))!, name("E"), name("e"),
        ]
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            for name in names { try transaction.make(named: name) }
        }
        index.close()
        let again = try folder.open()
        try again.read { transaction throws(Failure) in
            let children = try transaction.children(of: .root)
            #expect(children.map(\.name) == names.sorted())
            for name in names {
                let entry = try transaction.entry(in: .root, named: name)
                #expect(entry?.name == name)
                #expect(children.filter { $0.node == entry?.node }.count == 1)
            }
        }
    }

    @Test func aTakenNameIsRefusedAndTheBodyMayGoOn() throws {
        let index = try folder.open()
        let first = try index.write { transaction throws(Failure) in try transaction.make(named: name("a"), identifier: "i") }
        let other = try index.write { transaction throws(Failure) in
            #expect(throws: Failure.self) { _ = try transaction.make(named: name("a")) }
            let other = try transaction.make(named: name("b"))
            var moved = other.entry
            moved.name = name("a")
            do throws(Failure) { try transaction.update(moved) } catch { #expect(error.code == .exists) }
            var bound = other.entry
            bound.name = name("c")
            bound.identifier = ItemIdentifier("i")
            do throws(Failure) { try transaction.update(bound) } catch { #expect(error.code == .invalid) }
            return other
        }
        try index.read { transaction throws(Failure) in
            #expect(try transaction.entry(in: .root, named: name("a")) == first.entry)
            #expect(try transaction.entry(in: .root, named: name("b")) == other.entry)
            #expect(try transaction.entry(in: .root, named: name("c")) == nil)
            #expect(try transaction.entry(for: ItemIdentifier("i")) == first.entry)
        }
    }

    @Test func renamingMovesTheCachedEntryToo() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            let sub = try transaction.make(.folder, named: name("sub")) { $0.linkCount = 2 }
            let made = try transaction.make(named: name("a"), identifier: "i")
            try transaction.setSynced(SyncedItem(item: item("i", in: "root", named: name("a")), edits: 0))
            #expect(try transaction.entry(in: sub.node.id, named: name("b")) == nil)
            var moved = made.entry
            moved.parent = sub.node.id
            moved.name = name("b")
            try transaction.update(moved)
            #expect(try transaction.entry(in: .root, named: name("a")) == nil)
            #expect(try transaction.entry(in: sub.node.id, named: name("b")) == moved)
            #expect(try transaction.path(of: made.node.id) == [name("sub"), name("b")])
            #expect(try transaction.path(of: .root) == [])
            #expect(try transaction.hasChildren(sub.node.id))
        }
        #expect(try index.verify() == [])
    }

    @Test func exchangeSwapsPlacesAndKeepsIdentities() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            let one = try transaction.make(named: name("one"))
            let other = try transaction.make(named: name("other"))
            try transaction.exchange(one.entry.id, other.entry.id)
            #expect(try transaction.entry(in: .root, named: name("one"))?.id == other.entry.id)
            #expect(try transaction.entry(one.entry.id)?.name == name("other"))
        }
        #expect(try index.verify() == [])
    }

    @Test func hardLinksAreEntriesOfOneNodeAndOrphansHaveNone() throws {
        let index = try folder.open()
        let made = try index.write { transaction throws(Failure) in
            var made = try transaction.make(named: name("a"))
            _ = try transaction.insertEntry(in: .root, named: name("b"), node: made.node.id, identifier: nil)
            made.node.linkCount = 2
            try transaction.update(made.node)
            #expect(try transaction.entries(of: made.node.id).map(\.name) == [name("a"), name("b")])
            return made
        }
        #expect(try index.verify() == [])
        try index.write { transaction throws(Failure) in
            for entry in try transaction.entries(of: made.node.id) { try transaction.delete(entry.id) }
            var node = made.node
            node.linkCount = 0
            try transaction.update(node)
            #expect(try transaction.orphans() == [node])
            #expect(try transaction.path(of: node.id) == nil)
        }
        #expect(try index.verify() == [])
        try index.write { transaction throws(Failure) in try transaction.delete(made.node.id) }
        #expect(try index.read { transaction throws(Failure) in try transaction.orphans().count } == 0)
    }

    @Test func aLargeFolderIsReadInParts() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            for number in 0..<25 { try transaction.make(named: name("\(number)")) }
            var seen: [FileName] = []
            while true {
                let part = try transaction.children(of: .root, after: seen.last, limit: 10)
                if part.isEmpty { break }
                seen += part.map(\.name)
            }
            #expect(seen == (0..<25).map { name("\($0)") }.sorted())
        }
    }

    @Test func aListingGoesByNumbersThatOutliveARename() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            var made: [Entry] = []
            for number in 0..<100 { made.append(try transaction.make(named: name("\(100 - number)")).entry) }
            let numbers = try transaction.childNumbers(of: .root)
            #expect(numbers == made.map(\.id))
            // One is renamed, one goes, one leaves the folder.
            made[3].name = name("renamed")
            try transaction.update(made[3])
            try transaction.delete(made[4].id)
            let other = try transaction.make(named: name("other")) { $0.kind = .folder }
            made[5].parent = other.node.id
            try transaction.update(made[5])
            let expected = Array(made[0..<4] + made[6..<20])
            let near = try transaction.children(of: .root, numbered: numbers[0..<20])
            #expect(near.map(\.id) == expected.map(\.id) && near.map(\.name) == expected.map(\.name))
            #expect(near.map(\.node.id) == expected.map(\.node))
            // Numbers that lie far apart.
            let sparse = [numbers[0], numbers[3], numbers[5], numbers[99]]
            let found = try transaction.children(of: .root, numbered: sparse[...])
            #expect(found.map(\.id) == [made[0], made[3], made[99]].map(\.id))
            #expect(try transaction.children(of: .root, numbered: []).isEmpty)
        }
    }

    @Test func deletingANodeTakesItsAttributesAndRanges() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            let made = try transaction.make(named: name("a")) { node in
                node.content = .partial
                node.size = 100
            }
            try transaction.setAttribute(Array("user.x".utf8), of: made.node.id, to: [])
            try transaction.setAttribute([0xFF], of: made.node.id, to: [1, 2])
            try transaction.setAttribute([0xFF], of: made.node.id, to: [3])
            #expect(try transaction.attributeNames(of: made.node.id) == [Array("user.x".utf8), [0xFF]])
            #expect(try transaction.attribute([0xFF], of: made.node.id) == [3])
            #expect(try transaction.attribute(Array("user.x".utf8), of: made.node.id) == [])
            #expect(try transaction.attribute([0xFE], of: made.node.id) == nil)
            #expect(try transaction.removeAttribute([0xFF], of: made.node.id))
            #expect(try !transaction.removeAttribute([0xFF], of: made.node.id))
            let some = ByteRangeSet([ByteRange(0, 10), ByteRange(20, 30)])
            try transaction.setRanges(of: made.node.id, to: some)
            #expect(try transaction.ranges(of: made.node.id) == some)
            let more = ByteRangeSet([ByteRange(5, 25), ByteRange(40, 41)])
            try transaction.setRanges(of: made.node.id, to: more)
            #expect(try transaction.ranges(of: made.node.id) == more)
            try transaction.delete(made.entry.id)
            try transaction.delete(made.node.id)
            #expect(try transaction.ranges(of: made.node.id).isEmpty)
            #expect(try transaction.attributeNames(of: made.node.id).isEmpty)
        }
        #expect(try index.verify() == [])
    }

    @Test func whatIsGoneIsNotFound() throws {
        let index = try folder.open()
        let missing = Node(id: NodeID(99), kind: .file, mode: 0, owner: 0, group: 0, time: .zero)
        #expect(failure { try index.write { transaction throws(Failure) in try transaction.update(missing) } } == .notFound)
        #expect(failure { try index.write { transaction throws(Failure) in try transaction.delete(NodeID(99)) } } == .notFound)
        #expect(failure { try index.write { transaction throws(Failure) in try transaction.delete(EntryID(99)) } } == .notFound)
        #expect(try index.read { transaction throws(Failure) in try transaction.node(NodeID(99)) } == nil)
    }
}
