import Glibc
import Testing

extension MountSuites {
    /// A person picks, by lines, on a terminal and on a page.
    @Suite struct PickerTests {
        private static let options = MountedDomain.Options(
            prepare: """
                mkdir "$C/docs"; echo plan > "$C/docs/plan.md"; echo one > "$C/a.txt"; echo two > "$C/b.png"
                head -c 300000 /dev/urandom > "$C/large.bin"
                """)

        private static let shorthand = """
            pick() { "$P" pick --plain --at "$M" "$@" 2> "$T/said"; }
            fetched() { "$P" status --json "$M" | grep -o '"bytesFetched":[0-9]*' | head -1; }

            """

        @Test(.timeLimit(.minutes(2))) func openingGivesThePathAndFetchesNothing() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        [ "$(printf '1\\n1\\n' | pick)" = "$M/docs/plan.md" ]
                        # Filtered by type; folders stay.
                        [ "$(printf '2\\n' | pick --type image/png)" = "$M/b.png" ]
                        [ "$(printf '2\\n' | pick --type public.text)" = "$M/a.txt" ]
                        [ "$(printf '2\\n' | pick --type '*')" = "$M/a.txt" ]
                        # Said before somebody has picked for nothing.
                        status=0; pick --app 'a b' < /dev/null || status=$?; [ $status = 2 ]
                        grep -q "'a b' is no identifier of an application" "$T/said"
                        status=0; pick --type 'a*' < /dev/null || status=$?; [ $status = 2 ]
                        grep -q "'a\\*' is no type" "$T/said"
                        # A document is no folder to begin in, but lies in one.
                        [ "$(printf '1\\n' | "$P" pick --plain --at "$M/docs/plan.md" 2> "$T/said")" = "$M/docs/plan.md" ]
                        # Found anywhere, and several in the order of their marks.
                        [ "$(printf '?plan\\n1\\n' | pick)" = "$M/docs/plan.md" ]
                        [ "$(printf 'm 4\\nm 2\\nok\\n' | pick --multiple)" = "$M/large.bin
                        $M/a.txt" ]
                        [ "$(printf '1\\nok\\n' | pick --folders | tail -1)" = "$M/docs" ]
                        printf 'm 2\\nok\\n' | pick --multiple -0 | cmp - <(printf '%s\\0' "$M/a.txt")
                        # The same from Python.
                        code='import promisefs, sys; print(promisefs.pick(start=sys.argv[1], plain=True)[0]["path"])'
                        [ "$(printf '2\\n' | PYTHONPATH="$R/clients/python" PROMISEFS_EXECUTABLE="$P" \
                            python3 -c "$code" "$M" 2> /dev/null)" = "$M/a.txt" ]
                        # A daemon that dies while it is asked: the next one is.
                        daemon=$("$P" status --json "$M" | sed 's/.*"processID":\\([0-9]*\\).*/\\1/')
                        dies() { sleep 0.5; kill -STOP $daemon; echo '?plan'; sleep 0.5; kill -9 $daemon; echo 1; }
                        [ "$(dies | pick)" = "$M/docs/plan.md" ]
                        # A person who cancels, and lines that end.
                        status=0; printf 'q\\n' | pick || status=$?; [ $status = 1 ]; [ ! -s "$T/nothing" ]
                        status=0; pick < /dev/null || status=$?; [ $status = 1 ]
                        [ "$(fetched)" = '"bytesFetched":0' ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func eachModeDoesWhatItSaysAndNothingElse() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        # Import: a copy of its own, with the document's date.
                        copy=$(printf '4\\n' | pick --mode import)
                        cmp "$copy" "$C/large.bin"; [ "$(stat -c %Y "$copy")" = "$(stat -c %Y "$C/large.bin")" ]
                        case "$copy" in "$M"/*) false;; esac; [ "$(stat -c %a "$(dirname "$copy")")" = 700 ]
                        # Export: a copy there, none stays, under the name that the person gives.
                        echo mine > "$T/report"; made=$(printf 'name report.md\\nok\\n' | pick --mode export "$T/report")
                        [ "$made" = "$M/report.md" ] && [ "$(cat "$M/report.md")" = mine ] && [ -f "$T/report" ]
                        [ ! -L "$T/report" ]; "$P" reference list "$M" | not grep -q .
                        # Also what is called so that no text is: it "cannot be read".
                        odd="$T/$(printf 'r\\351port')"; echo odd > "$odd"
                        printf 'name odd.md\\nok\\n' | pick --mode export "$odd"
                        [ "$(cat "$M/odd.md")" = odd ]
                        # A name that is taken is nobody's to replace.
                        printf 'name a.txt\\nok\\nq\\n' | pick --mode export "$T/report" && exit 1
                        # Of several none is brought when one cannot be.
                        echo new > "$T/fresh"; echo other > "$T/a.txt"
                        printf 'ok\\nq\\n' | pick --mode export "$T/fresh" "$T/a.txt" && exit 1; [ ! -e "$M/fresh" ]
                        [ "$(cat "$M/a.txt")" = one ] && grep -q already "$T/said"
                        # Move of a file from elsewhere: it is there, and a link to it stays.
                        echo moved > "$T/paper"; printf '1\\nok\\n' | pick --mode move "$T/paper" | grep -qx "$M/docs/paper"
                        [ "$(cat "$M/docs/paper")" = moved ] && [ "$(readlink "$T/paper")" = "$M/docs/paper" ]
                        # Move within the domain: the same document, and a reference that follows it.
                        node=$(stat -c %i "$M/a.txt"); printf '1\\nok\\n' | pick --mode move "$M/a.txt"
                        [ "$(stat -c %i "$M/docs/a.txt")" = "$node" ] && [ "$(cat "$M/a.txt")" = one ]
                        mv "$M/docs/a.txt" "$M/docs/c.txt"; [ "$(cat "$M/a.txt")" = one ]
                        # A pipe was waited for, for ever; and a copy had a name that is good in one folder only.
                        mkfifo "$T/pipe"; printf 'ok\\nq\\n' > "$T/lines"
                        timeout 20 "$P" pick --plain --at "$M" --mode export "$T/pipe" < "$T/lines" 2> "$T/said" && exit 1
                        grep -q 'pipe is no document' "$T/said"
                        case $(printf '/large\\n1\\n' | TMPDIR=here pick --mode import) in /*) ;; *) false ;; esac
                        # Create.
                        [ "$(printf 'folder new\\nok\\n' | pick --mode create --suggest 'x y.md')" = "$M/new/x y.md" ]
                        [ -f "$M/new/x y.md" ] && [ ! -s "$M/new/x y.md" ]
                        # Nothing of ours is left anywhere.
                        find "$M" "$T" -name '.goutputstream-*' | not grep -q .
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func anApplicationGetsABookmarkAndAReferenceInItsContainer()
            async throws
        {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        "$P" container add --app com.example.editor --name Editor \(domain.domainName) > "$T/container"
                        printf '/a.txt\\n1\\n' | pick --app com.example.editor --json > "$T/picked"
                        bookmark=$(grep -o '"bookmark":"[^"]*"' "$T/picked" | cut -d'"' -f4)
                        [ "$("$P" bookmark resolve "$bookmark" --app com.example.editor)" = "$M/a.txt" ]
                        not "$P" bookmark resolve "$bookmark" --app com.example.other 2> /dev/null
                        link=$(cat "$T/container")/Documents/a.txt; [ -L "$link" ] && [ "$(cat "$link")" = one ]
                        # Once more: the same reference.
                        printf '/a.txt\\n1\\n' | pick --app com.example.editor --json > "$T/picked"
                        [ "$(ls "$(cat "$T/container")/Documents" | wc -l)" = 1 ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2)), arguments: ["40x8", "80x24"])
        func aTerminalOfAnySizePicks(size: String) async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    X=\(size.split(separator: "x")[0]); Y=\(size.split(separator: "x")[1])
                    mux() { tmux -S "$T/mux" "$@"; }
                    trap 'mux kill-server 2> /dev/null' EXIT
                    command="\\"$P\\" pick --multiple --at $M"
                    mux new-session -d -x $X -y $Y "x=\\$($command); echo \\"\\$? \\$x\\" > $T/got; sleep 60"
                    shown() { mux capture-pane -p; }
                    within 10 'shown | grep -q "> docs/"'
                    [ "$(shown | awk '{ print length }' | sort -n | tail -1)" -le $X ]
                    mux send-keys j; within 5 'shown | grep -q "> a.txt"'
                    mux send-keys Tab Tab; within 5 'shown | grep -q "2 marked"'
                    mux send-keys / l a r; within 5 'shown | grep -q "> large.bin"'
                    mux send-keys Escape; within 5 'shown | grep -q "docs/"'
                    mux send-keys g Enter; within 5 'shown | grep -q "plan.md"'
                    # The terminal changes under it.
                    mux resize-window -x 60 -y 12; within 5 'shown | grep -q "plan.md"'
                    mux send-keys s; within 5 '[ -s "$T/got" ]'
                    [ "$(cat "$T/got")" = "0 $M/a.txt
                    $M/b.png" ]
                    # What was on the terminal before is there again.
                    within 5 '! shown | grep -q "plan.md"'
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2)), arguments: ["TERM", "HUP", "INT"])
        func aPickerThatIsEndedLeavesTheTerminalAsItWas(signal: String) async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    mux() { tmux -S "$T/mux" "$@"; }
                    trap 'mux kill-server 2> /dev/null' EXIT
                    mux new-session -d -x 60 -y 12 "stty -a > $T/before; echo above; \\"$P\\" pick --at $M; echo \\"ended \\$?\\"
                        stty -a > $T/after; sleep 60"
                    within 10 'mux capture-pane -p | grep -q "> docs/"'
                    kill -\(signal) $(pgrep -f "^$P pick --at $M")
                    within 5 '[ -s "$T/after" ]'; cmp "$T/before" "$T/after"
                    within 5 'mux capture-pane -p | grep -Eq "ended 1(43|29|30)"'
                    mux capture-pane -p > "$T/shown"; grep -q above "$T/shown"; not grep -q "docs/" "$T/shown"
                    """)
            }
        }

        /// The page's server by plain HTTP, as a program that means ill would speak to it.
        @Test(.timeLimit(.minutes(2))) func aPageAnswersTheOneWhoOpenedItAndNobodyElse()
            async throws
        {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    echo x > "$C/<img src=x onerror=alert(1)>.md"
                    "$P" pick --web --no-browser --at "$M" > "$T/picked" 2> "$T/said" & picker=$!
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    within 10 'grep -q http "$T/said"'
                    python3 "$W/picker_page.py" "$(grep -o 'http.*' "$T/said")" a.txt
                    wait $picker; [ "$(cat "$T/picked")" = "$M/a.txt" ]
                    # Several that were marked, and the folder that is shown.
                    several() { : > "$T/said"; "$P" pick --web --no-browser --at "$M" $1 > "$T/picked" 2> "$T/said" & picker=$!
                        within 10 'grep -q http "$T/said"'; shift
                        timeout 20 python3 "$W/pick_by_page.py" "$(grep -o 'http.*' "$T/said")" "$@"; wait $picker; }
                    several --multiple --mark b.png --mark a.txt --here
                    [ "$(cat "$T/picked")" = "$M/b.png"$'\\n'"$M/a.txt" ]
                    several --folders --here docs; [ "$(cat "$T/picked")" = "$M/docs" ]
                    """)
            }
        }

        /// Each page belongs to one user, whatever another one of this machine has read.
        @Test(.timeLimit(.minutes(2)), .enabled(if: geteuid() == 0, "only root can be another user"))
        func anotherUserOfTheMachineIsRefused() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    "$P" pick --web --no-browser --at "$M" > "$T/picked" 2> "$T/said" & picker=$!
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    within 10 'grep -q http "$T/said"'; A=$(grep -o 'http.*' "$T/said")
                    ask() { curl --silent --output /dev/null --write-out '%{http_code} ' "$@"; }
                    as_other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
                    session=(-H 'content-type: application/json' -H "origin: ${A%/#*}"
                        --data "{\\"token\\":\\"${A#*#}\\"}" "${A%/#*}/session")
                    export -f ask
                    [ "$(as_other bash -c 'ask "$@"' - "${A%#*}")" = '403 ' ]
                    # Not with the token itself, which stays good for whom it is for.
                    [ "$(as_other bash -c 'ask "$@"' - "${session[@]}")" = '403 ' ]
                    [ "$(ask "${A%#*}")" = '200 ' ]; [ "$(ask "${session[@]}")" = '200 ' ]
                    [ "$(ask "${session[@]}")" = '403 ' ]
                    """)
            }
        }

        /// The browser is led to a page by a file, with the token: it lay there until the picker's end,
        /// and for ever when that was a signal.
        @Test(.timeLimit(.minutes(2))) func theFileThatLeadsToAPageGoesWithIt() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    mkdir "$T/bin"; cat > "$T/bin/xdg-open" << 'END'
                    #!/bin/sh
                    grep -o 'http://[^"]*' "${1#file://}" > "$T/address.new"
                    mv "$T/address.new" "$T/address"
                    END
                    chmod +x "$T/bin/xdg-open"; export PATH="$T/bin:$PATH" T
                    picks() { rm -f "$T/address"; "$@" 2> /dev/null > "$T/picked" & picker=$!
                        within 10 '[ -s "$T/address" ]'; }
                    files() { find "$XDG_RUNTIME_DIR" -name 'promisefs-page-*' | wc -l; }
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    picks "$P" pick --web --at "$M"; kill -9 $picker; wait $picker || true
                    [ $(files) = 1 ]
                    # What one that was killed has left goes with the next, and that of the next when it
                    # was opened.
                    picks "$P" pick --web --at "$M"; [ $(files) = 1 ]
                    python3 "$W/pick_by_page.py" "$(cat "$T/address")" --look
                    within 5 '[ $(files) = 0 ]'; kill $picker; wait $picker || true
                    picks env --default-signal=INT "$P" pick --web --at "$M"; [ $(files) = 1 ]
                    kill -INT $picker; status=0; wait $picker || status=$?
                    [ $status = 130 ]; [ $(files) = 0 ]
                    """)
            }
        }

        /// What was made came where the link led to: ~/.config/autostart, say.
        @Test(.timeLimit(.minutes(2)))
        func aFolderThatBecomesALinkWhileThePickerIsOpenTakesNothingElsewhere() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; echo mine > $T/report; mkdir $T/outside
                    "$P" container add --app $ID --name Editor \(domain.domainName) > /dev/null
                    own=$M/Editor/Documents; n=0
                    for mode in 'create --suggest new' "create --suggest new --app $ID" "save --suggest new --app $ID" \
                        "export $T/report" "move $T/report"; do
                        n=$((n + 1)); mkdir -p $own/sub/inside; mkfifo $T/keys$n
                        "$P" pick --plain --at $own/sub --mode $mode < $T/keys$n > $T/got 2> $T/said & picker=$!
                        exec 5> $T/keys$n; within 10 'grep -q inside $T/said'
                        mv $own/sub $own/moved$n; ln -s $T/outside $own/sub
                        echo ok >&5; within 10 'grep -q "is a link" $T/said'
                        exec 5>&-; not wait $picker
                        [ -z "$(ls -A $T/outside)" ]; [ "$(ls -A $own/moved$n)" = inside ]; rm $own/sub
                        [ "$(cat $T/report)" = mine ]; [ ! -L $T/report ]; [ ! -s $T/got ]
                    done
                    """, seconds: 90)
            }
        }

        /// A page that somebody has left open asks for news for ever, and is no use of it.
        @Test(.timeLimit(.minutes(2))) func aPickerThatIsLeftOpenIsCancelled() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    "$P" pick --web --no-browser --idle 1 --at "$M" > "$T/picked" 2> "$T/said" & picker=$!
                    trap 'kill $picker 2> /dev/null || true' EXIT
                    within 10 'grep -q http "$T/said"'
                    python3 "$W/pick_by_page.py" "$(grep -o 'http.*' "$T/said")" --wait
                    status=0; wait $picker || status=$?; [ $status = 1 ]; [ ! -s "$T/picked" ]
                    """)
            }
        }

        /// What a person can do by the page to look after it all.
        @Test(.timeLimit(.minutes(2))) func thePageToLookAfterItAllResolvesConflictsAndEvicts()
            async throws
        {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell("cat \"$M/large.bin\" \"$M/a.txt\" > \"$T/all\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    "printf 'one\\nhere\\n' > \"$M/a.txt\"; printf 'one\\nthere\\n' > \"$C/a.txt\"")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 'ls "$C" | grep -q "(conflict,"'; "$P" sync --wait "$M"
                    "$P" web --no-browser > "$T/said" & web=$!; trap 'kill $web' EXIT
                    within 10 'grep -q http "$T/said"'
                    python3 "$W/overview_page.py" "$(grep -o 'http.*' "$T/said")" "$M"
                    [ -z "$("$P" conflicts "$M")" ]; [ "$(tail -1 "$M/a.txt")" = here ]
                    [ "$(getfattr --only-values -n user.promisefs.state "$M/large.bin")" = placeholder ]
                    """)
            }
        }
    }
}
