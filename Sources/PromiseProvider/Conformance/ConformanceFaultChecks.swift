import Glibc
import PromiseCore
import PromiseSystem
import Synchronization

// What goes wrong on our side, or between two calls: nothing half takes effect, and the provider works afterwards.

extension ConformanceSuite {
    static let faultChecks: [ConformanceCheck] = [
        ConformanceCheck("a version that never was is refused") { context in
            let made = try await context.makeFile("file", [1, 2, 3])
            let wrong = ContentVersion("no version of this file")
            let reference = context.reference(made)
            try await context.expect(.stale, "fetching a version that never was") {
                try await context.provider.fetchContents(
                    of: reference, version: wrong, range: nil, into: ConformanceSink())
            }
            try await context.expect(.conflict, "modifying a version that never was") {
                _ = try await context.provider.modify(
                    reference, changes: ItemChanges(), contents: try context.source([9]), baseVersion: wrong)
            }
            try await context.expect(.conflict, "deleting a version that never was") {
                try await context.provider.delete(reference, baseVersion: wrong)
            }
            try context.require(try await context.list() == [made], "the file changed or went")
            try await context.checkContent(made, is: [1, 2, 3])
        },
        ConformanceCheck("a source that is shorter than it says takes no effect") { context in
            let made = try await context.makeFile("file", [1])
            // Within one read of most providers, and over several.
            for size: UInt64 in [5000, 3 << 20] {
                let source = try ConformanceSource(size: size, pieces: [(0, [2])], scratch: context.scratch)
                try source.shorten(to: size / 2)
                try await context.expect(.sourceChanged, "modifying with a source of half its size") {
                    _ = try await context.provider.modify(
                        context.reference(made), changes: ItemChanges(), contents: source, baseVersion: made.version)
                }
                let new = NewItem(
                    name: FileName(trusted: Array("other".utf8)), kind: .file, metadata: ConformanceContext.metadata)
                try await context.expect(.sourceChanged, "creating with a source of half its size") {
                    _ = try await context.provider.create(new, in: context.folder, contents: source)
                }
            }
            try context.require(try await context.list() == [made], "half a source took effect")
            try await context.checkContent(made, is: [1])
        },
        ConformanceCheck("a disk that is full here ends a fetch") { context in
            let bytes = pattern(3 << 20, seed: 5)
            let made = try await context.makeFile("file", bytes)
            try await context.expect(.localDiskFull, "fetching to a full disk") {
                try await context.provider.fetchContents(
                    of: context.reference(made), version: made.version, range: nil, into: BrokenSink(.full))
            }
            try await context.checkContent(made, is: bytes)
        },
        ConformanceCheck("a fetch that is cancelled ends") { context in
            let bytes = pattern(3 << 20, seed: 6)
            let made = try await context.makeFile("file", bytes)
            let sink = BrokenSink(.watched)
            let fetch = Task {
                try? await context.provider.fetchContents(
                    of: context.reference(made), version: made.version, range: nil, into: sink)
            }
            for _ in 0..<2000 where !sink.hasBegun { try? await Task.sleep(for: .milliseconds(5)) }
            fetch.cancel()
            await fetch.value
            try await context.checkContent(made, is: bytes)
        },
    ]
}

/// Takes nothing, or waits a little over each piece.
private final class BrokenSink: ContentSink {
    enum Conduct { case full, watched }

    private let conduct: Conduct
    private let count = Atomic<UInt64>(0)

    init(_ conduct: Conduct) { self.conduct = conduct }

    var hasBegun: Bool { count.load(ordering: .relaxed) > 0 }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        _ = try take(UInt64(bytes.count))
    }

    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError) -> UInt64 {
        try take(count)
    }

    private func take(_ bytes: UInt64) throws(ProviderError) -> UInt64 {
        count.add(1, ordering: .relaxed)
        if conduct == .full { throw ProviderError(.localDiskFull, "there is no room: a check says so") }
        usleep(2000)
        return bytes
    }
}
