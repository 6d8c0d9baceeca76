import Testing

extension MountSuites {
    /// What others change at the provider is heard by programs that watch the mount.
    @Suite struct WatchTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir -p "$C/folder/inner" "$C/other"
                for n in a b c; do echo "first $n" > "$C/folder/$n"; done; ln -s a "$C/folder/link"
                """
            return options
        }

        /// Shell functions: `watch PATH…` writes the events to `$T/events`; `heard LINES` waits until these are all that came
        /// since the last time, in this order; `echoes` counts the processes that show changes.
        private let functions = """
            watch() {
                "$W/inotify-events.py" "$@" > "$T/events" 2>&1 & WATCHER=$!
                trap 'kill $WATCHER' EXIT; within 10 '[ "$(head -n 1 "$T/events")" = ready ]'; HEARD=1
            }
            news() { tail -n +$((HEARD + 1)) "$T/events" | sed 's/ cookie=.*//'; }
            echoes() {
                local daemon; daemon=$("$P" status --json "$M" | sed -n 's/.*"processID" *: *\\([0-9]*\\).*/\\1/p')
                pgrep --parent "$daemon" promisefs-echo | wc -l
            }
            heard() {
                WANTED=$1; within 15 '[ "$(news)" = "$WANTED" ]' || { echo "heard: $(news)" >&2; return 1; }
                sleep 0.3; [ "$(news)" = "$WANTED" ]; HEARD=$(wc -l < "$T/events")
            }

            """

        /// The place of the mount was remembered: nothing was heard until the next daemon.
        @Test(.timeLimit(.minutes(1))) func whoWatchesBelowAFolderThatIsRenamedHearsOn() async throws {
            try await MountedDomain.with(options, mounts: false) { domain in
                try await domain.shell(
                    functions + """
                        mkdir -p "$T/old/m"
                        "$P" mount --state-dir "$S" --domain moved "folder:$C" "$T/old/m" > /dev/null
                        ls -R "$T/old/m" > /dev/null
                        watch "$T/old/m/folder"; trap 'kill $WATCHER || true; umount -l "$T"/*/m 2> /dev/null || true' EXIT
                        makes() {
                            echo new > "$C/t"; mv "$C/t" "$C/folder/$1"
                            heard "$(printf '%s\\n' "folder CREATE $1" "folder CLOSE_WRITE $1")"
                        }
                        makes one; mv "$T/old" "$T/new"; makes two
                        kill $WATCHER; wait $WATCHER || true; "$P" unmount "$T/new/m"
                        """)
            }
        }

        struct Case: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let change: String
            let events: String
        }

        static let cases: [Case] = [
            Case(
                testDescription: "a new file", change: "echo new > \"$C/t\"; mv \"$C/t\" \"$C/folder/new\"",
                events: "folder CREATE new\nfolder CLOSE_WRITE new"),
            Case(testDescription: "a new folder", change: "mkdir \"$C/folder/d\"", events: "folder CREATE FOLDER d"),
            Case(testDescription: "a new link", change: "ln -s b \"$C/folder/l\"", events: "folder CREATE l"),
            Case(
                testDescription: "other content", change: "echo 'second and longer' > \"$C/folder/a\"",
                events: "folder MODIFY a\na MODIFY\nfolder CLOSE_WRITE a\na CLOSE_WRITE"),
            Case(
                testDescription: "another file of the same name", change: "echo third > \"$C/t\"; mv \"$C/t\" \"$C/folder/c\"",
                events: "folder MODIFY c\nfolder CLOSE_WRITE c"),
            Case(
                testDescription: "another mode", change: "chmod 751 \"$C/folder/a\"", events: "folder ATTRIB a\na ATTRIB"),
            Case(
                testDescription: "another name", change: "mv \"$C/folder/a\" \"$C/folder/renamed\"",
                events: "folder MOVED_FROM a\nfolder MOVED_TO renamed\na MOVE_SELF"),
            Case(
                testDescription: "another folder", change: "mv \"$C/folder/b\" \"$C/other/moved\"",
                events: "folder MOVED_FROM b\nother MOVED_TO moved"),
            Case(
                testDescription: "a folder that moves", change: "mv \"$C/folder/inner\" \"$C/other/outer\"",
                events: "folder MOVED_FROM FOLDER inner\nother MOVED_TO FOLDER outer"),
            Case(testDescription: "a file that goes", change: "rm \"$C/folder/b\"", events: "folder DELETE b"),
            Case(
                testDescription: "a folder that goes", change: "rm -r \"$C/folder/inner\"", events: "folder DELETE FOLDER inner"),
            Case(
                testDescription: "a link with another target", change: "ln -sfn b \"$C/folder/link\"",
                events: "folder DELETE link\nfolder CREATE link"),
        ]

        /// > Programs see the change at their next call, and those that watch by inotify hear of it
        @Test(.timeLimit(.minutes(2)), arguments: cases) func whoWatchesHearsOfARemoteChange(remote: Case) async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    functions + """
                        ls -lR "$M" > /dev/null; cat "$M/folder/a" > /dev/null
                        watch "$M/folder" "$M/other" "$M/folder/a"
                        \(remote.change)
                        heard '\(remote.events)'
                        """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        @Test(.timeLimit(.minutes(2))) func theTwoHalvesOfAMoveHaveOneCookie() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    functions + """
                        ls -lR "$M" > /dev/null; watch "$M/folder" "$M/other"
                        mv "$C/folder/b" "$C/other/moved"; heard $'folder MOVED_FROM b\\nother MOVED_TO moved'
                        [ "$(grep -o 'cookie=.*' "$T/events" | sort -u | wc -l)" = 1 ]
                        """)
            }
        }

        /// A program has the old version open: the name is another file from then on, as after a save by rename.
        @Test(.timeLimit(.minutes(2))) func whoWatchesAnOpenFileHearsThatItWasReplaced() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    functions + """
                        ls -lR "$M" > /dev/null; exec 3< "$M/folder/b"; watch "$M/folder/b"
                        echo 'second and longer' > "$C/folder/b"; heard $'b ATTRIB\\nb DELETE_SELF\\nb IGNORED'
                        [ "$(cat <&3)" = 'first b' ]; [ "$(cat "$M/folder/b")" = 'second and longer' ]
                        """)
            }
        }

        /// > What programs do in the mount they hear of as on any disk: once.
        @Test(.timeLimit(.minutes(2))) func whatIsDoneInTheMountIsHeardOfOnce() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    functions + """
                        ls -lR "$M" > /dev/null; watch "$M/folder"
                        echo mine > "$M/folder/mine"; mv "$M/folder/mine" "$M/folder/yours"
                        "$P" sync --wait "$M"
                        MADE=$'folder CREATE mine\\nfolder MODIFY mine\\nfolder CLOSE_WRITE mine\\n'
                        heard "$MADE"$'folder MOVED_FROM mine\\nfolder MOVED_TO yours'
                        """)
            }
        }

        /// > Showing a change fetches nothing, and a placeholder stays one until somebody reads it.
        @Test(.timeLimit(.minutes(2))) func showingAChangeFetchesNothing() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    functions + """
                        ls -lR "$M" > /dev/null; watch "$M/folder"
                        head -c 100000 /dev/zero > "$C/t"; mv "$C/t" "$C/folder/new"; echo other > "$C/folder/a"
                        within 15 'grep -q "CLOSE_WRITE new" "$T/events" && grep -q "CLOSE_WRITE a" "$T/events"'
                        [ "$(getfattr --only-values -n user.promisefs.state "$M/folder/new")" = placeholder ]
                        [ "$(getfattr --only-values -n user.promisefs.state "$M/folder/a")" = placeholder ]
                        """)
                let status = try await domain.status()
                #expect(status.bytesFetched == 0)
                #expect(status.pending == 0)
            }
        }

        /// > The process that makes these calls is there only while somebody watches
        @Test(.timeLimit(.minutes(2))) func theProcessIsThereWhileSomebodyWatches() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    functions + """
                        ls -lR "$M" > /dev/null; echo 1 > "$C/folder/1"; within 5 '[ -e "$M/folder/1" ]'; sleep 0.5
                        [ "$(echoes)" = 0 ]
                        watch "$M/folder"; echo 2 > "$C/folder/2"; within 15 'grep -q "CREATE 2" "$T/events"'
                        [ "$(echoes)" = 1 ]
                        kill $WATCHER; wait $WATCHER || true; trap - EXIT
                        echo 3 > "$C/folder/3"; within 15 '[ "$(echoes)" = 0 ]'
                        """)
            }
        }

        /// Both sides change the same folders, under the same names too.
        @Test(.timeLimit(.minutes(10)), arguments: [["--no-kills"], ["--argument=--io-uring"], []])
        func showingChangesDoesNoHarm(arguments: [String]) async throws {
            let seed = Machine.seed ?? Int.random(in: 0..<1_000_000_000)
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/watched-changes.py' --executable '\(Machine.executable)' --rounds 6 \
                    --seed \(seed) --folder '\(Machine.folder)' \(arguments.joined(separator: " "))
                """, seconds: 600)
            if result.status != 0 {
                Issue.record("seed \(seed), exit \(result.status):\n\(result.output.suffix(2000))\n\(result.error.suffix(2000))")
            }
        }
    }
}
