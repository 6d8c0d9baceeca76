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
                try await domain.shell(Self.bus + script, seconds: 110)
            }
        }

        /// A picker that does what `$T/what` says, whatever it is asked.
        private static let stub = """
            cat > $T/stub << 'END'
            #!/bin/bash
            printf '%s\\n' "$@" > $T/words
            case $(cat $T/what) in
            pick) printf '%s\\0' "$M/a b.txt" "$M/c%.txt" "#1=1" "#0=1" "#7=9" "#0=x" ;;
            folder) printf '%s\\0' "$M" ;;
            cancel) exit 1 ;; fail) exit 9 ;; nonsense) echo ;; die) kill -9 $$ ;;
            hang) echo $$ > $T/shown.new; mv $T/shown.new $T/shown; exec sleep 99 ;;
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
                    for n in $(seq 400); do [ ! -s $T/shown ] || break; sleep 0.05; done
                    gdbus call --session -d $N -o /org/x/2 -m org.freedesktop.impl.portal.Request.Close; wait $hung
                    shown=$(cat $T/shown)
                    for n in $(seq 400); do [ -e /proc/$shown ] || break; sleep 0.05; done; [ ! -e /proc/$shown ]
                    END
                    cat $T/out >&2
                    grep -q "^(uint32 0, {'uris': <\\['file://$M/a%20b.txt', 'file://$M/c%25.txt'\\]>" $T/out
                    grep -q "'choices': <\\[('code', 'l'), ('ro', 'true')\\]>" $T/out
                    grep -q "'current_filter': <('Text'" $T/out
                    [ "$(grep -c '^(uint32 1, @a{sv} {})' $T/out)" = 1 ]; [ "$(grep -c '^(uint32 2, @a{sv} {})' $T/out)" = 3 ]
                    grep -q refused $T/out; grep -q '^(uint32 2, @a{sv} {})' $T/hung
                    words="pick --web -0 --mode open --title=Pick --requester=org.example.App --multiple --type=*.txt"
                    words="$words --type=image/png --choice=Encoding	*UTF	 Latin --choice=Read only"
                    [ "$(grep -v -e --while $T/words.pick | tr '\\n' ' ')" = "$words " ]
                    """)
        }

        @Test(.timeLimit(.minutes(2))) func whatIsSavedIsSaidInWordsThatAreNoOptions() async throws {
            try await dialogs(
                Self.stub + """
                    session << 'END' > $T/out
                    echo folder > $T/what
                    call SaveFiles 'objectpath "/org/x/1"' '' '' '' '{"files": <[b"a b.txt", b"--web", b"../evil"]>}'
                    cp $T/words $T/words.several
                    call SaveFiles 'objectpath "/org/x/1"' '' '' '' '{"files": <[b"../evil"]>}'
                    echo pick > $T/what
                    call SaveFile 'objectpath "/org/x/1"' '' '' '' "{\\"current_name\\": <\\"--web\\">,
                        \\"current_folder\\": <b\\"$M/docs\\">}"
                    END
                    cat $T/out >&2; grep -q '^(uint32 1, @a{sv} {})' $T/out
                    words="pick --web -0 --mode open --folders --file=a b.txt --file=--web "
                    [ "$(grep -v -e --while $T/words.several | tr '\\n' ' ')" = "$words" ]
                    words="pick --web -0 --mode save --near=$M/docs --suggest=--web "
                    [ "$(grep -v -e --while $T/words | tr '\\n' ' ')" = "$words" ]
                    """)
        }

        /// The one thread of the portal looked at the folders that programs name, and waited there for a daemon that was stopped.
        @Test(.timeLimit(.minutes(2))) func aMountThatIsSilentHoldsUpNoDialogOfAnotherProgram() async throws {
            try await dialogs(
                Self.stub + """
                    daemon=$("$P" status --json $M | sed 's/.*"processID":\\([0-9]*\\).*/\\1/')
                    export daemon
                    session << 'END' > $T/out
                    trap 'kill -CONT $daemon; kill $portal 2> /dev/null || true' EXIT
                    kill -STOP $daemon; echo hang > $T/what
                    O="{\\"current_folder\\": <b\\"$M/unseen\\">}"
                    call OpenFile 'objectpath "/org/x/1"' '' '' '' "$O" > $T/held & held=$!
                    for n in $(seq 400); do [ ! -e $T/shown ] || break; sleep 0.05; done; [ -e $T/shown ]
                    # The mount is silent until the end.
                    echo pick > $T/what; call OpenFile 'objectpath "/org/x/2"' '' '' '' '@a{sv} {}'
                    gdbus call --session -d $N -o /org/x/1 -m org.freedesktop.impl.portal.Request.Close; wait $held
                    END
                    cat $T/out $T/held >&2; grep -q "'file://$M/a%20b.txt'" $T/out; grep -q '^(uint32 2, @a{sv} {})' $T/held
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
                    # Several are saved under names that are free.
                    touch "$M/docs/a b.txt"
                    call SaveFiles 'objectpath "/org/x/1"' '' '' '' '{"files": <[b"a b.txt", b"new", b"new", b"../evil"]>}'
                    END
                    cat $T/page $T/out >&2
                    D=file://$M/docs; grep -q "'uris': <\\['$D/a%20b%202.txt', '$D/new', '$D/new%202'\\]>" $T/out
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
                there() { pgrep -f -- "pick --web --while=$portal" > /dev/null; }
                for method in OpenFile SaveFile SaveFiles; do
                    call $method 'objectpath "/org/x/1"' '' '' '' '@a{sv} {}' > $T/out 2>&1 & asking=$!
                    for n in $(seq 400); do ! there || break; sleep 0.05; done; there
                    kill -9 $portal; ! wait $asking
                    for n in $(seq 400); do there || break; sleep 0.05; done; ! there
                    "$(dirname "$P")/promisefs-portal" & portal=$!; gdbus wait --session --timeout 10 $N
                done
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

        /// `pick --portal`, in each mode: the desktop's dialog, whichever that is, and our consequences.
        @Test(.timeLimit(.minutes(3)), .enabled(if: Self.hasFrontEnd, "no xdg-desktop-portal, or no gi of Python"))
        func theDesktopsDialogPicksInEachMode() async throws {
            try await dialogs(
                Self.browser + """
                    export XDG_DATA_HOME=$T/data XDG_CURRENT_DESKTOP=promisefs
                    export XDG_DESKTOP_PORTAL_DIR=$R/packaging/desktop
                    D=$(findmnt -no SOURCE $M); export D; echo mine > $T/mine
                    "$P" container add --app com.example.editor --name Editor $D > /dev/null; "$P" sync --wait $M
                    session << 'END' > $T/out
                    /usr/libexec/xdg-permission-store & store=$!; /usr/libexec/xdg-desktop-portal & front=$!
                    gdbus wait --session --timeout 20 org.freedesktop.portal.Desktop
                    by() { echo "$1" > $T/what; shift; "$P" pick --portal --at $M "$@"; }
                    by b.png --type image/png > $T/opened; by c.txt --app com.example.editor --json > $T/given
                    # Whatever a dialog lets people pick.
                    by c.txt --type public.image > $T/wrong 2>&1 && exit 9 || [ $? = 1 ]
                    grep -q "'c.txt' is no kind of public.image" $T/wrong
                    by b.png --mode import > $T/imported
                    by '--here docs' --mode export $T/mine > $T/exported
                    by '--here docs' --mode create --suggest new.md > $T/created
                    by '--here docs' --mode save --suggest saved.md > $T/saved
                    by '--here docs' --mode move $M/b.png > $T/moved
                    by --cancel > $T/cancelled && exit 9 || [ $? = 1 ]
                    kill $front $store; sleep 0.2
                    END
                    umount -l $XDG_RUNTIME_DIR/doc 2> /dev/null || true
                    head $T/opened $T/given $T/imported $T/exported $T/created $T/saved $T/moved >&2
                    [ "$(cat $T/opened)" = $M/b.png ]; [ "$(cat $(cat $T/imported))" = two ]
                    grep -q '"grant":[0-9]' $T/given; [ -L "$M/Editor/Documents/c.txt" ]
                    [ "$(cat $T/exported)" = $M/docs/mine ]; [ "$(cat $M/docs/mine)" = mine ]; [ -f $T/mine ]
                    [ -f $M/docs/new.md ]; [ ! -s $M/docs/new.md ]
                    [ "$(cat $T/saved)" = $M/docs/saved.md ]; [ ! -e $M/docs/saved.md ]
                    [ "$(cat $M/docs/b.png)" = two ]; "$P" reference list $M | grep -q docs/b.png
                    [ ! -s $T/cancelled ]
                    # Where there is no desktop: at once.
                    status=0; "$P" pick --portal --at $M || status=$?; [ $status = 9 ]
                    """, prepare: #"echo three > "$C/c.txt""#)
        }

        /// It waited for ever, for a person who had gone as for a portal that had died, and took no signal.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Self.hasFrontEnd, "no xdg-desktop-portal, or no gi of Python"))
        func aDialogThatNobodyAnswersEndsByCtrlCAndWithWhoeverAsked() async throws {
            try await dialogs(
                Self.stub + """
                    export XDG_DATA_HOME=$T/data XDG_CURRENT_DESKTOP=promisefs P
                    export XDG_DESKTOP_PORTAL_DIR=$R/packaging/desktop
                    session << 'END'
                    /usr/libexec/xdg-permission-store & store=$!; /usr/libexec/xdg-desktop-portal & export front=$!
                    gdbus wait --session --timeout 20 org.freedesktop.portal.Desktop
                    echo hang > $T/what
                    python3 - << 'PY'
                    import os, signal, subprocess, time
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    folder, program = os.environ["T"], os.environ["P"]
                    def until(met):
                        end = time.monotonic() + 20
                        while not met():
                            assert time.monotonic() < end
                            time.sleep(0.02)
                    def asked(status, sentence, end, *words):
                        child = subprocess.Popen([program, "pick", "--portal", *words], stderr=subprocess.PIPE)
                        until(lambda: os.path.exists(folder + "/shown"))
                        shown = int(open(folder + "/shown").read())
                        os.remove(folder + "/shown")
                        assert child.poll() is None
                        end(child)
                        said = child.communicate(timeout=20)[1].decode()
                        assert child.returncode == status and sentence in said, (child.returncode, said)
                        # Nothing is left on the screen.
                        until(lambda: not os.path.exists(f"/proc/{shown}"))
                    asked(130, "", lambda child: child.send_signal(signal.SIGINT))
                    asked(-signal.SIGKILL, "", lambda child: child.kill())
                    other = subprocess.Popen(["sleep", "60"])
                    asked(1, "", lambda child: (other.kill(), other.wait()), "--while", str(other.pid))
                    asked(9, "has no dialog for files, or it failed", lambda child: os.kill(int(os.environ["front"]), 9))
                    PY
                    kill $store
                    END
                    umount -l $XDG_RUNTIME_DIR/doc 2> /dev/null || true
                    """)
        }

        /// What the person says besides is what the program is told.
        @Test(.timeLimit(.minutes(2))) func choicesAreShownAndTold() async throws {
            try await dialogs(
                Self.browser + """
                    session << 'END' > $T/out
                    echo --choose 0=1 --choose 1=1 b.png > $T/what
                    call OpenFile 'objectpath "/org/x/1"' '' '' 'Pick' "{\\"current_folder\\": <b\\"$M\\">,
                        \\"choices\\": <[('code', 'Encoding', [('u', 'UTF'), ('l', 'Latin')], 'u'),
                            ('ro', 'Read only', @a(ss) [], '')]>}"
                    END
                    cat $T/page $T/out >&2; grep -q "('code', 'l'), ('ro', 'true')" $T/out; grep -q "'file://$M/b.png'" $T/out
                    """)
        }

        /// Where there is no browser: in a terminal's window, and where there is none of these either, at once with 2.
        @Test(.timeLimit(.minutes(2))) func withoutABrowserATerminalsWindowIsShown() async throws {
            try await dialogs(
                """
                mkdir $T/bin; for name in bash sh env cat grep dbus-run-session dbus-daemon gdbus sleep mv dirname kill; do
                  [ ! -e "$(command -v $name)" ] || ln -s "$(command -v $name)" $T/bin/$name; done
                cat > $T/window << 'END'
                #!/bin/bash
                # A terminal of which the person presses keys.
                shift; /usr/bin/python3 - "$@" << 'PY'
                import os, pty, sys, time
                process, line = pty.fork()
                if process == 0:
                    os.environ["TERM"] = "xterm"
                    os.execvp(sys.argv[1], sys.argv[1:])
                keys = [b"j", b"j", b"\\r"] if open(os.environ["T"] + "/what").read().strip() == "pick" else [b"q"]
                shown = b""
                while True:
                    try:
                        shown += os.read(line, 65536)
                    except OSError:
                        break
                    if b"b.png" in shown and keys:
                        time.sleep(0.3)
                        os.write(line, keys.pop(0))
                os.waitpid(process, 0)
                PY
                END
                chmod +x $T/window; export PROMISEFS_EXECUTABLE=$P T M PATH=$T/bin TERMINAL=$T/window
                session << 'END' > $T/out
                O="{\\"current_folder\\": <b\\"$M\\">}"
                echo pick > $T/what; call OpenFile 'objectpath "/org/x/1"' '' '' 'Pick' "$O"
                echo cancel > $T/what; call OpenFile 'objectpath "/org/x/1"' '' '' 'Pick' "$O"
                kill $portal; wait $portal || true; export TERMINAL=/nowhere; unset DISPLAY WAYLAND_DISPLAY
                "$(dirname "$P")/promisefs-portal" & portal=$!; gdbus wait --session --timeout 20 $N
                call OpenFile 'objectpath "/org/x/1"' '' '' 'Pick' "$O"
                END
                /bin/cat $T/said $T/out >&2
                [ "$(grep -c "'uris': <\\['file://$M/" $T/out)" = 1 ]; grep -q '^(uint32 1, @a{sv} {})' $T/out
                grep -q '^(uint32 2, @a{sv} {})' $T/out
                """)
        }

        private static let hasSandbox =
            hasFrontEnd
            && ["/usr/libexec/xdg-document-portal", "/usr/bin/bwrap"].allSatisfy { FileManager.default.fileExists(atPath: $0) }

        /// A program in a sandbox as Flatpak's are, which runs `$S/app.sh`: `ask METHOD [FILE…]` prints the path that it was
        /// given. `meanwhile` is run beside it. Both wait for each other by `there FILE` of `$S`.
        private func sandboxed(_ program: String, what: String, meanwhile: String, then: String) async throws {
            try await dialogs(
                Self.browser + """
                    export XDG_DATA_HOME=$T/data XDG_CURRENT_DESKTOP=promisefs XDG_DESKTOP_PORTAL_DIR=$R/packaging/desktop
                    mkdir $T/shared; export S=$T/shared APP=org.example.App R
                    printf '[Application]\\nname=%s\\nruntime=runtime/org.example.Platform/x86_64/1\\n\\n' $APP > $T/info
                    printf '[Instance]\\ninstance-id=1\\n' >> $T/info
                    cat > $S/app.sh << 'END'
                    set -e
                    ask() {
                        /usr/bin/python3 $W/portal_open.py "$@" > $S/answer; cat $S/answer >&2
                        F=$(grep -o "file://[^']*" $S/answer | head -n 1); F=${F#file://}
                    }
                    there() { for n in $(seq 100); do [ ! -e $S/$1 ] || return 0; sleep 0.05; done; return 1; }
                    \(program)
                    touch $S/done
                    END
                    session << 'END' > $T/out
                    /usr/libexec/xdg-permission-store & store=$!; /usr/libexec/xdg-document-portal & documents=$!
                    for n in $(seq 100); do ! mountpoint -q $XDG_RUNTIME_DIR/doc || break; sleep 0.05; done
                    /usr/libexec/xdg-desktop-portal & front=$!
                    gdbus wait --session --timeout 20 org.freedesktop.portal.Desktop
                    echo \(what) > $T/what
                    bus=${DBUS_SESSION_BUS_ADDRESS#unix:path=}; bus=${bus%%,*}
                    there() { for n in $(seq 200); do [ ! -e $S/$1 ] || return 0; sleep 0.05; done; return 1; }
                    mkdir -p $XDG_RUNTIME_DIR/doc/by-app/$APP 2> /dev/null || true
                    bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \\
                      --ro-bind /etc /etc --proc /proc --dev /dev --tmpfs /tmp --unshare-pid --die-with-parent \\
                      --ro-bind $R $R --bind $S $S --bind $XDG_RUNTIME_DIR/doc/by-app/$APP $XDG_RUNTIME_DIR/doc \\
                      --bind $bus $bus --ro-bind $T/info /.flatpak-info bash $S/app.sh & app=$!
                    \(meanwhile)
                    there done; wait $app
                    D=$(findmnt -no SOURCE $M)
                    # What the program was given, and nothing else; the log says so, and no reference is made.
                    given() { "$P" grants list --domain $D --app $APP --json | { grep -o '"kind":"item"' || true; } | wc -l; }
                    [ $(given) = 1 ]; "$P" grants audit --domain $D --app $APP --json | grep -q '"call":"grants.given"'
                    "$P" reference list $M | { ! grep .; }
                    # The view holds nobody up, and goes with the portal.
                    kill -9 $portal; for n in $(seq 100); do grep -q promisefs-view /proc/mounts || break; sleep 0.05; done
                    ! grep "$XDG_RUNTIME_DIR/promisefs-portal" /proc/mounts >&2
                    for n in $(seq 100); do [ $(given) != 0 ] || break; sleep 0.05; done
                    [ $(given) = 0 ] || { "$P" grants list --domain $D --app $APP --json >&2; false; }
                    kill $front $documents $store; sleep 0.3
                    umount -l $XDG_RUNTIME_DIR/doc 2> /dev/null || true
                    END
                    cat $T/out $T/said >&2; grep -q "promisefs-portal\\|doc/" $S/answer; [ -e $S/done ]
                    \(then)
                    """)
        }

        /// What they are given follows the document through renames, moves and saves.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Self.hasSandbox, "no xdg-document-portal, or no bubblewrap"))
        func aSandboxedProgramKeepsADocumentThatIsRenamed() async throws {
            try await sandboxed(
                """
                ask OpenFile; [ "$(cat "$F")" = two ]; touch $S/read; there renamed
                [ "$(cat "$F")" = two ]; echo three >> "$F"; touch $S/written; there saved
                [ "$(cat "$F")" = four ]
                """, what: "b.png",
                meanwhile: """
                    there read; mkdir $M/moved; mv $M/b.png $M/moved/c.png; touch $S/renamed
                    there written; grep -q three $M/moved/c.png; [ ! -e $M/b.png ]
                    echo four > $M/moved/.new; mv $M/moved/.new $M/moved/c.png; touch $S/saved
                    """, then: "")
        }

        /// One file is saved under a name that the person gives: it is there, empty, before the program has written.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Self.hasSandbox, "no xdg-document-portal, or no bubblewrap"))
        func aSandboxedProgramSavesADocument() async throws {
            try await sandboxed(
                """
                ask SaveFile new.txt; echo mine > "$F"; touch $S/written; there renamed; echo more >> "$F"
                """, what: "--here docs",
                meanwhile: """
                    there written; [ "$(cat $M/docs/new.txt)" = mine ]; mv $M/docs/new.txt $M/other.txt; touch $S/renamed
                    """,
                then: """
                    [ "$(cat $M/other.txt)" = "$(printf 'mine\nmore')" ]; [ ! -e $M/docs/new.txt ]
                    """)
        }

        /// Several are saved into a folder, which is renamed before they are.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Self.hasSandbox, "no xdg-document-portal, or no bubblewrap"))
        func aSandboxedProgramSavesIntoAFolderThatIsRenamed() async throws {
            try await sandboxed(
                """
                ask SaveFiles one.txt two.txt; touch $S/asked; there renamed
                echo one > "$F"; two=$(grep -o "file://[^']*" $S/answer | sed -n 2p); echo two > "${two#file://}"
                touch $S/written; there again; echo more >> "$F"
                """, what: "--here docs",
                meanwhile: """
                    there asked; mkdir $M/moved; mv $M/docs $M/moved/papers; touch $S/renamed
                    there written; [ "$(cat $M/moved/papers/one.txt)" = one ]; [ "$(cat $M/moved/papers/two.txt)" = two ]
                    mv $M/moved/papers $M/letters; touch $S/again
                    """,
                then: """
                    [ ! -e $M/docs ]; [ "$(cat $M/letters/one.txt)" = "$(printf 'one\\nmore')" ]
                    [ "$(ls $M/letters | tr '\\n' ' ')" = 'one.txt two.txt ' ]
                    """)
        }
    }
}
