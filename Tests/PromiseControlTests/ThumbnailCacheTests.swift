import Glibc
import PromiseCore
import PromiseKit
import PromiseTestSupport
import Testing

/// Pictures for file managers are written beside those that are there, under names of their own.
@Suite struct ThumbnailCacheTests {
    let folder: PromiseTestSupport.TemporaryFolder
    let cache: ThumbnailCache

    init() throws {
        folder = try PromiseTestSupport.TemporaryFolder("thumbnails")
        cache = ThumbnailCache(folder: folder.path("cache"))
    }

    private static func picture(_ byte: UInt8) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + [UInt8](repeating: byte, count: 200_000)
    }

    private func place(_ picture: [UInt8]) throws {
        try cache.place(picture, in: "normal", of: Array("/doc".utf8), modifiedAt: (1, 0))
    }

    private func names() throws -> [String] {
        try folder.names(in: "cache/normal").map { String(decoding: $0, as: UTF8.self) }.sorted()
    }

    /// All writes of one process used one draft: one took the other's away, or had it half written.
    @Test func whoPutsTheSamePictureThereAtOnceDisturbsNobody() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 1...4 {
                group.addTask { [self] in
                    for _ in 0..<50 { try place(Self.picture(UInt8(writer))) }
                }
            }
            try await group.waitForAll()
        }
        let left = try names()
        #expect(left.count == 1 && left[0].hasSuffix(".png"), "\(left)")
        let bytes = try folder.read("cache/normal/" + left[0])
        let last = try #require(bytes.last)
        #expect(bytes.suffix(199_000).allSatisfy { $0 == last })
    }

    /// What a process left that was killed was left for good, one for each process.
    @Test func draftsOfProcessesThatHaveEndedAreRemoved() throws {
        let digest = String(repeating: "a1", count: 16)
        let (old, fresh, other) = ("\(digest).123.new", "\(digest).124.new", "\(digest).old.new")
        try folder.makeFolder("cache")
        try folder.makeFolder("cache/normal")
        for name in [old, fresh, other] { try folder.write("half", to: "cache/normal/" + name) }
        for name in [old, other] {
            var times = [timeval(tv_sec: 1_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000, tv_usec: 0)]
            let path = String(decoding: folder.path("cache/normal/" + name), as: UTF8.self)
            #expect(utimes(path, &times) == 0)
        }
        try place(Self.picture(1))
        let left = try names()
        #expect(!left.contains(old) && left.contains(fresh) && left.contains(other) && left.count == 3, "\(left)")
    }
}
