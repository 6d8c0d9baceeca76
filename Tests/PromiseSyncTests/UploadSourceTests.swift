import Glibc
import PromiseContent
import PromiseCore
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// What is sent is one state of a file, also when a program has it mapped.
struct UploadSourceTests {
    /// Where a write through a mapping moves a file's time at all, when its page is clean.
    private func movesTimes(_ file: CInt) throws -> Bool {
        let extXfsBtrfs: Set<Int64> = [0xEF53, 0x5846_5342, 0x9123_683E]
        return extXfsBtrfs.contains(try FileSystemFacts.of(descriptor: file, label: "test.disk").type)
    }

    /// It was sent without what came next, and nobody noticed until the mapping went.
    @Test func aSecondWriteThroughAMappingIsAWriteMeanwhile() throws {
        let folder = try TemporaryFolder("source")
        let content = try ContentStore(folder: folder.path("content"))
        let (node, generation) = (NodeID(rawValue: 7), Generation(rawValue: 1))
        let file = try content.create(node, generation, size: 4096)
        guard try movesTimes(file.number) else { return }
        let memory = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0))
        #expect(memory != MAP_FAILED)
        defer { munmap(memory, 4096) }
        memory.storeBytes(of: 1, as: UInt8.self)
        let source = try UploadSource(content, node: node, generation: generation, isWrittenTo: true)
        source.separateWrites()
        try source.validate()
        // The kernel's clock has ticks.
        usleep(50_000)
        memory.storeBytes(of: 2, as: UInt8.self)
        #expect(throws: ProviderError.self) { try source.validate() }
    }
}
