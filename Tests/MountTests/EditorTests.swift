import Testing

extension MountSuites {
    /// Each way in which editors save a document is one edit of that document; a change at the provider meanwhile is kept.
    @Suite struct EditorTests {
        @Test(.timeLimit(.minutes(10))) func everyWayOfSavingIsOneEditOfTheDocument() async throws {
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/editor-saves.py' --executable '\(Machine.executable)' --folder '\(Machine.folder)' \
                    \(Machine.isFullScale ? "" : "--quick")
                """, seconds: 500)
            #expect(result.status == 0, "\(result.output.suffix(4000))\n\(result.error.suffix(2000))")
        }
    }
}
