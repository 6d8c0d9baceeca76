import Testing

extension MountSuites {
    /// Claims on what is not there yet, and batches that are prepared, with real processes.
    @Suite struct PlaceClaimTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/folder\"; echo 0 > \"$C/number\"; echo b > \"$C/folder/b\""
            return options
        }

        private static let inside = """
            inside() {
                mkfifo "$T/go"; "$P" coordinate "$@" -- sh -c 'echo > "$0"; cat "$0" > /dev/null' "$T/go" & holder=$!
                read -r _ < "$T/go"
            }
            leave() { echo > "$T/go"; wait $holder; rm "$T/go"; }

            """

        /// It was refused: there was no such item.
        @Test(.timeLimit(.minutes(3))) func aClaimCanNameWhatIsNotThereYet() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    for writer in 1 2 3 4; do
                        "$P" coordinate write "$M/folder/new" -- sh -c '
                            [ -e "$1" ] || { sleep 0.2; echo 0 > "$1"; }
                            n=$(cat "$1"); sleep 0.1; echo $((n + 1)) > "$1"' sh "$M/folder/new" & pids="${pids-} $!"
                    done
                    wait $pids; [ "$(cat "$M/folder/new")" = 4 ]
                    "$P" coordinate write --json "$M/none" -- true > "$T/granted"
                    grep -q '"path":"/none"' "$T/granted"; not grep -q '"node"' "$T/granted"
                    not "$P" coordinate read "$M/none" -- true 2> /dev/null
                    not "$P" coordinate write "$M/none/deeper" -- true 2> /dev/null
                    not "$P" coordinate write "$M/number/deeper" -- true 2> /dev/null
                    """)
            }
        }

        /// Source and destination of a move: nobody makes something there meanwhile, and the claim stays with what was moved.
        @Test(.timeLimit(.minutes(3))) func aMoveHasItsDestinationAlone() async throws {
            var options = options
            options.arguments = ["--coordination", "refuse"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.inside + """
                        cat "$M/number" "$M/folder/b" > /dev/null
                        inside write --option forMoving "$M/number" "$M/folder/moved"
                        not touch "$M/folder/moved" 2> /dev/null; not mkdir "$M/folder/moved" 2> /dev/null
                        not mv "$M/folder/b" "$M/folder/moved" 2> /dev/null
                        "$P" coordinate write --timeout 200ms "$M/folder/moved" -- true 2> /dev/null && exit 1 || [ $? = 4 ]
                        touch "$M/folder/beside"; leave; touch "$M/folder/moved"; rm "$M/folder/moved"
                        mkfifo "$T/go"; "$P" coordinate write --option forMoving "$M/number" "$M/folder/moved" -- sh -c '
                            mv "$1/number" "$1/folder/moved"; echo > "$2"; cat "$2" > /dev/null' sh "$M" "$T/go" &
                        holder=$!; read -r _ < "$T/go"
                        (echo 1 > "$M/folder/moved") 2> /dev/null && exit 1
                        "$P" coordinate write --timeout 200ms "$M/folder/moved" -- true 2> /dev/null && exit 1 || [ $? = 4 ]
                        "$P" coordinate write --timeout 5s "$M/number" -- sh -c 'echo new > "$0"' "$M/number"
                        leave; echo 1 > "$M/folder/moved"; [ "$(cat "$M/number")" = new ]
                        """)
            }
        }

        /// 1 claim in 100 met ENOENT: the index had the name before the kernel knew of it.
        @Test(.timeLimit(.minutes(3))) func aGrantedPathIsThere() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" > /dev/null
                    python3 - "$M" "$T/stop" <<'END' & mover=$!
                    import os, sys, time
                    names = [os.path.join(sys.argv[1], name) for name in ("number", "folder/moved", "other")]
                    while not os.path.exists(sys.argv[2]):
                        for here, there in zip(names, names[1:] + names[:1]):
                            os.rename(here, there)
                            time.sleep(0.001)
                    END
                    PYTHONPATH="$R/clients/python" python3 - "$M" <<'END'
                    import os, sys, time, promisefs
                    domain, _ = promisefs.locate(sys.argv[1])
                    names, granted, late, end = ("number", "folder/moved", "other"), 0, [], time.monotonic() + 8
                    while time.monotonic() < end or granted <= 200 and time.monotonic() < end + 60:
                        for name in names:
                            os.path.exists(os.path.join(sys.argv[1], name))
                            try:
                                with domain.coordinate(promisefs.reading(name, "withoutChanges"), timeout=5) as claim:
                                    path = claim["items"][0]["path"]
                                    granted += 1
                                    if not os.path.exists(sys.argv[1] + path):
                                        late.append((name, path))
                            except promisefs.PromiseError as problem:
                                assert problem.code in ("notFound", "timedOut"), (problem, problem.code)
                    print(granted, "granted", len(late), "late", file=sys.stderr)
                    assert granted > 200 and not late, (granted, late[:5])
                    END
                    touch "$T/stop"; wait $mover
                    """, seconds: 100)
            }
        }

        /// By a program that knows nothing of claims; until now only refusing it was tried.
        @Test(.timeLimit(.minutes(2))) func truncationByNameWaitsForTheEndOfAClaim() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.inside + """
                        cat "$M/number" > /dev/null; ln "$M/number" "$M/folder/other"
                        for name in number folder/other; do
                            echo 123 > "$M/number"; inside write "$M/number"
                            python3 -c 'import os, sys; os.truncate(sys.argv[1], 1)' "$M/$name" & truncating=$!
                            sleep 0.7; kill -0 $truncating; leave; wait $truncating; [ "$(cat "$M/number")" = 1 ]
                        done
                        # A claim that only reads is in its way, too, and one on something else is not.
                        echo 123 > "$M/number"; inside read "$M/folder/b"
                        python3 -c 'import os, sys; os.truncate(sys.argv[1], 1)' "$M/number"; leave
                        inside read "$M/number"
                        python3 -c 'import os, sys; os.truncate(sys.argv[1], 0)' "$M/number" & truncating=$!
                        sleep 0.7; kill -0 $truncating; leave; wait $truncating; [ ! -s "$M/number" ]
                        """)
            }
        }

        /// One had a claim on the folder of one name, another one by the other name, and both wrote the file.
        @Test(.timeLimit(.minutes(2))) func aClaimByOneNameIsInTheWayOfTheOthersFolder() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.inside + """
                        cat "$M/number" > /dev/null; ln "$M/number" "$M/folder/other"; mkdir "$M/empty"
                        is_free() { "$P" coordinate write --timeout 300ms "$1" -- true 2> /dev/null; }
                        inside write "$M/folder"; not is_free "$M/number"; leave; is_free "$M/number"
                        inside write "$M/number"; not is_free "$M/folder"; is_free "$M/empty"
                        # The claim goes with the name that is moved, and stays with the other one.
                        python3 - "$M" "$holder" << 'END'
                        import os, sys
                        os.rename(sys.argv[1] + "/folder/other", sys.argv[1] + "/empty/other")
                        END
                        is_free "$M/folder"; not is_free "$M/empty"; leave; is_free "$M/empty"
                        """)
            }
        }

        /// Who waited for the file was given the name that ln(1) had made meanwhile, as if it had been moved.
        @Test(.timeLimit(.minutes(2))) func whoWaitsIsNotLedToANameThatWasMadeMeanwhile() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    #"""
                    cat "$M/number" > /dev/null; mkfifo "$T/go"
                    during() {
                        "$P" coordinate write "$1" -- sh -c 'echo > "$0"; cat "$0" > /dev/null; eval "$1"' "$T/go" "$2" &
                        holder=$!; read -r _ < "$T/go"
                        "$P" coordinate write --json "$1" -- true > "$T/said" 2>&1 & waiting=$!
                        sleep 0.7; echo > "$T/go"; wait $holder
                    }
                    cd "$M"
                    # It has another name only: what was asked for is gone.
                    during number 'ln number folder/second; rm number'
                    wait $waiting && { cat "$T/said"; exit 1; }
                    grep -q 'removed while the claim waited' "$T/said" || { cat "$T/said"; exit 1; }
                    # Moved, and saved as a new file beside another name: it is that.
                    mv folder/second number
                    during number 'mv number moved'; wait $waiting; grep -q '"path":"/moved"' "$T/said"
                    during moved 'ln moved kept; echo new > t; mv t moved'; wait $waiting; grep -q '"path":"/moved"' "$T/said"
                    """#)
            }
        }

        /// All programs that were started with an empty one were inside at once.
        @Test(.timeLimit(.minutes(1))) func anEmptyPurposeIsNone() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.inside + """
                        export PROMISEFS_PURPOSE=; inside write "$M/number"
                        not "$P" coordinate write --timeout 300ms "$M/number" -- true 2> /dev/null
                        not "$P" coordinate write --purpose "" --timeout 300ms "$M/number" -- true 2> /dev/null
                        PYTHONPATH="$R/clients/python" python3 - "$M/number" << 'END'
                        import promisefs, sys
                        domain, path = promisefs.locate(sys.argv[1])
                        try:
                            with domain.coordinate(promisefs.writing(path), purpose="", timeout=0.3):
                                sys.exit("two were inside at once")
                        except promisefs.PromiseError as error:
                            assert error.exit_status == 4, error
                        END
                        leave
                        """)
            }
        }

        /// Each was asked again for every item.
        @Test(.timeLimit(.minutes(3))) func aBatchThatWasPreparedAsksEachPresenterOnce() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" "$M/folder/b" > /dev/null
                    "$P" watch "$M/number" > "$T/file" & one=$!; within 10 'grep -q presenting "$T/file"'
                    "$P" coordinate write --prepare "$M/number" "$M/folder/b" -- sh -c '
                        for n in 1 2 3; do
                            "$1" coordinate write "$2/number" -- true; "$1" coordinate read "$2/number" -- true
                        done
                        ! grep -q reacquire "$3"' sh "$P" "$M" "$T/file"
                    within 10 'grep -q reacquire "$T/file"'
                    [ "$(grep -c relinquish "$T/file")" = 1 ]
                    PYTHONPATH="$R/clients/python" python3 - "$M/number" <<'END'
                    import sys, promisefs
                    domain, path = promisefs.locate(sys.argv[1])
                    with domain.prepare(promisefs.writing(path), promisefs.writing("folder/new"), timeout=20):
                        for name in (path, "folder/new", "folder/b"):
                            with domain.coordinate(promisefs.writing(name), timeout=20) as granted:
                                assert ("node" in granted["items"][0]) == (name != "folder/new"), granted
                    END
                    within 10 '[ "$(grep -c reacquire "$T/file")" = 2 ]'
                    [ "$(grep -c relinquish "$T/file")" = 2 ]; kill $one; wait $one || true
                    """)
            }
        }
    }
}
