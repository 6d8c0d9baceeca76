import Foundation
import Testing

extension MountSuites {
    /// Who may cause content to be fetched.
    @Suite struct CallerTests {
        /// An indexer is a copy of cat(1) under an indexer's name, so that what differs is who asks.
        /// > An open or a read that would have to fetch content looks at its caller first.
        /// > Names are those of executables, so a script is its interpreter.
        @Test(.timeLimit(.minutes(2))) func anIndexerIsRefusedAtOnceAndWhatIsHereItMayRead() async throws {
            var options = MountedDomain.Options()
            options.arguments = ["refuse:program=mine-*", "budget:program=thrifty,bytes=10K"].flatMap { ["--hydration-rule", $0] }
            options.prepare = """
                for n in 1 2 3 4 5 6; do echo "text $n" > "$C/$n"; done; head -c 3000000 /dev/urandom > "$C/large"
                mkdir "$C/a" "$C/b"; head -c 20480 /dev/urandom | tee "$C/a/20K" > "$C/b/20K"
                for name in tracker-miner-fs-3 mine-1 thrifty; do cp "$(command -v cat)" "$T/$name"; done
                """
            try await MountedDomain.with(options) { domain in
                let bytes = try await domain.status().bytesFetched
                let refused = try await domain.shell(
                    """
                    ls "$M" > /dev/null
                    refused() { if "$@" > /dev/null 2> "$T/why"; then echo "not refused: $*"; exit 1; fi; cat "$T/why"; }
                    refused "$T/tracker-miner-fs-3" "$M/1"
                    refused "$T/mine-1" "$M/large"
                    refused "$P" run --no-hydrate -- cat "$M/3"
                    PROMISEFS_HYDRATE=no refused bash -c 'cat "$M/4" && true'
                    """)
                #expect(refused.output.split(separator: "\n").allSatisfy { $0.contains("deadlock avoided") }, "\(refused.output)")
                #expect(try await domain.status().bytesFetched == bytes)
                try await domain.shell(
                    """
                    cat "$M/1" "$M/large" > /dev/null; [ "$("$T/tracker-miner-fs-3" "$M/1")" = "text 1" ]
                    "$T/mine-1" "$M/large" | cmp - "$C/large"
                    PROMISEFS_HYDRATE=yes "$T/mine-1" "$M/6" | cmp - "$C/6"
                    not "$T/mine-1" "$M/none" 2> "$T/why"; grep -q "No such file" "$T/why"; touch "$M/5"
                    """)
                // Budgets: the last file may exceed one.
                try await domain.shell(
                    """
                    "$T/thrifty" "$M/a/20K" | cmp - "$C/a/20K"
                    not "$T/thrifty" "$M/b/20K" 2> "$T/why"; grep -q "deadlock avoided" "$T/why"
                    "$T/thrifty" "$M/a/20K" > /dev/null
                    """)
                let ledger = try await domain.shell("\"$P\" status --json \"$M\" | python3 -c '\(Self.ledger)'")
                #expect(ledger.text == "cat True, mine-1 True, tracker-miner-fs-3 True", "\(ledger.text)")
            }
        }

        /// It was forgotten with each daemon.
        @Test(.timeLimit(.minutes(1))) func whatWasFetchedForWhomOutlivesTheDaemon() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 300000 /dev/urandom > \"$C/large\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    told() { "$P" status --json "$M" | python3 -c 'import json, sys
                    status = json.load(sys.stdin)
                    cat = [line for line in status["hydrations"] if line["program"] == "cat"]
                    print(cat[0]["bytes"] if cat else 0, *(status[key] for key in ("sentBytes", "bytesFetched")),
                          status["transfersSince"][:2])'
                    }
                    cat "$M/large" | cmp - "$C/large"; echo 12345 > "$M/new"; "$P" sync --wait "$M"
                    [ "$(told)" = '300000 6 300000 20' ]
                    within 15 'grep -q "^sent 6" "$S/transfers"'
                    kill -9 "$("$P" status --json "$M" | sed 's/.*"processID":\\([0-9]*\\).*/\\1/')"
                    within 10 '[ "$(told)" = "300000 6 0 20" ]'; "$P" verify "$M"
                    # A damage of it is told, and is no reason to forget what can be read.
                    "$P" unmount --wait "$M"; echo rot >> "$S/transfers"; s=0; "$P" verify --state-dir "$S" > "$T/found" || s=$?
                    [ "$s" = 1 ]; grep -q 'history of transfers in .* is damaged' "$T/found"
                    "$P" verify --repair --state-dir "$S"; "$P" verify --state-dir "$S"; grep -q rot "$S/kept/transfers"
                    """)
            }
        }

        /// Nemo and Caja read a picture themselves where their thumbnailer could not, for the same thumbnail.
        @Test(.timeLimit(.minutes(1))) func whoStartedAProgramThatWasRefusedIsRefusedTheSameForAMoment() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                for n in 1 2; do echo "text $n" > "$C/$n"; done; cp "$(command -v cat)" "$T/gdk-pixbuf-thumbnailer"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    python3 - "$M" "$T/gdk-pixbuf-thumbnailer" <<'PYTHON'
                    import errno, subprocess, sys, threading, time
                    mount, thumbnailer = sys.argv[1:]
                    def read(name):
                        try:
                            return open(f"{mount}/{name}").read()
                        except OSError as error:
                            return error.errno
                    # In a sandbox of its own, which is one process more.
                    words = ["sh", "-c", f"{thumbnailer} {mount}/1; exit $?"]
                    assert subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 1
                    seen = []
                    thread = threading.Thread(target=lambda: seen.append(read("1")))
                    thread.start(), thread.join()
                    assert seen == [errno.EDEADLK] and read("1") == errno.EDEADLK, seen
                    assert read("2").strip() == "text 2"
                    # Who has nothing to do with it is not refused; and the moment is over some time.
                    time.sleep(6)
                    assert read("1").strip() == "text 1"
                    PYTHON
                    """)
            }
        }

        /// > `promisefs run --profile FILE -- COMMAND` fetches what FILE names while the command runs.
        @Test(.timeLimit(.minutes(1))) func whatARunOpenedIsFetchedTheNextTime() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/sub\"; for n in 1 2 3 4; do echo \"text $n\" | tee \"$C/$n\" > \"$C/sub/$n\"; done"
            try await MountedDomain.with(options) { domain in
                let profile = try await domain.shell(
                    """
                    ls -R "$M" > /dev/null
                    "$P" run --profile "$T/profile" -- sh -c 'cat "$M/3" "$M/sub/1"; (cat "$M/2" "$M/3")' > /dev/null
                    "$P" run --profile "$T/profile" -- true
                    cat "$M/4" > /dev/null; sed "s|$M||" "$T/profile"
                    """)
                #expect(profile.text == "/3\n/sub/1\n/2")
                try await domain.shell(
                    """
                    "$P" evict "$M" > /dev/null; export PROMISEFS_HYDRATE=no
                    status=0; "$P" run --profile "$T/profile" -- sh -c '
                        for name in 2 3 sub/1; do until cat "$M/$name"; do sleep 0.05; done; done; ! cat "$M/4"; exit 3
                    ' > /dev/null 2>&1 || status=$?
                    [ $status = 3 ]; unset PROMISEFS_HYDRATE
                    printf '%s\n' "$M/4" "" "$M/none" > "$T/list"; not "$P" fetch --list "$T/list" 2> "$T/why"
                    grep -q none "$T/why"; PROMISEFS_HYDRATE=no cat "$M/4" | cmp - "$C/4"
                    not "$P" run --profile /none/list -- touch "$T/ran" 2> /dev/null; [ ! -e "$T/ran" ]
                    """)
            }
        }

        private static let ledger = """
            import json, sys
            lines = {line["program"]: line for line in json.load(sys.stdin)["hydrations"]}
            cat, mine, tracker = lines["cat"], lines["mine-1"], lines["tracker-miner-fs-3"]
            print("cat", cat["bytes"] >= 3000000 and cat["refusals"] == 2, end=", ")
            print("mine-1", mine["bytes"] > 0 and mine["refusals"] == 1, end=", ")
            print("tracker-miner-fs-3", tracker["bytes"] == 0 and tracker["refusals"] == 1)
            """
    }
}
