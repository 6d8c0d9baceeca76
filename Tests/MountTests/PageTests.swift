import Foundation
import Testing

extension MountSuites {
    /// The pages of pickers in a browser, as people and providers use them.
    @Suite(.enabled(if: Machine.hasBrowser, "there is no Chromium")) struct PageTests {
        @Test(.timeLimit(.minutes(3))) func everyModeIsWalkedByTheKeyboardAlone() async throws {
            let options = MountedDomain.Options(
                prepare: """
                    mkdir "$C/docs"; echo plan > "$C/docs/plan.md"; echo one > "$C/a.txt"; echo two > "$C/b.png"
                    """)
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    # With AXE and PICTURES in the environment each screen is audited and kept.
                    python3 "$W/page_walk.py" "$P" "$M" "$T" ${AXE:-} ${PICTURES:-}
                    """, seconds: 150)
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
    fileprivate static let hasBrowser = FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium")
}
