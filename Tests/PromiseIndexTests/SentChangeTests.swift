import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

/// What was sent to the provider and not yet answered.
@Suite struct SentChangeTests {
    private let folder: TemporaryFolder
    private let index: Index

    init() throws {
        folder = try TemporaryFolder("index")
        index = try Index(path: folder.database)
    }

    private func sent(_ item: String?, to name: String, edits: UInt64 = 1, isMove: Bool = false) -> SentChange {
        SentChange(
            entry: EntryID(7), item: item.map { ItemIdentifier($0) }, isMove: isMove, parent: ItemIdentifier("root"),
            name: FileName(name)!, kind: .file, edits: edits, size: 5, modificationTime: Timestamp(seconds: 1, nanoseconds: 2),
            base: nil, target: nil)
    }

    @Test func eachTryIsKeptUntilItIsAnswered() throws {
        try index.write { transaction throws(Failure) in
            let first = try transaction.insertSent(sent("a", to: "a"))
            let again = try transaction.insertSent(sent("a", to: "a"))
            #expect(first != again)
            try transaction.deleteSent(again)
            #expect(try transaction.sentChanges(of: ItemIdentifier("a")).map(\.id) == [first])
            #expect(try transaction.hasSent())
            try transaction.deleteSent(for: EntryID(7))
            #expect(try !transaction.hasSent())
        }
    }

    @Test func ofOneItemTheNewestTriesAreKept() throws {
        try index.write { transaction throws(Failure) in
            for edits in 0..<20 { _ = try transaction.insertSent(sent("a", to: "a", edits: UInt64(edits))) }
            #expect(try transaction.sentChanges(of: ItemIdentifier("a")).map(\.sent.edits) == Array(12..<20))
        }
    }

    /// A change that was refused again and again put out an earlier one, which had taken effect without an answer.
    @Test func whatIsTriedForLongPutsNothingElseOut() throws {
        try index.write { transaction throws(Failure) in
            _ = try transaction.insertSent(sent("a", to: "first", edits: 1, isMove: true))
            for _ in 0..<20 { _ = try transaction.insertSent(sent("a", to: "second", edits: 2, isMove: true)) }
            let kept = try transaction.sentChanges(of: ItemIdentifier("a")).map(\.sent.name.display)
            #expect(kept == ["first"] + Array(repeating: "second", count: 7))
        }
    }

    @Test func aPlaceIsToldOfWhatIsMadeAndMovedThereButNotOfEdits() throws {
        try index.write { transaction throws(Failure) in
            _ = try transaction.insertSent(sent("edited", to: "x"))
            _ = try transaction.insertSent(sent("moved", to: "x", isMove: true))
            _ = try transaction.insertSent(sent(nil, to: "x"))
            let found = try transaction.sentChanges(to: ItemIdentifier("root"), FileName("x")!)
            #expect(found.map(\.sent.item?.rawValue) == ["moved", nil])
        }
    }

    /// What an earlier version was telling the provider when it ended.
    @Test func whatAnEarlierVersionSentIsMigrated() throws {
        try index.write { transaction throws(Failure) in try transaction.setSetting("kept", "1") }
        index.close()
        try Index.runAside("DELETE FROM grdb_migrations WHERE identifier = '5 sent changes'", path: folder.database)
        try Index.runAside("DROP TABLE sent", path: folder.database)
        try Index.runAside("DROP TABLE displaced", path: folder.database)
        try Index.runAside("DROP TABLE hole", path: folder.database)
        try Index.runAside("DROP TABLE fingerprint", path: folder.database)
        // `é` in the name; the item `i1` was moved to the folder `p`.
        try Index.runAside(
            """
            INSERT INTO setting VALUES ('intent.item i1', '12 3 0 5 77 c3a9 6931 70'),
                ('intent.place c3a9 p', '12 3 0 5 77 c3a9 6931 70'),
                ('intent.place 61 p', '13 1 1 0 78 61 - 70' || char(10) || 'damaged')
            """, path: folder.database)
        let opened = try Index(path: folder.database)
        defer { opened.close() }
        try opened.read { transaction throws(Failure) in
            let found = try transaction.sentChanges(of: ItemIdentifier("i1"))
            #expect(found.count == 1)
            let sent = found.first?.sent
            #expect(sent?.entry == EntryID(12) && sent?.edits == 3 && sent?.isMove == true && sent?.kind == .file)
            #expect(sent?.name.bytes == [0xC3, 0xA9] && sent?.parent.rawValue == "p" && sent?.size == 5)
            let new = try transaction.sentChanges(to: ItemIdentifier("p"), FileName("a")!)
            #expect(new.map(\.sent.item) == [nil] && new.first?.sent.kind == .folder)
            #expect(try transaction.settingKeys(startingWith: "intent.") == [])
            #expect(try transaction.setting("kept") == "1")
        }
    }
}
