import Foundation
import Testing

extension MountSuites {
    /// A large placeholder arrives by ranges: what is asked for first, once, interruptibly, and what has come stays.
    @Suite struct LargeFileTests {
        /// MiB.
        static let size = Machine.isFullScale ? 2048 : 256
        /// The provider sends so many bytes a second in these tests.
        static let bandwidth = Machine.isFullScale ? 64 << 20 : 8 << 20

        private func options(_ files: String...) -> MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = files.map { "head -c \(Self.size)M /dev/urandom > \"$C/\($0)\"" }.joined(separator: "\n")
            return options
        }

        @Test(.timeLimit(.minutes(3))) func theFirstBytesDoNotWaitForTheRest() async throws {
            try await MountedDomain.with(options("large")) { domain in
                try domain.setFaults(["bandwidth=\(Self.bandwidth)"])
                try await domain.shell("head -c 4096 \"$M/large\" | cmp - <(head -c 4096 \"$C/large\")")
                #expect(try await domain.shell("getfattr --only-values -n user.promisefs.state \"$M/large\"").text == "partial")
            }
        }

        /// > Ranges are fetched in pieces of up to 4 MiB on boundaries of 128 KiB, at most 16 of a file at a time;
        @Test(.timeLimit(.minutes(3))) func aRangeInTheMiddleFetchesLittleMore() async throws {
            try await MountedDomain.with(options("large")) { domain in
                let offset = Self.size * 3 / 4
                try await domain.shell(
                    """
                    cmp <(dd if="$M/large" bs=1M skip=\(offset) count=1 status=none) \
                        <(dd if="$C/large" bs=1M skip=\(offset) count=1 status=none)
                    sleep 1
                    """)
                let fetched = try await domain.status().bytesFetched
                #expect(fetched >= 1 << 20 && fetched < 16 << 20)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aReaderCanBeInterrupted() async throws {
            try await MountedDomain.with(options("large")) { domain in
                try domain.setFaults(["bandwidth=\(1 << 20)"])
                let stopped = try await domain.shell("timeout -s INT 1 cat \"$M/large\" > /dev/null", status: 124)
                #expect(stopped.elapsed < .seconds(20))
                try domain.setFaults(["hang=true"])
                let waiting = try await domain.shell("timeout -s INT 1 tail -c 1 \"$M/large\" > /dev/null", status: 124)
                #expect(waiting.elapsed < .seconds(20), "the request deadline is 30 s")
            }
        }

        @Test(.timeLimit(.minutes(3))) func twentyReadersShareOneFetch() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 64M /dev/urandom > \"$C/large\"; head -c 900000 /dev/urandom > \"$C/small\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    for name in large small; do
                        for n in $(seq 20); do md5sum < "$M/$name" > "$T/sum-$n" & done; wait
                        [ "$(cat "$T"/sum-* | sort -u)" = "$(md5sum < "$C/$name")" ]
                    done
                    """)
                #expect(try await domain.status().bytesFetched == 64 << 20 + 900_000)
            }
        }

        @Test(.timeLimit(.minutes(5))) func aKillHalfWayKeepsTheRangesThatWereHere() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 128M /dev/urandom > \"$C/large\""
            try await MountedDomain.with(options) { domain in
                let size: UInt64 = 128 << 20
                try domain.setFaults(["bandwidth=\(16 << 20)"])
                try await domain.shell(
                    """
                    fetched() { "$P" status --json "$M" | grep -o '"bytesFetched":[0-9]*' | head -n 1 | cut -d: -f2; }
                    cat "$M/large" > /dev/null & p=$!
                    within 40 '[ "$(fetched)" -gt \(size / 4) ]'; kill $p; wait $p || true
                    """)
                let before = try await domain.status().bytesFetched
                #expect(before > size / 8 && before < size, "half-way, that is")
                try await domain.kill9()
                try domain.setFaults([])
                try await domain.remount()
                try await domain.shell("cmp \"$C/large\" \"$M/large\"")
                let after = try await domain.status().bytesFetched
                #expect(after <= size - before / 2, "fetched \(before) before the kill and \(after) of \(size) after it")
            }
        }

        /// > A large placeholder takes writes at once;
        /// > A large placeholder that is written to is fetched completely before it is uploaded.
        @Test(.timeLimit(.minutes(3))) func aPartialFileCanBeWrittenTo() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 32M /dev/urandom > \"$C/large\"; cp \"$C/large\" \"$T/model\""
            try await MountedDomain.with(options) { domain in
                let edit = "printf EDITED | dd of=\"$F\" bs=1 seek=20000000 conv=notrunc status=none; printf END >> \"$F\""
                try await domain.shell(
                    """
                    head -c 4096 "$M/large" > /dev/null
                    for F in "$M/large" "$T/model"; do \(edit); done
                    cmp "$T/model" "$M/large"
                    """)
                try await domain.synchronize()
                try await domain.shell("cmp \"$T/model\" \"$C/large\"")
            }
        }

        /// An edit of a file that is still on its way outlives the daemon, and is uploaded when the rest has come.
        @Test(.timeLimit(.minutes(3))) func anEditedPartialFileSurvivesARestart() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 16M /dev/urandom > \"$C/large\"; cp \"$C/large\" \"$T/model\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls \"$M\"")
                try domain.setFaults(["bandwidth=1000000"])
                let edit = "printf EDITED | dd of=\"$F\" bs=1 seek=15000000 conv=notrunc status=none"
                try await domain.shell("for F in \"$M/large\" \"$T/model\"; do \(edit); done")
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell("sleep 2; [ \"$(stat -c %s \"$M/large\")\" = 16777216 ]")
                try domain.setFaults([])
                try await domain.synchronize()
                try await domain.shell("cmp \"$T/model\" \"$M/large\"; cmp \"$T/model\" \"$C/large\"")
            }
        }

        @Test(.timeLimit(.minutes(2))) func readingThroughAWritableDescriptorIsNoEdit() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in 1000 5000000; do head -c $n /dev/urandom > \"$C/$n\"; touch -d 2001-02-03 \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    for n in 1000 5000000; do
                        (exec 3<>"$M/$n"; head -c 10 <&3 > /dev/null)
                        cmp "$M/$n" "$C/$n"; [ "$(stat -c %Y "$M/$n")" = "$(date -d 2001-02-03 +%s)" ]
                    done
                    """)
                try await domain.synchronize()
                #expect(try await domain.status().bytesUploaded == 0)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aCancelledFetchStops() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in $(seq 20); do head -c 500000 /dev/urandom > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls \"$M\"")
                try domain.setFaults(["bandwidth=1000000"])
                try await domain.shell("timeout -s INT 1.5 \"$P\" fetch \"$M\" || true; sleep 2")
                let stopped = try await domain.status().bytesFetched
                try await domain.shell("sleep 2")
                #expect(try await domain.status().bytesFetched == stopped)
                #expect(stopped < 6_000_000)
            }
        }

        /// The upload waited for a fetch that took what was cut away for another version of the item.
        /// > `truncate` and `ftruncate` fetch nothing:
        @Test(.timeLimit(.minutes(2))) func aPlaceholderThatWasCutOrGrownIsUploaded() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                for size in 500000 9000000; do
                    head -c $size /dev/urandom > "$T/$size"; cp "$T/$size" "$C/cut-$size"; cp "$T/$size" "$C/grown-$size"
                done
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    for size in 500000 9000000; do
                        truncate -s $((size / 3)) "$M/cut-$size" "$T/$size"; truncate -s $((size * 2)) "$M/grown-$size"
                    done
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    for size in 500000 9000000; do
                        cmp "$T/$size" "$C/cut-$size"; cmp -n $((size / 3)) "$T/$size" "$C/grown-$size"
                    done
                    """)
                try await domain.expectProviderEqualsMount()
            }
        }
    }
}
