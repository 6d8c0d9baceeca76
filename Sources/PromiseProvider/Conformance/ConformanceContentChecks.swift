import Glibc
import PromiseCore

// Content: sizes, ranges, versions.

extension ConformanceSuite {
    static let contentChecks: [ConformanceCheck] =
        [0, 1, 4095, 4096, (1 << 20) + 1].map { size in
            ConformanceCheck("a content of \(size) bytes comes back") { context in
                let bytes = pattern(size, seed: 1)
                let made = try await context.makeFile("file", bytes)
                try context.require(made.size == UInt64(size), "the size is \(made.size)")
                try await context.checkContent(made, is: bytes)
            }
        } + [
            ConformanceCheck("a sparse content of 64 MiB comes back") { context in
                let size: UInt64 = 64 << 20
                let middle = pattern(5000, seed: 2)
                let source = try ConformanceSource(
                    size: size, pieces: [(0, [1]), (31 << 20, middle)], scratch: context.scratch)
                let new = NewItem(
                    name: FileName(trusted: Array("sparse".utf8)), kind: .file, metadata: ConformanceContext.metadata)
                let made = try await context.provider.create(new, in: context.folder, contents: source)
                try context.require(made.size == size, "the size is \(made.size)")
                let sink = try await context.fetch(made)
                try context.require(sink.takenByteCount == size, "\(sink.takenByteCount) bytes came")
                var expected = [UInt8](repeating: 0, count: Int(size))
                expected[0] = 1
                expected.replaceSubrange((31 << 20)..<((31 << 20) + middle.count), with: middle)
                try context.require(areEqual(sink.bytes, expected), "the bytes that came are not those that were sent")
            },
            ConformanceCheck("ranges come back", needs: .ranges) { context in
                let bytes = pattern(300_000, seed: 3)
                let made = try await context.makeFile("file", bytes)
                for range in [ByteRange(0, 1), ByteRange(4096, 8192), ByteRange(299_999, 300_000), ByteRange(1, 299_999)] {
                    let sink = try await context.fetch(made, range: range)
                    try context.require(sink.taken == [range], "for the range \(range) came \(sink.taken)")
                    let part = bytes[Int(range.lower)..<Int(range.upper)]
                    try context.require(sink.bytes[Int(range.lower)...].elementsEqual(part), "the bytes of \(range) are wrong")
                }
            },
            ConformanceCheck("new content has a new version and the same identifier") { context in
                let made = try await context.makeFile("file", [1, 2, 3])
                let bytes = pattern(70_000, seed: 4)
                let modified = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(metadata: ConformanceContext.metadata),
                    contents: try context.source(bytes),
                    baseVersion: made.version)
                try context.require(modified.version != made.version, "the version did not change")
                try context.require(modified.size == 70_000 && modified.name == made.name, "modify returns another item")
                if context.provider.capabilities.contains(.stableIdentifiers) {
                    try context.require(modified.identifier == made.identifier, "the identifier changed with the content")
                }
                try context.require(try await context.list() == [modified], "the listing differs from what modify returned")
                try await context.checkContent(modified, is: bytes)
            },
            ConformanceCheck("same size and same time are still a new version") { context in
                let made = try await context.makeFile("file", [1, 2, 3])
                let modified = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(metadata: ConformanceContext.metadata),
                    contents: try context.source([4, 5, 6]), baseVersion: made.version)
                try context.require(modified.version != made.version, "the version did not change")
                try await context.checkContent(modified, is: [4, 5, 6])
            },
            ConformanceCheck("fetching an old version is stale") { context in
                let made = try await context.makeFile("file", [1, 2, 3])
                _ = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(), contents: try context.source([9]), baseVersion: made.version)
                try await context.expect(.stale, "fetching a version that was replaced") { _ = try await context.fetch(made) }
            },
            ConformanceCheck("content, metadata and name change together") { context in
                let made = try await context.makeFile("old", [1])
                let changes = ItemChanges(
                    place: (context.folder, FileName(trusted: Array("new".utf8))), metadata: ConformanceContext.metadata)
                let modified = try await context.provider.modify(
                    context.reference(made), changes: changes, contents: try context.source([2, 2]), baseVersion: made.version)
                try context.require(modified.name == FileName("new") && modified.size == 2, "not everything was changed")
                try context.require(try await context.list() == [modified], "the listing differs from what modify returned")
            },
            ConformanceCheck("a source that changed takes no effect") { context in
                let made = try await context.makeFile("file", [1])
                let source = try context.source([2])
                source.invalidate()
                try await context.expect(.sourceChanged, "modifying with a source that changed") {
                    _ = try await context.provider.modify(
                        context.reference(made), changes: ItemChanges(), contents: source, baseVersion: made.version)
                }
                let new = NewItem(
                    name: FileName(trusted: Array("other".utf8)), kind: .file, metadata: ConformanceContext.metadata)
                try await context.expect(.sourceChanged, "creating with a source that changed") {
                    _ = try await context.provider.create(new, in: context.folder, contents: source)
                }
                try context.require(try await context.list() == [made], "a refused source took effect")
                try await context.checkContent(made, is: [1])
            },
        ]
}

/// As `==`, which goes element by element in an unoptimised build.
func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count, !left.isEmpty else { return left.count == right.count }
    return left.withUnsafeBytes { left in
        right.withUnsafeBytes { memcmp(left.baseAddress!, $0.baseAddress!, left.count) == 0 }
    }
}

/// Bytes that look random and are the same for a seed.
func pattern(_ count: Int, seed: UInt64) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
    }
}
