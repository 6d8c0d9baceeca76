import Foundation
import Testing

extension MountSuites {
    /// What an application keeps of an item to find it again.
    @Suite struct BookmarkTests {
        // An editor's temporary file is one only as long as the provider was not told of it.
        private static let options = MountedDomain.Options(
            arguments: ["--poll-interval", "1s", "--upload-delay", "1s"])

        private static let shorthand = """
            make() { "$P" bookmark create "$@" --app com.example.editor; }
            find() { "$P" bookmark resolve "$1" --app com.example.editor "${@:2}" 2> "$T/said"; }

            """

        @Test(.timeLimit(.minutes(2))) func aBookmarkFindsItsItemAfterEveryChangeAndSaysThatItIsStale() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mkdir "$M/a" "$M/b"; echo one > "$M/a/doc"; b=$(make "$M/a/doc"); echo "$b" > "$T/bookmark"
                        [ "$(find "$b")" = "$M/a/doc" ]; [ ! -s "$T/said" ]; find "$b" --json | grep -q '"isStale":false'
                        echo two > "$M/a/.new"; mv "$M/a/.new" "$M/a/doc"; [ "$(find "$b")" = "$M/a/doc" ]
                        "$P" sync --wait "$M"; "$P" evict "$M/a/doc"; [ "$(find "$b")" = "$M/a/doc" ]
                        mv "$M/a/doc" "$M/b/other"; [ "$(find "$b")" = "$M/b/other" ]; grep -q 'stale: .*moved' "$T/said"
                        n=$(find "$b" --json | sed 's/.*"renewed":"\\([^"]*\\)".*/\\1/')
                        [ "$(find "$n")" = "$M/b/other" ]; [ ! -s "$T/said" ]
                        "$P" sync --wait "$M"; echo three > "$C/b/.x"; mv "$C/b/.x" "$C/b/other"
                        within 5 '[ "$(cat "$M/b/other")" = three ]'
                        [ "$(find "$b")" = "$M/b/other" ]
                        """)
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    Self.shorthand
                        + """
                        b=$(cat "$T/bookmark"); [ "$(find "$b")" = "$M/b/other" ]
                        f=$(make "$M/b" --read-only); mv "$M/b" "$M/c"; [ "$(find "$f")" = "$M/c" ]
                        find "$f" --json | grep -q '"isReadOnly":true'
                        [ "$(find "$b")" = "$M/c/other" ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aBookmarkOfWhatIsGoneSaysWhyAndWhatWasKnown() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        echo one > "$M/doc"; "$P" sync --wait "$M"; b=$(make "$M/doc"); rm "$M/doc"; "$P" sync --wait "$M"
                        s=0; find "$b" || s=$?; [ "$s" = 1 ]
                        grep -q 'leads nowhere: the item was deleted' "$T/said"
                        find "$b" --json > "$T/json" || true
                        grep -q '"kMDItemFSName":.*doc' "$T/json"; not grep -q '"path"' "$T/json"
                        echo another > "$M/doc"; "$P" sync --wait "$M"; s=0
                        find "$b" || s=$?; [ "$s" = 1 ]; grep -q 'another one' "$T/said"
                        """)
            }
        }

        /// They knew the item by its name on this machine alone, which went with it: "the item was deleted".
        @Test(.timeLimit(.minutes(3))) func whatWasNotedBeforeItWasSentIsFoundWhereOthersHaveMovedIt() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mkdir "$M/p"; echo plan > "$M/p/doc"; b=$(make "$M/p/doc"); f=$("$P" bookmark create "$M/p")
                        g=$("$P" grants add "$M/p/doc" --app com.example.mail); "$P" sync --wait "$M"
                        mkdir "$C/new"; mv "$C/p" "$C/new/q"; "$P" sync "$M"; within 60 '[ ! -e "$M/p" ]'
                        # Nobody looks into the folder: it is looked for.
                        within 60 '"$P" grants show "$g" --domain \(domain.domainName) | grep -q "$M/new/q/doc"'
                        [ "$(find "$b")" = "$M/new/q/doc" ]; grep -q 'stale: .*moved' "$T/said"
                        [ "$("$P" bookmark resolve "$f" 2> /dev/null)" = "$M/new/q" ]
                        # A new document that an editor saves by a backup, or anew, is the same one.
                        list() { "$P" grants list --domain \(domain.domainName) --app com.example.$1; }
                        for way in backup anew; do
                        echo 1 > "$M/$way"; b=$(make "$M/$way"); "$P" grants add "$M/$way" --app com.example.$way
                        if [ $way = backup ]; then mv "$M/$way" "$M/$way~"; else rm "$M/$way"; fi
                        echo 2 > "$M/$way"; rm -f "$M/$way~"; [ "$(find "$b")" = "$M/$way" ]; list $way | grep -q "$M/$way"
                        "$P" sync --wait "$M"; mv "$M/$way" "$M/$way.moved"; [ "$(find "$b")" = "$M/$way.moved" ]
                        within 60 "list $way | grep -q '$M/$way.moved'"
                        done
                        """)
            }
        }

        /// Whoever writes to the storage writes its notes of moves, and the application had what they led to.
        @Test(
            .timeLimit(.minutes(3)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func anApplicationIsGivenNothingByANoteAtTheStorage() async throws {
            try await WebDAVServer.with { server in
                var options = Self.options
                options.provider = server.provider
                options.environment = ["PROMISEFS_USER": WebDAVServer.user, "PROMISEFS_PASSWORD": WebDAVServer.password]
                try await MountedDomain.with(options) { domain in
                    try await domain.shell(
                        Self.shorthand
                            + """
                            O=$T/other; mkdir $O; trap 'umount -l "$O" 2> /dev/null || true' EXIT
                            echo plan > "$M/doc"; "$P" sync --wait "$M"; b=$(make "$M/doc")
                            "$P" mount --domain other --state-dir "$T/state-other" --poll-interval 1s --upload-delay 0s \
                                '\(server.provider)' "$O" > /dev/null
                            mkdir "$O/new"; mv "$O/doc" "$O/new/doc"; "$P" sync --wait "$O"; "$P" sync "$M"
                            within 60 '[ ! -e "$M/doc" ] && [ -e "$M/new/doc" ]'
                            # The owner is led there.
                            within 60 '[ "$(find "$b")" = "$M/new/doc" ]'
                            "$P" run --app com.example.editor --domain \(domain.domainName) -- sh -c 'curl -sS \
                                --unix-socket $PROMISEFS_SOCKET http://promisefs/v1/bookmarks/resolve \
                                --json "{\\"bookmark\\":\\"$1\\"}"; ls granted' sh "$b" > $T/told
                            grep -q '"reason"' $T/told; not grep -q '"scope"' $T/told; not grep -qx doc $T/told
                            "$P" unmount --wait "$O"
                            """, seconds: 120)
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func aBookmarkIsOfNoUseToOthers() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        echo one > "$M/doc"; b=$(make "$M/doc"); [ "$(wc -l <<< "$b")" = 1 ]; not grep -q doc <<< "$b"
                        refused() { local s=0; "$P" bookmark resolve "$@" 2> /dev/null || s=$?
                        [ "$s" = 5 ]; }
                        refused "$b"; refused "$b" --app com.example.other
                        refused "A$b" --app com.example.editor; refused nothing
                        o=$("$P" bookmark create "$M/doc"); [ "$("$P" bookmark resolve "$o")" = "$M/doc" ]
                        refused "$o" --app com.example.editor
                        k=$("$P" status "$M" --json | sed 's/.*"stateFolder":"\\([^"]*\\)".*/\\1/')/bookmark.key
                        [ "$(stat -c %a-%s "$k")" = 600-32 ]
                        # Also what the daemon has read long ago is looked at.
                        cp "$k" "$T/k"; truncate -s 31 "$k"; "$P" verify "$M" > "$T/v" 2>&1 || true; cp "$T/k" "$k"
                        grep -q 'is no key: restore it' "$T/v"
                        s=0; "$P" bookmark create "$M" 2> "$T/v" || s=$?; [ "$s" = 1 ]; grep -q 'needs no bookmark' "$T/v"
                        """)
            }
        }
    }
}
