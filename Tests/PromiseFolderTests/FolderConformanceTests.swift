import Glibc
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseTestSupport
import Testing

/// The folder provider keeps every law of `Provider`.
struct FolderConformanceTests {
    @Test func folderProviderPassesTheConformanceSuite() async throws {
        let fixture = try await FolderFixture("conformance")
        try fixture.folder.makeFolder("suite")
        let (_, reference) = try await fixture.item("suite")
        let report = await ConformanceSuite(provider: fixture.provider, folder: reference).run()
        for failure in report.failures { Issue.record("\(failure.name): \(failure.sentence)") }
        // Its identifiers last, so that it needs no other name of an item; it has no server, nothing for strangers, no past and
        // no bin.
        let lacks = [
            "there is no line to a server", "not declared: persistent-identifiers", "not declared: sharing-links",
            "not declared: versions", "not declared: removed-items",
        ]
        #expect(report.skipped.allSatisfy { lacks.contains($0.reason) })
        #expect(report.results.count == ConformanceSuite.checkNames.count)
        #expect(try fixture.folder.names(in: "suite").isEmpty, "the suite removes what it made")
        #expect(try fixture.folder.names(in: ".promisefs/uploads").isEmpty, "no temporary file is left")
    }

    /// Another file system inside the folder, and the same one mounted a second time: renames from the store do not get there.
    @Test(.enabled(if: geteuid() == 0, "mounting needs root"), arguments: [false, true])
    func mountsInsideTheFolderPassTheConformanceSuite(_ isSameFileSystem: Bool) async throws {
        let fixture = try await FolderFixture("mounted")
        try fixture.folder.makeFolder("mount")
        try fixture.folder.makeFolder("elsewhere")
        let (point, source) = (fixture.folder.string + "/mount", fixture.folder.string + "/elsewhere")
        do {
            if isSameFileSystem {
                try run("mount", "--bind", source, point)
            } else {
                try run("mount", "-t", "tmpfs", "none", point)
            }
        } catch {
            // Root in a container without the right to mount.
            return
        }
        defer { try? run("umount", "-l", point) }
        let (_, reference) = try await fixture.item("mount")
        let report = await ConformanceSuite(provider: fixture.provider, folder: reference).run()
        for failure in report.failures { Issue.record("\(failure.name): \(failure.sentence)") }
        #expect(try fixture.folder.names(in: "mount").isEmpty)
    }

    @Test func suiteFindsAProviderThatBreaksTheLaws() async throws {
        let fixture = try await FolderFixture("lawless")
        let provider = LawlessProvider(wrapped: fixture.provider)
        let report = await ConformanceSuite(provider: provider, folder: try await fixture.root()).run()
        let failed = Set(report.failures.map(\.name))
        #expect(failed.contains("modifying an old version is a conflict"))
        #expect(failed.contains("deleting an old version is a conflict"))
        #expect(failed.contains("fetching an old version is stale"))
        #expect(failed.contains("a fetch during trouble brings all of the version, or fails"))
        #expect(failed.contains("a file that is made during trouble is whole, or not there"))
        #expect(report.skipped.contains { $0.name == "the quota is told" && $0.reason == "not declared: quota" })
        let lack = "the storage takes them for one, and refuses the second"
        #expect(report.skipped.contains { $0.name == "lower and upper case are two names" && $0.reason == lack })
        #expect(report.score < 1)
    }
}

/// Ignores every version and all trouble, and declares no quota.
private struct LawlessProvider: Provider {
    let wrapped: FolderProvider
    let line = FaultLine()
    var faultLine: FaultLine? { line }

    var name: String { "lawless" }
    var capabilities: Capabilities { wrapped.capabilities.subtracting(.quota) }
    func connect() async throws(ProviderError) { try await wrapped.connect() }
    func root() async throws(ProviderError) -> Item { try await wrapped.root() }
    func item(for reference: ItemReference) async throws(ProviderError) -> Item { try await wrapped.item(for: reference) }
    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await wrapped.enumerateItems(in: folder, page: page)
    }
    func currentAnchor() async throws(ProviderError) -> Anchor { try await wrapped.currentAnchor() }
    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage { try await wrapped.changes(since: anchor) }
    func waitForChanges(since anchor: Anchor) async throws(ProviderError) { try await wrapped.waitForChanges(since: anchor) }
    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        if line.take() == .brokenReply { return }
        let now = try await wrapped.item(for: reference).version
        try await wrapped.fetchContents(of: reference, version: now, range: range, into: sink)
    }
    func create(_ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?) async throws(ProviderError) -> Item {
        // As where upper case is lower case; that breaks no law.
        if item.name == FileName("CASE") { throw ProviderError(.refused, "the name is taken") }
        let isLost = line.take() == .lostAnswer
        let made = try await wrapped.create(item, in: folder, contents: contents)
        if isLost { throw ProviderError(.permanent, "the answer got lost") }
        return made
    }
    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        let now = try await wrapped.item(for: reference).version
        return try await wrapped.modify(reference, changes: changes, contents: contents, baseVersion: now)
    }
    func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await wrapped.delete(reference, baseVersion: nil)
    }
}
