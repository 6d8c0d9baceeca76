import Testing

extension MountSuites {
    /// `promisefs coordinate`: what it starts, what ends it, and where its writer is led.
    @Suite struct CoordinatedCommandTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/folder\"; echo 0 > \"$C/number\"; echo x > \"$C/folder/x\""
            return options
        }

        /// A script that coordinates called another one that does: it waited for itself for ever.
        @Test(.timeLimit(.minutes(2))) func whatACoordinatedCommandStartsSharesItsPurpose() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    timeout 20 "$P" coordinate write "$M/number" -- sh -c '
                        "$1" coordinate write --timeout 10s "$2" -- sh -c "echo inner > \\"\\$1\\"" sh "$2"' sh "$P" "$M/number"
                    [ "$(cat "$M/number")" = inner ]
                    PYTHONPATH="$R/clients/python" timeout 20 "$P" coordinate write "$M/number" -- python3 - "$M/number" <<'END'
                    import promisefs, sys
                    domain, path = promisefs.locate(sys.argv[1])
                    with domain.coordinate(promisefs.writing(path), timeout=10):
                        open(sys.argv[1], "w").write("python")
                    END
                    [ "$(cat "$M/number")" = python ]
                    """)
            }
        }

        /// The command ran on without its claim.
        @Test(.timeLimit(.minutes(2))) func aClaimLastsAsLongAsItsCommandWhateverSignalsCome() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    begin() { # NAME: a command that takes a second to end when it is told to
                        "$P" coordinate write "$M/number" -- sh -c 'trap "sleep 1; echo ended > \\"$1\\"; exit 3" TERM
                            echo $$ > "$1"; while :; do sleep 0.05; done' sh "$T/$1" & claim=$!
                        within 10 '[ -s "$T/'"$1"'" ]'
                    }
                    begin one; kill -TERM $claim; status=0; wait $claim || status=$?; [ $status = 3 ]
                    [ "$(cat "$T/one")" = ended ]
                    begin two; (echo 2 > "$M/number"; cat "$T/two" > "$T/order") & writer=$!
                    sleep 0.3; kill -TERM $claim; wait $claim || true; wait $writer; [ "$(cat "$T/order")" = ended ]
                    (trap "" HUP; exec "$P" coordinate write "$M/number" -- sh -c 'echo > "$1"; sleep 1' sh "$T/four") & claim=$!
                    within 10 '[ -e "$T/four" ]'; kill -HUP $claim; wait $claim
                    begin three; kill -KILL $claim; within 10 '[ "$(cat "$T/three")" = ended ]'
                    """)
            }
        }

        /// The command went on writing though others were let in.
        @Test(.timeLimit(.minutes(2))) func aClaimThatEndsWithItsDaemonEndsItsCommandAndIsTold() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    "$P" coordinate write "$M/number" -- sh -c 'echo > "$1"; exec sleep 60' sh "$T/inside" 2> "$T/err" &
                    echo $! > "$T/claim"
                    PYTHONPATH="$R/clients/python" python3 - "$M/folder/x" "$T" > "$T/python" 2>&1 <<'END' &
                    import os, promisefs, sys, time
                    domain, path = promisefs.locate(sys.argv[1])
                    try:
                        with domain.coordinate(promisefs.writing(path)):
                            open(sys.argv[2] + "/held", "w").close()
                            while not os.path.exists(sys.argv[2] + "/over"): time.sleep(0.05)
                    except promisefs.PromiseError as problem:
                        print(problem)
                    open(sys.argv[2] + "/told", "w").close()
                    END
                    within 10 '[ -e "$T/inside" ] && [ -e "$T/held" ]'
                    """)
                try await domain.kill9()
                try await domain.shell(
                    """
                    touch "$T/over"; within 10 '[ -e "$T/told" ]'; grep -q 'ended before it was given back' "$T/python"
                    within 10 'gone "$(cat "$T/claim")"'
                    """)
                try await domain.remount()
            }
        }

        /// It went on writing: only the command itself was ended.
        @Test(.timeLimit(.minutes(2))) func whatACommandHasStartedEndsWithItsClaim() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    echo 'echo > "$1"; sleep 60.7; true' > "$T/work"
                    "$P" coordinate write "$M/number" -- sh -c 'sh "$1" "$2"; true' sh "$T/work" "$T/inside" 2> "$T/err" & p=$!
                    within 10 '[ -e "$T/inside" ]'
                    "$P" status "$M" --json > "$T/status"
                    kill -9 $(grep -oE '"(holderID|processID)":[0-9]+' "$T/status" | cut -d: -f2)
                    s=0; wait $p || s=$?; [ $s = 4 ]; within 5 '! pgrep -fx "sleep 60.7" > /dev/null'
                    """)
                try await domain.remount()
                // The same when whoever holds the claim is killed, also of what no longer has the parent that started it.
                try await domain.shell(
                    """
                    echo '(setsid sleep 60.8 &); echo > "$1"; sleep 60.7; true' > "$T/work"
                    "$P" coordinate write "$M/number" -- sh -c 'sh "$1" "$2"; true' sh "$T/work" "$T/there" 2> "$T/err" & p=$!
                    within 10 '[ -e "$T/there" ]'; kill -9 $p; within 5 '! pgrep -fx "sleep 60.[78]" > /dev/null'
                    """)
            }
        }

        /// Two that were to remove one name each removed both of the file's names, and so its content.
        @Test(.timeLimit(.minutes(2))) func whoWaitsForANameThatGoesIsNotGivenAnotherNameOfTheFile() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    export P M; mkdir "$M/e"; ln "$M/number" "$M/e/keep"; "$P" sync --wait "$M"
                    cat > "$T/remove" << 'END'
                    "$P" coordinate write --json --option forDeleting "$M/number" -- \\
                        sh -c 'echo > "$1"; sleep 0.7; rm "$2"' sh "$1" "$M/number"
                    END
                    sh "$T/remove" "$T/first" > /dev/null & p=$!; within 10 '[ -e "$T/first" ]'
                    s=0; sh "$T/remove" "$T/second" > "$T/out" 2>&1 || s=$?; wait $p
                    [ $s != 0 ]; [ ! -e "$T/second" ]; ! grep -q e/keep "$T/out"; [ -e "$M/e/keep" ]
                    "$P" coordinate write --json "$M/e/keep" -- true | grep -q e/keep
                    """)
            }
        }

        /// Its writer was led to what had been moved out of the way, and wrote over that.
        @Test(.timeLimit(.minutes(2))) func whoReplacesIsLedToThePlaceAndNotToWhatWasMovedAway() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    PYTHONPATH="$R/clients/python" python3 - "$M" <<'END'
                    import os, promisefs, sys, threading
                    mount = sys.argv[1]
                    domain, path = promisefs.locate(mount + "/number")
                    granted = {}
                    def wait(option):
                        with domain.coordinate(promisefs.writing(path, option), timeout=20) as claim:
                            granted[option] = claim["items"][0]["path"], "id" in claim["items"][0]
                    threads = [threading.Thread(target=wait, args=[option]) for option in ("forReplacing", "forMerging")]
                    with domain.coordinate(promisefs.writing(path)) as claim:
                        for thread in threads: thread.start()
                        import time; time.sleep(0.5)
                        os.rename(mount + "/number", mount + "/folder/moved")
                        os.rename(mount + "/folder", mount + "/renamed")
                    for thread in threads: thread.join()
                    assert granted == {"forReplacing": ("/number", False), "forMerging": ("/renamed/moved", True)}, granted
                    END
                    """)
            }
        }
    }
}
