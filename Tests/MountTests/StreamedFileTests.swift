import Testing

extension MountSuites {
    /// A file that is larger than there is room for can be read all the same.
    @Suite struct StreamedFileTests {
        private static let keeps = """
            used() { du -s --block-size=1M "$S/content" | cut -f1; }

            """

        /// > A file that is larger than `--cache-limit`, or than the disk, is read through:
        @Test(.timeLimit(.minutes(4))) func aFileThatIsLargerThanTheCacheLimitIsReadThroughWithinIt() async throws {
            var options = MountedDomain.Options()
            options.arguments = ["--cache-limit", "64M"]
            options.prepare = "head -c 200M /dev/urandom > \"$C/large\"; echo small > \"$C/small\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.keeps + """
                        sum=$(sha256sum < "$C/large"); cat "$M/small"
                        # What goes while du(1) looks at it is no matter.
                        most=0; (while :; do used 2> /dev/null || true; sleep 0.05; done > "$T/used") & watching=$!
                        [ "$(sha256sum < "$M/large")" = "$sum" ]; cp "$M/large" "$T/copy"; cmp "$T/copy" "$C/large"
                        kill $watching; most=$(sort -n "$T/used" | tail -n 1); echo "$most MiB at most"; [ "$most" -le 96 ]
                        cmp "$M/large" "$C/large" & one=$!; cmp "$M/large" "$C/large" & two=$!; wait $one; wait $two
                        [ "$(used)" -le 80 ]; "$P" verify "$M"
                        # From the end to the beginning, and what was read is still there after a kill.
                        for part in 7 6 5 4 3 2 1 0; do
                            cmp <(dd if="$M/large" bs=25M skip=$part count=1 status=none) \\
                                <(dd if="$C/large" bs=25M skip=$part count=1 status=none)
                        done
                        """, seconds: 150)
                try domain.killDaemon()
                try await domain.shell(
                    """
                    [ "$(sha256sum < "$M/large")" = "$(sha256sum < "$C/large")" ]; "$P" verify "$M"
                    dd if=/dev/urandom of="$M/large" bs=1M count=1 seek=50 conv=notrunc status=none
                    cp "$C/large" "$T/model"
                    dd if="$M/large" of="$T/model" bs=1M skip=50 seek=50 count=1 conv=notrunc status=none
                    "$P" sync --wait --timeout 60s "$M"; cmp "$T/model" "$C/large"; cmp "$T/model" "$M/large"
                    """, seconds: 120)
            }
        }

        @Test(.timeLimit(.minutes(4)), .enabled(if: Machine.isRoot, "a small disk can be made by root only"))
        func aFileThatIsLargerThanTheDiskIsReadThrough() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mount -t tmpfs -o size=64M,mode=700 none "$S"; head -c 200M /dev/urandom > "$C/large"
                head -c 20M /dev/urandom > "$C/other"; head -c 50M /dev/urandom > "$C/fits"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cmp "$M/other" "$C/other"; echo kept > "$M/kept"
                    [ "$(sha256sum < "$M/large")" = "$(sha256sum < "$C/large")" ]
                    cp "$M/large" "$T/copy"; cmp "$T/copy" "$C/large"; cmp "$M/other" "$C/other"
                    cmp "$M/fits" "$C/fits"; [ "$(cat "$M/kept")" = kept ]; echo more > "$M/more"
                    "$P" sync --wait --timeout 60s "$M"; [ "$(cat "$C/more")" = more ]; "$P" verify "$M"
                    """, seconds: 150)
            }
        }

        /// The rest of the disk is full of what the provider does not have.
        @Test(.timeLimit(.minutes(4)), .enabled(if: Machine.isRoot, "a small disk can be made by root only"))
        func aFileThatIsLargerThanTheFreeRoomIsReadThrough() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mount -t tmpfs -o size=128M,mode=700 none "$S"; head -c 100M /dev/urandom > "$C/large"
                """
            try await MountedDomain.with(options) { domain in
                try domain.setFaults(["fail=1", "only=create"])
                try await domain.shell(
                    """
                    head -c 70M /dev/urandom > "$T/new"; cp "$T/new" "$M/new"
                    [ "$(sha256sum < "$M/large")" = "$(sha256sum < "$C/large")" ]; cmp "$T/new" "$M/new"
                    [ "$(sha256sum < "$M/large")" = "$(sha256sum < "$C/large")" ]
                    """, seconds: 150)
            }
        }
    }
}
