import Foundation
import Testing

extension MountSuites {
    /// The pages of pickers in a browser, as people and providers use them.
    @Suite(.enabled(if: Machine.hasBrowser, "there is no Chromium")) struct PageTests {
        /// axe-core, where it is or can be had; else the screens are walked only.
        private func axe() async throws -> String {
            try await runShell("\(Machine.workloads)/axe-core", seconds: 90).text
        }

        /// `PICTURES=FOLDER` in the environment keeps what is seen.
        @Test(.timeLimit(.minutes(6))) func everyModeIsWalkedByTheKeyboardAloneAndEveryScreenAudited() async throws {
            let options = MountedDomain.Options(
                arguments: ["--poll-interval", "1s"],
                prepare: """
                    mkdir "$C/docs"; echo plan > "$C/docs/plan.md"; echo one > "$C/a.txt"; echo two > "$C/b.png"
                    """)
            let script = try await axe()
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    python3 "$W/page_walk.py" "$P" "$M" "$C" "$PROMISEFS_PROVIDER_FAULTS" "$T" \
                        '\(script)' ${PICTURES:-}
                    """, seconds: 300)
            }
        }

        @Test(.timeLimit(.minutes(3))) func otherSitesInTheSameBrowserReachNoPicker() async throws {
            let options = MountedDomain.Options(prepare: "echo one > $C/a.txt")
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    "$P" pick --web --no-browser --at "$M" > $T/picked 2> $T/said & picker=$!
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    within 20 'grep -q http $T/said'
                    python3 $W/hostile_site.py "$(grep -o 'http.*' $T/said)" a.txt >&2
                    wait $picker; [ "$(cat $T/picked)" = $M/a.txt ]
                    """, seconds: 150)
            }
        }

        @Test(.timeLimit(.minutes(3))) func namesAndPicturesAreNoMarkup() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    printf '<svg xmlns="http://www.w3.org/2000/svg" onload="top.touched=3"><script>top.touched=4</script></svg>' \
                        > "$M/evil.svg"
                    python3 - "$M" << 'END'
                    import struct, sys, zlib
                    def part(kind, data):
                        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
                    for name, side in (("huge.png", 50000), ("small.png", 8)):
                        rows = bytes(1 + 3 * side) * side if side < 100 else bytes(10000)
                        open(f"{sys.argv[1]}/{name}", "wb").write(
                            b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                            + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
                    END
                    one='<img src=x onerror=window.touched=1>.md'; two='"><script>window.touched=2<'
                    echo x > "$M/$one"; echo x > "$M/$two"; "$P" sync --wait $M
                    "$P" pick --web --no-browser --at "$M" > $T/picked 2> $T/said & picker=$!
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    within 20 'grep -q http $T/said'
                    python3 $W/hostile_names.py "$(grep -o 'http.*' $T/said)" "$one" "$two" evil.svg huge.png small.png >&2
                    status=0; wait $picker || status=$?; [ $status = 1 ]
                    """, seconds: 120)
            }
        }

        private func page(_ provider: String, _ script: String) async throws {
            var options = MountedDomain.Options()
            options.provider = "extension+exec:\(Machine.repository)/\(provider)"
            options.arguments = ["--poll-interval", "1s"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell("mkdir $M/docs; echo one > $M/docs/a.txt; echo two > $M/b.txt")
                try await domain.synchronize()
                try await domain.shell(
                    """
                    "$P" pick --web --no-browser --at "$M" > "$T/picked" 2> "$T/said" & picker=$!
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    within 10 'grep -q http "$T/said"'; A=$(grep -o 'http.*' "$T/said")

                    """ + script, seconds: 90)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aProvidersPageAnswersWhichItemWasPicked() async throws {
            try await page(
                "Examples/PythonExtension/extension.py",
                """
                python3 "$W/provider_page.py" "$A" button; wait $picker
                # The newest is the first.
                grep -qx -e "$M/docs/a.txt" -e "$M/b.txt" $T/picked
                """)
        }

        @Test(.timeLimit(.minutes(3))) func aProvidersPageReachesNothingOutOfItsFrame() async throws {
            try await page(
                "scripts/workloads/hostile-page-extension.py",
                """
                python3 "$W/provider_page.py" "$A" > $T/heard; cat $T/heard
                # Nothing was picked by what it said, and nothing that it tried went.
                status=0; wait $picker || status=$?; [ $status = 1 ]; [ ! -s $T/picked ]
                grep -q '"tried": {' $T/heard
                sleep 1; not grep -rq 'reached out' $S/log
                """)
        }
    }
}

extension Machine {
    static let hasBrowser = FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium")
}
