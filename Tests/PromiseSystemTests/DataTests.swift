import Glibc
import PromiseCore
import PromiseSystem
import PromiseTestSupport
import Testing

@Suite struct DataTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("data") }

    private func open(_ path: [UInt8]) throws -> Descriptor {
        try Descriptor.open(path, flags: O_RDWR | O_CREAT, label: "test.open")
    }

    private func read(_ file: borrowing Descriptor, count: Int, at offset: UInt64) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: count)
        let read = try bytes.withUnsafeMutableBytes { try readFully(file.number, into: $0, at: offset, label: "test.read") }
        return Array(bytes[..<read])
    }

    private func write(_ bytes: [UInt8], to file: borrowing Descriptor, at offset: UInt64 = 0) throws {
        try bytes.withUnsafeBytes { try writeFully(file.number, $0, at: offset, label: "test.write") }
    }

    @Test func readingStopsAtTheEndOfTheFile() throws {
        let file = try open(folder.path("file"))
        try write([1, 2, 3, 4, 5], to: file)
        #expect(try read(file, count: 5, at: 0) == [1, 2, 3, 4, 5])
        #expect(try read(file, count: 9, at: 3) == [4, 5])
        #expect(try read(file, count: 9, at: 5) == [])
        #expect(try read(file, count: 0, at: 0) == [])
    }

    @Test func writingPastTheEndLeavesZeros() throws {
        let file = try open(folder.path("file"))
        try write([7], to: file, at: 3)
        try write([], to: file, at: 100)
        #expect(try read(file, count: 10, at: 0) == [0, 0, 0, 7])
        let far: UInt64 = 5 << 30
        try write([9], to: file, at: far)
        #expect(try read(file, count: 2, at: far) == [9])
        #expect(try FileStatus.of(descriptor: file.number, label: "test").size == far + 1)
    }

    /// On tmpfs and on the folder of the tests, which is a disk on most machines.
    private func roots() throws -> [[UInt8]] {
        var roots = [folder.path]
        if (try? FileStatus.of(Array("/dev/shm".utf8), label: "test")) != nil { roots.append(Array("/dev/shm".utf8)) }
        return roots
    }

    @Test func bytesAreCopiedWithinAndBetweenFileSystems() throws {
        var random = SeededGenerator(for: "copyBytes")
        let bytes = random.bytes(2_500_000)
        for (number, from) in try roots().enumerated() {
            for (other, to) in try roots().enumerated() {
                let sourcePath = from + Array("/promisefs-\(getpid())-\(number)\(other)-source".utf8)
                let targetPath = to + Array("/promisefs-\(getpid())-\(number)\(other)-target".utf8)
                defer {
                    try? PromiseSystem.unlink(sourcePath, label: "test.unlink")
                    try? PromiseSystem.unlink(targetPath, label: "test.unlink")
                }
                let source = try open(sourcePath)
                let target = try open(targetPath)
                try write(bytes, to: source)
                let copied = try copyBytes(
                    from: source.number, at: 1, to: target.number, at: 10, count: 2_400_000, label: "test.copy")
                #expect(copied == 2_400_000)
                #expect(try read(target, count: 3_000_000, at: 10) == Array(bytes[1..<2_400_001]), "seed \(random.seed)")
                #expect(try read(target, count: 10, at: 0) == [UInt8](repeating: 0, count: 10))
            }
        }
    }

    @Test func copyOfAShortSourceSaysHowMuchThereWas() throws {
        for (number, to) in try roots().enumerated() {
            let targetPath = to + Array("/promisefs-\(getpid())-\(number)-short".utf8)
            defer { try? PromiseSystem.unlink(targetPath, label: "test.unlink") }
            let source = try open(folder.path("short-\(number)"))
            let target = try open(targetPath)
            try write([1, 2, 3, 4], to: source)
            #expect(try copyBytes(from: source.number, at: 1, to: target.number, at: 0, count: 100, label: "test.copy") == 3)
            #expect(try copyBytes(from: source.number, at: 4, to: target.number, at: 0, count: 1, label: "test.copy") == 0)
            #expect(try copyBytes(from: source.number, at: 0, to: target.number, at: 0, count: 0, label: "test.copy") == 0)
            #expect(try read(target, count: 10, at: 0) == [2, 3, 4])
        }
    }

    @Test func copyWithinOneFileThatOverlapsGoesThroughMemory() throws {
        let file = try open(folder.path("file"))
        try write([1, 2, 3, 4, 5, 6], to: file)
        // copy_file_range(2) refuses overlapping ranges of one file with EINVAL.
        #expect(try copyBytes(from: file.number, at: 0, to: file.number, at: 2, count: 4, label: "test.copy") == 4)
        #expect(try read(file, count: 10, at: 0) == [1, 2, 1, 2, 3, 4])
    }

    @Test func holesAndSizes() throws {
        let file = try open(folder.path("file"))
        try write([UInt8](repeating: 1, count: 8192), to: file)
        try punchHole(file.number, ByteRange(4096, 8192), label: "test.punch")
        #expect(try read(file, count: 8192, at: 4095) == [1] + [UInt8](repeating: 0, count: 4096))
        try PromiseSystem.truncate(file.number, to: 10, label: "test.size")
        #expect(try read(file, count: 100, at: 0).count == 10)
    }

    /// An index may hold what a server called a size; the kernel counts to 2^63 - 1.
    @Test func aPlaceBeyondWhatTheKernelCountsToIsAnErrorAndNoTrap() throws {
        let file = try Descriptor.open(folder.path("beyond"), flags: O_RDWR | O_CREAT, mode: 0o600, label: "test.open")
        for size in [UInt64(Int64.max) + 1, .max] {
            #expect(throws: SystemError.self) { try truncate(file.number, to: size, label: "test.size") }
            #expect(throws: SystemError.self) { try writeFully(file.number, [1], at: size, label: "test.write") }
            #expect(throws: SystemError.self) { try punchHole(file.number, ByteRange(size, size), label: "test.hole") }
            #expect(throws: SystemError.self) {
                _ = try copyBytes(from: file.number, at: size, to: file.number, at: 0, count: 1, label: "test.copy")
            }
        }
    }
}
