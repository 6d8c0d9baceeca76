import Testing

extension MountSuites {
    /// Presenters follow their items, whatever moves them, and hear of every save.
    @Suite struct PresenterPlaceTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = "mkdir -p \"$C/a/b\" \"$C/z\"; echo 0 > \"$C/a/b/file\"; echo 0 > \"$C/number\""
            return options
        }

        private static let watch = """
            pids=""
            watch() { : > "$T/$1"; "$P" watch "$2" > "$T/$1" & pids+=" $!"; within 10 'grep -q presenting "$T/'"$1"'"'; }
            stop() { kill $pids; wait $pids || true; }

            """

        /// The document was at a stale place, and was written over what is there now.
        @Test(.timeLimit(.minutes(3))) func whoShowsAnItemHearsThatAFolderAboveMoved() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        cat "$M/a/b/file" > /dev/null; watch file "$M/a/b/file"; watch folder "$M/a/b"
                        mv "$M/a" "$M/c"; within 10 'grep -qx "tell didMove $M/c/b/file" "$T/file"'
                        within 10 'grep -qx "tell didMove $M/c/b" "$T/folder"'
                        mv "$M/c/b" "$M/z/d"; within 10 'grep -qx "tell didMove $M/z/d/file" "$T/file"'
                        "$P" sync --wait "$M"; mv "$C/z" "$C/y"
                        within 20 '"$P" sync "$M" > /dev/null; grep -qx "tell didMove $M/y/d/file" "$T/file"'
                        [ "$(grep -c "didMove $M/c/b/file" "$T/file")" = 1 ]; stop
                        """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aFoldersPresenterHearsBothPlacesOfWhatMoved() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        cat "$M/a/b/file" > /dev/null; watch above "$M"; watch old "$M/a"; watch new "$M/z"
                        mv "$M/a/b/file" "$M/a/b/other"
                        for w in above old; do
                            within 10 'grep -qx "tell subitemDidMove $M/a/b/other (was $M/a/b/file)" "$T/'$w'"'
                        done
                        mv "$M/a/b/other" "$M/z/here"
                        for w in above old new; do
                            within 10 'grep -qx "tell subitemDidMove $M/z/here (was $M/a/b/other)" "$T/'$w'"'
                        done
                        [ "$(grep -c subitemDidMove "$T/above")" = 2 ]; [ "$(grep -c subitemDidMove "$T/old")" = 2 ]
                        [ "$(grep -c subitemDidMove "$T/new")" = 1 ]; stop
                        """)
            }
        }

        /// Only the presenters of the folders of one of its names heard of it.
        @Test(.timeLimit(.minutes(2))) func whoShowsAFolderHearsOfAFileThatHasAnotherNameElsewhere() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        cat "$M/a/b/file" > /dev/null; ln "$M/a/b/file" "$M/z/two"; watch first "$M/a"; watch second "$M/z"
                        for name in a/b/file z/two; do
                            : > "$T/first"; : > "$T/second"; echo "$name" >> "$M/$name"
                            within 5 'grep -qx "tell subitemDidChange $M/a/b/file" "$T/first"'
                            within 5 'grep -qx "tell subitemDidChange $M/z/two" "$T/second"'
                        done
                        stop
                        """)
            }
        }

        /// Its presenter heard nothing of it; and a further name was said to have appeared where the others are.
        @Test(.timeLimit(.minutes(2))) func whoShowsANameHearsOfItsEndThoughTheFileHasAnother() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        cat "$M/a/b/file" > /dev/null; ln "$M/a/b/file" "$M/z/two"; mkdir "$M/y"
                        watch folder "$M/a"; watch first "$M/a/b/file"; watch second "$M/z/two"; watch third "$M/y"
                        ln "$M/a/b/file" "$M/y/three"; within 5 'grep -qx "tell subitemDidAppear $M/y/three" "$T/third"'
                        rm "$M/z/two"; within 5 'grep -q "tell didDelete" "$T/second"'; sleep 0.3
                        not grep didDelete "$T/first"; not grep subitemDidAppear "$T/folder"; stop
                        """)
            }
        }

        /// It went on reading gigabytes for nobody.
        @Test(.timeLimit(.minutes(2))) func aSnapshotThatNobodyWaitsForIsGivenUp() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir "$M/f"; truncate -s 60G "$M/f/large"; snapshots() { find "$S" -name f.zip | wc -l; }
                    "$P" coordinate read --option forUploading "$M/f" -- true 2> /dev/null & p=$!
                    within 20 '[ "$(snapshots)" = 1 ]'; kill -9 $p; within 5 '[ "$(snapshots)" = 0 ]'
                    """)
            }
        }

        /// 9 of 50 were not told.
        @Test(.timeLimit(.minutes(3))) func everySaveByRenameIsToldOnce() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        cat "$M/number" > /dev/null; watch file "$M/number"; "$P" sync --wait "$M"
                        for n in $(seq 1 50); do
                            echo "$n" > "$M/.draft"; mv "$M/.draft" "$M/number"
                            within 5 '[ "$(grep -c didChange "$T/file")" -ge '$n' ]'
                        done
                        sleep 0.5; [ "$(grep -c didChange "$T/file")" = 50 ]; stop
                        """, seconds: 100)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aSnapshotOfAFolderHasEveryNameOnceAndNothingElse() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir -p "$M/f/sub"; echo 1 > "$M/f/one"; ln "$M/f/one" "$M/f/sub/two"; echo out > "$M/outside"
                    ln "$M/outside" "$M/f/inside"; ln "$M/f/one" "$M/three"
                    "$P" coordinate read --option forUploading "$M/f" -- sh -c 'cp "$PROMISEFS_SNAPSHOT" "$1"' sh "$T/zip"
                    python3 - "$T/zip" <<'END'
                    import sys, zipfile
                    with zipfile.ZipFile(sys.argv[1]) as archive:
                        names = sorted(archive.namelist())
                        assert names == ["f/", "f/inside", "f/one", "f/sub/", "f/sub/two"], names
                        assert [archive.read(n) for n in ("f/inside", "f/one", "f/sub/two")] == [b"out\\n", b"1\\n", b"1\\n"]
                    END
                    truncate -s 300M "$M/sparse"; echo end >> "$M/sparse"
                    "$P" coordinate read --option forUploading "$M/sparse" -- sh -c '
                        cmp "$PROMISEFS_SNAPSHOT" "$1"; [ "$(stat -c %b "$PROMISEFS_SNAPSHOT")" -lt 20000 ]' sh "$M/sparse"
                    """)
            }
        }

        /// It waited for five seconds, and for a slow provider without end.
        @Test(.timeLimit(.minutes(2))) func aTimeLimitCoversEverythingThatIsWaitedFor() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/number\" > /dev/null; ls \"$M\" > /dev/null")
                try domain.setFaults(["delay=20s"])
                try await domain.shell(
                    """
                    late() {
                        PYTHONPATH="$R/clients/python" python3 - "$M/number" "$@" <<'END'
                    import sys, time, promisefs
                    domain, _ = promisefs.locate(sys.argv[1])
                    kind, path, *options = sys.argv[2:]
                    took = []
                    # The machine may be held up for some of the times.
                    while not took or took[-1] >= 3 and len(took) < 5:
                        start = time.monotonic()
                        try:
                            with domain.coordinate(getattr(promisefs, kind)(path, *options), timeout=0.5):
                                sys.exit("it was granted")
                        except promisefs.PromiseError as problem:
                            assert problem.exit_status == 4, problem
                        took.append(time.monotonic() - start)
                    assert took[-1] < 3, took
                    END
                    }
                    exec 3>> "$M/number"; late writing number; exec 3>&-
                    "$P" coordinate write --timeout 500ms "$M/number" -- true
                    late reading a/b/file; late reading z forUploading
                    """)
                try domain.setFaults([])
            }
        }

        /// They came in at once, whoever had the claim.
        @Test(.timeLimit(.minutes(2))) func whoMakesTruncatesAndLinksWaitsToo() async throws {
            var options = options
            options.arguments = ["--coordination", "refuse"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" "$M/a/b/file" > /dev/null; mkdir "$M/out"; echo o > "$M/out/o"; ln "$M/a/b/file" "$M/out/two"
                    inside() {
                        mkfifo "$T/go"; "$P" coordinate "$@" -- sh -c 'echo > "$0"; cat "$0"' "$T/go" & read -r _ < "$T/go"
                    }
                    leave() { echo > "$T/go"; wait; rm "$T/go"; }
                    busy() { not "$@" 2> "$T/said"; grep -qi busy "$T/said"; }
                    inside write "$M/a/b"
                    busy touch "$M/a/b/new"; busy mkdir "$M/a/b/d"; busy ln -s x "$M/a/b/l"; busy ln "$M/out/o" "$M/a/b/h"
                    busy python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$M/out/o" "$M/a/b/o"
                    busy python3 -c 'import os, sys; os.truncate(sys.argv[1], 0)' "$M/a/b/file"
                    busy python3 -c 'import os, sys; os.truncate(sys.argv[1], 0)' "$M/out/two"
                    echo fine > "$M/out/fine"; touch "$M/a/beside"; leave; touch "$M/a/b/new"
                    inside write --option forMoving "$M/number"; busy chmod 600 "$M/number"; leave
                    inside write "$M/number"; chmod 600 "$M/number"; echo beside > "$M/beside"; leave
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func whoWaitsForAPresenterThatCannotSaveIsTold() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" > /dev/null
                    PYTHONPATH="$R/clients/python" python3 - "$M/number" "$T/asked" <<'END' & presenter=$!
                    import sys, promisefs
                    domain, path = promisefs.locate(sys.argv[1])
                    for name, event in domain.present(path):
                        print(name, event.get("what"), file=open(sys.argv[2], "a"))
                        if name == "ask":
                            domain.answer(event, failed=event["what"] == "saveChanges")
                    END
                    within 10 'grep -q presenting "$T/asked"'
                    "$P" coordinate read "$M/number" -- touch "$T/inside" 2> "$T/said" && exit 1 || true
                    grep -q "could not save" "$T/said"; [ ! -e "$T/inside" ]
                    "$P" coordinate read --option withoutChanges "$M/number" -- true
                    within 10 'grep -q reacquire "$T/asked"'; kill $presenter; wait $presenter || true
                    """)
            }
        }

        /// They were taken for links out of the mount.
        @Test(.timeLimit(.minutes(2))) func linksThatComeBackIntoTheMountAreFollowed() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ln -s "$M" "$T/cloud"; ln -s cloud/a "$T/way"
                    ln -s "$T/way/b/file" "$M/one"; ln -s "../$(basename "$M")/a/b/file" "$M/two"
                    ln -s "$T/../$(basename "$T")/cloud/z/../a/b/file" "$M/three"
                    ln -s "$T/none" "$M/nowhere"; ln -s "$T" "$M/out"; ln -s "$T/round" "$T/round"; ln -s "$T/round" "$M/round"
                    for link in one two three; do
                        "$P" coordinate read --option resolvesSymbolicLink --json "$M/$link" -- true > "$T/granted"
                        grep -q '"path":"/a/b/file"' "$T/granted"; [ "$(realpath "$M/$link")" = "$M/a/b/file" ]
                    done
                    for link in nowhere out round; do
                        not "$P" coordinate read --option resolvesSymbolicLink "$M/$link" -- true
                    done
                    """)
            }
        }

        /// Links in the middle, and those that say the mount's own place, were not followed.
        @Test(.timeLimit(.minutes(2))) func linksAreFollowedAsByRealpath() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ln -s a/b "$M/short"; ln -s short/../b/file "$M/one"; ln -s "$M/short/file" "$M/two"
                    ln -s /etc/passwd "$M/out"; ln -s loop "$M/loop"
                    for link in one two; do
                        "$P" coordinate read --option resolvesSymbolicLink --json "$M/$link" -- true > "$T/granted"
                        grep -q '"path":"/a/b/file"' "$T/granted"; [ "$(realpath "$M/$link")" = "$M/a/b/file" ]
                    done
                    for link in out loop; do not "$P" coordinate read --option resolvesSymbolicLink "$M/$link" -- true; done
                    """)
            }
        }
    }
}
