import Foundation
import Testing

extension MountSuites {
    /// > A mapping outlives its descriptor: what is written through a shared mapping is sent also when the file was closed
    @Suite struct MappingTests {
        /// Maps a file that the provider has, closes it, and lets `body` say what happens meanwhile. `readers`: somebody else
        /// has had it open since before.
        private func whileMapped(
            _ arguments: [String], readers: Bool = false, _ body: @escaping (MountedDomain) async throws -> Void
        ) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            // Small files are read by the kernel's pages, and who maps one meanwhile maps these.
            options.prepare = "head -c \(readers ? 200_000 : 20_000) /dev/zero > \"$C/mapped\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/mapped" > /dev/null; mkdir "$T/signals"
                    if \(readers); then
                        sleep 100 < "$M/mapped" > /dev/null 2>&1 & echo $! > "$T/reader"; disown
                        within 30 'readlink /proc/$(cat "$T/reader")/fd/0 | grep -qx "$M/mapped"'
                    fi
                    python3 "$W/mapped-writer.py" "$M/mapped" "$T/signals" > "$T/log" 2>&1 & disown
                    within 30 '[ -e "$T/signals/mapped" ]' || { cat "$T/log"; false; }
                    """)
                try await body(domain)
            }
        }

        @Test(.timeLimit(.minutes(2)), arguments: [[], ["--no-passthrough"]])
        func whatIsWrittenThroughAMappingAfterItsDescriptorWasClosedIsSent(arguments: [String]) async throws {
            try await whileMapped(arguments) { domain in
                // Long enough for the close to be noted and for nothing to be on its way any more.
                try await domain.shell("sleep 2; touch \"$T/signals/write\" \"$T/signals/end\"")
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        @Test(.timeLimit(.minutes(2))) func whatIsInAMappingStillIsSentBySync() async throws {
            try await whileMapped([]) { domain in
                try await domain.shell("sleep 2; touch \"$T/signals/write\"; within 30 '[ -e \"$T/signals/written\" ]'")
                try await domain.synchronize()
                try await domain.shell("[ \"$(head -c 7 \"$C/mapped\")\" = WRITTEN ]; touch \"$T/signals/end\"")
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
            }
        }

        /// The page had been written to before, so nothing showed that it was again: `sync --wait` ended with 0 before that was
        /// sent.
        @Test(.timeLimit(.minutes(2)), arguments: [[], ["--no-passthrough"]])
        func whatIsWrittenAgainThroughAMappingIsSentBySync(arguments: [String]) async throws {
            try await whileMapped(arguments) { domain in
                try await domain.shell("touch \"$T/signals/write\"; within 30 '[ -e \"$T/signals/written\" ]'")
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(head -c 7 "$C/mapped")" = WRITTEN ]
                    touch "$T/signals/again"; within 30 '[ -e "$T/signals/writtenAgain" ]'
                    """)
                try await domain.synchronize()
                try await domain.shell("[ \"$(tail -c +13 \"$C/mapped\" | head -c 5)\" = TWICE ]; touch \"$T/signals/end\"")
            }
        }

        /// The control API said that nothing was pending: only the command had the kernel hand over its pages, by syncfs(2),
        /// which does not wait for that any more.
        @Test(.timeLimit(.minutes(2))) func whatIsInAMappingStillIsSentForAClient() async throws {
            try await whileMapped(["--no-passthrough"]) { domain in
                try await domain.shell(
                    """
                    touch "$T/signals/write"; within 30 '[ -e "$T/signals/written" ]'
                    "$P" sync --wait "$M"; touch "$T/signals/again"
                    within 30 '[ -e "$T/signals/writtenAgain" ]'
                    PYTHONPATH="$R/clients/python" python3 - "$M" <<'END'
                    import promisefs, sys
                    domain, path = promisefs.locate(sys.argv[1] + "/mapped")
                    assert domain.sync(wait=True)["pending"] == 0
                    END
                    [ "$(tail -c +13 "$C/mapped" | head -c 5)" = TWICE ]; touch "$T/signals/end"
                    """)
            }
        }

        /// Nobody has it open, and it is in use all the same.
        @Test(.timeLimit(.minutes(2))) func aFileThatIsStillMappedIsNotEvicted() async throws {
            try await whileMapped([]) { domain in
                try await domain.shell("sleep 2; \"$P\" evict \"$M/mapped\" || true")
                try await domain.shell("touch \"$T/signals/write\" \"$T/signals/end\"")
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
            }
        }

        /// Whoever has it open cannot be told from the mapping, so it is known again only when they close it.
        @Test(.timeLimit(.minutes(2))) func whatIsWrittenThroughAMappingWhileOthersReadTheFileIsSent() async throws {
            try await whileMapped([]) { domain in
                try await domain.shell(
                    """
                    sleep 2; exec 9< "$M/mapped"; sleep 2
                    touch "$T/signals/write" "$T/signals/end"; within 30 'not pgrep --full "mapped-writer.py $M/"'
                    exec 9<&-; within 40 '[ "$(head -c 12 "$C/mapped")" = WRITTENAGAIN ]'
                    """, seconds: 90)
            }
        }

        /// The thread that looks at mappings ends with the mount, and what it would have noted is found at the next one.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.isRoot, "connections are aborted by root"))
        func whatIsWrittenThroughAMappingAfterTheMountHasEndedIsSentByTheNextMount() async throws {
            try await whileMapped([]) { domain in
                try await domain.shell(
                    """
                    [ -e /sys/fs/fuse/connections/0 ] || mount -t fusectl none /sys/fs/fuse/connections 2> /dev/null || true
                    sleep 2; echo 1 > /sys/fs/fuse/connections/$(stat -c %d "$M")/abort
                    within 30 'not mountpoint -q "$M"'; within 30 'not pgrep --full "$S"'
                    touch "$T/signals/write" "$T/signals/end"; within 30 'not pgrep --full "mapped-writer.py $M/"'
                    """, seconds: 100)
                try await domain.remount()
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
            }
        }

        /// The successor knows of the reader's handle only.
        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 no mount outlives its daemon"))
        func aMappingOfAFileThatOthersReadOutlivesItsDaemon() async throws {
            try await whileMapped(["--no-io-uring"], readers: true) { domain in
                try domain.killDaemon()
                try await domain.shell(
                    """
                    ls "$M"; touch "$T/signals/write" "$T/signals/end"; within 30 'not pgrep --full "mapped-writer.py $M/"'
                    kill $(cat "$T/reader"); within 60 '[ "$(head -c 12 "$C/mapped")" = WRITTENAGAIN ]'
                    """, seconds: 120)
            }
        }

        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 no mount outlives its daemon"))
        func aMappingOutlivesItsDaemon() async throws {
            try await whileMapped(["--no-io-uring"]) { domain in
                try await domain.shell("sleep 2")
                try domain.killDaemon()
                try await domain.shell("ls \"$M\"; touch \"$T/signals/write\" \"$T/signals/end\"", seconds: 90)
                try await domain.shell("within 60 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 90)
            }
        }
    }
}
