import Foundation
import PromiseKit
import Testing

@Suite struct DocumentMovedTests {
    /// The save made another one in its place, and the document was two from then on.
    @Test(.timeLimit(.minutes(1))) func whatIsNotThereAnyMoreIsNotMadeAgain() async throws {
        try await DocumentFolder.with("old") { folder in
            let note = try folder.document()
            try await note.open()
            try await note.edit { $0.text = "new" }
            try FileManager.default.moveItem(atPath: folder.file, toPath: folder.path + "/moved")
            let refusal = await #expect(throws: PromiseError.self) { try await note.save() }
            #expect(refusal?.exitStatus == 6)
            #expect(!FileManager.default.fileExists(atPath: folder.file))
            try FileManager.default.moveItem(atPath: folder.path + "/moved", toPath: folder.file)
            try await note.save()
            #expect(try folder.text() == "new")
            #expect(await note.state == [])
        }
    }
}
