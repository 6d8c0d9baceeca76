import Testing

extension MountSuites {
    /// Pickers that are killed at any moment: all of what the person has said, or nothing of it.
    @Suite struct PickerKillTests {
        private func killed(_ script: String) async throws {
            let options = MountedDomain.Options(
                arguments: ["--poll-interval", "1s"],
                prepare: "mkdir $C/docs; head -c 4M /dev/urandom > $C/large.bin; echo one > $C/a.txt")
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName); cat $M/large.bin > $T/large
                    times="0.02 0.05 0.08 0.1 0.12 0.15 0.2 0.3"
                    # `cut SECONDS LINES WORDS…`: a picker that is given these lines and killed then.
                    cut() {
                        local seconds=$1 lines=$2; shift 2
                        "$P" pick --plain --at $M "$@" < <(printf "$lines"; sleep 9) > $T/said 2>&1 & local picker=$!
                        sleep $seconds; kill -9 $picker 2> /dev/null || true; wait $picker 2> /dev/null || true
                    }
                    # What was under way is sent to nobody.
                    quiet() { "$P" sync --wait $M; find $C -name '.goutputstream-*' | not grep -q .; }

                    """ + script, seconds: 150)
            }
        }

        @Test(.timeLimit(.minutes(3))) func anExportIsThereAsAWholeOrNotAtAll() async throws {
            try await killed(
                """
                for t in $times; do
                    cut $t 'ok\\n' --mode export --suggest "copy $t" $T/large
                    [ ! -e "$M/copy $t" ] || cmp "$M/copy $t" $T/large
                    [ -f $T/large ] && [ ! -L $T/large ]
                done
                quiet
                """)
        }

        @Test(.timeLimit(.minutes(3))) func whatIsMovedIsHereOrThere() async throws {
            try await killed(
                """
                for t in $times; do
                    cp $T/large $T/moved; cut $t 'ok\\n' --mode move --suggest "moved $t" $T/moved
                    cmp $T/moved $T/large
                    if [ -L $T/moved ]; then [ "$(readlink $T/moved)" = "$M/moved $t" ]; fi; rm $T/moved
                    # Within the domain: the same document, at one of the two places.
                    echo "text $t" > $M/doc; i=$(stat -c %i $M/doc); cut $t '1\\nok\\n' --mode move --suggest "doc $t" $M/doc
                    if [ -e "$M/docs/doc $t" ]; then
                        [ "$(stat -c %i "$M/docs/doc $t")" = $i ]; [ ! -e $M/doc ] || [ "$(cat $M/doc)" = "text $t" ]
                        rm -f $M/doc
                    else
                        [ "$(stat -c %i $M/doc)" = $i ]; [ "$(cat $M/doc)" = "text $t" ]
                    fi
                done
                quiet
                """)
        }

        @Test(.timeLimit(.minutes(3))) func aRightIsThereWhenThePersonHasSaidSoAndNotBefore() async throws {
            try await killed(
                """
                "$P" container add --app $ID --name Editor $D > /dev/null
                count() { "$P" grants list --domain $D --app $ID --json | { grep -o '"kind":"item"' || true; } | wc -l; }
                for t in $times; do
                    # Nothing is said: nothing is given, however long it is open.
                    cut $t '' --app $ID; [ $(count) = 0 ]
                done
                for t in $times; do
                    cut $t 'ok\\n' --mode save --suggest "saved $t"; [ ! -e "$M/saved $t" ]
                    cut $t '3\\n' --app $ID --mode open; n=$(count); [ $n -le 1 ]
                    cut $t 'ok\\n' --app $ID --mode create --suggest "new $t"
                    # Made, and perhaps not yet given; never given and not there.
                    [ $(count) -le 2 ]; [ $(count) -lt $((n + 1)) ] || [ -e "$M/new $t" ]
                    "$P" grants revoke --domain $D --app $ID > /dev/null || true; [ $(count) = 0 ]
                done
                quiet
                """)
        }

        @Test(.timeLimit(.minutes(3))) func anImportGoesWithTheProcessThatAskedForIt() async throws {
            try await killed(
                """
                export TMPDIR=$T/temporary; mkdir $TMPDIR
                sleep 60 & owner=$!
                copy=$(printf '3\\n' | "$P" pick --plain --at $M --mode import --while $owner 2> /dev/null)
                cmp "$copy" $T/large; sleep 0.5; [ -e "$copy" ]
                kill -9 $owner; wait $owner 2> /dev/null || true; within 5 '[ -z "$(ls $TMPDIR)" ]'
                """)
        }

        /// A copy under way when the picker dies is nobody's: it was told to nobody.
        @Test(.timeLimit(.minutes(3))) func anImportThatIsCutOffLeavesNothing() async throws {
            try await killed(
                """
                export TMPDIR=$T/temporary; mkdir $TMPDIR; "$P" sync --wait $M
                for t in $times; do
                    cut $t '3\\n' --mode import
                    # Nothing, or all of it, and told.
                    whole() { cmp -s $TMPDIR/*/large.bin $T/large && grep -qF "$(ls -d $TMPDIR/*/large.bin)" $T/said; }
                    within 5 '[ -z "$(ls -A $TMPDIR)" ] || whole'; rm -rf $TMPDIR/*
                done
                # In the middle, for certain: the content comes slowly.
                "$P" evict $M/large.bin; printf 'bandwidth=500000\\n' > $PROMISEFS_PROVIDER_FAULTS
                "$P" pick --plain --at $M --mode import < <(printf '3\\n'; sleep 9) > $T/said 2>&1 & picker=$!
                within 5 'ls $TMPDIR/*/.[a-z]* > /dev/null 2>&1'; kill -9 $picker; wait $picker 2> /dev/null || true
                within 5 '[ -z "$(ls -A $TMPDIR)" ]'; : > $PROMISEFS_PROVIDER_FAULTS; quiet
                """)
        }

        /// `die SECONDS LINES WORDS…`: a picker that is given these lines, and whose daemon is killed then.
        private static let dying = """
            daemon() { "$P" status $M --json | sed 's/.*"processID":\\([0-9]*\\).*/\\1/'; }
            die() {
                local seconds=$1 lines=$2 victim; shift 2; victim=$(daemon)
                "$P" pick --plain --at $M "$@" < <(printf "$lines"; sleep 2) > $T/said 2>&1 & local picker=$!
                sleep $seconds; kill -9 $victim; wait $picker 2> /dev/null || true
                within 20 '"$P" status $M > /dev/null'
            }
            count() { "$P" grants list --domain $D --app $ID --json | { grep -o '"kind":"item"' || true; } | wc -l; }
            moments="0.05 0.12 0.25"

            """

        @Test(.timeLimit(.minutes(4))) func whatGoesSomewhereIsWholeWhenTheDaemonDies() async throws {
            try await killed(
                Self.dying + """
                    for t in $moments; do
                        die $t 'ok\\n' --mode export --suggest "copy $t" $T/large
                        [ ! -e "$M/copy $t" ] || cmp "$M/copy $t" $T/large; cmp $T/large $M/large.bin
                        cp $T/large $T/moved; die $t 'ok\\n' --mode move --suggest "moved $t" $T/moved; cmp $T/moved $T/large
                        rm $T/moved; echo "text $t" > $M/doc; i=$(stat -c %i $M/doc)
                        die $t '1\\nok\\n' --mode move --suggest "doc $t" $M/doc
                        # The same document, at one of the two places, and what is at the other is a reference to it or nothing.
                        if [ -e "$M/docs/doc $t" ]; then [ "$(stat -c %i "$M/docs/doc $t")" = $i ]
                        else [ "$(stat -c %i $M/doc)" = $i ]; fi
                        [ ! -e $M/doc ] || [ "$(cat $M/doc)" = "text $t" ]; rm -f $M/doc
                    done
                    quiet; [ -z "$(find $M -name '*conflict*')" ]; "$P" verify $M
                    """)
        }

        @Test(.timeLimit(.minutes(4))) func nothingIsGivenThatWasNotSaidWhenTheDaemonDies() async throws {
            try await killed(
                Self.dying + """
                    "$P" container add --app $ID --name Editor $D > /dev/null
                    export TMPDIR=$T/temporary; mkdir $TMPDIR
                    for t in $moments; do
                        die $t '' --app $ID; [ $(count) = 0 ]
                        die $t '3\\n' --app $ID; [ $(count) -le 1 ]
                        die $t 'ok\\n' --app $ID --mode create --suggest "new $t"
                        [ $(count) -le 2 ]; [ $(count) -lt 2 ] || [ -e "$M/new $t" ]
                        "$P" grants revoke --domain $D --app $ID > /dev/null || true; [ $(count) = 0 ]
                        die $t 'ok\\n' --mode save --suggest "saved $t"; [ ! -e "$M/saved $t" ]
                        # Behind two folders and a.txt.
                        die $t '4\\n' --mode import
                        within 5 '[ -z "$(ls -A $TMPDIR)" ] || cmp -s $TMPDIR/*/large.bin $T/large'; rm -rf $TMPDIR/*
                    done
                    quiet; "$P" verify $M
                    """)
        }

        /// Of a page that is gone nothing comes, in any mode, and nothing is left of its picker.
        @Test(.timeLimit(.minutes(3))) func aPageThatIsKilledGivesNothing() async throws {
            try await killed(
                """
                "$P" container add --app $ID --name Editor $D > /dev/null; "$P" sync --wait $M
                export TMPDIR=$T/temporary XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR; mkdir $TMPDIR; echo mine > $T/mine
                here() { find $M -not -path '*/.promisefs*' | sort; "$P" grants list --domain $D --json; }; before=$(here)
                for mode in "open --app $ID" import "create --app $ID --suggest x" "save --suggest x" \\
                    "export $T/mine" "move $T/mine"; do
                    : > $T/said; "$P" pick --web --no-browser --at $M --mode $mode 2>> $T/said & picker=$!
                    within 10 'grep -q http $T/said'
                    python3 $W/pick_by_page.py "$(grep -o 'http.*' $T/said)" --look & page=$!; wait $page
                    # Its key was with the page: nobody else gets in.
                    not python3 $W/pick_by_page.py "$(grep -o 'http.*' $T/said)" a.txt 2> /dev/null
                    kill -TERM $picker; wait $picker 2> /dev/null || true
                    [ "$(here)" = "$before" ]; [ -z "$(ls -A $TMPDIR)" ]; [ "$(cat $T/mine)" = mine ]; [ ! -L $T/mine ]
                done
                """)
        }
    }
}
