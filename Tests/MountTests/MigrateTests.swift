import Foundation
import Testing

extension MountSuites {
    /// Domains that go on at another storage.
    @Suite struct MigrateTests {
        private static let options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
        private static let fileCount = Machine.isFullScale ? 10_000 : 300

        /// `migrate PROVIDER`; `same A B`: everything that a storage is to keep, but times of less than a second.
        private static func shorthand(_ domain: MountedDomain) -> String {
            let provider = domain.options.provider ?? "folder:" + domain.cloud
            let command = domain.mountCommand.replacingOccurrences(
                of: "'\(provider)'", with: "\"$1\"")
            return """
                N=\(domain.domainName)
                migrate() { "$P" migrate $N --state-dir "$S" "$@"; }
                mounted() { \(command); }
                said() {
                    (cd "$1"; find . -name .promisefs -prune -o -name ref -prune -o -not -type d \\
                        -printf '%P %y %s %m %l %TY%Tm%Td%TH%TM%.2TS\\n' | sort)
                }
                same() {
                    diff -r --no-dereference --exclude=.promisefs --exclude=ref "$1" "$2"
                    [ "$(said "$1")" = "$(said "$2")" ]
                }

                """
        }

        @Test(.timeLimit(.minutes(3))) func aDomainGoesOnAtAnotherStorageWithAllThatIsKnownOfIt()
            async throws
        {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        mkdir -p "$C/a/b" "$C/closed" "$T/new"; for i in $(seq 50); do echo $i > "$C/a/$i"; done
                        ln -s a/1 "$C/l"
                        printf x > "$C/"$'no\\xffutf8'; echo deep > "$C/a/b/deep"; touch -d 2001-02-03 "$C/a/7" "$C/a/b"
                        chmod 640 "$C/a/7"; echo x > "$C/closed/x"; chmod 500 "$C/closed"
                        "$P" sync "$M"; find "$M" > /dev/null; cat "$M/a/5" > /dev/null; "$P" pin "$M/a/b"
                        "$P" bookmark create "$M/a/9" --app com.example.editor > "$T/bookmark"
                        "$P" reference add "$M/a/10" "$M/ref"; "$P" container add --app com.example.editor $N
                        "$P" kv set place 'line 7' --app com.example.editor --domain $N; "$P" sync --wait "$M"
                        s=0; migrate "folder:$T/new" 2> "$T/err" || s=$?; [ "$s" = 1 ]; grep -q 'unmount it first' "$T/err"
                        "$P" unmount --wait "$M"
                        # It was brought into itself, one level deeper each time.
                        mkdir -p "$C/a/inside"; ln -s "$C/a/inside" "$T/way"
                        s=0; migrate "folder:$T/way" 2> "$T/err" || s=$?; [ "$s" = 6 ]; grep -q 'is inside' "$T/err"
                        rmdir "$C/a/inside"
                        # Others go on working there.
                        echo changed > "$C/a/20"; rm "$C/a/21"; mv "$C/a/22" "$C/moved"; same "$C" "$C"
                        migrate "folder:$T/new" --json > "$T/json"; grep -q '"isMoved":true' "$T/json"
                        same "$C" "$T/new"; [ "$(stat -c '%a %Y' "$T/new/a/b")" = "$(stat -c '%a %Y' "$C/a/b")" ]
                        [ "$(stat -c %a "$T/new/closed")" = 500 ]; migrate "folder:$T/new" | grep -q already
                        not mounted "folder:$C" 2> "$T/err"; grep -q 'not the storage' "$T/err"; mounted "folder:$T/new"
                        """)
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        within 10 'same "$T/new" "$M"'
                        "$P" bookmark resolve "$(cat "$T/bookmark")" --app com.example.editor > "$T/out" 2> "$T/err"
                        [ "$(cat "$T/out")" = "$M/a/9" ]; [ ! -s "$T/err" ]; [ "$(cat "$M/ref")" = 10 ]
                        "$P" container list $N | grep -q com.example.editor
                        mv "$M/a/10" "$M/elsewhere"; [ "$(cat "$M/ref")" = 10 ]
                        [ "$("$P" kv get place --app com.example.editor --domain $N)" = 'line 7' ]
                        "$P" info "$M/a/b/deep" --json | grep -q '"pin":"pinned"'; [ ! -e "$M/a/21" ]
                        echo more >> "$M/a/5"; "$P" sync --wait "$M"; [ "$(cat "$T/new/a/5")" = "$(printf '5\\nmore')" ]
                        [ "$(cat "$C/a/5")" = 5 ]; "$P" verify "$M"; [ -z "$(find "$M" -name '*conflict*')" ]
                        """)
            }
        }

        /// Grants kept the old identifiers, by which the new storage may call other documents.
        @Test(.timeLimit(.minutes(2))) func grantsAreOfWhatTheNewStorageCallsTheirItems() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        mkdir "$T/new"; echo doc > "$M/doc"; echo gone > "$M/gone"; "$P" sync --wait "$M"
                        for name in doc gone; do
                            "$P" grants add "$M/$name" --app com.example.editor --read-only > "$T/$name"
                        done
                        "$P" unmount --wait "$M"; rm "$C/gone"; migrate "folder:$T/new"
                        python3 - "$S/index.sqlite" <<'END'
                        import json, sqlite3, sys
                        index = sqlite3.connect(sys.argv[1])
                        items = {bytes(name): item for name, item in index.execute("SELECT name, identifier FROM entry")}
                        given = {}
                        for (record,) in index.execute("SELECT record FROM access_grant"):
                            item = json.loads(record)["item"]
                            given[item["path"]] = item["identifier"]
                        assert given["/doc"] == items[b"doc"], (given, items)
                        assert given["/gone"].startswith("gone:"), given
                        END
                        mounted "folder:$T/new"; "$P" verify "$M"
                        "$P" grants show "$(cat "$T/doc")" --domain $N | grep -q doc; [ "$(cat "$M/doc")" = doc ]
                        """)
            }
        }

        /// Where the new storage called the document as the old one had, nobody sent its picture there; and those that others had
        /// saved stayed at the old one everywhere.
        @Test(
            .timeLimit(.minutes(2)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func picturesOfDocumentsComeAlong() async throws {
            try await WebDAVServer.with { server in
                var options = server.options()
                (options.provider, options.cloud) = (server.provider + "/old", server.data + "/old")
                options.prepare = "mkdir -p \"$C\" \"$D/data/new\""
                options.environment["PROMISEFS_OLD_USER"] = WebDAVServer.user
                options.environment["PROMISEFS_OLD_PASSWORD"] = WebDAVServer.password
                try await MountedDomain.with(options) { domain in
                    try await domain.shell(
                        Self.shorthand(domain)
                            + """
                            pictures() { ls "$D/data/$1/.promisefs/pictures" | wc -l; }
                            mkdir "$T/p"; python3 "$R/clients/python/tests/pictures.py" make "$T/p" 2
                            for n in 0 1; do echo $n > "$M/$n"; "$P" thumbnail "$M/$n" --save "$T/p/$n.png"; done
                            "$P" sync --wait "$M"; within 20 '[ "$(pictures old)" = 2 ]'
                            within 20 '[ "$(ls "$S/thumbnails" | grep -c kept)" = 2 ]'; "$P" unmount --wait "$M"
                            # As if another machine had saved one.
                            other=$(ls "$S"/thumbnails/*.picture | head -1); rm "${other%.picture}".*
                            migrate "webdav+$U/new"; [ "$(pictures new)" = 2 ]; mounted "webdav+$U/new"
                            within 20 'ls "$S/thumbnails" | grep -q kept'
                            for n in 0 1; do "$P" thumbnail "$M/$n" -o "$T/got.png"; cmp "$T/got.png" "$T/p/$n.png"; done
                            # It is known of each where that is.
                            rm "$M"/?; "$P" unmount --wait "$M"; mounted "webdav+$U/new"; within 20 '[ "$(pictures new)" = 0 ]'
                            """)
                }
            }
        }

        /// Of a moved folder the files kept their identifiers here, and the server called others so that were there by now: where
        /// size and time are all that a version says, they were brought with the moved files' bytes.
        @Test(
            .timeLimit(.minutes(2)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func whatIsWhereAMovedFileWasIsBroughtWithItsOwnBytes() async throws {
            try await WebDAVServer.with { server in
                var options = server.options()
                (options.provider, options.cloud) = (server.provider + "/old", server.data + "/old")
                options.prepare = "mkdir -p \"$C/d\"; echo moved > \"$C/d/x\"; touch -d 2001-02-03 \"$C/d/x\""
                options.environment["PROMISEFS_OLD_USER"] = WebDAVServer.user
                options.environment["PROMISEFS_OLD_PASSWORD"] = WebDAVServer.password
                try await MountedDomain.with(options) { domain in
                    try await domain.shell(
                        Self.shorthand(domain)
                            + """
                            [ "$(cat "$M/d/x")" = moved ]; mv "$M/d" "$M/e"; "$P" sync --wait "$M"; [ -e "$C/e/x" ]
                            "$P" unmount --wait "$M"; mkdir "$C/d" "$T/new"; echo other > "$C/d/x"; touch -d 2001-02-03 "$C/d/x"
                            chmod -R a+rwX "$C/d"; migrate "folder:$T/new" --json > "$T/json"
                            [ "$(cat "$T/new/d/x")" = other ]; [ "$(cat "$T/new/e/x")" = moved ]
                            # The moved one is still known by its place.
                            grep -q '"bytesFromHere":6' "$T/json"; mounted "folder:$T/new"
                            [ "$(cat "$M/d/x")" = other ]; [ "$(cat "$M/e/x")" = moved ]; "$P" verify "$M"
                            """)
                }
            }
        }

        /// What was not sent is sent to the new storage, over what it was made from.
        @Test(.timeLimit(.minutes(2))) func whatWaitedIsSentToTheNewStorage() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    "for i in 1 2 3 4 5; do echo $i > \"$M/$i\"; done; mkdir \"$M/a\" \"$M/gone\"; \"$P\" sync --wait \"$M\""
                )
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    mkdir "$T/new"; echo edited >> "$M/1"; mv "$M/2" "$M/a/two"; rm "$M/3"; rmdir "$M/gone"
                    echo fresh > "$M/fresh"; chmod 600 "$M/4"; s=0; "$P" unmount "$M" || s=$?; [ "$s" = 7 ]
                    """)
                try domain.setFaults([])
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        migrate "folder:$T/new"; [ "$(cat "$T/new/1")" = 1 ]; mounted "folder:$T/new"; "$P" sync --wait "$M"
                        [ "$(cat "$T/new/1")" = "$(printf '1\\nedited')" ]; [ "$(cat "$T/new/a/two")" = 2 ]; [ ! -e "$T/new/2" ]
                        [ ! -e "$T/new/3" ]; [ ! -e "$T/new/gone" ]; [ "$(cat "$T/new/fresh")" = fresh ]
                        [ "$(stat -c %a "$T/new/4")" = 600 ]; same "$T/new" "$M"; [ "$(ls "$M" | wc -l)" = 5 ]
                        [ "$(cat "$C/1")" = 1 ]; [ -e "$C/3" ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func whatCannotBeBroughtKeepsTheDomainWhereItIs()
            async throws
        {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    echo one > "$M/one"; echo two > "$M/two"; "$P" unmount --wait "$M"; mkdir "$T/new"; echo x > "$T/new/x"
                    """)
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        s=0; migrate "folder:$T/new" 2> "$T/err" || s=$?; [ "$s" = 6 ]; grep -q 'not empty' "$T/err"
                        rm "$T/new/x"; printf 'fail=1\nonly=create\n' > "$PROMISEFS_PROVIDER_FAULTS"
                        s=0; migrate "folder:$T/new" > "$T/out" 2> "$T/err" || s=$?; [ "$s" = 1 ]; grep -q '^/one: ' "$T/out"
                        grep -q '2 items cannot be brought' "$T/err"; : > "$PROMISEFS_PROVIDER_FAULTS"
                        mkdir "$T/other"; s=0; migrate "folder:$T/other" 2> "$T/err" || s=$?; [ "$s" = 5 ]
                        grep -q 'was begun' "$T/err"; mounted "folder:$C"; [ "$(cat "$M/one")" = one ]; echo three > "$M/three"
                        "$P" unmount --wait "$M"; migrate --abandon | grep -q "given up"
                        migrate --abandon --json | grep -q '"wasBegun":false'
                        s=0; "$P" migrate no-such --state-dir "$T/none" --abandon 2> "$T/err" || s=$?
                        [ "$s" = 3 ]; [ ! -e "$T/none" ]
                        migrate "folder:$T/other"; [ "$(cat "$T/other/three")" = three ]
                        """)
            }
        }

        /// The daemon ended after the old storage had been made to say where the domain is, and before it was
        /// there: given up, the storage went on saying so, and other machines followed.
        @Test(.timeLimit(.minutes(2))) func aMigrationThatIsGivenUpSendsNoOtherMachineAway() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        echo one > "$M/one"; "$P" unmount --wait "$M"; mkdir "$T/new"; R="$C/.promisefs/storage"
                        if PROMISEFS_FAULT=migration.forget:KILL migrate "folder:$T/new" > /dev/null 2>&1; then exit 1; fi
                        [ -e "$R/moved.json" ]; [ -e "$R/moved-0.json" ]
                        printf 'offline=true\n' > "$PROMISEFS_PROVIDER_FAULTS"
                        s=0; migrate --abandon 2> "$T/err" || s=$?; [ "$s" = 4 ]; grep -q 'may say already' "$T/err"
                        : > "$PROMISEFS_PROVIDER_FAULTS"; [ -s "$S/migration/log" ]
                        migrate --abandon | grep -q 'one that has followed meanwhile'; [ -z "$(ls "$R" | grep moved || true)" ]
                        migrate --abandon --json | grep -q '"wasBegun":false'
                        mounted "folder:$C"; [ "$(cat "$M/one")" = one ]; "$P" unmount --wait "$M"; rm -r "$T/new"; mkdir "$T/new"
                        if PROMISEFS_FAULT=migration.log.remove:KILL migrate "folder:$T/new" > /dev/null 2>&1; then exit 1; fi
                        migrate --abandon | grep -q 'nothing to give up'; [ -e "$R/moved.json" ]; mounted "folder:$T/new"
                        """)
            }
        }

        /// A file that an editor had saved meanwhile was in the way of itself, and of the two names of one file one was removed.
        @Test(.timeLimit(.minutes(2))) func whatChangesWhileAMigrationIsCutOffIsBroughtAsItIs() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        mkdir -p "$C/folder/in" "$C/many" "$T/new"; for i in $(seq 60); do echo $i > "$C/many/$i"; done
                        echo x > "$C/folder/in/x"; echo file > "$C/file"; ln "$C/file" "$C/second"; chmod 500 "$C/folder/in"
                        "$P" unmount --wait "$M"; printf 'delay=100ms\n' > "$PROMISEFS_PROVIDER_FAULTS"
                        "$P" migrate $N --state-dir "$S" "folder:$T/new" > /dev/null 2>&1 & began=$!
                        within 30 '[ "$(ls "$T/new/many" 2> /dev/null | wc -l)" -ge 15 ]'; kill -KILL $began; wait $began || true
                        : > "$PROMISEFS_PROVIDER_FAULTS"; [ -s "$S/migration/log" ]; [ "$(ls "$T/new/many" | wc -l)" -lt 60 ]
                        for i in $(seq 60); do echo "saved $i" > "$C/many/.x"; mv "$C/many/.x" "$C/many/$i"; done
                        mv "$C/many/1" "$C/many/t"; mv "$C/many/2" "$C/many/1"; mv "$C/many/t" "$C/many/2"; rm "$C/many/3"
                        chmod 700 "$C/folder/in"; mv "$C/folder/in/x" "$C/x"; rmdir "$C/folder/in"; echo now > "$C/folder/in"
                        rm -f "$T/new/many/7"; echo again > "$C/second"; chmod 750 "$C/folder"; touch -d 2001-02-03 "$C/folder"
                        migrate "folder:$T/new"; same "$C" "$T/new"; [ "$(cat "$T/new/file")" = again ]
                        [ "$(stat -c '%a %Y' "$T/new/folder")" = "$(stat -c '%a %Y' "$C/folder")" ]
                        mounted "folder:$T/new"; within 10 'same "$T/new" "$M"'; "$P" verify "$M"
                        """)
            }
        }

        /// What had been removed at the old storage was removed at the new one, too, as it was by then.
        @Test(.timeLimit(.minutes(2))) func whatIsEditedAtTheNewStorageIsNotRemovedThere() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        mkdir -p "$C/in" "$T/new"; for n in in/one in/two three; do echo $n > "$C/$n"; done
                        "$P" unmount --wait "$M"
                        if PROMISEFS_FAULT=migration.forget:KILL migrate "folder:$T/new" > /dev/null 2>&1; then exit 1; fi
                        echo "edited there" > "$T/new/in/one"; rm -r "$C/in" "$C/three"
                        s=0; migrate "folder:$T/new" > "$T/out" 2>&1 || s=$?; [ "$s" != 0 ]
                        grep -q '^/in/one: somebody changed it' "$T/out"; grep -q '1 item cannot' "$T/out"
                        [ "$(cat "$T/new/in/one")" = "edited there" ]; [ ! -e "$T/new/in/two" ]; [ ! -e "$T/new/three" ]
                        mv "$T/new/in/one" "$T/kept"; migrate "folder:$T/new"; [ ! -e "$T/new/in" ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aStorageThatGivesHalfOfAFileIsNotBelieved() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        seq 10000 > "$C/file"; mkdir "$T/new"; "$P" unmount --wait "$M"
                        printf 'short=true\n' > "$PROMISEFS_PROVIDER_FAULTS"
                        s=0; migrate "folder:$T/new" > "$T/out" 2>&1 || s=$?; [ "$s" = 1 ]; grep -q '^/file: .* bytes' "$T/out"
                        : > "$PROMISEFS_PROVIDER_FAULTS"; migrate "folder:$T/new"; cmp "$C/file" "$T/new/file"
                        """)
            }
        }

        /// It was only said that the old storage is changed all the time; and what passes by itself ended the last steps.
        @Test(.timeLimit(.minutes(2))) func whatIsNeverThereIsNamedAndWhatPassesIsWaitedFor() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        mkdir -p "$C/a/b" "$C/c" "$T/new"; echo x > "$C/a/b/file"; "$P" unmount --wait "$M"
                        printf 'stale=true\nonly=fetchContents\n' > "$PROMISEFS_PROVIDER_FAULTS"
                        s=0; migrate "folder:$T/new" > "$T/out" 2>&1 || s=$?; [ "$s" != 0 ]; grep -q '^/a/b/file: ' "$T/out"
                        printf 'fail=2\nonly=modify\n' > "$PROMISEFS_PROVIDER_FAULTS"
                        migrate "folder:$T/new"; : > "$PROMISEFS_PROVIDER_FAULTS"; same "$C" "$T/new"
                        """)
            }
        }

        /// From a folder to a bucket, to a WebDAV server and back, killed on each way, and everything is what it was.
        @Test(
            .timeLimit(.minutes(10)), .enabled(if: WebDAVServer.canRun, "apache2 is not installed"))
        func aDomainThatGoesRoundThroughAllStoragesIsWhatItWas() async throws {
            try await S3Server.with { s3 in
                try await WebDAVServer.with { webdav in
                    var options = s3.options()
                    options.provider = nil
                    options.environment["PROMISEFS_USER"] = WebDAVServer.user
                    options.environment["PROMISEFS_PASSWORD"] = WebDAVServer.password
                    options.environment["PROMISEFS_OLD_USER"] = WebDAVServer.user
                    options.environment["PROMISEFS_OLD_PASSWORD"] = WebDAVServer.password
                    try await MountedDomain.with(options) { domain in
                        try await roundTrip(domain, s3.provider, webdav.provider)
                    }
                }
            }
        }

        private func roundTrip(_ domain: MountedDomain, _ s3: String, _ webdav: String) async throws
        {
            let lines = """
                go() { # kills it on the way, and goes on
                    for n in 0.3 0.6 1; do timeout -s KILL $n "$P" migrate $N --state-dir "$S" "$1" > /dev/null 2>&1 || true; done
                    migrate "$1" --json > "$T/json" || { cat "$T/json"; return 1; }
                }

                """
            try await domain.shell(
                Self.shorthand(domain)
                    + """
                    mkdir -p "$C/a/b" "$C/many"; for i in $(seq \(Self.fileCount)); do echo $i > "$C/many/$i"; done
                    ln -s many/1 "$C/l"; head -c 9M /dev/urandom > "$C/large"; : > "$C/empty"; echo doc > "$C/a/doc"
                    touch -d 2001-02-03 "$C/a/doc"; chmod 640 "$C/a/doc"; mkdir "$C/hollow"; echo x > "$C/a/b/ä ö#%?&"
                    "$P" sync "$M"; find "$M" > /dev/null; "$P" reference add "$M/a/doc" "$M/ref"
                    "$P" bookmark create "$M/a/doc" --app com.example.editor > "$T/bookmark"
                    "$P" sync --wait "$M"; "$P" unmount --wait "$M"; mkdir "$T/back"
                    cp -a "$C" "$T/model"; rm -rf "$T/model/.promisefs"
                    """, seconds: 120)
            for (provider, name) in [
                (s3, "s3"), (webdav, "webdav"), ("folder:\(domain.root)/tmp/back", "folder"),
            ] {
                try await domain.shell(
                    Self.shorthand(domain) + lines + "go '\(provider)'; mounted '\(provider)'",
                    seconds: 400)
                try await domain.shell(
                    Self.shorthand(domain)
                        + """
                        names() { (cd "$1"; find . | sort); }; names "$T/model" > "$T/names"
                        within 30 'names "$M" | cmp -s - "$T/names"' || { names "$M" | diff - "$T/names"; echo \(name); exit 1; }
                        diff -r --no-dereference --exclude=ref "$T/model" "$M"; [ "$(cat "$M/ref")" = doc ]
                        [ "$("$P" bookmark resolve "$(cat "$T/bookmark")" --app com.example.editor)" = "$M/a/doc" ]
                        [ "$(stat -c '%a %Y' "$M/a/doc")" = "$(stat -c '%a %Y' "$T/model/a/doc")" ]
                        "$P" verify "$M"; "$P" unmount --wait "$M"
                        """, seconds: 240)
            }
            try await domain.shell(
                Self.shorthand(domain)
                    + "diff -r --no-dereference --exclude=.promisefs --exclude=ref \"$T/model\" \"$T/back\""
            )
        }
    }
}
