import Foundation
import GRDB
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// An index of every schema that a version of this program has written, kept as text in `Tests/index-versions`. A new schema
/// adds its own, which is never changed.
@Suite struct MigrationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    static let place = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("index-versions")

    static let versions = ((try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []).sorted()

    @Test func everySchemaHasItsText() throws {
        try folder.open().close()
        let database = try DatabaseQueue(path: String(decoding: folder.database, as: UTF8.self))
        let names = try database.read { try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations") }
        #expect(Self.versions.count == names.count, "add the index of the newest schema to \(Self.place.path)")
    }

    @Test(arguments: versions) func anIndexOfEveryVersionIsRead(version: String) throws {
        let text = try String(contentsOf: Self.place.appendingPathComponent(version), encoding: .utf8)
        do {
            let database = try DatabaseQueue(path: String(decoding: folder.database, as: UTF8.self))
            try database.write { try $0.execute(sql: text) }
            try database.close()
        }
        let index = try folder.open()
        defer { index.close() }
        #expect(try index.verify() == [])
        #expect(try index.verifyQueue() == [])
        try index.read { transaction throws(Failure) in
            let children = try transaction.children(of: .root)
            #expect(children.map(\.name.display) == ["edited", "folder", "here", "link"])
            let here = try transaction.entry(in: .root, named: name("here"))
            #expect(here?.identifier?.rawValue == "5c067500b80e2e89")
            let node = try here.flatMap { entry throws(Failure) in try transaction.node(entry.node) }
            #expect(node?.content == .whole && node?.size == 5 && node?.version?.rawValue.hasPrefix("5-") == true)
            let folder = try transaction.entry(in: .root, named: name("folder"))
            let below = try folder.map { entry throws(Failure) in try transaction.children(of: entry.node) }
            #expect(below?.map(\.name.bytes) == [Array("thére".utf8)])
            let edited = try transaction.entry(in: .root, named: name("edited"))
            #expect(edited?.identifier == nil)
            #expect(try transaction.setting("root.identifier") == "ba0075004afb4586")
        }
    }

    /// After a power cut records of the new schema could not be run on the tables of the old one.
    ///
    /// In a process of its own, as a fault is meant for the whole process. One sync is that of the log's beginning.
    @Test func aMigrationIsOnTheDiskBeforeAnythingElse() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder("index")
            let text = try String(contentsOf: MigrationTests.place.appendingPathComponent("1.sql"), encoding: .utf8)
            do {
                let database = try DatabaseQueue(path: String(decoding: folder.database, as: UTF8.self))
                try database.write { try $0.execute(sql: text) }
                try database.close()
            }
            try writeFile(Array("index.wal.sync 6 EIO\n".utf8), to: folder.path("faults"))
            FaultInjection.watch(String(decoding: folder.path("faults"), as: UTF8.self))
            let code = failure { _ = try folder.open() }
            try #require(code == .inputOutput && FaultInjection.met == "index.wal.sync", "each migration is synced")
            try writeFile([], to: folder.path("faults"))
            let index = try folder.open()
            try #require(try index.verify() == [])
        }
    }

    /// Before version 10 it was text in settings.
    @Test func whatWasNotedBeforeTheProviderHadItIsStillKnown() throws {
        let text = try String(contentsOf: Self.place.appendingPathComponent("8.sql"), encoding: .utf8)
        do {
            let database = try DatabaseQueue(path: String(decoding: folder.database, as: UTF8.self))
            try database.write { database in
                try database.execute(sql: text)
                for (key, value) in [
                    ("noted.41", "item"), ("noted.42", ""), ("noted.43", ""), ("noted-at.1.656469746564", "43"),
                    // The entry that is called `edited` now, made at 1795662681767654012.
                    ("noted-left.43", "1.1795662681000000000.file.656469746564 damaged.word"), ("noted.", "damaged"),
                ] {
                    try database.execute(sql: "INSERT INTO setting VALUES (?1, ?2)", arguments: [key, value])
                }
            }
            try database.close()
        }
        let index = try folder.open()
        defer { index.close() }
        try index.read { transaction throws(Failure) in
            #expect(try NotedName.identifier(of: EntryID(41), transaction) == ItemIdentifier("item"))
            #expect(try NotedName.identifier(of: EntryID(42), transaction) == nil)
            #expect(try NotedName.heir(of: EntryID(43), transaction)?.name == name("edited"))
            #expect(try transaction.setting("noted.41") == nil)
        }
        try index.write { transaction throws(Failure) in
            guard var edited = try transaction.entry(in: .root, named: name("edited")) else { return }
            edited.identifier = ItemIdentifier("sent")
            try transaction.update(edited)
            #expect(try NotedName.identifier(of: EntryID(43), transaction) == ItemIdentifier("sent"))
            #expect(try NotedName.identifier(of: EntryID(42), transaction) == nil)
        }
    }
}
