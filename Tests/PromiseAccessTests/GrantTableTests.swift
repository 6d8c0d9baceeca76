import PromiseAccess
import PromiseCore
import PromiseKeyValue
import Testing

/// Who may do what to which item: transcripts of the table.
@Suite struct GrantTableTests {
    private static let editor: Key = "com.example.editor"
    private static let other: Key = "com.example.other"
    private let launch = LaunchID("first")
    private var table = GrantTable()

    private func time(_ seconds: Int) -> Timestamp { Timestamp(seconds: seconds, nanoseconds: 0) }

    private func name(_ text: String) -> FileName { FileName(text)! }

    private func grant(
        _ id: Int64, _ entry: Int64, _ rights: Rights = .readWrite, until end: Grant.End = .revoked,
        of application: Key = editor, identifier: String? = nil, parent: Int64? = nil,
        kind: Grant.Kind = .item, name: String = "Text.txt"
    ) -> Grant {
        Grant(
            id: GrantID(id), kind: kind, application: application,
            key: ItemKey(
                identifier: ItemIdentifier(identifier ?? "i\(entry)"), machine: nil,
                kind: .file, path: [FileName(name)!]),
            entry: EntryID(entry), rights: rights, end: end, parent: parent.map { GrantID($0) },
            name: FileName(name)!, made: .zero)
    }

    /// As `Grants.allowed` asks, from the item up.
    private func rights(
        _ chain: [GrantStep], of application: Key = editor, in launch: LaunchID? = nil,
        at seconds: Int = 0, elsewhere: Set<String> = []
    ) throws -> Rights {
        var best = Rights.none
        for step in chain {
            best = max(
                best,
                try table.rights(of: application, in: launch, at: step, now: time(seconds)) {
                    item throws(Failure) in elsewhere.contains(item.rawValue)
                })
        }
        return best
    }

    private func step(_ entry: Int64, _ identifier: String? = nil, isDocument: Bool = true) -> GrantStep {
        GrantStep(
            entry: EntryID(entry), identifier: ItemIdentifier(identifier ?? "i\(entry)"),
            isDocument: isDocument)
    }

    /// It was of its name on this machine alone, and not of the item when others had moved that.
    @Test mutating func whatWasGivenBeforeTheProviderHadItIsKnownByTheIdentifierThatItGets() throws {
        var given = grant(1, 10)
        given.key.identifier = nil
        _ = try table.add(given, now: .zero)
        _ = try table.add(grant(2, 20), now: .zero)
        #expect(table.nameless.map(\.id) == [GrantID(1)])
        #expect(try rights([step(30, "i10")]) == .none)
        var key = given.key
        key.identifier = ItemIdentifier("i10")
        #expect(table.rebind(GrantID(1), to: key, given.entry).stored.map(\.key) == [key])
        #expect(try table.nameless.isEmpty && rights([step(30, "i10")]) == .readWrite)
        _ = table.remove(GrantID(1))
        #expect(try table.nameless.isEmpty && rights([step(30, "i10")]) == .none)
    }

    @Test mutating func aGrantOpensItsItemAndWhatIsBelowIt() throws {
        _ = try table.add(grant(1, 10, .read), now: .zero)
        #expect(try rights([step(10)]) == .read)
        #expect(try rights([step(30), step(20), step(10)]) == .read)
        #expect(try rights([step(20)]) == .none && rights([step(5)]) == .none)
        #expect(try rights([step(10)], of: Self.other) == .none)
        _ = try table.add(grant(2, 20), now: .zero)
        #expect(try rights([step(30), step(20), step(10)]) == .readWrite)
    }

    @Test mutating func aGrantEndsByItsDateItsLaunchOrRevocation() throws {
        _ = try table.add(grant(1, 10, until: .date(time(100))), now: .zero)
        _ = try table.add(grant(2, 20, until: .launch(launch)), now: .zero)
        _ = try table.add(grant(3, 30), now: .zero)
        #expect(try rights([step(10)], at: 99) == .readWrite && rights([step(10)], at: 100) == .none)
        #expect(try rights([step(20)], in: launch) == .readWrite)
        #expect(try rights([step(20)], in: LaunchID("second")) == .none && rights([step(20)]) == .none)
        #expect(table.expire(now: time(100)).removed.map(\.id) == [GrantID(1)])
        #expect(table.end(launch).removed.map(\.id) == [GrantID(2)])
        #expect(table.remove(GrantID(3)).removed.count == 1)
        #expect(table.all.isEmpty && !table.hasAny(Self.editor))
    }

    @Test mutating func whatIsPassedOnIsNeverMoreAndEndsWithWhatItWasMadeFrom() throws {
        _ = try table.add(grant(1, 10, .read, until: .date(time(100))), now: .zero)
        #expect(throws: Failure.self) {
            try table.add(grant(2, 10, .readWrite, of: Self.other, parent: 1), now: .zero)
        }
        #expect(throws: Failure.self) {
            try table.add(grant(2, 10, .read, of: Self.other, parent: 7), now: .zero)
        }
        #expect(throws: Failure.self) {
            try table.add(grant(2, 10, .read, of: Self.other, parent: 1), now: time(100))
        }
        _ = try table.add(grant(2, 10, .read, of: Self.other, parent: 1), now: .zero)
        _ = try table.add(grant(3, 10, .read, of: "com.example.third", parent: 2), now: .zero)
        #expect(try rights([step(10)], of: "com.example.third", at: 99) == .read)
        #expect(try rights([step(10)], of: "com.example.third", at: 100) == .none)
        #expect(table.remove(GrantID(1)).removed.map(\.id.rawValue) == [1, 2, 3])
        #expect(try rights([step(10)], of: Self.other) == .none)
    }

    @Test mutating func aGrantFollowsItsItemAndNotItsName() throws {
        _ = try table.add(grant(1, 10, identifier: "doc"), now: .zero)
        #expect(try rights([step(10, "new")]) == .readWrite, "others replaced it as a whole")
        #expect(try rights([step(10, "new")], elsewhere: ["doc"]) == .none, "it is elsewhere now")
        #expect(try rights([step(11, "doc")]) == .readWrite, "it has another name here")
        let backup = GrantStep(entry: EntryID(10), identifier: nil, isDocument: false)
        #expect(try rights([backup]) == .none, "a backup has its name, but is not the document")
        let key = grant(1, 10, identifier: "new").key
        #expect(table.rebind(GrantID(1), to: key, EntryID(12)).stored.count == 1)
        #expect(try rights([step(12, "new")]) == .readWrite && rights([step(10, "doc")]) == .none)
    }

    @Test mutating func aBookmarkOpensNothingBeforeItIsResolved() throws {
        _ = try table.add(grant(1, 10, .read, kind: .bookmark), now: .zero)
        #expect(try rights([step(10)], in: launch) == .none)
        _ = try table.add(grant(2, 10, .read, until: .launch(launch), parent: 1), now: .zero)
        #expect(try rights([step(10)], in: launch) == .read)
        #expect(table.remove(GrantID(1)).removed.count == 2)
        #expect(try rights([step(10)], in: launch) == .none)
    }

    @Test mutating func aBookmarkOfWhatWasGivenToALaunchOutlivesItUnlessThatIsRevoked() throws {
        for (id, isRevoked) in [(Int64(1), false), (11, true)] {
            _ = try table.add(grant(id, id * 10, until: .launch(launch)), now: .zero)
            var kept = grant(id + 1, id * 10, kind: .bookmark)
            kept.source = GrantID(id)
            _ = try table.add(kept, now: .zero)
            if isRevoked { _ = table.remove(GrantID(id)) }
        }
        _ = table.end(launch)
        #expect(table.all.map(\.id.rawValue) == [2] && table.all[0].source == nil)
    }

    /// One of them was not there: each had the other's place.
    @Test mutating func aContainerAndAnItemOfItsNameDoNotHideEachOther() throws {
        _ = try table.add(grant(1, 10, kind: .container, name: "container"), now: .zero)
        func shown(_ text: String, _ entry: Int64) -> String {
            table.name(
                for: name(text), EntryID(entry), of: Self.editor, besides: [name("container")]
            ).display
        }
        #expect(shown("container", 20) == "container 2")
        #expect(shown("Editor", 10) == "Editor", "its own folder has that name at another place")
    }

    @Test mutating func aShownNameLastsAndIsGivenOnce() throws {
        _ = try table.add(grant(1, 10), now: .zero)
        func shown(_ text: String, _ entry: Int64) -> String {
            table.name(
                for: FileName(text)!, EntryID(entry), of: Self.editor, besides: [FileName("Container")!]
            ).display
        }
        #expect(shown("Renamed.txt", 10) == "Text.txt", "it has that name already")
        #expect(shown("Text.txt", 20) == "Text 2.txt")
        _ = try table.add(grant(2, 20, name: "Text 2.txt"), now: .zero)
        #expect(shown("Text.txt", 30) == "Text 3.txt" && shown("Container", 40) == "Container 2")
        #expect(shown(".profile", 40) == ".profile" && shown("other", 40) == "other")
        let long = String(repeating: "ü", count: 125) + ".txt"
        _ = try table.add(grant(3, 50, name: long), now: .zero)
        let second = shown(long, 60)
        #expect(second.hasSuffix("ü 2.txt") && second.utf8.count <= 255)
    }

    @Test func aStoredGrantThatWasChangedInAnyPlaceIsNone() throws {
        let seal = try #require(GrantSeal(key: [UInt8](repeating: 5, count: 32)))
        let made = grant(7, 10, .read, until: .date(time(100)), parent: 3)
        let row = try #require(seal.seal(made))
        #expect(seal.open(row.record, seal: row.seal, as: 7) == made)
        #expect(seal.open(row.record, seal: row.seal, as: 8) == nil, "another row's")
        for place in row.record.indices {
            var changed = row.record
            changed[place] ^= 1
            #expect(seal.open(changed, seal: row.seal, as: 7) == nil)
        }
        let other = try #require(GrantSeal(key: [UInt8](repeating: 6, count: 32)))
        #expect(other.open(row.record, seal: row.seal, as: 7) == nil)
        #expect(seal.seal(grant(1, 10, until: .launch(launch))) == nil, "a launch's is never stored")
        #expect(GrantSeal(key: []) == nil)
    }
}
