import Glibc
import PromiseCore
import PromiseSystem
import PromiseTestSupport
import Testing

/// A disk image takes the room of what is in it, not of its size.
struct SparseWritingTests {
    private let size: UInt64 = 64 << 20

    private func open(_ folder: TemporaryFolder, _ name: String) throws -> Descriptor {
        try Descriptor.open(
            folder.path(name), flags: O_RDWR | O_CREAT, mode: 0o600, label: "test.open")
    }

    private func read(_ file: CInt, at offset: UInt64, _ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 1, count: count)
        let found = try bytes.withUnsafeMutableBytes { try readFully(file, into: $0, at: offset, label: "test.read") }
        return Array(bytes[..<found])
    }

    @Test func holesOfAFileAreHolesOfItsCopy() throws {
        let folder = try TemporaryFolder("sparse")
        let source = try open(folder, "source")
        let target = try open(folder, "target")
        let data: [UInt8] = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
        for place: UInt64 in [4 << 20, 40 << 20] {
            try data.withUnsafeBytes { try writeFully(source.number, $0, at: place, label: "test.write") }
        }
        for file in [source.number, target.number] { try truncate(file, to: size, label: "test.size") }
        // What was there before is not left in a hole.
        try data.withUnsafeBytes { try writeFully(target.number, $0, at: 20 << 20, label: "test.write") }
        let copied = try copyKeepingHoles(
            from: source.number, at: 0, to: target.number, at: 0, count: size, label: "test.copy")
        #expect(copied == size)
        #expect(try read(target.number, at: 4 << 20, data.count) == data)
        #expect(try read(target.number, at: 40 << 20, data.count) == data)
        #expect(try read(target.number, at: 20 << 20, data.count).allSatisfy { $0 == 0 })
        let status = try FileStatus.of(descriptor: target.number, label: "test.status")
        #expect(status.size == size && status.blocks * 512 < 2 << 20)
        // One that is shorter than it should be says so.
        #expect(
            try copyKeepingHoles(
                from: source.number, at: 60 << 20, to: target.number, at: 0, count: 8 << 20, label: "test.copy") == 4 << 20)
    }

    @Test func longRunsOfZeroBytesAreHoles() throws {
        let folder = try TemporaryFolder("zeroes")
        let file = try open(folder, "file")
        try truncate(file.number, to: size, label: "test.size")
        var bytes = [UInt8](repeating: 0, count: 8 << 20)
        for place in [0, 70_000, 3 << 20, bytes.count - 1] { bytes[place] = 7 }
        // Not at a multiple of anything.
        let offset: UInt64 = 12_345
        try bytes.withUnsafeBytes { try writeKeepingHoles(file.number, $0, at: offset, label: "test.write") }
        #expect(try read(file.number, at: offset, bytes.count) == bytes)
        let status = try FileStatus.of(descriptor: file.number, label: "test.status")
        #expect(status.size == size && status.blocks * 512 < 1 << 20)
    }
}
