import Foundation
import Logging
import PromiseCore
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Testing

/// In a bucket `f` and `f/` are two keys, and one machine may make the one while another makes the other. The file was shown on
/// no machine then, and the one that had written it gave its copy up.
struct FileBesideFolderTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private let metadata = Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero)
    private let beside = FileName("f (file beside folder)")!

    private func withMachines(_ body: (S3Provider, S3Provider, Bucket) async throws -> Void) async throws {
        let bucket = Bucket(honoursConditions: true)
        let server = ScriptedServer { bucket.answer($0) }
        defer { server.stop() }
        let machines = try (0..<2).map { _ in
            try S3Provider(
                location: S3Location(parsing: "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)&anonymous=true"),
                credentials: AccessKeySource(own: CredentialSource()), stateFolder: nil,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }
        for machine in machines { try await machine.connect() }
        try await body(machines[0], machines[1], bucket)
        for machine in machines { await machine.letGo() }
    }

    private func reference(_ names: FileName...) -> ItemReference {
        ItemReference(identifier: ItemIdentifier("/" + names.map(\.display).joined(separator: "/")), path: names)
    }

    private func new(_ name: String, _ kind: NodeKind = .file) -> NewItem {
        NewItem(name: FileName(name)!, kind: kind, metadata: metadata)
    }

    private func names(_ machine: S3Provider) async throws -> [String] {
        try await machine.enumerateItems(in: root, page: nil).items.map { "\($0.name.display) \($0.kind)" }.sorted()
    }

    private func content(_ machine: S3Provider, _ item: Item) async throws -> String {
        let sink = ConformanceSink()
        let place = ItemReference(identifier: item.identifier, path: [item.name])
        try await machine.fetchContents(of: place, version: item.version, range: nil, into: sink)
        return String(decoding: sink.bytes, as: UTF8.self)
    }

    @Test func whatOneMachineSavesInAFileWhileAnotherMakesAFolderOfItIsShownOnBoth() async throws {
        try await withMachines { first, second, _ in
            for machine in [first, second] { #expect(try await names(machine) == []) }
            _ = try await first.create(new("f", .folder), in: root, contents: nil)
            // That there is no such folder it has seen a moment ago.
            let text = try ConformanceSource(Array("text".utf8))
            _ = try await second.create(new("f"), in: root, contents: text)
            for machine in [first, second] {
                let items = try await machine.enumerateItems(in: root, page: nil).items
                #expect(items.map(\.kind) == [.folder, .file] && items.map(\.name) == [FileName("f")!, beside])
                #expect(try await content(machine, items[1]) == "text")
                #expect(try await machine.item(for: reference(beside)).version == items[1].version)
                #expect(try await machine.item(for: reference(FileName("f")!)).kind == .folder)
            }
        }
    }

    @Test func suchAFileIsWrittenMovedAndRemovedLikeAnyOther() async throws {
        try await withMachines { machine, _, bucket in
            bucket.put("f", "one")
            bucket.put("f/a", "below")
            let found = try await machine.item(for: reference(beside))
            let written = try await machine.modify(
                reference(beside), changes: ItemChanges(), contents: try ConformanceSource(Array("two".utf8)),
                baseVersion: found.version)
            #expect(written.name == beside && bucket.body("f") == "two")
            let changes = ItemChanges(place: (parent: root, name: FileName("g")!))
            _ = try await machine.modify(reference(beside), changes: changes, contents: nil, baseVersion: written.version)
            #expect(try await names(machine) == ["f folder", "g file"])
            bucket.put("f", "again")
            let again = try await machine.item(for: reference(beside))
            try await machine.delete(reference(beside), baseVersion: again.version)
            #expect(try await names(machine) == ["f folder", "g file"] && bucket.body("f/a") == "below")
        }
    }

    /// Both names are of one key: the rename waited for the turn that it had itself, and whoever
    /// came by the key after it waited, too.
    @Test(.timeLimit(.minutes(1)), arguments: [true, false])
    func aFileGetsItsNameBackWhenTheFolderHasGone(withMode: Bool) async throws {
        try await withMachines { machine, _, bucket in
            bucket.put("f", "text")
            bucket.put("f/a", "below")
            let found = try await machine.item(for: reference(beside))
            bucket.remove("f/a")
            let mode = Metadata(mode: 0o600, owner: 0, group: 0, modificationTime: .zero)
            let changes = ItemChanges(
                place: (parent: root, name: FileName("f")!), metadata: withMode ? mode : nil)
            let renamed = try await machine.modify(
                reference(beside), changes: changes, contents: nil, baseVersion: found.version)
            #expect(renamed.name == FileName("f")! && bucket.body("f") == "text")
            if withMode { #expect(renamed.metadata.mode & 0o777 == 0o600) }
            #expect(try await names(machine) == ["f file"])
            // And it is not locked.
            try await machine.delete(reference(FileName("f")!), baseVersion: renamed.version)
            #expect(bucket.body("f") == nil)
        }
    }

    /// The other way about, and only while the names are free and the file is the one known.
    @Test(.timeLimit(.minutes(1)))
    func aFileGetsTheNameBesideAFolderOnlyAsLongAsItIsTheSame() async throws {
        try await withMachines { machine, _, bucket in
            bucket.put("f", "text")
            let plain = FileName("f")!
            let found = try await machine.item(for: reference(plain))
            bucket.put("f/a", "below")
            func rename(
                _ old: FileName, _ new: FileName, _ base: ContentVersion
            ) async throws -> Item {
                try await machine.modify(
                    reference(old), changes: ItemChanges(place: (parent: root, name: new)),
                    contents: nil, baseVersion: base)
            }
            #expect(try await rename(plain, beside, found.version).name == beside)
            await #expect {
                _ = try await rename(beside, plain, found.version)
            } throws: {
                ($0 as? ProviderError)?.code == .conflict
            }
            bucket.put("f", "other")
            await #expect {
                _ = try await rename(plain, beside, found.version)
            } throws: {
                ($0 as? ProviderError)?.code == .conflict
            }
            #expect(bucket.body("f") == "other" && bucket.body("f/a") == "below")
        }
    }

    @Test func withoutTheFolderTheFileHasItsNameAndNobodyElseGetsTheOther() async throws {
        try await withMachines { machine, _, bucket in
            bucket.put("f", "text")
            bucket.put("f (file beside folder)", "a stranger's")
            #expect(try await names(machine) == ["f file"])
            await #expect(throws: ProviderError.self) { _ = try await machine.item(for: reference(beside)) }
            let source = try ConformanceSource(Array("x".utf8))
            await #expect(throws: ProviderError.self) {
                _ = try await machine.create(new("g (file beside folder)"), in: root, contents: source)
            }
            #expect(bucket.body("g") == nil)
        }
    }

    /// `f` comes before `f!`, and that before `f/`.
    @Test func aFolderOnALaterPageHasTheNameToo() async throws {
        let listing = try #require(
            S3Listing.parse(
                Data(
                    """
                    <ListBucketResult><Contents><Key>f</Key><ETag>e</ETag><Size>1</Size></Contents>\
                    <Contents><Key>f!</Key><ETag>e</ETag><Size>1</Size></Contents>\
                    <IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>
                    """.utf8)))
        var rows = S3Rows(listing, in: [], KeyNames(prefix: []), isRoot: true)
        try await rows.renameFilesBesideFolders { (key) async throws(ProviderError) in key == Array("f".utf8) }
        #expect(rows.files.map(\.name) == [beside, FileName("f!")!] && rows.hidden.isEmpty)
    }
}
