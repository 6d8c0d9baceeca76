import Foundation
import PromiseKit
import Synchronization
import Testing

@Suite struct DocumentPrivacyTests {
    private struct Album: PackageContents {
        var files = FilePackage()

        init() {}
        init(package: FilePackage) { files = package }
        func package() -> FilePackage { files }
    }

    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }

    private static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    /// The modes that whatever comes into a folder beside `now` has while `body` runs, which begins
    /// after a first look. By a thread of its own: a task might get none before all is written.
    private func modes(
        in folder: String, while body: () async throws -> Void
    ) async throws -> Set<mode_t> {
        let end = Flag()
        let (looks, continuation) = AsyncStream.makeStream(of: Set<mode_t>.self)
        Thread.detachNewThread {
            var found: Set<mode_t> = []
            var isFirst = true
            while !end.isSet {
                let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
                for name in names ?? [] where name.hasPrefix(".") {
                    if let mode = Self.mode(folder + "/" + name) { found.insert(mode) }
                }
                if isFirst { continuation.yield(found) }
                isFirst = false
                usleep(200)
            }
            continuation.yield(found)
            continuation.finish()
        }
        defer { end.set() }
        var iterator = looks.makeAsyncIterator()
        _ = await iterator.next()
        try await body()
        end.set()
        return await iterator.next() ?? []
    }

    /// What was to take its place could be read by everybody until all of it was written.
    @Test(.timeLimit(.minutes(1))) func nobodyElseReadsAPrivateDocumentWhileItIsSaved() async throws {
        try await DocumentFolder.with("old") { folder in
            try #require(chmod(folder.file, 0o600) == 0)
            let note = try folder.document()
            try await note.open()
            let text = String(repeating: "x", count: 64 << 20)
            try await note.edit { $0.text = text }
            let modes = try await modes(in: folder.path) { try await note.save() }
            #expect(modes == [0o600])
            #expect(Self.mode(folder.file) == 0o600)
        }
    }

    /// The folders in it were open afterwards, too.
    @Test(.timeLimit(.minutes(1))) func nobodyElseReadsAPrivatePackageWhileItIsSaved() async throws {
        try await DocumentFolder.with("old") { folder in
            try FileManager.default.removeItem(atPath: folder.file)
            try FileManager.default.createDirectory(
                atPath: folder.file + "/inner", withIntermediateDirectories: true)
            try Data("old".utf8).write(to: URL(fileURLWithPath: folder.file + "/inner/one"))
            try #require(chmod(folder.file, 0o700) == 0 && chmod(folder.file + "/inner", 0o750) == 0)
            let album = try folder.document(Album())
            try await album.open()
            let bytes = [UInt8](repeating: 1, count: 64 << 20)
            try await album.edit { $0.files["inner/one"] = bytes }
            let modes = try await modes(in: folder.path) { try await album.save() }
            #expect(modes == [0o700])
            #expect(Self.mode(folder.file) == 0o700 && Self.mode(folder.file + "/inner") == 0o750)
        }
    }

    /// A whole copy of it was left beside it by each save of an ordinary user.
    @Test(.timeLimit(.minutes(1))) func aFolderThatNobodyMayWriteInLeavesNoCopy() async throws {
        try await DocumentFolder.with("old") { folder in
            try FileManager.default.removeItem(atPath: folder.file)
            let inner = folder.file + "/inner"
            try FileManager.default.createDirectory(
                atPath: inner, withIntermediateDirectories: true)
            try Data("old".utf8).write(to: URL(fileURLWithPath: inner + "/one"))
            try #require(chmod(inner, 0o555) == 0)
            defer { chmod(inner, 0o700) }
            let album = try folder.document(Album())
            try await album.open()
            for byte in [1, 2] as [UInt8] {
                try await album.edit { $0.files["inner/one"] = [byte] }
                try await album.save()
            }
            #expect(Self.mode(inner) == 0o555)
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.filter { $0.hasPrefix(".") } == [])
        }
    }
}
