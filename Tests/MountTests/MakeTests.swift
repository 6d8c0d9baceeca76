import Testing

extension MountSuites {
    /// The command of a newcomer: `make mount`. What it builds is built already.
    @Suite struct MakeTests {
        @Test(.timeLimit(.minutes(3))) func makeMountShowsSamplesAsPlaceholdersAndASecondOneSaysSo() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                let make =
                    "cd '\(Machine.repository)'; export PROMISEFS_EXECUTABLE=\"$P\" MOUNTPOINT=\"$T/here\" "
                    + "PROMISEFS_STATE_DIR=\"$T/states\"; "
                let first = try await domain.shell(make + "make --no-print-directory mount", seconds: 120)
                #expect(first.output.contains("Try:"))
                try await domain.shell(
                    """
                    [ "$(getfattr --absolute-names --only-values -n user.promisefs.state "$T/here/Welcome.md")" = placeholder ]
                    diff -r --no-dereference --exclude=.promisefs '\(Machine.repository)/samples' "$T/here"
                    """)
                let second = try await domain.shell(make + "make --no-print-directory mount", seconds: 60)
                #expect(second.output.contains("already mounted"))
                try await domain.shell("rm \"$T/here/Welcome.md\"")
                try await domain.shell(make + "make --no-print-directory unmount; make --no-print-directory unmount", seconds: 60)
                try await domain.shell(make + "make --no-print-directory mount; [ ! -e \"$T/here/Welcome.md\" ]", seconds: 60)
                try await domain.shell(make + "make --no-print-directory unmount", seconds: 60)
                #expect(domain.daemonProcesses().isEmpty)
            }
        }
    }
}
