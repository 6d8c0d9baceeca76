import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

@Suite struct TreeAndQueueTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    private func withTransaction(_ body: (borrowing Transaction) throws(Failure) -> Void) throws {
        let index = try folder.open()
        try index.write(body)
        index.close()
    }

    /// What was made a moment ago counted as empty.
    @Test func theTotalsOfWhatIsPendingAreThoseOfNow() throws {
        let index = try folder.open()
        let made = try index.write { transaction throws(Failure) in
            let made = try transaction.make(named: name("a")) { $0.size = 5 }
            try transaction.setPending(Pending(subject: .entry(made.entry.id), since: .zero, due: .zero))
            return made
        }
        func byteCount() throws -> UInt64 {
            try index.read { transaction throws(Failure) in try PendingPages.totals(transaction).byteCount }
        }
        #expect(try byteCount() == 5)
        try index.write { transaction throws(Failure) in
            var node = made.node
            node.size = 7
            try transaction.update(node)
        }
        #expect(try byteCount() == 7)
    }

    @Test func remoteStateOverridesTheSyncedTree() throws {
        try withTransaction { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            for number in 1...4 {
                try transaction.setSynced(SyncedItem(item: item("\(number)", in: "root", named: name("n\(number)")), edits: 7))
            }
            let root = ItemIdentifier("root")
            #expect(try transaction.synced(ItemIdentifier("2"))?.edits == 7)
            #expect(try transaction.remote(ItemIdentifier("2")) == nil)
            let renamed = item("2", in: "root", named: name("a"), version: "2")
            let moved = item("3", in: "elsewhere", named: name("n3"))
            let new = item("5", in: "root", named: name("n5"))
            try transaction.setRemote(ItemIdentifier("1"), .deleted)
            for item in [renamed, moved, new] { try transaction.setRemote(item.identifier, .present(item)) }
            #expect(try transaction.remote(ItemIdentifier("1")) == .deleted)
            #expect(try transaction.remote(ItemIdentifier("2")) == .present(renamed))
            #expect(try transaction.remoteChildren(of: root).map(\.identifier.rawValue) == ["2", "4", "5"])
            #expect(try transaction.remoteChildren(of: ItemIdentifier("elsewhere")) == [moved])
            // A second state of the same item keeps its place in the order.
            try transaction.setRemote(ItemIdentifier("1"), .present(item("1", in: "root", named: name("n1"))))
            #expect(try transaction.divergences(limit: 9).map(\.identifier.rawValue) == ["1", "2", "3", "5"])
            #expect(try transaction.divergences(limit: 1).count == 1)
            try transaction.setRemote(ItemIdentifier("1"), nil)
            #expect(try transaction.divergences(limit: 9).count == 3)
            try transaction.deleteSynced(ItemIdentifier("4"))
            #expect(try transaction.syncedChildren(of: root).map(\.item.identifier.rawValue) == ["1", "2", "3"])
        }
    }

    /// In parts a folder's items are the same, each once, wherever they are kept.
    @Test func partsOfAFolderMakeUpAllOfIt() throws {
        try withTransaction { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            let root = ItemIdentifier("root")
            for number in 10..<50 {
                let item = item("\(number)", in: "root", named: name("n\(number)"))
                if number % 3 == 0 {
                    try transaction.setSynced(SyncedItem(item: item, edits: 0))
                } else if number % 3 == 1 {
                    try transaction.setRemote(item.identifier, .present(item))
                } else {
                    let node = Node(
                        id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, time: .zero, version: item.version)
                    let isInserted = try transaction.insertListed(node, of: item, in: .root)
                    #expect(isInserted)
                }
            }
            for count in [1, 2, 7, 100] {
                var found: [ItemIdentifier] = []
                var span: NameSpan?
                repeat {
                    span = try transaction.nameSpan(of: root, after: span, count: count)
                    if let span { found += try transaction.remoteChildren(of: root, in: span).map(\.identifier) }
                } while span != nil
                #expect(found == (10..<50).map { ItemIdentifier("\($0)") }, "parts of \(count)")
            }
        }
    }

    @Test func remotePathFollowsTheRemoteTreeAndEndsInACircle() throws {
        try withTransaction { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            try transaction.setSynced(SyncedItem(item: item("f", in: "root", named: name("old"), kind: .folder), edits: 0))
            try transaction.setSynced(SyncedItem(item: item("x", in: "f", named: name("x")), edits: 0))
            try transaction.setRemote(ItemIdentifier("f"), .present(item("f", in: "root", named: name("new"), kind: .folder)))
            #expect(try transaction.remotePath(of: ItemIdentifier("x")) == [name("new"), name("x")])
            #expect(try transaction.remotePath(of: ItemIdentifier("root")) == [])
            #expect(try transaction.remotePath(of: ItemIdentifier("unknown")) == nil)
            try transaction.setRemote(ItemIdentifier("f"), .present(item("f", in: "x", named: name("f"), kind: .folder)))
            #expect(try transaction.remotePath(of: ItemIdentifier("x")) == nil)
            try transaction.setRemote(ItemIdentifier("f"), .deleted)
            #expect(try transaction.remotePath(of: ItemIdentifier("x")) == nil)
        }
    }

    @Test func unboundSyncedFindsOnlyItemsWithoutAnEntry() throws {
        try withTransaction { transaction throws(Failure) in
            let root = ItemIdentifier("root")
            try transaction.setSynced(SyncedItem(item: item("i", in: "root", named: name("a")), edits: 0))
            #expect(try transaction.unboundSynced(in: root, named: name("a"))?.item.identifier.rawValue == "i")
            #expect(try transaction.unboundSynced(in: root, named: name("b")) == nil)
            try transaction.make(named: name("somewhere else"), identifier: "i")
            #expect(try transaction.unboundSynced(in: root, named: name("a")) == nil)
        }
    }

    @Test func pendingRowsComeByDueTimeAndByAge() throws {
        try withTransaction { transaction throws(Failure) in
            let one = try transaction.make(named: name("one")).entry.id
            let two = try transaction.make(named: name("two")).entry.id
            var rows = [
                Pending(subject: .entry(one), since: time(3), due: time(30)),
                Pending(subject: .deletion(ItemIdentifier("d")), since: time(1), due: time(50)),
                Pending(subject: .entry(two), since: time(2), due: time(20)),
                Pending(subject: .deletion(ItemIdentifier("e")), since: time(4), due: time(10)),
            ]
            rows[0].attempts = 3
            rows[0].error = .timedOut
            rows[0].message = "it took too long"
            for row in rows { try transaction.setPending(row) }
            for row in rows { #expect(try transaction.pending(row.subject) == row) }
            #expect(try transaction.duePending(at: time(30), waitingSince: time(30), limit: 9) == [rows[3], rows[2], rows[0]])
            #expect(try transaction.duePending(at: time(30), waitingSince: time(30), limit: 1) == [rows[3]])
            #expect(try transaction.allPending(limit: 9) == [rows[1], rows[2], rows[0], rows[3]])
            #expect(try transaction.nextPendingDue() == time(10))
            let counts = try transaction.counts()
            #expect(counts.pending == 4 && counts.failing == 1)
            rows[1].due = time(5)
            try transaction.setPending(rows[1])
            #expect(try transaction.nextPendingDue() == time(5))
            try transaction.makePendingDue(at: time(6))
            #expect(try transaction.duePending(at: time(6), waitingSince: time(6), limit: 9).count == 4)
            try transaction.deletePending(.deletion(ItemIdentifier("d")))
            try transaction.deletePending(.deletion(ItemIdentifier("unknown")))
            try transaction.delete(one)
            #expect(try transaction.pending(.entry(one)) == nil)
            #expect(try transaction.allPending(limit: 9).count == 2)
        }
    }

    private func save(
        _ id: EntryID, at now: Int64, _ transaction: borrowing Transaction
    ) throws(Failure) -> Pending {
        let renewal = PendingRenewal(now: time(now), due: time(now + 20), bound: .nanoseconds(600))
        try transaction.renewPending(id, renewal)
        return try transaction.pending(.entry(id))!
    }

    /// What was saved more often than it was to rest was put off for ever.
    @Test func whatGoesOnBeingChangedIsDueInTheEnd() throws {
        try withTransaction { transaction throws(Failure) in
            let id = try transaction.make(named: name("state")).entry.id
            for now in stride(from: Int64(1_000), through: 1_580, by: 10) {
                #expect(try save(id, at: now, transaction).due == time(now + 20))
            }
            for now in stride(from: Int64(1_590), through: 2_000, by: 10) {
                #expect(try save(id, at: now, transaction).due == time(1_600))
            }
            // The engine puts it off, as it waits for something.
            var row = try transaction.pending(.entry(id))!
            row.due = time(3_000)
            try transaction.setPending(row)
            row = try save(id, at: 2_010, transaction)
            #expect(row.due == time(2_030) && row.since == time(1_000))
            #expect(try save(id, at: 2_025, transaction).due == time(2_030))
            // The clock was set back.
            row = try save(id, at: 500, transaction)
            #expect(row.due == time(520) && row.since == time(500))
        }
    }

    /// The whole of it was sent again after each change, and no error was shown between two of these.
    @Test func whatIsRefusedAndGoesOnBeingChangedIsNotSentAgainForEachChange() throws {
        try withTransaction { transaction throws(Failure) in
            let id = try transaction.make(named: name("log")).entry.id
            _ = try save(id, at: 1_000, transaction)
            var refused = try transaction.pending(.entry(id))!
            (refused.due, refused.attempts, refused.error, refused.message) = (time(1_600), 2, .quotaExceeded, "full")
            try transaction.setPending(refused)
            // Perhaps it fits now.
            var row = try save(id, at: 1_500, transaction)
            #expect(row.due == time(1_520) && row.attempts == 0 && row.error == nil && row.message == nil)
            refused.due = time(1_700)
            try transaction.setPending(refused)
            for now in stride(from: Int64(1_600), through: 1_690, by: 10) {
                #expect(try save(id, at: now, transaction) == refused)
            }
            // The clock was set back.
            row = try save(id, at: 500, transaction)
            #expect(row.due == time(520) && row.attempts == 0 && row.error == nil && row.since == time(500))
        }
    }

    /// Those that are passed over took the room of those behind them, and what waited by a clock of before did so for ever.
    @Test func whatWaitsLongIsFoundBehindWhatIsNew() throws {
        try withTransaction { transaction throws(Failure) in
            let new = (0..<50).map { Pending(subject: .deletion(ItemIdentifier("\($0)")), since: time(90), due: time(91)) }
            let old = Pending(subject: .deletion(ItemIdentifier("old")), since: time(70), due: time(95))
            let later = Pending(subject: .deletion(ItemIdentifier("later")), since: time(500), due: time(96))
            for row in new + [old, later] { try transaction.setPending(row) }
            #expect(try transaction.duePending(at: time(100), waitingSince: time(80), limit: 8) == [old, later])
            #expect(try transaction.duePending(at: time(95), waitingSince: time(80), limit: 8) == [old])
            #expect(try transaction.duePending(at: time(100), waitingSince: time(100), limit: 99).count == 52)
        }
    }

    @Test func theQueueIsRebuiltFromTheTrees() throws {
        try withTransaction { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            var root = try transaction.node(.root)!
            root.isPopulated = true
            try transaction.update(root)
            var expected: Set<Pending.Subject> = []
            let rootItem = item("root", in: nil, named: FileName(trusted: []), kind: .folder)
            try transaction.setSynced(SyncedItem(item: rootItem, edits: 0))
            // As agreed: nothing to do.
            try transaction.agree("same", "same")
            try transaction.make(named: name("same"), identifier: "same")
            try transaction.agree("folder", "folder", .folder)
            let sub = try transaction.make(.folder, named: name("folder"), identifier: "folder") { node in
                node.modificationTime = time(99)
                node.isPopulated = false
            }
            try transaction.agree("inside", "inside", in: "folder")
            // Different in one way each.
            try transaction.agree("renamed", "before")
            expected.insert(.entry(try transaction.make(named: name("after"), identifier: "renamed").entry.id))
            try transaction.agree("moved", "moved", in: "folder")
            expected.insert(.entry(try transaction.make(named: name("moved"), identifier: "moved").entry.id))
            for (key, change) in [
                ("edited", { $0.edits = 1 }), ("mode", { $0.mode = 0o600 }), ("time", { $0.modificationTime = time(6) }),
                ("owner", { $0.owner = 9 }),
            ] as [(String, (inout Node) -> Void)] {
                try transaction.agree(key, key)
                expected.insert(.entry(try transaction.make(named: name(key), identifier: key, change: change).entry.id))
            }
            try transaction.agree("link", "link", .link)
            expected.insert(
                .entry(try transaction.make(.link, named: name("link"), identifier: "link") { $0.target = [0x61] }.entry.id))
            expected.insert(.entry(try transaction.make(in: sub.node.id, named: name("new")).entry.id))
            try transaction.agree("removed", "removed")
            expected.insert(.deletion(ItemIdentifier("removed")))
            try transaction.agree("gone there", "gone there")
            try transaction.setRemote(ItemIdentifier("gone there"), .deleted)
            // Stays here.
            try transaction.make(.fifo, named: name("fifo"))
            let hidden = try transaction.make(.folder, named: name("hidden"))
            var entry = hidden.entry
            entry.isExcluded = true
            try transaction.update(entry)
            try transaction.make(in: hidden.node.id, named: name("below"))
            // One that is there keeps its state.
            var present = Pending(subject: .deletion(ItemIdentifier("removed")), since: time(1), due: time(2))
            present.attempts = 5
            try transaction.setPending(present)

            try transaction.rebuildPending(now: time(100))
            let rows = try transaction.allPending(limit: 99)
            #expect(Set(rows.map(\.subject)) == expected)
            #expect(try transaction.pending(present.subject) == present)
            try transaction.rebuildPending(now: time(200))
            #expect(try transaction.allPending(limit: 99) == rows)
        }
    }

    /// Its row was damaged: the next mount had the provider delete the item.
    @Test func anItemWhoseNameIsLostComesBackAndIsNotDeleted() throws {
        try withTransaction { transaction throws(Failure) in
            try transaction.agree("lost", "lost")
            try transaction.agree("folder", "folder", .folder)
            try transaction.agree("inside", "inside", in: "folder")
            try transaction.setPending(Pending(subject: .deletion(ItemIdentifier("folder")), since: time(1), due: time(2)))
            #expect(try transaction.rebuildPending(now: time(100)).count == 1)
            let subjects = try transaction.allPending(limit: 99).map(\.subject)
            #expect(Set(subjects) == [.deletion(ItemIdentifier("folder")), .deletion(ItemIdentifier("inside"))])
            #expect(try transaction.remote(ItemIdentifier("lost")) != nil)
            #expect(try transaction.synced(ItemIdentifier("lost")) == nil)
        }
    }

    /// It lay in a folder that had been moved out of the removed one.
    @Test func anItemWhoseNameIsLostInAFolderThatWasMovedOutComesBack() throws {
        try withTransaction { transaction throws(Failure) in
            try transaction.agree("folder", "folder", .folder)
            try transaction.agree("kept", "kept", in: "folder", .folder)
            try transaction.agree("lost", "lost", in: "kept")
            _ = try transaction.make(.folder, named: name("kept"), identifier: "kept") { $0.isPopulated = true }
            try transaction.setPending(Pending(subject: .deletion(ItemIdentifier("folder")), since: time(1), due: time(2)))
            #expect(try transaction.rebuildPending(now: time(100)).count == 1)
            #expect(try transaction.remote(ItemIdentifier("lost")) != nil)
        }
    }

    @Test func settingsAreReplacedAndRemoved() throws {
        try withTransaction { transaction throws(Failure) in
            #expect(try transaction.setting("anchor") == nil)
            try transaction.setSetting("anchor", "1")
            try transaction.setSetting("anchor", "2")
            #expect(try transaction.setting("anchor") == "2")
            try transaction.setSetting("anchor", nil)
            #expect(try transaction.setting("anchor") == nil)
        }
    }

    @Test func questionsAboutContentAreAnswered() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            let old = try transaction.make("old", .whole, use: 1) { $0.durability = .whole }
            let clean = try transaction.make("clean", .partial, use: 3) { $0.version = ContentVersion("1") }
            let edited = try transaction.make("edited", .whole, use: 2) { node in
                node.version = ContentVersion("1")
                node.edits = 1
            }
            _ = try transaction.make("pinned", .whole, use: 0) { $0.pin = .pinned }
            let open = try transaction.make("open", .absent, use: 0) { $0.isOpenForWriting = true }
            let absent = try transaction.make("absent", .absent, use: 0)
            for key in ["clean", "edited", "old", "pinned", "open", "absent"] {
                try transaction.setSynced(SyncedItem(item: item(key, in: "root", named: name(key)), edits: 0))
            }
            let candidates = try transaction.evictionCandidates(limit: 9)
            #expect(candidates.map(\.id) == [old, edited, clean])
            #expect(try transaction.evictionCandidates(limit: 1, after: candidates[0]).map(\.id) == [edited])
            #expect(try transaction.nodesOpenForWriting().map(\.id) == [open])
            #expect(try transaction.nodesWithContent(in: .partial).map(\.id) == [clean])
            #expect(try transaction.nodesWithContent(in: .whole).count == 3)
            #expect(try transaction.nodesWithContent(in: .absent).map(\.id) == [open, absent])
            #expect(try transaction.populatedFolders() == [])
            var root = try transaction.node(.root)!
            root.isPopulated = true
            try transaction.update(root)
            #expect(try transaction.populatedFolders() == [.root])
            let counts = try transaction.counts()
            #expect(counts == IndexCounts(nodes: 7, placeholders: 2, pending: 0, failing: 0, localBytes: 40))
        }
        index.close()
        let again = try folder.open()
        #expect(try again.read { transaction throws(Failure) in try transaction.counts() }.localBytes == 40)
        try again.write { transaction throws(Failure) in
            for var node in try transaction.nodesWithContent(in: .partial) {
                node.size = 100
                try transaction.update(node)
            }
        }
        #expect(try again.verify() == [])
    }
}

extension Transaction {
    /// An item that both sides agree on.
    fileprivate func agree(
        _ identifier: String, _ node: String, in parent: String = "root", _ kind: NodeKind = .file
    ) throws(Failure) {
        try setSynced(SyncedItem(item: item(identifier, in: parent, named: name(node), kind: kind), edits: 0))
    }

    /// A file with content in some state.
    fileprivate func make(
        _ text: String, _ content: ContentState, use: Int64, _ change: (inout Node) -> Void = { _ in }
    ) throws(Failure) -> NodeID {
        var node = Node(id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, time: time(5), content: content)
        node.lastUse = time(use)
        node.localBytes = content == .absent ? 0 : 10
        change(&node)
        let stored = try insert(node)
        _ = try insertEntry(in: .root, named: name(text), node: stored.id, identifier: ItemIdentifier(text))
        return stored.id
    }
}
