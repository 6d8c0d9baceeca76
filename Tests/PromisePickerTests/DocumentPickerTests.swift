import Foundation
import PromiseKit
import Testing

/// The picker as applications have it: a process of its own.
@Suite struct DocumentPickerTests {
    private func picked(_ script: String) async throws -> [DocumentPicker.Document] {
        let file = NSTemporaryDirectory() + "/picker-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: file) }
        let draft = file + ".draft"
        defer { try? FileManager.default.removeItem(atPath: draft) }
        try Data(("#!/bin/sh\n" + script + "\n").utf8).write(to: URL(fileURLWithPath: draft))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: draft)
        copy(draft, to: file)
        var picker = DocumentPicker(.open)
        picker.types = ["public.text"]
        picker.application = "com.example.editor"
        return try await picker.pick(executable: file)
    }

    /// By another process: while this one has a file open for writing, a process that another test
    /// starts may have it, too, and it cannot be run (ETXTBSY of execve(2)).
    private func copy(_ draft: String, to file: String) {
        var words: [UnsafeMutablePointer<CChar>?] = ["cp", "-p", draft, file].map { (word: String) in strdup(word) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var process = pid_t()
        guard posix_spawnp(&process, "cp", nil, nil, &words, environ) == 0 else { return }
        while waitpid(process, nil, 0) < 0 && errno == EINTR {}
    }

    @Test func anApplicationLearnsWhatWasPickedAndNothingMore() async throws {
        let answer =
            #"{"picked":[{"path":"/m/a b.txt","pathBytes":"/m/a%20b.txt","bookmark":"xyz"}]}"#
        let words = "pick --json --mode open --type public.text --app com.example.editor"
        let documents = try await picked("[ \"$*\" = '\(words)' ] || exit 2; echo '\(answer)'")
        #expect(documents.map(\.path) == ["/m/a b.txt"] && documents.first?.bookmark == "xyz")
    }

    /// A program that was started meanwhile had the end that this one reads from.
    @Test func whatIsStartedBesideAPickerHasNothingOfIt() async throws {
        let file = NSTemporaryDirectory() + "/picker-line-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: file) }
        let nothing = "echo '{\"picked\":[]}'"
        async let first = picked(
            "readlink /proc/$$/fd/1 > \(file).new; mv \(file).new \(file); sleep 2; \(nothing)")
        for _ in 0..<200 where !FileManager.default.fileExists(atPath: file) {
            try await Task.sleep(for: .milliseconds(20))
        }
        let second = try await picked(
            """
            line=$(cat \(file)) || exit 4
            for end in /proc/$$/fd/*; do [ "$(readlink $end)" != "$line" ] || exit 3; done
            \(nothing)
            """)
        let isNothing = try await first.isEmpty
        #expect(isNothing && second.isEmpty)
    }

    @Test func whoCancelsHasPickedNothing() async throws {
        #expect(try await picked("exit 1").isEmpty)
        await #expect(throws: PromiseError.self) { try await picked("exit 3") }
        await #expect(throws: PromiseError.self) { try await picked("echo nonsense") }
        await #expect(throws: PromiseError.self) { try await picked("kill -9 $$") }
    }
}
