import Foundation
import PromiseKit
import Synchronization
import Testing

@Suite struct DocumentRereadingTests {
    private struct Text: DocumentContents {
        /// As what does not come from the provider.
        static let isUnreadable = Atomic(false)
        var text = ""

        init() {}
        init(bytes: [UInt8]) throws {
            if Text.isUnreadable.load(ordering: .relaxed) { throw CancellationError() }
            text = String(decoding: bytes, as: UTF8.self)
        }
        func bytes() -> [UInt8] { Array(text.utf8) }
    }

    private func eventually(_ what: String, _ condition: () async -> Bool) async throws {
        for _ in 0..<1500 {
            if await condition() { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("not in time: \(what)")
    }

    /// It showed the old text for good, and that everything was normal.
    @Test(.timeLimit(.minutes(2))) func whatCouldNotBeReadAgainIsTriedOnceMore() async throws {
        try await DocumentFolder.with("old") { folder in
            let note = try folder.document(Text())
            try await note.open()
            Text.isUnreadable.store(true, ordering: .relaxed)
            defer { Text.isUnreadable.store(false, ordering: .relaxed) }
            try Data("theirs".utf8).write(to: URL(fileURLWithPath: folder.file))
            folder.tellOfChange()
            try await eventually("it could not be read") { await note.lastError != nil }
            #expect(await note.contents.text == "old")
            Text.isUnreadable.store(false, ordering: .relaxed)
            try await eventually("read again") { await note.contents.text == "theirs" }
            #expect(await note.state == [])
        }
    }
}
