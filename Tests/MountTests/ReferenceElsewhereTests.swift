import Foundation
import Testing

extension MountSuites {
    /// Links that follow documents of other domains.
    @Suite struct ReferenceElsewhereTests {
        private static let options = MountedDomain.Options(
            arguments: ["--poll-interval", "1s", "--upload-delay", "0s"])

        /// `$M` is the domain of the references, `$O` that of the documents, by `mountOther` and
        /// `unmountOther`. Both are of the same user, with one folder for their sockets.
        private static let shorthand = """
            O="$T/other"; X="$T/elsewhere"; mkdir -p "$O" "$X"
            mountOther() {
              "$P" mount --domain "${1:-papers}" --state-dir "$T/state-${1:-papers}" --poll-interval 1s --upload-delay 300ms \\
                "folder:$X" "$O" > /dev/null
            }
            unmountOther() { "$P" unmount --wait "$O"; }
            trap 'umount -l "$O" 2> /dev/null || true' EXIT
            ref() { local w=$1; shift; "$P" reference "$w" "$@"; }
            why() { getfattr -h --only-values -n system.promisefs.reference "$1"; }
            leads() { [ "$(readlink "$M/desk/doc")" = "$1" ]; [ "$(cat "$M/desk/doc")" = "$2" ]; }

            """

        @Test(.timeLimit(.minutes(2))) func aReferenceFollowsItsDocumentInAnotherDomain() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mountOther; mkdir -p "$M/desk" "$O/a/b"; echo one > "$O/a/doc"
                        [ "$(ref add "$O/a/doc" "$M/desk")" = "$M/desk/doc" ]
                        leads "$O/a/doc" one; [ -L "$M/desk/doc" ]; [ "$(why "$M/desk/doc")" = found ]
                        echo two >> "$M/desk/doc"; [ "$(tail -1 "$O/a/doc")" = two ]; echo one > "$O/a/doc"
                        mv "$O/a/doc" "$O/a/b/renamed"; leads "$O/a/b/renamed" one
                        mv "$O/a" "$O/c"; leads "$O/c/b/renamed" one
                        # Another name and another index of the same storage, as on another machine.
                        unmountOther; mountOther letters
                        within 5 '[ "$(readlink "$M/desk/doc")" = "$O/c/b/renamed" ]'; [ "$(cat "$M/desk/doc")" = one ]
                        "$P" info "$M/desk/doc" | grep -q "in the domain 'letters'"; unmountOther; mountOther
                        within 5 '[ "$(readlink "$M/desk/doc")" = "$O/c/b/renamed" ]'
                        # Safe saves, and a whole replacement by others.
                        echo three > "$O/c/b/.new"; mv "$O/c/b/.new" "$O/c/b/renamed"; leads "$O/c/b/renamed" three
                        "$P" sync --wait "$O"; "$P" evict "$O/c/b/renamed"; leads "$O/c/b/renamed" three
                        echo four > "$X/c/b/.x"; mv "$X/c/b/.x" "$X/c/b/renamed"
                        within 5 '[ "$(cat "$M/desk/doc")" = four ]'; leads "$O/c/b/renamed" four
                        mv "$X/c/b/renamed" "$X/top"; within 5 '[ "$(readlink "$M/desk/doc")" = "$O/top" ]'
                        # The reference itself is moved, and says to anybody what it is.
                        mv "$M/desk/doc" "$M/link"; [ "$(readlink "$M/link")" = "$O/top" ]; mv "$M/link" "$M/desk/doc"
                        "$P" sync --wait "$M"; readlink "$C/desk/doc" | grep -q '^promisefs-reference:.*of the storage whose'
                        grep -q identifier "$X/.promisefs/storage/identity.json"
                        ref list "$M" | grep -q "$M/desk/doc *-> $O/top"
                        "$P" info "$M/desk/doc" | grep -q "follows its document in the domain 'papers'"
                        found=$("$P" find --external "$M" 'NSMetadataUbiquitousItemIsExternalDocumentKey == YES')
                        [ "$found" = "$M/desk/doc" ]
                        # Of a reference what it stands for is meant, also from here, and by one of its own domain.
                        ref add "$M/desk/doc" "$M/second"; [ "$(readlink "$M/second")" = "$O/top" ]; rm "$M/second"
                        ref add "$M/desk/doc" "$O/back"; [ "$(readlink "$O/back")" = top ]; ref remove "$O/back"
                        ref remove "$M/desk/doc"; [ "$(cat "$O/top")" = four ]; unmountOther
                        """, seconds: 100)
            }
        }

        /// > Of links, whose `user.` attributes the kernel lets nobody read
        @Test(.timeLimit(.minutes(2))) func aReferenceToADomainThatIsNotThereSaysWhy() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mountOther; mkdir "$M/desk"; echo one > "$O/doc"; ref add "$O/doc" "$M/desk"; leads "$O/doc" one
                        unmountOther
                        why "$M/desk/doc" | grep -q "another domain, which is not mounted"
                        [ "$(readlink "$M/desk/doc")" = ../.promisefs/notMounted/doc ]; not cat "$M/desk/doc" 2> /dev/null
                        "$P" info "$M/desk/doc" | grep -q 'leads nowhere: it is of another domain'
                        ref list "$M" --json | grep -q '"state":"notMounted"'
                        mountOther; within 5 '[ "$(cat "$M/desk/doc")" = one ]'
                        rm "$O/doc"; within 5 'why "$M/desk/doc" | grep -q "the item was deleted"'
                        not cat "$M/desk/doc" 2> /dev/null
                        "$P" sync --wait "$O"; echo another > "$O/doc"; "$P" sync --wait "$O"
                        within 5 'why "$M/desk/doc" | grep -q "another one has its name"'
                        not cat "$M/desk/doc" 2> /dev/null; unmountOther
                        """, seconds: 100)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aSilentDomainHoldsNobodyUp() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mountOther; mkdir "$M/desk"; echo one > "$O/doc"; ref add "$O/doc" "$M/desk"; leads "$O/doc" one
                        pid=$("$P" status "$O" --json | grep -o '"processID":[0-9]*' | head -1 | cut -d: -f2)
                        kill -STOP "$pid"; trap 'kill -CONT $pid 2> /dev/null || true; umount -l "$O" 2> /dev/null || true' EXIT
                        # What needs nobody else is answered meanwhile, and where it was last is known. The machine may be
                        # held up for some of the times.
                        asked() {
                            for i in $(seq 30); do readlink "$M/desk/doc" > "$T/l$i" & done
                            start=$(date +%s%N); echo x > "$M/x"; ls "$M/desk" > /dev/null; cat "$M/x" > /dev/null
                            took=$(( ($(date +%s%N) - start) / 1000000 ))
                            wait; all=$(( ($(date +%s%N) - start) / 1000000 )); [ "$took" -lt 800 ] && [ "$all" -lt 5000 ]
                        }
                        within 40 asked
                        for i in $(seq 30); do [ "$(cat "$T/l$i")" = "$O/doc" ]; done
                        why "$M/desk/doc" | grep -q 'whose daemon does not answer'
                        kill -CONT "$pid"; mv "$O/doc" "$O/moved"
                        within 5 '[ "$(readlink "$M/desk/doc")" = "$O/moved" ]'; [ "$(why "$M/desk/doc")" = found ]
                        unmountOther
                        """, seconds: 100)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aReferenceStaysOneAfterARestartAndAMigrationOfTheOther() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mountOther; mkdir "$M/desk"; echo one > "$O/doc"; ref add "$O/doc" "$M/desk"; leads "$O/doc" one
                        unmountOther; mkdir "$T/new"
                        "$P" migrate papers --state-dir "$T/state-papers" "folder:$T/new"; X="$T/new"; mountOther
                        within 5 '[ "$(readlink "$M/desk/doc")" = "$O/doc" ]'; mv "$O/doc" "$O/moved"; leads "$O/moved" one
                        "$P" sync --wait "$O"; "$P" sync --wait "$M"; unmountOther
                        # A machine that was not there: what was migrated again since, under another name.
                        mkdir "$T/newer"; mountOther; mv "$O/moved" "$O/moved again"; unmountOther
                        "$P" migrate papers --state-dir "$T/state-papers" "folder:$T/newer"; X="$T/newer"
                        rm -rf "$T/state-papers"; mountOther letters
                        within 5 '[ "$(readlink "$M/desk/doc")" = "$O/moved again" ]'; leads "$O/moved again" one
                        mv "$O/moved again" "$O/moved"; leads "$O/moved" one; "$P" sync --wait "$O"
                        """, seconds: 100)
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    Self.shorthand
                        + """
                        X="$T/newer"; mountOther letters; within 5 '[ "$(readlink "$M/desk/doc")" = "$O/moved" ]'
                        leads "$O/moved" one; unmountOther
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func pythonMakesAReferenceToAnotherDomain() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mountOther; mkdir "$M/desk"; echo one > "$O/doc"
                        PYTHONPATH="$R/clients/python" python3 - "$M" "$O" <<'EOF'
                        import os, sys, promisefs
                        here, _ = promisefs.locate(sys.argv[1])
                        there, _ = promisefs.locate(sys.argv[2])
                        made = here.add_reference("doc", "desk", other=there)
                        assert made["state"] == "found" and made["domain"] == "papers", made
                        assert os.readlink(sys.argv[1] + "/desk/doc") == sys.argv[2] + "/doc"
                        EOF
                        unmountOther
                        """)
            }
        }
    }
}
