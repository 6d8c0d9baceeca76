import Testing

extension MountSuites {
    /// Questions about many items, live ones among them, and the journal of changes.
    @Suite struct QueryTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir -p "$C/docs/deep"; for n in $(seq 1 30); do head -c $((n * 100)) /dev/zero > "$C/docs/note-$n.txt"; done
                echo x > "$C/docs/deep/Café.md"; echo y > "$C/top.txt"; mkdir "$C/pictures"; echo z > "$C/pictures/a.jpg"
                """
            return options
        }

        /// Starts a live query in the background whose events go to `$T/live`; `$L` is its process.
        private static let live = """
            start() { : > "$T/live"; "$P" find "$@" --live --json > "$T/live" & L=$!; within 10 'grep -q gathered "$T/live"'; }
            stop() { kill $L; wait $L || true; }
            events() { grep -c "\\"event\\":\\"$1\\"" "$T/live" || true; }

            """

        @Test(.timeLimit(.minutes(2))) func findAnswersWithoutContent() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    find "$M" > /dev/null
                    [ "$("$P" find "$M" 'kMDItemFSName LIKE[c] "*.TXT" AND kMDItemFSSize > 2700' | wc -l)" = 3 ]
                    [ "$("$P" find "$M" 'kMDItemFSName LIKE "*.txt"' --sort -kMDItemFSSize --limit 1)" = "$M/docs/note-30.txt" ]
                    [ "$("$P" find "$M/docs" 'kMDItemFSName CONTAINS[cd] "cafe"')" = "$M/docs/deep/Café.md" ]
                    [ "$("$P" find "$M/pictures" 'ANY kMDItemContentTypeTree == "public.image"' --json | wc -l)" = 1 ]
                    state='NSMetadataUbiquitousItemDownloadingStatusKey == "NSMetadataUbiquitousItemDownloadingStatusCurrent"'
                    [ -z "$("$P" find "$M" "kMDItemFSName == 'top.txt' AND $state")" ]; cat "$M/top.txt" > /dev/null
                    [ -n "$("$P" find "$M" "kMDItemFSName == 'top.txt' AND $state")" ]
                    [ -z "$("$P" find "$M" "kMDItemFSName == 'x'' OR 1=1; DROP TABLE node'" 2>/dev/null)" ]
                    "$P" find "$M" 'kMDItemFSSize > "x"' 2> "$T/err" && exit 1 || [ $? = 2 ]; [ "$(wc -l < "$T/err")" = 1 ]
                    """)
                #expect(try await domain.status().bytesFetched == 2, "only what was read was fetched")
            }
        }

        /// The first of several plain words was taken for a folder that is not there.
        @Test(.timeLimit(.minutes(2))) func severalPlainWordsAreAllInTheName() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    find "$M" > /dev/null; cd "$T"; [ "$("$P" find NOTE 29)" = "$M/docs/note-29.txt" ]
                    [ "$("$P" find "$M/docs" 'note 29')" = "$M/docs/note-29.txt" ]
                    s=0; "$P" find "$M/docs/note-29.txt" note 2> /dev/null || s=$?; [ "$s" = 1 ]
                    rc=0; "$P" find nosuch/folder note 2> /dev/null || rc=$?; [ $rc = 3 ]
                    """)
            }
        }

        /// What changed while the others were gathered was shown twice.
        @Test(.timeLimit(.minutes(2))) func findShowsAnItemOnceWhileItIsSent() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    for n in $(seq 40); do
                        touch "$M/doc-$n" "$M/doc-$n-b"; "$P" find "$M" 'kMDItemFSName BEGINSWITH "doc-"' > "$T/found"
                        [ -z "$(sort "$T/found" | uniq -d)" ]; [ "$(wc -l < "$T/found")" = $((2 * n)) ]
                    done
                    """, seconds: 60)
            }
        }

        /// The same by PromiseKit, the control API, `info --json` and Python, of placeholders and of what is here.
        @Test(.timeLimit(.minutes(2))) func promisedValuesAreTheSameForEverybodyAndFetchNothing() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/top.txt" > /dev/null; ln -s top.txt "$M/link"
                    setfattr -n user.xdg.tags -v red,blue "$M/pictures/a.jpg"; "$P" sync --wait "$M"
                    python3 "$R/clients/python/tests/check_client.py" "$P" "$M" "$R/docs/openapi.yaml"
                    [ "$("$P" find "$M" 'ANY kMDItemUserTags == "blue"')" = "$M/pictures/a.jpg" ]
                    """)
                #expect(try await domain.status().bytesFetched == 2, "only what was read was fetched")
            }
        }

        /// There was no way to ask for what is in containers.
        @Test(.timeLimit(.minutes(2))) func documentsAndDataOfContainersAreScopes() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                try await domain.shell(
                    """
                    D=\(domain.domainName)
                    found() { "$P" find "$@" "$M" TRUEPREDICATE | sed "s|^$M/||" | sort | tr '\\n' ' '; }
                    "$P" container add --app com.example.one --name One $D > /dev/null
                    mkdir "$M/One/Documents/deep" "$M/One/Documents-old"; echo x > "$M/One/Documents/deep/a"
                    for file in outside One/Documents-old/b One/settings; do echo x > "$M/$file"; done
                    "$P" reference add "$M/outside" "$M/One/Documents"
                    [ "$(found --scope documents)" = "One/Documents/deep One/Documents/deep/a " ]
                    [ "$(found --scope data)" = "One/Documents-old One/Documents-old/b One/settings " ]
                    [ "$(found --scope external)" = "One/Documents/outside " ]
                    [ "$("$P" find --scope documents "$M/One/Documents/deep" TRUEPREDICATE)" = "$M/One/Documents/deep/a" ]
                    PYTHONPATH="$R/clients/python" python3 - "$M" > "$T/live" 2> "$T/err" <<'PYTHON' & disown
                    import promisefs, sys
                    domain, _ = promisefs.locate(sys.argv[1])
                    for name, data in domain.live_query("TRUEPREDICATE", area="documents", application="com.example.two"):
                        print(name, *[item["path"] for item in data.get("items", [])], flush=True)
                    PYTHON
                    within 20 'grep -q gathered "$T/live"'; not grep -q added "$T/live"
                    # What becomes a container is in it, and a container is where its folder is.
                    mkdir -p "$M/com.example.two/Documents"; echo x > "$M/com.example.two/Documents/c"
                    "$P" container add --app com.example.two $D > /dev/null
                    within 20 'grep -q "added /com.example.two/Documents/c" "$T/live"'
                    grep -q reset "$T/live"; mv "$M/com.example.two" "$M/moved"; echo x > "$M/moved/Documents/d"
                    within 10 'grep -q "added /moved/Documents/d" "$T/live"'
                    [ "$(found --scope documents --app com.example.two)" = "moved/Documents/c moved/Documents/d " ]
                    "$P" container remove --app com.example.two $D > /dev/null
                    [ "$(found --scope documents --app com.example.two)" = "" ]; pkill -f "python3 - $M"
                    not "$P" find --app com.example.one TRUEPREDICATE 2> "$T/err"; grep -q 'give --scope' "$T/err"
                    """)
            }
        }

        /// Kept when content goes, made by the system's programs, and put where file managers look.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasThumbnailer, "there is no thumbnailer for PNG"))
        func picturesOfPlaceholdersAreInTheDesktopsCache() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir "$C/pictures"; python3 "$R/clients/python/tests/pictures.py" make "$C/pictures" 20
                echo text > "$C/pictures/notes.txt"
                """
            options.environment["XDG_CACHE_HOME"] = "/nonexistent"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    export XDG_CACHE_HOME="$T/cache"; find "$M" > /dev/null
                    not "$P" thumbnail "$M/pictures/0.png" -o "$T/none" 2> "$T/err"; grep -q 'no picture' "$T/err"
                    cat "$M"/pictures/?.png > /dev/null
                    "$P" thumbnail "$M/pictures/0.png" -o "$T/small.png" --size 100
                    python3 "$R/clients/python/tests/pictures.py" check "$T/small.png" 100
                    python3 "$R/clients/python/tests/pictures.py" save "$M" pictures/10.png "$T/small.png"
                    "$P" thumbnail "$M/pictures/11.png" --save "$T/small.png"
                    python3 "$R/clients/python/tests/pictures.py" cached "$XDG_CACHE_HOME" "$M" 1
                    "$P" evict "$M/pictures" > /dev/null
                    "$P" thumbnail --json "$M/pictures" > "$T/counts"
                    [ "$(cat "$T/counts")" = '{"pictures":3,"without":18}' ]
                    cat "$M"/pictures/?.png > /dev/null; "$P" thumbnail "$M/pictures" > /dev/null
                    "$P" evict "$M/pictures" > /dev/null
                    python3 "$R/clients/python/tests/pictures.py" cached "$XDG_CACHE_HOME" "$M" 12
                    "$P" thumbnail "$M/pictures/9.png" -o "$T/nine.png"; "$P" info --json "$M/pictures/9.png" > "$T/info"
                    grep -q '"hasThumbnail":true' "$T/info"; grep -q '"state":"placeholder"' "$T/info"
                    touch -d 2001-01-01 "$M/pictures/9.png"; not "$P" thumbnail "$M/pictures/9.png" -o "$T/nine.png" 2> "$T/err"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(10))) func aLiveQueryHearsOfEverythingOnceAndInOrder() async throws {
            let count = Machine.isFullScale ? 10_000 : 300
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.live + """
                        mkdir "$M/work"; start "$M/work" 'kMDItemFSName BEGINSWITH "item"'; N=\(count)
                        python3 - "$M/work" $N <<'END'
                        import os, sys
                        folder, count = sys.argv[1], int(sys.argv[2])
                        for n in range(count): os.mknod(f'{folder}/item{n}')
                        END
                        within 60 '[ "$(events added)" = $N ]'
                        "$P" sync --wait "$M"; echo "$(grep -c '"event":"removed"' "$T/live" || true)" | grep -qx 0
                        python3 - "$M/work" $N <<'END'
                        import os, sys
                        folder, count = sys.argv[1], int(sys.argv[2])
                        for n in range(count): os.rename(f'{folder}/item{n}', f'{folder}/item{n}.new')
                        END
                        within 60 '[ "$(grep -c "new\\"" "$T/live")" -ge $N ]'
                        rm -r "$M/work"; within 60 '[ "$(events removed)" = $N ]'; stop
                        python3 - "$T/live" $N <<'END'
                        import json, sys
                        there, seen = {}, 0
                        for line in open(sys.argv[1]):
                            event = json.loads(line)
                            kind, item = event['event'], event.get('item')
                            if kind == 'added': assert item['id'] not in there; there[item['id']] = item; seen += 1
                            if kind == 'changed': assert there[item['id']] != item; there[item['id']] = item
                            if kind == 'removed': assert there.pop(event['id'])['path'].endswith('.new')
                        assert not there and seen == int(sys.argv[2]), (len(there), seen)
                        END
                        """, seconds: Machine.isFullScale ? 600 : 60)
            }
        }

        /// > When a call that makes, renames or removes a name returns, its event is in the socket of every live query
        @Test(.timeLimit(.minutes(10))) func anEventIsThereWhenItsCallReturns() async throws {
            var options = MountedDomain.Options()
            options.uploadDelay = "10m"
            try await MountedDomain.with(options) { domain in
                let result = try await domain.shell(
                    """
                    python3 "$W/stitching.py" "$M" "$XDG_RUNTIME_DIR/promisefs/\(domain.domainName).sock" \
                        --files \(Machine.isFullScale ? 10_000 : 100)
                    """, seconds: Machine.isFullScale ? 600 : 60)
                print(result.output)
            }
        }

        @Test(.timeLimit(.minutes(2))) func anItemStaysTheSameWhenItIsSavedMovedAndConfirmed() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.live + """
                        find "$M" > /dev/null; start "$M" 'kMDItemFSName == "report.txt"'
                        echo one > "$M/report.txt"; within 10 'grep -q "\\"isUploaded\\":true" "$T/live"'
                        echo two > "$M/.save"; mv "$M/.save" "$M/report.txt"; mv "$M/report.txt" "$M/docs/report.txt"
                        mv "$M/docs" "$M/papers"; within 10 'grep -q /papers/report.txt "$T/live"'
                        [ "$(events added)" = 1 ]; [ "$(events removed)" = 0 ]
                        [ "$(grep -o '"id":[0-9]*' "$T/live" | sort -u | wc -l)" = 1 ]
                        echo remote > "$C/pictures/late.txt"; stop; start "$M/papers" 'kMDItemFSName ENDSWITH ".txt"'
                        mv "$M/papers" "$M/docs"; mv "$M/docs/note-1.txt" "$M"; within 10 '[ "$(events removed)" = 1 ]'; stop
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func theJournalGoesOnWhereAReaderStopped() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ls "$M/docs" > /dev/null; last=$("$P" changes "$M" --since 0 --json | tail -1 | grep -o '"sequence":[0-9]*')
                    last=${last#*:}; "$P" changes "$M" --since "$last" --follow > "$T/feed" & L=$!
                    mkdir "$M/new"; within 10 'grep -q "created  /new" "$T/feed"'; kill $L; wait $L || true
                    [ "$("$P" changes "$M" --since "$last" | head -1)" = "$(head -1 "$T/feed")" ]
                    """)
            }
        }

        /// It had a new node of which the search of names was not told.
        @Test(.timeLimit(.minutes(2))) func whatOthersReplacedWhileItHadTwoNamesIsFoundByItsName() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir "$M/d"; echo old > "$M/d/report.txt"; ln "$M/d/report.txt" "$M/d/second.txt"; "$P" sync --wait "$M"
                    echo newer > "$C/d/.x"; mv "$C/d/.x" "$C/d/report.txt"; within 20 'grep -q newer "$M/d/report.txt"'
                    "$P" changes "$M" --since 0 --json | grep '"oldNode"' | grep -q '"nameBytes":"report.txt"'
                    sleep 13  # The search of names catches up when nobody has written for ten seconds.
                    [ "$("$P" find "$M" 'kMDItemFSName CONTAINS "eport.tx"' | wc -l)" = 1 ]
                    """)
            }
        }
    }
}
