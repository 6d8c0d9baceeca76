import Foundation
import PromiseKit
import Testing

/// The picker as applications have it: a process of its own.
@Suite struct DocumentPickerTests {
    private func picked(_ script: String) async throws -> [DocumentPicker.Document] {
        let file = NSTemporaryDirectory() + "/picker-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try Data(("#!/bin/sh\n" + script + "\n").utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: file)
        var picker = DocumentPicker(.open)
        picker.types = ["public.text"]
        picker.application = "com.example.editor"
        return try await picker.pick(executable: file)
    }

    @Test func anApplicationLearnsWhatWasPickedAndNothingMore() async throws {
        let answer =
            #"{"picked":[{"path":"/m/a b.txt","pathBytes":"/m/a%20b.txt","bookmark":"xyz"}]}"#
        let words = "pick --json --mode open --type public.text --app com.example.editor"
        let documents = try await picked("[ \"$*\" = '\(words)' ] || exit 2; echo '\(answer)'")
        #expect(documents.map(\.path) == ["/m/a b.txt"] && documents.first?.bookmark == "xyz")
    }

    @Test func whoCancelsHasPickedNothing() async throws {
        #expect(try await picked("exit 1").isEmpty)
        await #expect(throws: PromiseError.self) { try await picked("exit 3") }
        await #expect(throws: PromiseError.self) { try await picked("echo nonsense") }
        await #expect(throws: PromiseError.self) { try await picked("kill -9 $$") }
    }
}
