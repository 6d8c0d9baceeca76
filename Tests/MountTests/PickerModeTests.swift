import Testing

extension MountSuites {
    /// Each mode by each front end that a person sees: what there is then on disk, in grants, in
    /// references, in queries and in the audit log. Programs of the desktop: `DesktopProgramTests`; from sandboxes:
    /// `ApplicationPickTests`, `PortalTests`.
    @Suite struct PickerModeTests {
        private static let frontEnds = Machine.hasBrowser ? ["terminal", "page"] : ["terminal"]
        private static let options = MountedDomain.Options(
            prepare: """
                mkdir "$C/docs"; echo plan > "$C/docs/plan.md"; echo one > "$C/a.txt"
                echo two > "$C/b.png"
                """)

        private static let person = """
            "$P" container add --app $ID --name Editor $D > $T/container; "$P" sync --wait $M
            mux() { tmux -S "$T/mux" "$@"; }
            shown() { mux capture-pane -p; }
            trap 'mux kill-server 2> /dev/null || true; kill $(jobs -p) 2> /dev/null || true' EXIT
            # `terminal NAME|--here FOLDER WORDS…`: what a person does there; what is told is in
            # `$T/got`.
            terminal() {
                local wanted=$1 folder=$2; shift 2; rm -f $T/status
                mux new-session -d -x 80 -y 20 \\
                    "\\"$P\\" pick --at $M $* > $T/got; echo \\$? > $T/status; sleep 60"
                within 20 'shown | grep -q "a.txt"'
                if [ -n "$folder" ]; then
                    mux send-keys /; mux send-keys -l $folder
                    within 10 "shown | grep -q '> $folder/'"
                    mux send-keys Enter Enter; within 10 'shown | grep -q plan.md'
                fi
                if [ "$wanted" = --here ]; then mux send-keys s; else
                    mux send-keys /; mux send-keys -l $wanted
                    within 10 "shown | grep -q '> $wanted'"; mux send-keys Enter Enter
                fi
                within 20 '[ -s "$T/status" ]'; [ "$(cat $T/status)" = 0 ] || { shown >&2; false; }
                mux kill-server
            }
            page() {
                local wanted=$1 folder=$2; shift 2; : > $T/said
                "$P" pick --web --no-browser --at $M "$@" > $T/got 2> $T/said & local picker=$!
                within 20 'grep -q http $T/said'
                python3 $W/page_person.py "$(grep -o 'http.*' $T/said)" "$wanted" $folder
                wait $picker
            }
            grants() { "$P" grants list --domain $D --app $ID --json; }
            count() { { grep -o "$1" || true; } | wc -l; }
            # What there is besides documents: rights, references, and lines of the audit log that
            # give something.
            state() {
                local given='grants.given","detail":"read-write item'
                echo "$(grants | count '"kind":"item"') $("$P" reference list $M | wc -l)" \\
                    "$("$P" grants audit --domain $D --json | count "$given")"
            }
            found() { "$P" find $M "kMDItemFSName == '$1'" | sort | tr '\\n' ' '; }

            """

        @Test(.timeLimit(.minutes(4)), arguments: Self.frontEnds)
        func eachModeHasItsConsequencesAndNoOthers(frontEnd: String) async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName)

                    """ + Self.person + """
                        [ "$(state)" = '0 0 0' ]
                        # Open: a right, a reference in the container, a line in the log; nothing
                        # is fetched.
                        \(frontEnd) a.txt '' --app $ID --json
                        grep -q '"bookmark":"' $T/got; grep -q '"grant":[0-9]' $T/got
                        [ "$(state)" = '1 1 1' ]; grants | grep -q '"path":"/a.txt"'
                        [ -L $M/Editor/Documents/a.txt ]
                        "$P" grants audit --domain $D --json | grep grants.given | grep -q $ID
                        getfattr --only-values -n user.promisefs.state $M/a.txt | grep -qx placeholder
                        # Import: a copy elsewhere, and no right.
                        \(frontEnd) b.png '' --mode import; copy=$(cat $T/got); cmp $copy $C/b.png
                        case $copy in $M/*) false;; esac
                        [ "$(state)" = '1 1 1' ]; [ "$(found b.png)" = "$M/b.png " ]
                        # Move: the same document there, a reference where it was, and no right.
                        node=$(stat -c %i $M/b.png); \(frontEnd) --here docs --mode move $M/b.png
                        [ "$(stat -c %i $M/docs/b.png)" = $node ]; [ "$(cat $M/b.png)" = two ]
                        [ "$(state)" = '1 2 1' ]
                        "$P" reference list $M | grep -q docs/b.png
                        found b.png | grep -q "$M/docs/b.png "
                        # Export: a copy there, and nothing else.
                        echo mine > $T/report; \(frontEnd) --here docs --mode export $T/report
                        [ "$(cat $M/docs/report)" = mine ]; [ -f $T/report ]; [ ! -L $T/report ]
                        [ "$(state)" = '1 2 1' ]
                        [ "$(found report)" = "$M/docs/report " ]
                        # Create: an empty document, which is given.
                        \(frontEnd) --here docs --mode create --suggest new.md --app $ID
                        [ -f $M/docs/new.md ]; [ ! -s $M/docs/new.md ]; [ "$(state)" = '2 3 2' ]
                        grants | grep -q '"path":"/docs/new.md"'
                        [ -L $M/Editor/Documents/new.md ]; found new.md | grep -q "$M/docs/new.md "
                        # Save: a name, and nothing is made.
                        \(frontEnd) --here docs --mode save --suggest saved.md
                        [ "$(cat $T/got)" = $M/docs/saved.md ]; [ ! -e $M/docs/saved.md ]
                        [ "$(state)" = '2 3 2' ]; [ -z "$(found saved.md)" ]
                        """, seconds: 200)
            }
        }
    }
}
