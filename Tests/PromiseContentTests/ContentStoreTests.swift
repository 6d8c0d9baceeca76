import Glibc
import PromiseContent
import PromiseCore
import PromiseSystem
import PromiseTestSupport
import Testing

@Suite struct ContentStoreTests {
    let folder: TemporaryFolder
    let store: ContentStore

    init() throws {
        folder = try TemporaryFolder("content")
        store = try ContentStore(folder: folder.path("a/content"))
    }

    private func write(_ text: String, to file: borrowing Descriptor) throws {
        let bytes = Array(text.utf8)
        try bytes.withUnsafeBytes { try writeFully(file.number, $0, at: 0, label: "test.write") }
    }

    private func read(_ file: borrowing Descriptor) throws -> String {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try bytes.withUnsafeMutableBytes { try readFully(file.number, into: $0, at: 0, label: "test.read") }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    @Test func whatIsWrittenIsReadAgain() throws {
        try write("hello", to: try store.create(NodeID(0x12AB), Generation(3)))
        #expect(try read(try store.open(NodeID(0x12AB), Generation(3), writable: false)) == "hello")
        #expect(folder.exists("a/content/ab/12ab.3"))
    }

    @Test func generationsAreFilesOfTheirOwn() throws {
        try write("one", to: try store.create(NodeID(5), Generation(1)))
        try write("two", to: try store.create(NodeID(5), Generation(2)))
        #expect(try read(try store.open(NodeID(5), Generation(1))) == "one")
        #expect(try read(try store.open(NodeID(5), Generation(2))) == "two")
    }

    @Test func newFileIsSparseAndPrivate() throws {
        _ = try store.create(NodeID(7), Generation(0), size: 1 << 40)
        let status = try #require(try store.status(NodeID(7), Generation(0)))
        #expect(status.size == 1 << 40 && status.blocks == 0 && status.permissions == 0o600)
    }

    @Test func creatingOverRubbishEmptiesIt() throws {
        try write("rubbish of a crash", to: try store.create(NodeID(7), Generation(0)))
        let file = try store.create(NodeID(7), Generation(0), size: 3)
        #expect(try read(file) == "\0\0\0")
    }

    @Test func missingContentIsCorruption() throws {
        let failure = #expect(throws: Failure.self) { _ = try self.store.open(NodeID(9), Generation(1)) }
        #expect(failure?.code == .corrupted)
        #expect(try store.status(NodeID(9), Generation(1)) == nil)
    }

    @Test func readOnlyOpenCannotWrite() throws {
        _ = try store.create(NodeID(9), Generation(1))
        let file = try store.open(NodeID(9), Generation(1), writable: false)
        #expect(fcntl(file.number, F_GETFL) & O_ACCMODE == O_RDONLY)
        #expect(fcntl(file.number, F_GETFD) & FD_CLOEXEC != 0)
    }

    @Test func removedContentStaysForWhoHasItOpen() throws {
        let file = try store.create(NodeID(256), Generation(1))
        try write("kept", to: file)
        try store.remove(NodeID(256), Generation(1))
        #expect(try store.status(NodeID(256), Generation(1)) == nil)
        #expect(try read(file) == "kept")
        try store.remove(NodeID(256), Generation(1))
    }

    @Test func everyFileIsVisitedAndStrangersAreSkipped() throws {
        var expected: Set<String> = []
        for number: UInt64 in [1, 255, 256, 0xFFFF_FFFF_FFFF_FFFF] {
            for generation: UInt64 in [0, 12] {
                _ = try store.create(NodeID(number), Generation(generation))
                expected.insert("\(number).\(generation)")
            }
        }
        try folder.write("", to: "a/content/00/README")
        try folder.write("", to: "a/content/00/zz.1")
        try folder.write("", to: "a/content/00/1.2.3")
        var seen: [String] = []
        try store.forEachFile { node, generation throws(Failure) in seen.append("\(node).\(generation)") }
        #expect(Set(seen) == expected && seen.count == expected.count)
    }

    @Test func openingAnExistingStoreKeepsIt() throws {
        try write("still here", to: try store.create(NodeID(5), Generation(1)))
        let again = try ContentStore(folder: folder.path("a/content"))
        #expect(try read(try again.open(NodeID(5), Generation(1))) == "still here")
        let space = again.space()
        #expect(space.total > 0 && space.free <= space.total)
    }
}
