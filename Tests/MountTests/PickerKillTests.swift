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
    }
}
