import PromiseKit
import Testing

@Suite struct DocumentUndoTests {
    /// It counted as one change less than nothing, and with the next edit as none: neither was
    /// written, and the file kept what had been undone.
    @Test(.timeLimit(.minutes(1))) func whatIsUndoneAfterASaveIsSaved() async throws {
        try await DocumentFolder.with("old") { folder in
            let note = try folder.document()
            try await note.open()
            try await note.edit { $0.text = "new" }
            try await note.save()
            #expect(try folder.text() == "new")
            try await note.edit { $0.text = "old" }
            await note.updateChangeCount(.undone)
            try await note.close()
            #expect(try folder.text() == "old")
        }
    }

    @Test(.timeLimit(.minutes(1))) func whatIsSaidToBeSavedIsNotSavedAgain() async throws {
        try await DocumentFolder.with("old") { folder in
            let note = try folder.document()
            try await note.open()
            await note.updateChangeCount(.redone)
            await note.updateChangeCount(.cleared)
            #expect(await !note.hasUnsavedChanges)
            await note.updateChangeCount(.undone)
            try await note.save()
            #expect(await !note.hasUnsavedChanges)
        }
    }
}
