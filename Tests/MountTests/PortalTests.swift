import Foundation
import Testing

extension MountSuites {
    /// The desktop's file dialogs: `promisefs-portal` on a bus of its own.
    @Suite struct PortalTests {
        private static let bus = """
            [ -x "$(dirname "$P")/promisefs-portal" ] && [ -x /usr/bin/dbus-run-session ]
            cat > $T/session.sh << 'END'
            N=org.freedesktop.impl.portal.desktop.promisefs
            "$(dirname "$P")/promisefs-portal" $PORTAL_WORDS & portal=$!
            trap 'kill $portal 2> /dev/null || true' EXIT
            gdbus wait --session --timeout 10 $N
            call() { gdbus call --timeout 60 --session -d $N -o /org/freedesktop/portal/desktop \\
                -m org.freedesktop.impl.portal.FileChooser."$@"; }
            END
            session() { cat $T/session.sh - > $T/now.sh; dbus-run-session -- bash -e $T/now.sh 2> $T/said || {
                cat $T/said >&2; false; }; }

            """

        private static let hasFrontEnd = [
            "/usr/libexec/xdg-desktop-portal", "/usr/lib/python3/dist-packages/gi/__init__.py",
        ].allSatisfy { FileManager.default.fileExists(atPath: $0) }

        private func dialogs(_ script: String, prepare: String = "") async throws {
            let options = MountedDomain.Options(
                prepare: #"mkdir "$C/docs"; echo one > "$C/a b.txt"; echo two > "$C/b.png"; "# + prepare)
            try await MountedDomain.with(options) { domain in
                try await domain.shell(Self.bus + script, seconds: 90)
            }
        }

        /// A picker that does what `$T/what` says, whatever it is asked.
        private static let stub = """
            cat > $T/stub << 'END'
            #!/bin/bash
            printf '%s\\n' "$@" > $T/words
            case $(cat $T/what) in
            pick) printf '%s\\0' "$M/a b.txt" "$M/c%.txt" ;;
            folder) printf '%s\\0' "$M" ;;
            cancel) exit 1 ;; fail) exit 9 ;; nonsense) echo ;; die) kill -9 $$ ;; hang) exec sleep 99 ;;
            esac
            END
            chmod +x $T/stub; export PROMISEFS_EXECUTABLE=$T/stub T M

            """

        @Test(.timeLimit(.minutes(2))) func everyCallIsAnsweredWhateverBecomesOfThePicker() async throws {
            try await dialogs(
                Self.stub + """
                    session << 'END' > $T/out
                    O='{"multiple": <true>, "filters": <[("Text", [(uint32 0, "*.[tT][xX][tT]"), (uint32 1, "image/png")])]>,
                        "choices": <[("code", "Encoding", [("u", "UTF"), ("l", "Latin")], ""),
                            ("ro", "Read only", @a(ss) [], "")]>}'
                    for what in pick cancel fail nonsense die; do
                        echo $what > $T/what; call OpenFile 'objectpath "/org/x/1"' org.example.App '' 'Pick' "$O"
                        cp $T/words $T/words.$what
                    done
                    # A wrong call, and one whose front end wants nothing any more.
                    call OpenFile wrong || echo refused
                    echo hang > $T/what; rm $T/words
                    call OpenFile 'objectpath "/org/x/2"' '' '' '' '@a{sv} {}' > $T/hung & hung=$!
                    for n in $(seq 100); do [ ! -s $T/words ] || break; sleep 0.05; done
                    gdbus call --session -d $N -o /org/x/2 -m org.freedesktop.impl.portal.Request.Close; wait $hung
                    sleep 0.3; ! pgrep -x -f 'sleep 99' || exit 9
                    END
                    cat $T/out >&2
                    grep -q "^(uint32 0, {'uris': <\\['file://$M/a%20b.txt', 'file://$M/c%25.txt'\\]>" $T/out
                    grep -q "'choices': <\\[('code', 'u'), ('ro', 'false')\\]>" $T/out
                    grep -q "'current_filter': <('Text'" $T/out
                    [ "$(grep -c '^(uint32 1, @a{sv} {})' $T/out)" = 1 ]; [ "$(grep -c '^(uint32 2, @a{sv} {})' $T/out)" = 3 ]
                    grep -q refused $T/out; grep -q '^(uint32 2, @a{sv} {})' $T/hung
                    words="pick --web -0 --mode open --title=Pick --requester=org.example.App --multiple --type=*.txt"
                    [ "$(grep -v -e --while $T/words.pick | tr '\\n' ' ')" = "$words --type=image/png " ]
                    """)
        }

        @Test(.timeLimit(.minutes(2))) func filesAreSavedUnderNamesThatAreFree() async throws {
            try await dialogs(
                Self.stub + """
                    session << 'END' > $T/out
                    echo folder > $T/what
                    call SaveFiles 'objectpath "/org/x/1"' '' '' '' '{"files": <[b"a b.txt", b"new", b"new", b"../evil"]>}'
                    echo pick > $T/what
                    call SaveFile 'objectpath "/org/x/1"' '' '' '' "{\\"current_name\\": <\\"--web\\">,
                        \\"current_folder\\": <b\\"$M/docs\\">}"
                    END
                    cat $T/out >&2
                    grep -q "'uris': <\\['file://$M/a%20b%202.txt', 'file://$M/new', 'file://$M/new%202'\\]>" $T/out
                    words="pick --web -0 --mode save --at=$M/docs --suggest=--web "
                    [ "$(grep -v -e --while $T/words | tr '\\n' ' ')" = "$words" ]
                    """)
        }

        /// With the page, opened by the browser of the person, which is a program that picks.
        private static let browser = """
            mkdir $T/bin; cat > $T/bin/xdg-open << 'END'
            #!/bin/bash
            address=$(grep -o 'http://[^"]*' "${1#file://}")
            (sleep 0.2; exec python3 $W/pick_by_page.py "$address" $(cat $T/what) < /dev/null > $T/page 2>&1) &
            END
            chmod +x $T/bin/xdg-open; export PATH=$T/bin:$PATH PROMISEFS_EXECUTABLE=$P T M W

            """

        @Test(.timeLimit(.minutes(2))) func aProgramOfTheDesktopPicksAPlaceholderAndSavesAFile() async throws {
            try await dialogs(
                Self.browser + """
                    session << 'END' > $T/out
                    echo b.png > $T/what
                    call OpenFile 'objectpath "/org/x/1"' '' '' 'Pick' "{\\"current_folder\\": <b\\"$M\\">}"
                    echo --cancel > $T/what; call OpenFile 'objectpath "/org/x/1"' '' '' 'Pick' '@a{sv} {}'
                    echo --here docs > $T/what
                    call SaveFile 'objectpath "/org/x/1"' '' '' 'Save' '{"current_name": <"new.txt">}'
                    END
                    cat $T/page $T/out >&2
                    grep -q "'file://$M/b.png'" $T/out; grep -q '^(uint32 1, ' $T/out
                    grep -q "'file://$M/docs/new.txt'" $T/out; [ ! -e $M/docs/new.txt ]
                    # Nothing is fetched by picking.
                    [ "$(getfattr -n user.promisefs.state --only-values $M/b.png)" = placeholder ]
                    """)
        }

        @Test(.timeLimit(.minutes(2))) func aPickerEndsWithItsPortal() async throws {
            try await dialogs(
                """
                mkdir $T/bin; printf '#!/bin/sh\n' > $T/bin/xdg-open; chmod +x $T/bin/xdg-open
                export PATH=$T/bin:$PATH PROMISEFS_EXECUTABLE=$P
                session << 'END'
                call OpenFile 'objectpath "/org/x/1"' '' '' '' '@a{sv} {}' > $T/out 2>&1 & asking=$!
                there() { pgrep -f -- "pick --web --while=$portal" > /dev/null; }
                for n in $(seq 100); do ! there || break; sleep 0.05; done; there
                kill -9 $portal; ! wait $asking
                for n in $(seq 100); do there || break; sleep 0.05; done; ! there
                END
                """)
        }

        /// By the front end, as programs call it.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Self.hasFrontEnd, "no xdg-desktop-portal, or no gi of Python"))
        func theDesktopsPortalFindsIt() async throws {
            try await dialogs(
                Self.browser + """
                    export XDG_DATA_HOME=$T/data XDG_CURRENT_DESKTOP=promisefs XDG_DESKTOP_PORTAL_DIR=$R/packaging/desktop
                    session << 'END' > $T/out
                    /usr/libexec/xdg-permission-store & /usr/libexec/xdg-desktop-portal & front=$!
                    gdbus wait --session --timeout 20 org.freedesktop.portal.Desktop
                    echo b.png > $T/what; /usr/bin/python3 $W/portal_open.py OpenFile
                    kill $front; sleep 0.2; kill %2 2> /dev/null || true
                    END
                    cat $T/out >&2; grep -q "^answer (0, .*'file://$M/b.png'" $T/out
                    """)
        }
    }
}
