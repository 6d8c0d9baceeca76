import Testing

extension MountSuites {
    /// The versions that conflicts leave, and what is done with them.
    @Suite struct VersionTests {
        @Test(.timeLimit(.minutes(2))) func conflictsAreListedReadAndResolvedInEachWay() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in a b c; do echo old > \"$C/$n.txt\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    "cat \"$M\"/*.txt > \"$T/all\"; getfattr --only-values -n user.promisefs.identifier \"$M/a.txt\" > \"$T/id\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell("for n in a b c; do echo mine-$n > \"$M/$n.txt\"; echo theirs-$n > \"$C/$n.txt\"; done")
                try await domain.shell(
                    """
                    "$P" watch "$M/a.txt" > "$T/told" 2>&1 & echo $! > "$T/watch"; within 10 'grep -q presenting "$T/told"'
                    """)
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 '[ "$(ls "$C" | grep -c "(conflict,")" = 3 ]'; "$P" sync --wait "$M"
                    "$P" conflicts --json "$M" > "$T/conflicts"; [ "$(grep -o '"note"' "$T/conflicts" | wc -l)" = 3 ]
                    version=$(cd "$M"; ls | grep '^a (conflict,'); [ "$(cat "$M/$version")" = mine-a ]
                    not "$P" resolve "$M/a.txt" --keep nonsense 2> "$T/err"; grep -q "no unresolved version 'nonsense'" "$T/err"
                    "$P" resolve "$M/a.txt" --keep "$version" > /dev/null; [ "$(cat "$M/a.txt")" = mine-a ]
                    [ ! -e "$M/$version" ]
                    getfattr --only-values -n user.promisefs.identifier "$M/a.txt" | cmp - "$T/id"
                    PYTHONPATH="$R/clients/python" python3 - "$M/b.txt" <<'END'
                    import promisefs, sys
                    domain, path = promisefs.locate(sys.argv[1])
                    version = domain.versions(path)[-1]
                    assert version['kind'] == 'conflict', version
                    assert [left['kind'] for left in domain.resolve(path, 'remove', version['identifier'])] == ['current']
                    END
                    [ "$(cat "$M/b.txt")" = theirs-b ]; [ "$(ls "$M" | grep -c '^b')" = 1 ]
                    "$P" resolve "$M/c.txt" --keep both > /dev/null
                    [ "$(cat "$M"/c*.txt | sort | paste -sd' ')" = "mine-c theirs-c" ]
                    [ "$(getfattr --only-values -n user.promisefs.state "$M"/c\\ *)" = current ]
                    [ -z "$("$P" conflicts "$M")" ]; not "$P" resolve "$M/c.txt" --keep current 2> /dev/null
                    within 10 'grep -q "tell didLoseVersion a (conflict," "$T/told"' || { cat "$T/told" >&2; false; }
                    within 10 'grep -q "tell didGainVersion a (conflict,.* $M/a.txt" "$T/told"' || { cat "$T/told" >&2; false; }
                    kill "$(cat "$T/watch")"
                    """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// As the original says: "some other entity" has resolved it. And the desktop is told, unless nobody wants that.
        @Test(.timeLimit(.minutes(2))) func whoResolvesAConflictIsNotToldThatItDid() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo old > \"$C/a.txt\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M\"/*.txt > /dev/null")
                try domain.setFaults(["offline=true"])
                try await domain.shell("echo mine > \"$M/a.txt\"; echo theirs > \"$C/a.txt\"")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 '[ "$(ls "$C" | grep -c "(conflict,")" = 1 ]'; "$P" sync --wait "$M"
                    "$P" watch --purpose mine "$M/a.txt" > "$T/own" & one=$!; "$P" watch "$M/a.txt" > "$T/other" & two=$!
                    for w in own other; do within 10 'grep -q presenting "$T/'$w'"'; done
                    mkdir "$T/bin" "$XDG_CONFIG_HOME/promisefs"; export TOLD="$T/desktop" PATH="$T/bin:$PATH"
                    printf '#!/bin/sh\nprintf "%%s|" "$@" >> "$TOLD"\n' > "$T/bin/notify-send"; chmod +x "$T/bin/notify-send"
                    timeout 20 "$P" notify --every 100ms & three=$!
                    within 10 'grep -q -- "|--|.*: 1 document is in conflict|All versions are there.*conflicts $M|" "$TOLD"'
                    kill $three; echo 'notifications = false' > "$XDG_CONFIG_HOME/promisefs/config.toml"
                    timeout 0.5 "$P" notify --every 100ms --json > "$T/none" || true; [ ! -s "$T/none" ]
                    PROMISEFS_PURPOSE=mine "$P" resolve "$M/a.txt" --keep both > /dev/null
                    within 10 'grep -q "tell didResolveVersion" "$T/other"'; not grep -q didResolveVersion "$T/own"
                    kill $one $two; wait $one $two || true
                    """)
            }
        }

        /// > What was written to the document since its versions were listed is never destroyed by `resolve`:
        @Test(.timeLimit(.minutes(2))) func whatIsWrittenAfterTheDecisionOnAConflictIsNotDestroyed() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo old > \"$C/a.txt\"; echo old > \"$C/b.txt\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/a.txt\" \"$M/b.txt\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell("for n in a b; do echo mine > \"$M/$n.txt\"; echo theirs > \"$C/$n.txt\"; done")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 '[ "$(ls "$C" | grep -c "(conflict,")" = 2 ]'; "$P" sync --wait "$M"
                    states() { "$P" versions --json "$1" | grep -o '"state":"[^"]*"' | cut -d'"' -f4 | sed 's/^/--state /'; }
                    decided=$(states "$M/a.txt"); version=$(cd "$M"; ls | grep '^a (conflict,')
                    echo written since > "$M/a.txt"
                    status=0; "$P" resolve "$M/a.txt" --keep "$version" $decided 2> "$T/err" || status=$?
                    [ $status = 6 ]; grep -q 'list them again' "$T/err"; [ "$(cat "$M/a.txt")" = "written since" ]
                    "$P" resolve "$M/a.txt" --keep "$version" $(states "$M/a.txt") > /dev/null; [ "$(cat "$M/a.txt")" = mine ]
                    """)
                // A program that holds it open goes on writing to what was replaced, or removed.
                try await domain.shell(
                    """
                    version=$(cd "$M"; ls | grep '^b (conflict,')
                    cat "$M/b.txt" > /dev/null; exec 8>> "$M/b.txt"; exec 9>> "$M/$version"
                    # Within a claim of its own: it does not wait for itself.
                    "$P" coordinate write "$M/b.txt" -- "$P" resolve "$M/b.txt" --keep current > /dev/null
                    [ ! -e "$M/$version" ]
                    echo late >&9; exec 9>&-
                    within 5 '[ "$(cat "$M"/b*conflict*)" = "$(printf "mine\\nlate")" ]'
                    "$P" conflicts "$M" | grep -q b.txt; version=$(cd "$M"; ls | grep '^b (conflict,')
                    "$P" resolve "$M/b.txt" --keep "$version" > /dev/null; [ "$(tail -n 1 "$M/b.txt")" = late ]
                    echo later >&8; exec 8>&-
                    within 5 '[ "$(tail -n 1 "$M"/b*conflict*)" = later ]'
                    """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// They were listed no more when the document was moved to another folder, and never when it was removed.
        @Test(.timeLimit(.minutes(2))) func aConflictStaysWithItsDocumentThatIsMovedOrRemoved() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/one\" \"$C/two\"; for n in a b; do echo old > \"$C/one/$n.txt\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M\"/one/*; ls \"$M/two\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell("for n in a b; do echo mine > \"$M/one/$n.txt\"; echo theirs > \"$C/one/$n.txt\"; done")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 '[ "$(ls "$C/one" | grep -c "(conflict,")" = 2 ]'; "$P" sync --wait "$M"
                    mv "$M/one/a.txt" "$M/two/renamed.txt"; mv "$M/one" "$M/first"; rm "$M/first/b.txt"; "$P" sync --wait "$M"
                    "$P" versions "$M/two/renamed.txt" | grep -q 'conflict.*first/a (conflict,'
                    "$P" conflicts "$M" | grep -c '^conflict' | grep -qx 2
                    "$P" resolve "$M/two/renamed.txt" --keep current > /dev/null; [ "$(ls "$M/first" | wc -l)" = 1 ]
                    version=$(ls "$M/first"); not "$P" resolve "$M/first/$version" --keep current 2> "$T/err"
                    grep -q 'the document was removed' "$T/err"; [ "$(cat "$M/first/$version")" = mine ]
                    "$P" resolve "$M/first/$version" --keep "$version" > /dev/null; [ -z "$("$P" conflicts "$M")" ]
                    [ "$(cat "$M/first/$version")" = mine ]
                    """)
            }
        }

        /// They were looked for by one of its names only.
        @Test(.timeLimit(.minutes(2))) func aConflictOfADocumentWithTwoNamesIsListedAndDecided() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/m\"; echo old > \"$C/m/a.txt\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/m/a.txt\"; mkdir \"$M/0\"; ln \"$M/m/a.txt\" \"$M/0/0.txt\"")
                try await domain.synchronize()
                try domain.setFaults(["offline=true"])
                try await domain.shell("echo mine > \"$M/m/a.txt\"; echo theirs > \"$C/m/a.txt\"")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 'ls "$M/m" | grep -q "^a (conflict,"'; "$P" sync --wait "$M"
                    version=$(cd "$M/m"; ls | grep '^a (conflict,'); ln "$M/m/$version" "$M/0/1.txt"
                    for n in m/a.txt "m/$version" 0/1.txt; do "$P" versions "$M/$n" | grep -q '^conflict'; done
                    "$P" conflicts "$M" | grep -c '^conflict' | grep -qx 1
                    "$P" resolve "$M/m/a.txt" --keep current > /dev/null; [ -z "$("$P" conflicts "$M")" ]
                    """)
            }
        }

        // MARK: Two machines

        /// A shell's words: how many unresolved versions there are, and the name of a document's.
        private static let words = """
            conflicts() { "$P" conflicts "$M" | grep -c '^conflict' || true; }
            version() { ls "$M/d" | grep "^$1 (conflict,"; }

            """

        /// One machine edits what the other has changed, so that it leaves a conflict version of each name.
        private func disagree(_ names: String, _ first: MountedDomain, _ second: MountedDomain) async throws {
            try await second.shell("mkdir -p \"$M/d\"; for n in \(names); do echo old > \"$M/d/$n.txt\"; done")
            try await second.synchronize()
            try await first.shell("for n in \(names); do within 30 \"grep -q old '$M/d/$n.txt'\"; done")
            try first.setFaults(["offline=true"])
            try await first.shell("for n in \(names); do echo mine-$n > \"$M/d/$n.txt\"; done")
            try await second.shell("for n in \(names); do echo theirs-$n > \"$M/d/$n.txt\"; done")
            try await second.synchronize()
            try first.setFaults([])
            try await first.shell("for n in \(names); do within 50 \"ls '$M/d' | grep -q '^$n (conflict,'\"; done")
            try await first.synchronize()
        }

        /// What every provider has to do.
        private func conflictsTravel(_ first: MountedDomain, _ second: MountedDomain) async throws {
            try await disagree("a b c e", first, second)
            // The other machine has not looked since; a query and a presenter hear of it.
            try await second.shell(
                Self.words + """
                    within 30 '[ "$(conflicts)" = 4 ]' || { "$P" conflicts "$M" >&2; ls -l "$M/d" >&2; false; }
                    "$P" status --json "$M" | grep -q '"conflicts":4'
                    [ "$(getfattr --only-values -n user.promisefs.state "$M/d/$(version a)")" = conflicted ]
                    "$P" find "$M" "NSMetadataUbiquitousItemHasUnresolvedConflictsKey == YES" | wc -l | grep -qx 4
                    "$P" resolve "$M/d/a.txt" --keep "$(version a)" > /dev/null; [ "$(cat "$M/d/a.txt")" = mine-a ]
                    "$P" resolve "$M/d/b.txt" --keep current > /dev/null; [ "$(cat "$M/d/b.txt")" = theirs-b ]
                    "$P" resolve "$M/d/c.txt" --keep both > /dev/null; [ "$(conflicts)" = 1 ]
                    """)
            try await second.synchronize()
            try await first.shell(
                Self.words + """
                    within 60 '[ "$(conflicts)" = 1 ]' || { "$P" conflicts "$M" >&2; ls -l "$M/d" >&2; false; }
                    within 30 '[ "$(cat "$M/d/a.txt")" = mine-a ]'; [ "$(cat "$M/d/$(version c)")" = mine-c ]
                    "$P" resolve "$M/d/e.txt" --keep both > /dev/null; [ "$(conflicts)" = 0 ]
                    """)
            try await first.synchronize()
            try await second.shell(
                Self.words + "within 50 '[ \"$(conflicts)\" = 0 ]'; [ \"$(cat \"$M/d/$(version e)\")\" = mine-e ]")
        }

        /// > Other machines of the storage know a conflict version by its name:
        @Test(.timeLimit(.minutes(4))) func otherMachinesListAndResolveAConflict() async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in
                    try await conflictsTravel(first, second)
                    // Where both know it, it stays with its document wherever that goes.
                    try await disagree("m", first, second)
                    try await second.shell(
                        Self.words + """
                            within 30 '[ "$(conflicts)" = 1 ]'; mkdir "$M/other"
                            mv "$M/d/m.txt" "$M/other/n.txt"; mv "$M/d" "$M/f"
                            "$P" versions "$M/other/n.txt" | grep -q 'conflict.*f/m (conflict,'
                            """)
                    try await second.synchronize()
                    try await first.shell(
                        """
                        within 30 '[ -e "$M/other/n.txt" ] && [ -e "$M/f" ]'
                        "$P" versions "$M/other/n.txt" | grep -q 'conflict.*f/m (conflict,'
                        mv "$M/f"/m* "$M/f/mine"; [ -z "$("$P" conflicts "$M")" ]
                        """)
                    try await first.synchronize()
                    try await second.shell("within 30 '[ -e \"$M/f/mine\" ]'; [ -z \"$(\"$P\" conflicts \"$M\")\" ]")
                }
            }
        }

        @Test(.timeLimit(.minutes(4)), .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
        func otherMachinesListAndResolveAConflictByWebDAV() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await MountedDomain.with(server.options()) { second in try await conflictsTravel(first, second) }
                }
            }
        }

        @Test(.timeLimit(.minutes(4))) func otherMachinesListAndResolveAConflictByS3() async throws {
            try await S3Server.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await MountedDomain.with(server.options()) { second in try await conflictsTravel(first, second) }
                }
            }
        }

        /// A machine that mounts the storage for the first time found files with strange names.
        @Test(.timeLimit(.minutes(3))) func aMachineThatComesLaterFindsTheConflictsThatThereAre() async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in try await disagree("a b", first, second) }
                try await first.shell("\"$P\" resolve \"$M/d/b.txt\" --keep both > /dev/null; sleep 1")
                try await first.synchronize()
                // Somebody's own file that is named so, beside nothing and beside a document.
                try await first.shell(
                    """
                    cd "$C/d"; for n in x y; do echo own > "$n (conflict, me, 2026-01-01).txt"; done; echo y > y.txt
                    """)
                try await MountedDomain.with(options) { third in
                    try await third.shell(
                        """
                        ls "$M/d"; within 30 '[ "$("$P" conflicts "$M" | grep -c "^conflict")" = 2 ]'
                        "$P" versions "$M/d/a.txt" | grep -q '^conflict'; "$P" versions "$M/d/y.txt" | grep -q '^conflict'
                        [ "$(cat "$M/d/y (conflict, me, 2026-01-01).txt")" = own ]; [ "$(cat "$M/d/x"*)" = own ]
                        """)
                    try await third.expectProviderEqualsMount()
                }
            }
        }
    }
}
