import Testing

extension MountSuites {
    /// Programs in a view that watch by inotify, and what is done outside of it.
    @Suite struct ViewWatchTests {
        /// `watch PATH…` watches in a view of its own and writes the events to `$T/events`; `heard LINES` waits until these are
        /// all that came since the last time, in this order; `app COMMAND…` runs in another view; `echoes` counts the processes
        /// that show changes.
        private func watching(_ script: String, seconds: Int = 90) async throws {
            try await MountedDomain.with(.init(arguments: ["--poll-interval", "1s"])) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName)
                    "$P" container add --app $ID --name Editor $D > /dev/null; E=$M/Editor/Documents; F=container/Documents
                    app() { "$P" run --app $ID --domain $D -- "$@"; }
                    watch() {
                        app python3 - "$@" < $W/inotify-events.py > $T/events 2>&1 & WATCHER=$!
                        trap 'kill $WATCHER 2> /dev/null || true' EXIT
                        within 10 '[ "$(head -n 1 $T/events)" = ready ]'; HEARD=1
                    }
                    news() { tail -n +$((HEARD + 1)) $T/events | sed 's/ cookie=.*//'; }
                    heard() {
                        WANTED=$1; within 15 '[ "$(news)" = "$WANTED" ]' || { echo "heard: $(news)" >&2; return 1; }
                        sleep 0.3; [ "$(news)" = "$WANTED" ] || { echo "then heard: $(news)" >&2; return 1; }
                        HEARD=$(wc -l < $T/events)
                    }
                    echoes() {
                        local daemon; daemon=$("$P" status --json $M | sed -n 's/.*"processID" *: *\\([0-9]*\\).*/\\1/p')
                        pgrep --parent $daemon promisefs-echo | wc -l
                    }

                    """ + script, seconds: seconds)
            }
        }

        static let changes: [(String, String)] = [
            ("mkdir $E/d", "Documents CREATE FOLDER d"), ("ln -s a $E/l", "Documents CREATE l"),
            ("touch $E/new", "Documents CREATE new\nDocuments CLOSE_WRITE new"),
            ("mv $E/sub/in $E/sub/on", "sub MOVED_FROM in\nsub MOVED_TO on"),
            ("mv $E/sub/on $E/out", "sub MOVED_FROM on\nDocuments MOVED_TO out"),
            ("mv $E/out $M/outside", "Documents DELETE out"),
            ("mv $M/outside $E/back", "Documents CREATE back\nDocuments CLOSE_WRITE back"),
            ("rm $E/l", "Documents DELETE l"), ("rmdir $E/d", "Documents DELETE FOLDER d"),
            ("chmod 700 $E/back", "Documents ATTRIB back"), ("setfattr -n user.x -v 1 $E/back", "Documents ATTRIB back"),
            ("echo more >> $E/back", "Documents MODIFY back\nDocuments CLOSE_WRITE back"),
            ("truncate -s 1 $E/new", "Documents MODIFY new\nDocuments CLOSE_WRITE new"),
        ]

        /// > Programs in a view that watch by inotify hear of what is done outside of it, once
        @Test(.timeLimit(.minutes(3))) func whoWatchesInAViewHearsOfWhatIsDoneOnTheMount() async throws {
            let steps = Self.changes.map { "\($0.0); heard '\($0.1)'" }.joined(separator: "\n")
            try await watching(
                """
                mkdir $E/sub; echo 1 > $E/a; echo 2 > $E/sub/in
                watch $F $F/sub $F/a; [ "$(echoes)" = 0 ]
                \(steps)
                # The file itself is watched: written in place, moved, and saved over.
                echo 2 >> $E/a; heard $'Documents MODIFY a\\na MODIFY\\nDocuments CLOSE_WRITE a\\na CLOSE_WRITE'
                mv $E/a $E/b; heard $'Documents MOVED_FROM a\\nDocuments MOVED_TO b\\na MOVE_SELF'
                [ "$(grep -o 'cookie=.*' $T/events | sort -u | wc -l)" = 3 ]; [ "$(echoes)" = 1 ]
                # What is not watched is not told, and the processes go with the view.
                mkdir $M/elsewhere; echo x > $M/elsewhere/x; heard ''
                kill $WATCHER; within 10 '[ ! -e $M/.promisefs-views ]'; within 10 '[ "$(echoes)" = 0 ]'
                """)
        }

        @Test(.timeLimit(.minutes(3))) func whoWatchesInAViewHearsOfOtherViewsAndOfTheProvider() async throws {
            try await watching(
                """
                mkdir $E/sub; "$P" sync --wait $M; watch $F $F/sub
                app sh -c "cd $F; mkdir d; sleep 1.5; mv d sub/e; sleep 1.5; rmdir sub/e"
                heard $'Documents CREATE FOLDER d\\nDocuments MOVED_FROM FOLDER d\\nsub MOVED_TO FOLDER e
                sub DELETE FOLDER e'
                echo theirs > $C/t; mv $C/t $C/Editor/Documents/p; heard $'Documents CREATE p\\nDocuments CLOSE_WRITE p'
                echo 'theirs again' > $C/Editor/Documents/p; heard $'Documents MODIFY p\\nDocuments CLOSE_WRITE p'
                mv $C/Editor/Documents/p $C/Editor/Documents/q; heard $'Documents MOVED_FROM p\\nDocuments MOVED_TO q'
                rm $C/Editor/Documents/q; heard 'Documents DELETE q'
                """)
        }

        /// The kernel of the view has told of it already.
        @Test(.timeLimit(.minutes(3))) func whatIsDoneInAViewIsHeardOfThereOnce() async throws {
            try await watching(
                """
                cp $W/inotify-events.py $E/events.py
                app sh -c "cd $F; mkdir f; python3 events.py f > /tmp/heard & until grep -q ready /tmp/heard; do sleep 0.05; done
                    echo 1 > f/a; mv f/a f/b; chmod 600 f/b; rm f/b; sleep 1.5; cp /tmp/heard heard"
                printf 'f %s\\n' 'CREATE a' 'MODIFY a' 'CLOSE_WRITE a' 'MOVED_FROM a' 'MOVED_TO b' 'ATTRIB b' \\
                    'DELETE b' > $T/wanted
                sed -e 1d -e 's/ cookie=.*//' $E/heard | diff $T/wanted -
                """)
        }

        /// It keeps its name there whatever becomes of its place.
        @Test(.timeLimit(.minutes(3))) func whoWatchesWhatWasGrantedHearsOfTheDocument() async throws {
            try await watching(
                """
                mkdir $M/Work $M/Else; echo one > $M/Work/text.txt
                PYTHONPATH=$R/clients/python python3 -c "
                import promisefs
                d, _ = promisefs.locate('$M'); d.give('Work/text.txt', '$ID', rights='read')"
                watch granted granted/text.txt
                echo two >> $M/Work/text.txt
                heard $'granted MODIFY text.txt\\ntext.txt MODIFY\\ngranted CLOSE_WRITE text.txt\\ntext.txt CLOSE_WRITE'
                mv $M/Work/text.txt $M/Else/other; mv $M/Else $M/Elsewhere; heard ''
                echo three > $M/Elsewhere/new; mv $M/Elsewhere/new $M/Elsewhere/other
                within 10 'news | grep -q "^granted CREATE text.txt"'; sleep 0.3
                [ "$(news | grep ^granted)" = $'granted DELETE text.txt\\ngranted CREATE text.txt
                granted CLOSE_WRITE text.txt' ]
                news | grep -q '^text.txt DELETE_SELF'
                """)
        }
    }
}
