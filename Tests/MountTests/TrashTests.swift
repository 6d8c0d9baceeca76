import Testing

extension MountSuites {
    /// What is removed on the mount, and comes back.
    @Suite struct TrashTests {
        /// > What programs remove is kept
        @Test(.timeLimit(.minutes(2))) func whatWasRemovedIsListedAndComesBack() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir -p "$C/d/e"; echo one > "$C/d/one.txt"; echo two > "$C/d/e/$(printf 'tw\\377o')"; ln -s one.txt "$C/d/link"
                echo far > "$C/d/far"; echo doc > "$C/doc.txt"; chmod 640 "$C/doc.txt"; cp "$C/doc.txt" "$C/saved.txt"
                touch -d @1000000000 "$C"/*.txt
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    odd=$(printf 'tw\\377o'); ls -lR "$M" > /dev/null; cat "$M/doc.txt" "$M/d/one.txt" "$M/d/e/$odd" > /dev/null
                    [ "$("$P" trash list "$M")" = "nothing was removed that is kept" ]
                    cat "$M/saved.txt" > /dev/null; sed -i s/doc/new/ "$M/saved.txt"
                    setfattr -n user.colour -v red "$M/doc.txt"; rm "$M/doc.txt"; rm -r "$M/d"
                    "$P" trash list "$M" > "$T/list"; cat "$T/list" >&2
                    [ "$(wc -l < "$T/list")" = 7 ]; [ "$(awk 'NR == 1 {print $2}' "$T/list")" = folder ]
                    tail -n 1 "$T/list" | grep -q 'doc.txt$'
                    [ "$(grep -c 'not kept' "$T/list")" = 1 ]; grep -q '/far (not kept: was not on this machine)$' "$T/list"
                    "$P" trash list --json "$M/d/e" | python3 -c '
                    import json, sys
                    assert [i["pathBytes"] for i in json.load(sys.stdin)["items"]] == ["/d/e", "/d/e/tw%FFo"]'
                    """)
                try await domain.synchronize()
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    """
                    odd=$(printf 'tw\\377o'); "$P" verify "$M" > /dev/null; [ ! -e "$C/d" ]; [ "$(cat "$M/saved.txt")" = new ]
                    id=$("$P" versions "$M/saved.txt" | grep -o 'given-up-[0-9-]*')
                    "$P" versions "$M/saved.txt" --get "$id" -o "$T/saved"; [ "$(cat "$T/saved")" = doc ]
                    [ "$("$P" trash restore "$M/doc.txt")" = "$M/doc.txt" ]
                    [ "$(cat "$M/doc.txt"; stat -c '%a %Y' "$M/doc.txt")" = "$(printf 'doc\\n640 1000000000')" ]
                    [ "$(getfattr --only-values -n user.colour "$M/doc.txt")" = red ]
                    s=0; "$P" trash restore "$M/d" > "$T/said" 2> "$T/err" || s=$?; grep -q '5 items brought back' "$T/said"
                    [ $s = 1 ]; grep -q 'd/far.*was not on this machine when it was removed' "$T/err"
                    [ "$(cat "$M/d/one.txt" "$M/d/e/$odd" "$M/d/link" | paste -sd' ')" = "one two one" ]; [ ! -e "$M/d/far" ]
                    not "$P" trash restore "$M/doc.txt" 2> "$T/err"; grep -q "nothing that was removed there is kept" "$T/err"
                    rm "$M/doc.txt"; echo new > "$M/doc.txt"; s=0; "$P" trash restore "$M/doc.txt" 2> "$T/err" || s=$?
                    [ $s = 6 ]; grep -q "there is a 'doc.txt' now" "$T/err"; [ "$(cat "$M/doc.txt")" = new ]
                    [ "$("$P" trash restore "$M/doc.txt" --to "$M")" = "$M/doc 2.txt" ]; [ "$(cat "$M/doc 2.txt")" = doc ]
                    [ "$("$P" trash list "$M" | grep -c 'not kept')" = 1 ]
                    rm "$M/doc 2.txt"; "$P" trash empty "$M" | grep -q '2 items given up'
                    [ "$("$P" trash list "$M")" = "nothing was removed that is kept" ]
                    PYTHONPATH="$R/clients/python" python3 - "$M/d/one.txt" <<'END'
                    import os, promisefs, sys
                    domain, path = promisefs.locate(sys.argv[1])
                    os.unlink(sys.argv[1])
                    assert [item['path'] for item in domain.trash()] == ['/d/one.txt']
                    assert domain.restore([path])['restored'] == 1 and open(sys.argv[1]).read() == 'one\\n'
                    END
                    "$P" verify "$M" > /dev/null
                    """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }
    }
}
