import Testing

extension MountSuites {
    /// What the disk below refuses costs the call that met it and nothing else.
    @Suite struct DiskFaultTests {
        /// One call of each kind; `fault-matrix.py` without a list of labels tries all of them, several times.
        @Test(.timeLimit(.minutes(60))) func aFailingCallIsToldAndLosesNothing() async throws {
            let seed = Machine.seed ?? Int.random(in: 0..<1_000_000_000)
            let labels = "content.truncate.status,filesystem.note,index.journal.append"
            let choice = Machine.isFullScale ? "--calls 3" : "--calls 1 --faults EIO --labels '\(labels)'"
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/fault-matrix.py' --executable '\(Machine.executable)' --folder '\(Machine.folder)' \
                    --seed \(seed) \(choice)
                """, seconds: 3500)
            #expect(result.status == 0, "seed \(seed):\n\(result.output.suffix(4000))\n\(result.error.suffix(2000))")
        }
    }
}
