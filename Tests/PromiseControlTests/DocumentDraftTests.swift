import Foundation
import PromiseKit
import Testing

@Suite struct DocumentDraftTests {
    private func edit(_ note: Document<PlainText>, _ text: String) async throws {
        // It may read what the other one has just written.
        for _ in 0..<1000 {
            if (try? await note.edit({ $0.text = text })) != nil { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("it cannot be edited")
    }

    /// They wrote to one file beside it: one took away what the other had begun, and half of that
    /// one's text took the document's place.
    @Test(.timeLimit(.minutes(2))) func twoDocumentsOfOneFileAreWrittenEachByItself() async throws {
        try await DocumentFolder.with("old") { folder in
            let notes = [try folder.document(), try folder.document()]
            for note in notes { try await note.open() }
            for round in 0..<10 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (number, note) in notes.enumerated() {
                        group.addTask {
                            let text = String(repeating: "\(number)", count: (8 << 20) + round)
                            try await edit(note, text)
                            try await note.save(.overwritingChangesOfOthers)
                        }
                    }
                    try await group.waitForAll()
                }
                let text = try folder.text()
                #expect(Set(text.utf8).count == 1 && text.utf8.count >= 8 << 20)
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(Set(names) == ["now", "runtime"])
        }
    }
}
