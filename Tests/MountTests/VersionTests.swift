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

        /// As the original says: "some other entity" has resolved it.
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
    }
}
