import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

/// An index goes on with another storage, which may call its items as the old one has called others.
@Suite struct ProviderChangeTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    private func renaming(_ old: String, _ new: String) -> ProviderChange.Renaming {
        ProviderChange.Renaming(
            old: ItemIdentifier(old), new: ItemIdentifier(new), version: ContentVersion("1"),
            newVersion: ContentVersion("2"), target: nil)
    }

    /// Where places are all that a storage knows, what was moved has the name of its old place, and gets that of the new one,
    /// which another item had: the pin of one took the place of the other's.
    @Test func namesThatGoFromItemToItemTakeAllOfTheirsAlong() throws {
        let index = try folder.open()
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", "root")
            for (identifier, pin) in [("/a", Pin.pinned), ("/b", .onlineOnly)] {
                let item = item(identifier, in: "root", named: name("of \(identifier.dropFirst())"))
                try transaction.setSynced(SyncedItem(item: item, edits: 0))
                try transaction.rememberPin(pin, of: item.identifier)
                let removed = Pending.Subject.deletion(item.identifier)
                try transaction.setPending(Pending(subject: removed, since: .zero, due: .zero))
            }
        }
        index.close()
        try ProviderChange(path: folder.database).apply(
            [renaming("/a", "/b"), renaming("/b", "/c")], to: "folder:/new", root: renaming("root", "top"))
        let changed = try folder.open()
        defer { changed.close() }
        try changed.read { transaction throws(Failure) in
            #expect(try transaction.rememberedPin(of: ItemIdentifier("/a")) == nil)
            #expect(try transaction.rememberedPin(of: ItemIdentifier("/b")) == .pinned)
            #expect(try transaction.rememberedPin(of: ItemIdentifier("/c")) == .onlineOnly)
            #expect(try transaction.synced(ItemIdentifier("/b"))?.item.name == name("of a"))
            #expect(try transaction.pending(.deletion(ItemIdentifier("/c"))) != nil)
            #expect(try transaction.setting("former./a") == "/b")
        }
        #expect(try changed.verify() == [])
    }
}
