import PromiseAccess
import PromiseCore
import PromiseKeyValue
import Testing

@Suite struct ItemKeyTests {
    private func names(_ texts: String...) -> [FileName] { texts.map { FileName($0)! } }

    @Test func aPathOfAnyBytesIsTextAndBack() throws {
        for path in [[], names("a"), names("a b", "50%", "ü\n"), [FileName([0xFF, 0x01])!]] {
            let text = ItemKey.text(path)
            #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
            #expect(ItemKey.names(text) == path)
        }
        for text in ["/%", "/%4", "/%GG", "/a/%2F", "/..", "/%00"] {
            #expect(ItemKey.names(text) == nil, "\(text)")
        }
    }

    @Test func aLinkLeadsFromItsFolderToTheItem() {
        func path(_ from: [FileName], _ to: [FileName]) -> String {
            String(decoding: ItemKey.relativePath(from: from, to: to), as: UTF8.self)
        }
        #expect(path([], names("a")) == "a")
        #expect(path(names("a", "b"), names("a", "c", "d")) == "../c/d")
        #expect(path(names("a"), names("a", "b")) == "b")
        #expect(path(names("a", "b"), names("a")) == "..")
        #expect(path(names("a"), names("a")) == ".")
        #expect(path(names("x", "y"), names("z")) == "../../z")
    }

    @Test func anIdentifierOfAMachineIsWorthNothingOnAnother() {
        let shared = ItemKey(identifier: ItemIdentifier("1"), machine: nil, kind: .file, path: [])
        let own = ItemKey(identifier: ItemIdentifier("/a"), machine: "m", kind: .file, path: [])
        #expect(shared.identifier(on: nil) != nil && shared.identifier(on: "x") != nil)
        #expect(own.identifier(on: "m") != nil && own.identifier(on: "x") == nil && own.identifier(on: nil) == nil)
    }
}

@Suite struct ContainerRecordTests {
    private func record(_ name: String = "Editor", _ identifier: String? = "1") -> ContainerRecord {
        ContainerRecord(
            application: "com.example.editor", name: name, isPublic: false,
            folder: ItemKey(
                identifier: identifier.map { ItemIdentifier($0) }, machine: nil, kind: .folder,
                path: [FileName("Editor")!]))
    }

    @Test func aRecordIsTheSameAfterItsWayAndUnknownFieldsStay() throws {
        let text = String(decoding: record().json.encoded, as: UTF8.self)
        let later = text.replacing("{\"application\"", with: "{\"aLaterField\":[1.50],\"application\"")
        let read = try ContainerRecord(JSONReader.read(Array(later.utf8)), of: "com.example.editor")
        #expect(read.name == "Editor" && read.folder == record().folder)
        #expect(String(decoding: read.json.encoded, as: UTF8.self).contains("\"aLaterField\":[1.50]"))
        #expect(throws: RecordTrouble.newer(schema: 2)) {
            try ContainerRecord(
                JSONReader.read(Array(text.replacing("\"schema\":1", with: "\"schema\":2").utf8)),
                of: "com.example.editor")
        }
        #expect(throws: RecordTrouble.damaged) {
            try ContainerRecord(JSONReader.read(Array(text.utf8)), of: "com.example.other")
        }
    }

    @Test func ofTwoThatWereMadeAtOnceTheFirstAtTheProviderHasTheFolder() {
        var ours = KnownContainer(record: record("Mine", "2"), entry: EntryID(5), isSent: false, wasSent: false)
        ours.merge(record("Theirs", "1"))
        #expect(ours.record.folder.identifier == ItemIdentifier("1") && ours.entry == nil)
        #expect(ours.record.name == "Mine" && !ours.isSent, "what was asked for here is done to it")
        var settled = KnownContainer(record: record("Old"), entry: EntryID(5), isSent: true, wasSent: true)
        settled.merge(record("New"))
        #expect(settled.record.name == "New" && settled.isSent && settled.entry == EntryID(5))
    }

    /// It was written over with what had been sent, and nobody ever sent it.
    @Test func whatIsAskedForWhileARecordIsSentIsSentNext() {
        let ours = KnownContainer(record: record(), entry: EntryID(5), isSent: false, wasSent: false)
        let sent = ours.sent(as: ours)
        #expect(sent.isSent && sent.wasSent && sent.record == ours.record)
        let later = ours.asked(name: "Writer", isPublic: true, icon: nil).sent(as: ours)
        #expect(later.record.name == "Writer" && later.record.isPublic)
        #expect(!later.isSent && later.wasSent && later.entry == EntryID(5))
        #expect(sent.asked(name: nil, isPublic: false, icon: nil) == sent, "nothing new")
        // Of one that was made here while that of another machine came, the folder is the other one's.
        let theirs = KnownContainer(record: record("Theirs", "1"), entry: EntryID(6), isSent: true, wasSent: true)
        let made = KnownContainer(record: record("Mine", "2"), entry: EntryID(7), isSent: false, wasSent: false)
        let merged = made.merged(into: theirs)
        #expect(merged.record.folder.identifier == ItemIdentifier("1") && merged.entry == EntryID(6))
        #expect(merged.record.name == "Mine" && !merged.isSent && merged.wasSent)
    }

    /// What the provider has of the deleted one came back each time.
    @Test func aFolderThatWasMadeAnewForADeletedOneStays() {
        var ours = KnownContainer(record: record("Mine", "2"), entry: EntryID(5), isSent: false, wasSent: true)
        ours.replaced = record("Mine", "1").folder
        ours.merge(record("Mine", "1"))
        #expect(ours.record.folder.identifier == ItemIdentifier("2") && ours.entry == EntryID(5) && !ours.isSent)
        ours.merge(record("Theirs", "3"))
        #expect(ours.record.folder.identifier == ItemIdentifier("3"), "another machine made one, too")
    }

    @Test func anApplicationActsForItselfAndTheOwnerForAll() {
        let own = Principal.application("com.example.editor", launch: LaunchID("1"))
        #expect(own.mayAct(for: "com.example.editor") && !own.mayAct(for: "com.example.other"))
        #expect(Principal.owner(user: 0, process: 1).mayAct(for: "com.example.other"))
    }
}
