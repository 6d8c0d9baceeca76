import Testing

extension MountSuites {
    /// Readers and writers that coordinate, and those that know nothing of it.
    @Suite struct CoordinationTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = "echo 0 > \"$C/number\"; mkdir \"$C/folder\"; echo a > \"$C/folder/a\""
            return options
        }

        /// `add FILE COMMAND…` reads a number, waits, and writes one more, ten times.
        private static let counter = """
            cat > "$T/add" <<'END'
            for n in 1 2 3 4 5 6 7 8 9 10; do
                "${@:2}" sh -c 'v=$(cat "$1"); sleep 0.01; echo $((v + 1)) > "$1"' sh "$1"
            done
            END
            two() { bash "$T/add" "$@" & local one=$!; bash "$T/add" "$@" & wait $one $!; }

            """

        @Test(.timeLimit(.minutes(3))) func twoWritersLoseUpdatesUnlessTheyCoordinate() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.counter + """
                        # Unless one is through before the other one begins.
                        within 20 'echo 0 > "$T/plain"; two "$T/plain"; [ "$(cat "$T/plain")" -lt 20 ]'
                        two "$M/number" "$P" coordinate write "$M/number" --; [ "$(cat "$M/number")" = 20 ]
                        """, seconds: 120)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aProgramThatKnowsNothingWaitsForAnEditor() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    echo 100 > "$T/new"; cat "$M/number" > /dev/null
                    "$P" coordinate write "$M/number" -- sh -c \\
                        'v=$(cat "$1"); touch "$2"; sleep 1; echo $((v + 1)) > "$1"; cp "$1" "$2"' sh "$M/number" "$T/inside" &
                    within 10 '[ -e "$T/inside" ]'; cp "$T/new" "$M/number"; wait
                    [ "$(cat "$T/inside")" = 1 ]; [ "$(cat "$M/number")" = 100 ]
                    rm "$T/inside"; echo 7 > "$M/other"
                    "$P" coordinate write "$M/number" -- sh -c 'touch "$2"; sleep 1; cat "$1" > "$2"' sh "$M/number" "$T/inside" &
                    within 10 '[ -e "$T/inside" ]'; mv "$M/other" "$M/number"; wait
                    [ "$(cat "$T/inside")" = 100 ]; [ "$(cat "$M/number")" = 7 ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aClaimEndsWithItsProcessAndWaitingWithItsDeadline() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    "$P" coordinate write "$M/number" -- sh -c 'touch "$1"; exec sleep 30' sh "$T/inside" & C=$!
                    within 10 '[ -e "$T/inside" ]'
                    "$P" coordinate read "$M/number" --timeout 200ms -- true 2> /dev/null && exit 1 || [ $? = 4 ]
                    kill -9 $C; "$P" coordinate read "$M/number" --timeout 10s -- true
                    "$P" coordinate read "$M/number" -- sh -c 'exit 9' && exit 1 || [ $? = 9 ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func presentersAreAskedBeforeAndToldAfterwards() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    "$P" watch "$M/number" > "$T/file" & one=$!; "$P" watch "$M/folder" > "$T/folder" & two=$!
                    within 10 'grep -q presenting "$T/file"'; within 10 'grep -q presenting "$T/folder"'
                    "$P" coordinate read "$M/number" -- true; echo 5 > "$M/number"; within 10 'grep -q didChange "$T/file"'
                    echo b > "$M/folder/b"; within 10 'grep -q "subitemDidAppear $M/folder/b" "$T/folder"'
                    mv "$M/number" "$M/moved"; within 10 'grep -q "didMove $M/moved" "$T/file"'
                    "$P" coordinate write "$M/moved" --option forDeleting -- rm "$M/moved"
                    within 10 'grep -q didDelete "$T/file"'
                    kill $one $two; wait $one $two || true
                    grep ask "$T/file" | cut -d' ' -f2 > "$T/asked"
                    [ "$(head -2 "$T/asked" | paste -sd' ')" = "relinquishToReader saveChanges" ]
                    grep -q accommodateDeletion "$T/asked"
                    """)
            }
        }

        /// It was granted the path of the mount itself, and removed everything.
        @Test(.timeLimit(.minutes(2))) func whoWaitsForWhatIsRemovedIsGrantedNoOtherPath() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir "$M/project"; echo a > "$M/project/a"
                    "$P" coordinate write "$M/project" --option forDeleting -- \\
                        sh -c 'touch "$1"; sleep 2; rm -r "$2"' sh "$T/inside" "$M/project" & first=$!
                    within 10 '[ -e "$T/inside" ]'
                    not "$P" coordinate write "$M/project" --option forDeleting -- touch "$T/second" 2> "$T/said"
                    wait $first; [ ! -e "$T/second" ]; grep -q 'was removed' "$T/said"
                    [ ! -e "$M/project" ] && [ -e "$M/number" ]
                    """, seconds: 60)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aSnapshotLetsWritersGoOnWhileItIsUploaded() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir "$M/folder/Ünter"; head -c 3000000 /dev/urandom > "$M/folder/Ünter/data"; ln -s ziü "$M/folder/link"
                    "$P" coordinate read --option forUploading "$M/number" "$M/folder" -- sh -c '
                        echo 99 > "$1"; [ "$(cat "$PROMISEFS_SNAPSHOT_1")" = 0 ]; basename "$PROMISEFS_SNAPSHOT_2"
                        cp "$PROMISEFS_SNAPSHOT_2" "$2"; echo "$PROMISEFS_SNAPSHOT" > "$2.place"
                        ' sh "$M/number" "$T/zip" > "$T/name"
                    [ "$(cat "$T/name")" = folder.zip ]; [ "$(cat "$M/number")" = 99 ]
                    python3 - "$T/zip" "$M" <<'END'
                    import sys, zipfile
                    with zipfile.ZipFile(sys.argv[1]) as archive:
                        assert archive.testzip() is None
                        names = ["folder/", "folder/a", "folder/link", "folder/Ünter/", "folder/Ünter/data"]
                        assert sorted(archive.namelist()) == sorted(names), archive.namelist()
                        assert archive.read("folder/link").decode() == "ziü"
                        assert archive.read("folder/Ünter/data") == open(sys.argv[2] + "/folder/Ünter/data", "rb").read()
                    END
                    within 10 '! [ -e "$(cat "$T/zip.place")" ]'
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func whatLeavesAFolderIsToldThere() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    : "$M"/folder/*; mkdir "$M/other"
                    "$P" watch "$M/folder" > "$T/folder" & one=$!; "$P" watch "$M/other" > "$T/other" & two=$!
                    within 10 'grep -q presenting "$T/folder"'; within 10 'grep -q presenting "$T/other"'
                    mv "$M/folder/a" "$M/other/b"
                    within 10 'grep -q "subitemDidMove $M/other/b" "$T/folder"'
                    within 10 'grep -q "subitemDidMove $M/other/b" "$T/other"'
                    kill $one $two; wait $one $two || true; [ "$(grep -c tell "$T/folder")" = 1 ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aClaimCoversTheDocumentThatAnEditorSavesAsANewFile() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" > /dev/null
                    "$P" coordinate write "$M/number" -- sh -c \\
                        'echo 1 > "$1.new"; mv "$1.new" "$1"; touch "$2"; sleep 1; echo 2 > "$1"' sh "$M/number" "$T/inside" &
                    within 10 '[ -e "$T/inside" ]'; "$P" coordinate read "$M/number" -- cat "$M/number" > "$T/read"; wait
                    [ "$(cat "$T/read")" = 2 ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func theDaemonCoordinatesRemoteChangesAndEvictions() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" "$M/folder/a" > /dev/null
                    "$P" coordinate write "$M/number" -- sh -c \\
                        'touch "$2"; until [ -e "$3" ]; do sleep 0.05; done; cat "$1" > "$2"' \\
                        sh "$M/number" "$T/inside" "$T/go" & claim=$!
                    "$P" watch "$M/folder/a" > "$T/file" & one=$!; within 10 'grep -q presenting "$T/file"'
                    within 10 '[ -e "$T/inside" ]'
                    echo 17 > "$C/number"; echo bb > "$C/folder/a"; "$P" sync "$M"
                    within 10 '[ "$(cat "$M/folder/a")" = bb ]'; [ "$(cat "$M/number")" = 0 ]
                    "$P" evict --json "$M/folder/a" > "$T/evicted"; grep -q '"evicted":1' "$T/evicted"
                    touch "$T/go"; wait $claim; [ "$(cat "$T/inside")" = 0 ]; within 10 '[ "$(cat "$M/number")" = 17 ]'
                    grep -q "ask relinquishToWriter" "$T/file"; grep -q "ask accommodateEviction" "$T/file"
                    within 10 'grep -q didChange "$T/file"'; cat "$M/folder/a" > /dev/null
                    not setfattr -n user.promisefs.state -v placeholder "$M/folder/a" 2> /dev/null
                    kill $one; wait $one || true
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func theExampleApplicationLosesNoLine() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    notebook="$(dirname "$P")/notebook"; : > "$M/note.txt"
                    for writer in 1 2 3; do
                        (for n in 1 2 3 4 5; do "$notebook" add "$M/note.txt" "$writer $n"; done) &
                    done
                    wait; [ "$(sort -u "$M/note.txt" | wc -l)" = 15 ]; "$notebook" list "$M" | grep -q '^/note.txt  60 bytes'
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aDomainMayRefuseInsteadOfWaiting() async throws {
            var options = options
            options.arguments = ["--coordination", "refuse"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/number" > /dev/null
                    "$P" coordinate write "$M/number" -- sh -c \\
                        'touch "$1"; until [ -e "$1.over" ]; do sleep 0.05; done' sh "$T/inside" &
                    within 10 '[ -e "$T/inside" ]'; (echo 3 > "$M/number") 2> "$T/err" && exit 1 || grep -qi busy "$T/err"
                    not rm "$M/number" 2> /dev/null; cat "$M/number" > /dev/null
                    touch "$T/inside.over"; wait; echo 4 > "$M/number"
                    "$P" watch "$M/number" > "$T/file" & one=$!; within 10 'grep -q presenting "$T/file"'
                    echo 5 > "$M/number"; mv "$M/number" "$M/moved"; kill $one; wait $one || true
                    """)
            }
        }
    }
}
