import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What a repair does not trust, or what an index has lost, may be the only copy of an edit.
@Suite struct ContentVerificationTests {
    let folder: TemporaryFolder
    let index: Index
    let content: ContentStore

    init() throws {
        folder = try TemporaryFolder("verification")
        index = try Index(path: folder.path("index.sqlite"), cacheCountMax: 1_000)
        content = try ContentStore(folder: folder.path("content"))
    }

    private func store(_ text: String, of node: Node) throws {
        let bytes = Array(text.utf8)
        let file = try content.create(node.id, node.generation)
        try bytes.withUnsafeBytes { try writeFully(file.number, $0, at: 0, label: "test.write") }
    }

    private func makeNode(_ state: ContentState, change: (inout Node) -> Void = { _ in }) throws -> Node {
        var node = Node(id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 5, time: .zero, content: state)
        change(&node)
        return try index.write { [node] transaction throws(Failure) in try transaction.insert(node) }
    }

    private func repairIndex() throws -> [String] {
        try index.write { transaction throws(Failure) in
            try transaction.repair(
                now: .zero, hasContent: { node in (try? content.status(node.id, node.generation)) != nil },
                keep: { node throws(Failure) in try content.keepAll(of: node) })
        }
    }

    /// As a start does, and a repair after the index was mended. Returns how many files it found.
    private func clearOrphans() throws -> Int {
        let orphans = ContentOrphans(index: index, content: content)
        let found = try orphans.find { _ in false }
        for orphan in found { _ = try orphans.clear(orphan) { _ in false } }
        return found.count
    }

    private func kept() throws -> [String] {
        guard folder.exists("kept") else { return [] }
        return try folder.names(in: "kept").map { String(decoding: try folder.read("kept/" + $0.text), as: UTF8.self) }
    }

    /// The row of a node was lost and its name not: the content was removed at the next start, and by the repair.
    @Test func contentOfALostNodeStaysAtAStartAndIsKeptByARepair() throws {
        let node = try makeNode(.whole) { $0.edits = 1 }
        try store("edits", of: node)
        try index.write { transaction throws(Failure) in
            try transaction.delete(node.id)
            _ = try transaction.insertEntry(in: .root, named: FileName("a")!, node: node.id, identifier: nil)
        }
        #expect(try clearOrphans() == 0)
        #expect(try content.status(node.id, node.generation) != nil)
        let done = try repairIndex()
        #expect(done.count == 1 && done[0].contains("its content is kept as"), "\(done)")
        #expect(try clearOrphans() == 1)
        #expect(try kept() == ["edits"])
        #expect(try content.status(node.id, node.generation) == nil)
    }

    /// The content of a name without a node cannot be kept: the name was forgotten, and the content with it.
    @Test func aNameIsNotForgottenWhenItsContentCannotBeKept() throws {
        let node = try makeNode(.whole)
        try store("edits", of: node)
        try index.write { transaction throws(Failure) in
            try transaction.delete(node.id)
            _ = try transaction.insertEntry(in: .root, named: FileName("a")!, node: node.id, identifier: nil)
        }
        try folder.write("in the way", to: "kept")
        #expect(throws: Failure.self) { try repairIndex() }
        #expect(try clearOrphans() == 0)
        #expect(try content.status(node.id, node.generation) != nil)
    }

    /// A file that was written to before all of it was here, and that lost its name, was deleted with what was written.
    @Test func partialContentWithEditsIsKeptWhenItsNodeIsNameless() throws {
        let edited = try makeNode(.partial) { $0.edits = 1 }
        let clean = try makeNode(.partial)
        try store("edits", of: edited)
        try store("clean", of: clean)
        #expect(try repairIndex().count == 2)
        #expect(try index.verify() == [])
        #expect(try clearOrphans() == 2)
        #expect(try kept() == ["edits"])
    }

    /// A file that was made here and not sent, with a name and a time that its row has, too.
    private func makeWritten() throws -> Node {
        var node = try makeNode(.whole) { $0.edits = 1 }
        try store("edits", of: node)
        let status = try #require(try content.status(node.id, node.generation))
        node.modificationTime = status.modificationTime
        try index.write { [node] transaction throws(Failure) in
            try transaction.update(node)
            _ = try transaction.insertEntry(in: .root, named: FileName("a")!, node: node.id, identifier: nil)
        }
        return node
    }

    private func damage(_ node: Node, _ change: (inout Node) -> Void) throws {
        var node = node
        change(&node)
        try index.write { [node] transaction throws(Failure) in try transaction.update(node) }
    }

    /// A row said that no content is here, or named a file that is not there: the only copy of an edit was removed at the
    /// next start, and by the repair.
    @Test(arguments: ["absent", "another number", "absent, repaired", "another number, repaired"])
    func contentThatItsRowDoesNotKnowIsTaken(_ what: String) throws {
        let node = try makeWritten()
        try damage(node) { node in
            if what.hasPrefix("absent") { node.content = .absent } else { node.generation = Generation(7) }
        }
        if what.hasSuffix("repaired") {
            let report = try verify()
            #expect(report.problems == [] && report.repaired.count == 1, "\(report)")
        } else {
            #expect(try clearOrphans() == 1)
        }
        let now = try #require(try current(node))
        #expect(now.content == .whole && now.generation == node.generation && now.edits == 2 && now.size == 5)
        #expect(try content.status(node.id, node.generation)?.size == 5)
        #expect(try clearOrphans() == 0)
        let pending = try index.read { transaction throws(Failure) in try transaction.allPending(limit: 9).count }
        #expect(pending == 1)
    }

    /// It may be older than what its row stands for.
    @Test func contentOfAnotherTimeIsKeptAside() throws {
        let node = try makeWritten()
        try damage(node) { node in
            node.generation = Generation(7)
            node.modificationTime = .zero
        }
        #expect(try clearOrphans() == 1)
        #expect(try kept() == ["edits"])
    }

    /// What the provider has comes from there: nothing is kept of it.
    @Test func contentThatWasNotEditedIsRemoved() throws {
        let node = try makeGrown()
        try damage(node) { $0.content = .absent }
        #expect(try clearOrphans() == 1)
        #expect(try kept() == [])
        #expect(try content.status(node.id, node.generation) == nil)
    }

    /// Where the row was wrong, the content went with it.
    @Test func removedContentOfAnotherSizeIsKeptByTheRepair() throws {
        let node = try makeNode(.whole)
        try store("removed", of: node)
        try index.write { transaction throws(Failure) in
            try transaction.delete(node.id)
            try RemovedRows.insert(RemovedItem(node, at: [FileName("a")!], removed: .zero), transaction)
        }
        let report = try verify()
        #expect(report.repaired.count == 1 && report.repaired[0].contains("kept as"), "\(report)")
        _ = try clearOrphans()
        #expect(try kept() == ["removed"])
    }

    /// What the provider has at another size than the file here, which something has written to.
    private func makeGrown() throws -> Node {
        let node = try makeNode(.whole) { $0.version = ContentVersion("1") }
        try store("longer than five", of: node)
        let item = Item(
            identifier: ItemIdentifier("i"), parent: nil, name: FileName("a")!, kind: .file, size: 5,
            metadata: Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero), version: ContentVersion("1"))
        try index.write { transaction throws(Failure) in
            _ = try transaction.insertEntry(in: .root, named: FileName("a")!, node: node.id, identifier: item.identifier)
            try transaction.setSynced(SyncedItem(item: item, edits: 0))
        }
        return node
    }

    private func verify(isOpen: @escaping (NodeID) -> Bool = { _ in false }) throws -> ContentVerification.Report {
        var verification = ContentVerification(
            index: index, content: content, clock: SystemClock(), isRepairing: true, isOpen: isOpen, onChange: { _ in })
        return try verification.run()
    }

    private func current(_ node: Node) throws -> Node? {
        try index.read { transaction throws(Failure) in try transaction.node(node.id) }
    }

    /// Content that a repair does not trust was forgotten first: a crash in between left it to be removed at the next start.
    @Test func contentIsKeptBeforeItIsForgotten() throws {
        let node = try makeGrown()
        let keptWhenAsked = Mutex<[Bool]>([])
        let folder = folder
        let report = try verify { _ in
            // Asked for the last time in the transaction that forgets the content.
            keptWhenAsked.withLock { $0.append(folder.exists("kept/\(String(node.id.rawValue, radix: 16)).0")) }
            return false
        }
        #expect(report.problems == [] && report.repaired.count == 1, "\(report)")
        #expect(keptWhenAsked.withLock(\.last) == true)
        #expect(try current(node)?.content == .absent)
        #expect(try clearOrphans() == 0)
        #expect(try kept() == ["longer than five"])
    }

    /// It was forgotten although it could not be put aside, and removed at the next start.
    @Test func contentThatCannotBeKeptStaysWhereItIs() throws {
        let node = try makeGrown()
        try folder.write("in the way", to: "kept")
        let report = try verify()
        #expect(report.repaired == [])
        #expect(report.problems.count == 1 && report.problems[0].contains("cannot be kept"), "\(report)")
        #expect(try current(node)?.content == .whole)
        #expect(try clearOrphans() == 0)
        #expect(try content.status(node.id, node.generation)?.size == 16)
    }

    /// A repair that was cut off has kept the content already.
    @Test func contentIsKeptOnceHoweverOftenItIsTried() throws {
        let node = try makeGrown()
        let first = try content.keep(node.id, node.generation)
        #expect(try content.keep(node.id, node.generation) == first)
        #expect(try kept().count == 1)
        // Another file of that name is another content.
        try content.remove(node.id, node.generation)
        try store("other", of: node)
        #expect(try content.putAside(node.id, node.generation) != first)
        #expect(try kept().sorted() == ["longer than five", "other"])
    }
}

extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
