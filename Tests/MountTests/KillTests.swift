import Testing

extension MountSuites {
    /// A daemon that is killed at any moment of any workload loses nothing that had returned.
    @Suite struct KillTests {
        @Test(.timeLimit(.minutes(60))) func whatHadReturnedSurvivesKillsAtRandomMoments() async throws {
            let seed = Machine.seed ?? Int.random(in: 0..<1_000_000_000)
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/kill-workload.py' --executable '\(Machine.executable)' --kills \(Machine.kills) \
                    --seed \(seed) --folder '\(Machine.folder)'
                """, seconds: 3400)
            print(result.output)
            if result.status != 0 {
                Issue.record("seed \(seed), exit \(result.status):\n\(result.output.suffix(6000))\n\(result.error.suffix(2000))")
            }
        }

        /// > `close` does not wait. Whether something was written is read from size and modification time of the content file
        @Test(.timeLimit(.minutes(3))) func contentThatWasOnlyClosedIsUploadedByTheNextDaemon() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell("ls \"$M\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell("mkdir \"$M/folder\"; head -c 300000 /dev/urandom > \"$M/folder/file\"; echo a > \"$M/b\"")
                try await domain.kill9()
                try domain.setFaults([])
                try await domain.remount()
                try await domain.shell("[ \"$(cat \"$M/b\")\" = a ]; [ \"$(stat -c %s \"$M/folder/file\")\" = 300000 ]")
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// While many files are made on a slow disk, content files are made ahead of them.
        @Test(.timeLimit(.minutes(3))) func contentFilesMadeAheadGoWithTheDaemon() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell("for n in $(seq 200); do echo $n > \"$M/$n\"; done")
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    """
                    within 20 '[ $(find "$S/content" -type f | wc -l) = 200 ]'
                    for n in $(seq 200); do [ "$(cat "$M/$n")" = $n ]; done; "$P" verify "$M"
                    """)
            }
        }

        /// The kernel writes to the content file itself, so the daemon has seen nothing of it.
        /// > The kernel may write a content file without the daemon seeing it (passthrough).
        @Test(.timeLimit(.minutes(3))) func writesWithoutACloseAreFoundAndUploaded() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo before > \"$C/file\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/file" > /dev/null
                    (exec 3>>"$M/file"; echo after >&3; touch "$T/written"; exec sleep 1000) > /dev/null 2>&1 &
                    echo $! > "$T/writer"; disown; within 10 '[ -e "$T/written" ]'
                    """)
                try await domain.kill9()
                try await domain.shell("kill \"$(cat \"$T/writer\")\"")
                try await domain.remount()
                try await domain.synchronize()
                try await domain.shell("printf 'before\\nafter\\n' | cmp - \"$M/file\"; cmp \"$C/file\" \"$M/file\"")
            }
        }

        @Test(.timeLimit(.minutes(2))) func anUnmountKeepsWhatIsPendingAndSaysSo() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell("ls \"$M\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell("echo kept > \"$M/file\"")
                try await domain.shell("\"$P\" unmount \"$M\"", status: 7)
                try await domain.shell("not mountpoint -q \"$M\"; [ ! -e \"$C/file\" ]")
                try domain.setFaults([])
                try await domain.remount()
                try await domain.shell("within 30 '[ \"$(cat \"$C/file\")\" = kept ]'")
            }
        }
    }
}
