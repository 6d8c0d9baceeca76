import Foundation
import GRDB
import PromiseCore
import PromiseIndex
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
}
