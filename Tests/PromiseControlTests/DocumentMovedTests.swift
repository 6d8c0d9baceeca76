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

    private struct Album: PackageContents {
        var files = FilePackage()

        init() {}
        init(package: FilePackage) { files = package }
        func package() -> FilePackage { files }
    }

    private func eventually(_ what: String, _ condition: () async -> Bool) async throws {
        for _ in 0..<1500 {
            if await condition() { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("not in time: \(what)")
    }

    /// Puts something that cannot be looked at (`ELOOP`) in the document's place, or nothing, while
    /// `body` runs.
    private func without(
        _ folder: DocumentFolder, unreadable: Bool, _ body: () async throws -> Void
    ) async throws {
        let files = FileManager.default
        try files.moveItem(atPath: folder.file, toPath: folder.path + "/moved")
        if unreadable {
            try files.createSymbolicLink(atPath: folder.file, withDestinationPath: "now")
        }
        try await body()
        if unreadable { try files.removeItem(atPath: folder.file) }
        try files.moveItem(atPath: folder.path + "/moved", toPath: folder.file)
    }

    /// It counted as removed, and the document saved itself no more.
    @Test(.timeLimit(.minutes(2)), arguments: [(true, Int32(4)), (false, 6)])
    func aDocumentSavesItselfWhenItCanBeLookedAtAgain(
        unreadable: Bool, status: Int32
    ) async throws {
        try await DocumentFolder.with("old") { folder in
            let note = try folder.document(autosaveDelay: .milliseconds(50))
            try await note.open()
            try await without(folder, unreadable: unreadable) {
                try await note.edit { $0.text = "new" }
                try await eventually("it cannot be saved") {
                    (await note.lastError as? PromiseError)?.exitStatus == status
                }
                #expect(await note.state == .savingError)
            }
            try await eventually("saved") { await note.state == [] }
            #expect(try folder.text() == "new")
        }
    }

    @Test(.timeLimit(.minutes(1))) func aPackageThatCannotBeLookedAtIsNotRemoved() async throws {
        try await DocumentFolder.with("old") { folder in
            try FileManager.default.removeItem(atPath: folder.file)
            try FileManager.default.createDirectory(
                atPath: folder.file + "/inner", withIntermediateDirectories: true)
            try Data("old".utf8).write(to: URL(fileURLWithPath: folder.file + "/inner/one"))
            let album = try folder.document(Album())
            try await album.open()
            try await album.edit { $0.files["inner/one"] = [1] }
            for (unreadable, status) in [(true, Int32(4)), (false, 6)] {
                try await without(folder, unreadable: unreadable) {
                    let refusal = await #expect(throws: PromiseError.self) {
                        try await album.save()
                    }
                    #expect(refusal?.exitStatus == status)
                }
            }
            try await album.save()
            #expect(await album.state == [])
        }
    }

    /// It said that it could not be saved, until it was edited again.
    @Test(.timeLimit(.minutes(1))) func whereItWasMovedToADocumentIsSaved() async throws {
        try await DocumentFolder.with("old") { folder in
            let note = try folder.document(autosaveDelay: .seconds(2))
            try await note.open()
            try await without(folder, unreadable: false) {
                try await note.edit { $0.text = "new" }
                await #expect(throws: PromiseError.self) { try await note.save() }
            }
            folder.tellOfMove()
            try await eventually("the error is gone") { await note.lastError == nil }
            try await eventually("saved") { await !note.hasUnsavedChanges }
            #expect(try folder.text() == "new")
        }
    }
}
