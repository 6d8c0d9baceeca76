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
    }
}
