import Foundation
import Testing

extension MountSuites {
    /// What applications are given, and what they can do by the socket of their launch.
    @Suite struct GrantTests {
        /// Uploads wait for a moment: a temporary file that the provider has seen before it is renamed
        /// is an item of its own, and what it replaces is gone.
        private static let options = MountedDomain.Options(
            arguments: ["--poll-interval", "1s"], uploadDelay: "1s")

        private static let shorthand = """
            D=$(findmnt -no SOURCE "$M"); A=com.example.editor
            g() { local c=$1; shift; "$P" grants "$c" --domain "$D" "$@"; }
            give() { "$P" grants add --app "$A" "$@"; }
            rights() { g show "$1" --json | sed 's/.*"rights":"\\([^"]*\\)".*/\\1/'; }
            place() { g show "$1" --json | sed -n 's/.*"path":"\\([^"]*\\)".*/\\1/p'; }

            """

        @Test(.timeLimit(.minutes(2))) func everyAttemptAgainstTheSocketOfALaunchIsRefusedAndHasALine() async throws {
            try await MountedDomain.with(Self.options) { domain in
                let result = try await domain.shell("python3 \"$W/grant-attacks.py\" \"$M\"", seconds: 100)
                let count = Int(result.output.split(separator: " ").first ?? "0") ?? 0
                #expect(count > 150, "\(result.output)")
                try await domain.shell(
                    """
                    [ -z "$(find "$XDG_RUNTIME_DIR" -name '*.app.sock')" ]
                    [ "$("$P" verify "$M" --json | grep -c '"problems":\\[\\]')" = 1 ]
                    [ "$(stat -c %a "$S/audit.log")" = 600 ]
                    """)
            }
        }

        /// A claim to read, and a presenter that said no, kept the owner's programs out for good.
        @Test(.timeLimit(.minutes(2))) func whoMayOnlyReadKeepsNobodyOutForLong() async throws {
            try await MountedDomain.with(.init(prepare: "echo 1 > $C/doc")) { domain in
                try await domain.shell(
                    Self.shorthand + """
                    give "$M/doc" --read-only > /dev/null; mkdir $T/own; cat > $T/own/app << 'END'
                    ask() { curl -sS --no-buffer --unix-socket "$PROMISEFS_SOCKET" "http://promisefs/v1/$1" --json "$2"; }
                    claim='{"items":[{"path":"/granted/doc","access":"read"}],"purpose":"owner"}'
                    [ "$1" = claims ] && { ask claims "$claim"; ask claims "$claim"; exit; }
                    ask presenters '{"path":"/granted/doc"}' | while read -r line; do
                        question=$(echo "$line" | sed -n 's/.*"question":\\([0-9]*\\).*/\\1/p')
                        presenter=$(echo "$line" | sed -n 's/.*"presenter":\\([0-9]*\\).*/\\1/p'); echo "$line"
                        [ -z "$question" ] || ask presenters/$presenter/answers "{\\"question\\":$question,\\"failed\\":true}"
                    done
                    END
                    app() { exec "$P" run --app $A --domain "$D" -- sh -c "$(cat $T/own/app)" app $1; }
                    (app presenters) > $T/shown & p=$!; within 20 'grep -q presenting $T/shown'
                    "$P" coordinate write --timeout 20s "$M/doc" -- true
                    grep -q relinquishToWriter $T/shown; kill $p; wait $p || true
                    (app claims) > $T/held & p=$!; within 20 'grep -q granted $T/held'
                    # Of the same purpose as a program outside, and held against it all the same.
                    "$P" coordinate write --purpose owner --timeout 2s "$M/doc" -- true 2> /dev/null && exit 1
                    "$P" coordinate write --timeout 20s "$M/doc" -- true
                    within 10 'grep -q "in a minute" $T/held'; kill $p 2> /dev/null || true; wait $p || true
                    grep -q claims.hold "$S/audit.log"
                    """)
            }
        }

        /// It heard nothing of what it was given while it ran, and kept what was taken from it.
        @Test(.timeLimit(.minutes(2)))
        func aLiveQueryOfAnApplicationHearsOfWhatItIsGivenAndLoses() async throws {
            try await MountedDomain.with(.init(prepare: "echo 1 > $C/one; echo 2 > $C/two")) { domain in
                try await domain.shell(
                    Self.shorthand + """
                    give "$M/one" --read-only > /dev/null; ask='{"predicate":"TRUEPREDICATE","live":true}'
                    "$P" run --app $A --domain "$D" -- sh -c 'curl -sS --no-buffer --unix-socket "$PROMISEFS_SOCKET" \\
                        http://promisefs/v1/queries --json "$1"' app "$ask" > "$T/live" & p=$!
                    within 20 'grep -q "event: gathered" "$T/live"'; grep -q granted/one "$T/live"
                    not grep -q granted/two "$T/live"
                    m=$(give "$M/two" --read-only); within 20 'grep -q granted/two "$T/live"'
                    # A save may bind the grant anew, and gives and takes nothing.
                    echo 3 > "$M/.new"; mv "$M/.new" "$M/two"; "$P" sync --wait "$M" > /dev/null; sleep 1
                    resets() { grep -c 'event: reset' "$T/live" || true; }; [ "$(resets)" = 1 ]
                    g revoke "$m" > /dev/null; within 20 '[ "$(resets)" = 2 ]'
                    again() {
                        tac "$T/live" | sed '/event: reset/q' > "$T/again" || true; grep -q "$1" "$T/again"
                    }
                    within 20 'again gathered'; again granted/one; not again granted/two
                    kill $p; wait $p || true
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aGrantFollowsItsItemAndSurvivesAKill() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mkdir "$M/a" "$M/b"; echo one > "$M/a/doc"; "$P" sync --wait "$M" > /dev/null
                        n=$(give "$M/a/doc" --read-only)
                        [ "$(rights "$n")" = read ]; [ "$(place "$n")" = /a/doc ]
                        echo two > "$M/a/.new"; mv "$M/a/.new" "$M/a/doc"; [ "$(place "$n")" = /a/doc ]
                        mv "$M/a/doc" "$M/b/other"; [ "$(place "$n")" = /b/other ]
                        "$P" sync --wait "$M"; echo three > "$C/b/.x"; mv "$C/b/.x" "$C/b/other"
                        within 5 '[ "$(cat "$M/b/other")" = three ]'; [ "$(place "$n")" = /b/other ]
                        mv "$M/b" "$M/c"; [ "$(place "$n")" = /c/other ]
                        [ "$(give "$M/c/other" --read-only)" = "$n" ]
                        g list --app "$A" | grep -q "$n.*read.*until revoked.*/c/other"
                        echo "$n" > "$T/n"; rm "$M/c/other"; echo another > "$M/c/other"; [ -z "$(place "$n")" ]
                        """)
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    Self.shorthand
                        + """
                        n=$(cat "$T/n"); [ "$(rights "$n")" = read ]
                        m=$(give "$M/c"); [ "$m" -gt "$n" ]; g revoke "$n" | grep -q "revoked $n"
                        s=0; g show "$n" 2> /dev/null || s=$?; [ "$s" = 1 ]
                        g revoke --app "$A" > /dev/null; [ "$(g list --json | grep -c '"grants":\\[\\]')" = 1 ]
                        g audit --app "$A" --json | grep -q '"call":"grants.given"'
                        g audit | grep -q 'grants.revoke'
                        s=0; give "$M" 2> /dev/null || s=$?; [ "$s" != 0 ]
                        """)
            }
        }

        /// The first number that was none ended it, and what had been revoked before was not said.
        @Test(.timeLimit(.minutes(1)))
        func aGrantThatThereIsNotKeepsNoOtherFromBeingRevoked() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        echo 1 > "$M/1"; echo 2 > "$M/2"; n=$(give "$M/1"); m=$(give "$M/2"); s=0
                        g revoke "$n" 999 "$m" "$n" > "$T/out" 2> "$T/said" || s=$?; [ "$s" = 1 ]
                        grep -q "revoked $n" "$T/out"; grep -q "revoked $m" "$T/out"
                        [ "$(cat "$T/said")" = 'promisefs: there is no grant 999' ]
                        g list --json | grep -q '"grants":\\[\\]'
                        """)
            }
        }

        /// What a command has said is so; of the one that was cut off there is all or nothing.
        @Test(.timeLimit(.minutes(3))) func aKillWhileGrantsAreWrittenLeavesNoMoreRightsThanWereGiven() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    "for i in $(seq 40); do echo $i > \"$M/f$i\"; done; touch \"$T/given\" \"$T/revoked\" \"$T/unsure\"")
                for round in 1...4 {
                    try await domain.shell(
                        Self.shorthand
                            + """
                            "$P" status "$M" --json > "$T/status"
                            k=$(sed 's/.*"processID":\\([0-9]*\\).*/\\1/' "$T/status")
                            (sleep 0.\(round * 2); kill -9 "$k") &
                            for i in $(seq \(round * 10 - 9) \(round * 10)); do
                                n=$(give "$M/f$i" --read-only 2> /dev/null) || break; echo "$n /f$i" >> "$T/given"
                                [ $((i % 3)) = 0 ] || continue
                                g revoke "$n" > /dev/null 2>&1 || { echo "$n" >> "$T/unsure"; break; }
                                echo "$n" >> "$T/revoked"
                            done
                            wait; within 10 '"$P" status "$M" --json > /dev/null'
                            """, status: nil)
                    try await domain.shell(
                        Self.shorthand
                            + """
                            g list --json > "$T/list"; not grep -q '"rights":"read-write"' "$T/list"
                            while read -r n f; do
                                if grep -qx "$n" "$T/revoked"; then not grep -q "\\"id\\":$n," "$T/list"
                                else grep -qx "$n" "$T/unsure" || [ "$(place "$n")" = "$f" ]; fi
                            done < "$T/given"
                            "$P" verify "$M"
                            """)
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func aStoredGrantThatWasEditedGivesNothingAndVerifyTellsAndMends() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        echo one > "$M/doc"; echo two > "$M/two"; give "$M/doc" --read-only; give "$M/two"
                        "$P" sync --wait "$M"; "$P" unmount "$M"
                        python3 - "$S/index.sqlite" <<'END'
                        import sqlite3, sys
                        index = sqlite3.connect(sys.argv[1])
                        index.execute("UPDATE access_grant SET record = replace(record, 'read', 'read-write') WHERE id = 1")
                        index.commit()
                        END
                        """)
                try await domain.remount()
                try await domain.shell(
                    Self.shorthand
                        + """
                        s=0; g show 1 2> /dev/null || s=$?; [ "$s" = 1 ]; [ "$(rights 2)" = read-write ]
                        "$P" status "$M" --json | grep -q 'grants do not verify'
                        s=0; "$P" verify "$M" > "$T/out" || s=$?; [ "$s" = 1 ]; grep -q 'grant 1 .*gives no right' "$T/out"
                        "$P" verify --repair "$M" > /dev/null || true; "$P" verify "$M"; [ "$(rights 2)" = read-write ]
                        """)
            }
        }
    }
}
