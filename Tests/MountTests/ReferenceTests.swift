import Foundation
import Testing

extension MountSuites {
    /// Links that follow their documents.
    @Suite struct ReferenceTests {
        private static let options = MountedDomain.Options(
            arguments: ["--poll-interval", "1s", "--upload-delay", "0s"])

        private func twoMachines(_ body: (MountedDomain, MountedDomain) async throws -> Void) async throws {
            var options = Self.options
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in try await body(first, second) }
            }
        }

        private static let shorthand = """
            ref() { local w=$1; shift; "$P" reference "$w" "$@"; }
            why() { getfattr -h --only-values -n system.promisefs.reference "$1"; }

            """

        @Test(.timeLimit(.minutes(2))) func aReferenceFollowsItsDocumentThroughEveryChange() async throws {
            // An editor's backup gives the item back as long as the provider was not told of it.
            let options = MountedDomain.Options(arguments: ["--poll-interval", "1s", "--upload-delay", "1s"])
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mkdir -p "$M/a/b" "$M/desk"; echo one > "$M/a/doc"
                        [ "$(ref add "$M/a/doc" "$M/desk")" = "$M/desk/doc" ]
                        leads() { [ "$(readlink "$M/desk/doc")" = "$1" ]; [ "$(cat "$M/desk/doc")" = "$2" ]; }
                        leads ../a/doc one; [ -L "$M/desk/doc" ]; [ "$(why "$M/desk/doc")" = found ]
                        echo two >> "$M/desk/doc"; [ "$(tail -1 "$M/a/doc")" = two ]; echo one > "$M/a/doc"
                        mv "$M/a/doc" "$M/a/renamed"; leads ../a/renamed one
                        mv "$M/a/renamed" "$M/a/b/doc"; leads ../a/b/doc one
                        mv "$M/a" "$M/c"; leads ../c/b/doc one
                        # The reference itself is moved.
                        mv "$M/desk/doc" "$M/link"; [ "$(readlink "$M/link")" = c/b/doc ]; mv "$M/link" "$M/desk/doc"
                        # Safe saves.
                        echo three > "$M/c/b/.new"; mv "$M/c/b/.new" "$M/c/b/doc"; leads ../c/b/doc three
                        mv "$M/c/b/doc" "$M/c/b/doc~"; echo four > "$M/c/b/doc"; leads ../c/b/doc four; rm "$M/c/b/doc~"
                        "$P" sync --wait "$M"; leads ../c/b/doc four
                        "$P" evict "$M/c/b/doc"; leads ../c/b/doc four
                        # At the provider: replaced as a whole, and moved.
                        echo five > "$C/c/b/.x"; mv "$C/c/b/.x" "$C/c/b/doc"; within 5 '[ "$(cat "$M/desk/doc")" = five ]'
                        leads ../c/b/doc five; mv "$C/c/b/doc" "$C/top"; within 5 '[ "$(readlink "$M/desk/doc")" = ../top ]'
                        readlink "$C/desk/doc" | grep -q '^promisefs-reference:.*stands for'
                        ref list "$M" | grep -q "$M/desk/doc *-> $M/top"
                        "$P" info "$M/desk/doc" | grep -q 'follows its document'
                        found=$("$P" find --external "$M" 'NSMetadataUbiquitousItemIsExternalDocumentKey == YES')
                        [ "$found" = "$M/desk/doc" ]; [ "$("$P" find --external "$M/c" TRUEPREDICATE)" = "" ]
                        # Of other scopes it is no part: what it stands for is found where that is.
                        ! "$P" find "$M" TRUEPREDICATE | grep desk/doc; [ "$("$P" find "$M/desk" TRUEPREDICATE)" = "" ]
                        """)
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    Self.shorthand
                        + """
                        [ "$(readlink "$M/desk/doc")" = ../top ]; [ "$(cat "$M/desk/doc")" = five ]
                        # Removing the reference leaves the document.
                        ref add "$M/top" "$M/second"; rm "$M/second"
                        ref add "$M/desk/doc" "$M/second"
                        [ "$(readlink "$M/second")" = top ]; ref remove "$M/second"
                        [ "$(cat "$M/top")" = five ]
                        s=0; ref remove "$M/top" 2> /dev/null || s=$?; [ "$s" = 1 ]; [ -e "$M/top" ]
                        s=0; ref add "$M/top" "$M/desk/doc" 2> /dev/null || s=$?; [ "$s" = 1 ]
                        s=0; ref add "$M/nothing" "$M/x" 2> /dev/null || s=$?; [ "$s" = 1 ]
                        [ ! -L "$M/x" ]
                        """)
            }
        }

        /// > Of links, whose `user.` attributes the kernel lets nobody read
        @Test(.timeLimit(.minutes(2))) func aReferenceToWhatIsGoneSaysWhyAndLeadsToNothingElse() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        echo one > "$M/doc"; ref add "$M/doc" "$M/link"; rm "$M/doc"
                        within 5 'why "$M/link" | grep -q "the item was deleted"'
                        not cat "$M/link" 2> /dev/null
                        [ "$(readlink "$M/link")" = .promisefs/deleted/doc ]
                        "$P" info "$M/link" | grep -q 'leads nowhere: the item was deleted'
                        "$P" sync --wait "$M"; echo another > "$M/doc"; "$P" sync --wait "$M"
                        within 5 'why "$M/link" | grep -q "another one has its name"'
                        not cat "$M/link" 2> /dev/null
                        ref list "$M" --json | grep -q '"state":"replaced"'; rm "$M/link"
                        [ "$(cat "$M/doc")" = another ]
                        # What is moved into a folder that stays here is not deleted.
                        mkdir "$M/stays"; setfattr -n user.promisefs.excluded -v true "$M/stays"; ref add "$M/doc" "$M/link"
                        b=$("$P" bookmark create "$M/doc"); mv "$M/doc" "$M/stays/doc"; "$P" sync --wait "$M"; [ ! -e "$C/doc" ]
                        [ "$(readlink "$M/link")" = stays/doc ]; [ "$("$P" bookmark resolve "$b")" = "$M/stays/doc" ]
                        mv "$M/stays/doc" "$M/doc"; [ "$(readlink "$M/link")" = doc ]; rm "$M/link"
                        # An ordinary link says nothing of the kind.
                        ln -s doc "$M/plain"; not why "$M/plain" 2> /dev/null; [ "$(readlink "$M/plain")" = doc ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aReferenceIsTheSameOnAnotherMachine() async throws {
            try await twoMachines { first, second in
                try await first.shell(
                    Self.shorthand + "mkdir \"$M/a\" \"$M/deep\"; echo one > \"$M/a/doc\"; ref add \"$M/a/doc\" \"$M/link\"")
                // Which has listed nothing but the root, and moves the document itself.
                try await second.shell(
                    Self.shorthand
                        + """
                        within 5 '[ "$(cat "$M/link" 2> /dev/null)" = one ]'
                        [ "$(readlink "$M/link")" = a/doc ]
                        mkdir "$M/deep/er"; mv "$M/a/doc" "$M/deep/er/doc"; [ "$(readlink "$M/link")" = deep/er/doc ]
                        "$P" sync --wait "$M"
                        """)
                // It has never looked into that folder.
                try await first.shell(
                    Self.shorthand
                        + """
                        within 10 '[ "$(readlink "$M/link")" = deep/er/doc ]'; [ "$(cat "$M/link")" = one ]
                        """)
            }
        }

        /// It was deleted, as was said, until somebody listed the folder under its new name.
        @Test(.enabled(if: WebDAVServer.canRun), .timeLimit(.minutes(2)))
        func whatIsInAFolderThatAnotherMachineMovedIsFoundWhereOnlyPlacesAreKnown() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await first.shell(
                        """
                        mkdir "$M/d" "$M/f" "$M/desk"; echo 1 > "$M/d/doc"; echo 2 > "$M/f/doc"; "$P" sync --wait "$M"
                        "$P" reference add "$M/d/doc" "$M/desk" > /dev/null; "$P" sync --wait "$M"
                        """)
                    try await MountedDomain.with(server.options()) { second in
                        let bookmark = try await second.shell(
                            "[ \"$(cat \"$M/desk/doc\" \"$M/f/doc\" | tr -d '\\n')\" = 12 ]; \"$P\" bookmark create \"$M/f/doc\""
                        ).text
                        try await first.shell("mv \"$M/d\" \"$M/e\"; mv \"$M/f\" \"$M/g\"; \"$P\" sync --wait \"$M\"")
                        try await second.shell(
                            """
                            "$P" sync "$M"; within 10 '[ ! -e "$M/d" ] && [ ! -e "$M/f" ]'
                            within 15 '[ "$("$P" bookmark resolve \(bookmark) 2> /dev/null)" = "$M/g/doc" ]'
                            within 15 '[ "$(readlink "$M/desk/doc")" = ../e/doc ]'; [ "$(cat "$M/desk/doc")" = 1 ]
                            """, seconds: 60)
                    }
                    // Who goes right after a move tells it first: nobody else could, until that machine is there again.
                    try await first.shell(
                        """
                        mv "$M/e" "$M/last"; "$P" sync --wait "$M"; "$P" unmount --wait "$M"
                        grep -q '/last"' "$C/.promisefs/moves/items.json"
                        """)
                    try await first.remount()
                }
            }
        }

        /// Everything was deleted, as it said, until somebody had read each link.
        @Test(.enabled(if: WebDAVServer.canRun), .timeLimit(.minutes(2)))
        func theListOfReferencesFollowsOthersMovesWhereOnlyPlacesAreKnown() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await first.shell(
                        """
                        mkdir -p "$M/d/sub" "$M/new" "$M/desk"; for n in d/sub/doc old top gone; do echo $n > "$M/$n"; done
                        "$P" sync --wait "$M"
                        for n in d/sub/doc old top gone; do "$P" reference add "$M/$n" "$M/desk/${n##*/}" > /dev/null; done
                        "$P" sync --wait "$M"
                        """)
                    try await MountedDomain.with(server.options()) { second in
                        try await second.shell("find \"$M\" > /dev/null; [ \"$(cat \"$M/desk/top\")\" = top ]")
                        try await first.shell(
                            """
                            mv "$M/d" "$M/e"; mv "$M/old" "$M/renamed"; mv "$M/top" "$M/new/top"; rm "$M/gone"
                            "$P" sync --wait "$M"; within 15 'grep -q new/top "$C/.promisefs/moves/items.json"'
                            """, seconds: 40)
                        try await second.shell(
                            """
                            "$P" sync "$M"; within 10 '[ ! -e "$M/d" ] && [ ! -e "$M/gone" ]'; sleep 1.5
                            "$P" reference list "$M" > "$T/list"; cat "$T/list" >&2
                            for n in e/sub/doc renamed new/top; do grep -q -- "-> $M/$n\\$" "$T/list"; done
                            [ "$(grep -c 'leads nowhere: the item was deleted' "$T/list")" = 1 ]
                            "$P" info "$M/desk/doc" | grep -q 'follows its document'
                            """, seconds: 60)
                    }
                }
            }
        }

        /// They were those of the file's first name, and led nowhere when that was removed.
        @Test(.timeLimit(.minutes(2))) func whatIsGivenByASecondNameOfAFileIsOfThatName() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mkdir "$M/x" "$M/desk"; echo doc > "$M/x/doc"; "$P" sync --wait "$M"; ln "$M/x/doc" "$M/second"
                        "$P" sync --wait "$M"; ref add "$M/second" "$M/desk/link"; b=$("$P" bookmark create "$M/second")
                        "$P" grants add --app com.example.editor "$M/second" --json | grep -q '"path":"/second"'
                        [ "$(readlink "$M/desk/link")" = ../second ]; rm "$M/x/doc"; "$P" sync --wait "$M"
                        [ "$(readlink "$M/desk/link")" = ../second ]; [ "$("$P" bookmark resolve "$b")" = "$M/second" ]
                        "$P" grants list --domain "$(findmnt -no SOURCE "$M")" --json | grep -q '"path":"/second"'
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aReferenceCostsOneRequestAndAMoveNothing() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        mkdir "$M/a"; for i in $(seq 20); do echo $i > "$M/a/$i"; done; "$P" sync --wait "$M"
                        for i in $(seq 20); do ref add "$M/a/$i" "$M/l$i" > /dev/null; done
                        count() {
                          "$P" status "$M" --json | grep -o '"readlink":[0-9]*' | cut -d: -f2 || true
                        }
                        before=$(count); mv "$M/a" "$M/b"; [ "$(count)" = "$before" ]
                        before=${before:-0}; for i in $(seq 20); do [ "$(readlink "$M/l$i")" = b/$i ]; done
                        [ "$(count)" = $((before + 20)) ]
                        """)
            }
        }
    }
}
