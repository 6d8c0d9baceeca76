import Foundation
import Testing

extension MountSuites {
    /// The folders of applications, between two daemons on one folder.
    @Suite struct ContainerTests {
        private func twoMachines(_ body: (MountedDomain, MountedDomain) async throws -> Void) async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in try await body(first, second) }
            }
        }

        /// `add`, `list`, `remove`: of one application in this domain; `D` is its name.
        private func shorthand(_ domain: MountedDomain) -> String {
            """
            D=\(domain.domainName)
            add() { "$P" container add --app com.example.editor "$@" $D; }
            list() { "$P" container list "$@" $D; }
            remove() { "$P" container remove --app com.example.editor $D; }\n
            """
        }

        /// The record of one that was removed at once was still on its way to the provider, and it came back.
        @Test(.timeLimit(.minutes(2))) func aContainerThatIsRemovedRightAfterItWasMadeStaysRemoved() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                try domain.setFaults(["delay=100ms"])
                try await domain.shell(
                    """
                    for i in 0 1 2 3 4 5 6 7; do
                        "$P" container add --app com.example.a$i \(domain.domainName) > /dev/null
                        sleep 0.$((i * 6 + 10)); "$P" container remove --app com.example.a$i \(domain.domainName) > /dev/null
                    done
                    """)
                try domain.setFaults([])
                try await domain.shell(
                    """
                    # Two polls, by which they came back.
                    sleep 2.5; "$P" container list \(domain.domainName) > "$T/list"; cat "$T/list"; not grep com.example "$T/list"
                    within 20 '[ -z "$(ls -A "$C/.promisefs/containers")" ]'
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aContainerIsItsFolderOnEveryMachineWhereverThatIsMoved() async throws {
            try await twoMachines { first, second in
                let (one, two) = (shorthand(first), shorthand(second))
                try await first.shell(
                    one
                        + """
                        [ "$(add --name Editor)" = "$M/Editor" ]; [ -d "$M/Editor/Documents" ]
                        [ "$(add)" = "$M/Editor" ]; list | grep -q 'com.example.editor *Editor *'"$M/Editor"
                        within 5 'list --json | grep -q "\\"isSent\\":true"'
                        grep -q com.example.editor "$C/.promisefs/containers/com.example.editor.json"
                        [ "$(stat -c %u "$M/Editor")" = "$(stat -c %u "$M")" ]; [ ! -e "$M/.promisefs" ]
                        """)
                // The other machine has never made one.
                try await second.shell(
                    two
                        + """
                        [ "$(add)" = "$M/Editor" ]; mkdir "$M/Apps"; mv "$M/Editor" "$M/Apps/Mine"
                        [ "$(add)" = "$M/Apps/Mine" ]
                        """)
                try await first.shell(one + "within 5 '[ \"$(add)\" = \"$M/Apps/Mine\" ]'; [ ! -e \"$M/Editor\" ]")
                try await first.kill9()
                try await first.remount()
                try await second.remount()
                try await first.shell(one + "[ \"$(add --name Writer)\" = \"$M/Apps/Mine\" ]; list | grep -q Writer")
                // What was deleted is said, and made anew when it is asked for.
                try await second.shell(
                    two
                        + """
                        rm -r "$M/Apps/Mine"; list | grep -q 'the item was deleted'; [ "$(add)" = "$M/com.example.editor" ]
                        "$P" sync "$M"; list | grep "$M/com.example.editor"
                        touch "$M/com.example.editor/Documents/kept"; within 5 'list --json | grep -q "\\"isSent\\":true"'
                        """)
                try await first.shell(one + "\"$P\" sync $M; within 5 '[ \"$(add)\" = \"$M/com.example.editor\" ]'; remove")
                try await first.shell(one + "[ -e \"$M/com.example.editor/Documents/kept\" ]; [ -z \"$(list)\" ]")
                try await second.shell(two + "within 5 '[ -z \"$(list)\" ]'; [ -e \"$M/com.example.editor/Documents/kept\" ]")
            }
        }

        @Test(.timeLimit(.minutes(2))) func aContainerIsMadeWithoutTheProviderAndToldLater() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    shorthand(domain)
                        + """
                        mkdir "$M/Editor"; touch "$M/Editor/own"
                        mv "$C" "$C.away"; within 10 'list --json | grep -q "\\"isReachable\\":false"'
                        [ "$(add --name Editor)" = "$M/Editor (com.example.editor)" ]; list --json | grep -q '"isSent":false'
                        mv "$C.away" "$C"; "$P" sync "$M"; within 10 'list --json | grep -q "\\"isSent\\":true"'
                        [ "$(ls "$M/Editor")" = own ]; [ -d "$C/Editor (com.example.editor)/Documents" ]
                        s=0; "$P" container add --app ../up $D 2> "$T/err" || s=$?; [ "$s" = 1 ]; grep -q 'no identifier' "$T/err"
                        s=0; "$P" container remove --app com.example.nobody $D 2> /dev/null || s=$?; [ "$s" = 1 ]
                        s=0; "$P" container list nothing 2> /dev/null || s=$?; [ "$s" = 3 ]
                        """)
            }
        }

        /// The exchange that was under way wrote what it had sent over it.
        @Test(.timeLimit(.minutes(2))) func whatIsAskedForDuringAnExchangeIsKept() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                try await domain.shell(
                    shorthand(domain)
                        + "add --name Editor; within 10 'list --json | grep -q \"\\\"isSent\\\":true\"'")
                try domain.setFaults(["delay=2s"])
                try await domain.shell(shorthand(domain) + "add --name One; add --name Two; sleep 3; list | grep -q Two")
                try domain.setFaults([])
                try await domain.shell(
                    shorthand(domain)
                        + "within 20 'grep -q Two \"$C/.promisefs/containers/com.example.editor.json\"'; list | grep -q Two")
            }
        }

        /// With such a name it was on this machine alone, or the provider refused it for good.
        @Test(.timeLimit(.minutes(2))) func aContainerHasANameThatTheProviderTakesAndItsDocumentsAgain() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    shorthand(domain) + """
                        echo 'secret/' > "$M/.promisefsignore"
                        for name in .promisefs secret; do
                            s=0; add --name "$name" 2> "$T/said" || s=$?; [ $s = 1 ]; [ ! -e "$M/$name" ]
                        done
                        grep -q 'stays on this machine' "$T/said"
                        # Its record could not be written: the folder stayed, and the next attempt made another one.
                        mkdir "$S/containers.json.new"; not add --name Editor 2> /dev/null; [ ! -e "$M/Editor" ]
                        rmdir "$S/containers.json.new"
                        [ "$(add --name Editor)" = "$M/Editor" ]; "$P" sync --wait "$M"; rmdir "$M/Editor/Documents"
                        [ "$(add)" = "$M/Editor" ]; [ -d "$M/Editor/Documents" ]
                        """)
            }
        }

        /// The container's record and the reference went at the provider.
        @Test(.timeLimit(.minutes(2))) func aReadOnlyMountTakesNeitherContainersNorReferencesAway() async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { first in
                try await first.shell(
                    shorthand(first) + """
                        add --name Editor > /dev/null; echo 1 > "$M/doc"; "$P" reference add "$M/doc" "$M/link" > /dev/null
                        "$P" sync --wait "$M"; within 5 'list --json | grep -q "\\"isSent\\":true"'
                        """)
                (options.cloud, options.arguments) = (first.cloud, options.arguments + ["--read-only"])
                try await MountedDomain.with(options) { second in
                    try await second.shell(
                        shorthand(second) + """
                            [ "$(readlink "$M/link")" = doc ]
                            refused() { s=0; "$@" > /dev/null 2> "$T/said" || s=$?; [ $s = 1 ]; grep -q read-only "$T/said"; }
                            refused remove; refused "$P" reference remove "$M/link"; refused "$P" verify --provider --repair "$M"
                            list | grep -q Editor; [ "$(readlink "$M/link")" = doc ]; "$P" sync --wait "$M"
                            [ -e "$C/.promisefs/containers/com.example.editor.json" ]; [ -e "$C/link" ] || [ -L "$C/link" ]
                            """)
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func anIconIsKnownOnEveryMachine() async throws {
            try await twoMachines { first, second in
                let picture =
                    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
                try await first.shell(
                    shorthand(first)
                        + """
                        echo \(picture) | base64 -d > "$T/icon.png"; add --name Editor --icon "$T/icon.png"
                        s=0; add --icon "$P" 2> "$T/err" || s=$?; [ "$s" = 1 ]; grep -q 'PNG file of at most 65536' "$T/err"
                        add > "$T/path"; "$P" container icon --app com.example.editor -o "$T/again.png" $D
                        cmp "$T/icon.png" "$T/again.png"
                        list --json | grep -q '"hasIcon":true'; within 5 'list --json | grep -q "\\"isSent\\":true"'
                        """)
                try await second.shell(
                    shorthand(second)
                        + """
                        within 5 'list --json | grep -q "\\"hasIcon\\":true"'
                        "$P" container icon --app com.example.editor -o "$T/icon.png" $D
                        [ "$(base64 -w 0 "$T/icon.png")" = \(picture) ]
                        s=0; "$P" container icon --app com.example.none -o "$T/x" $D 2> "$T/err" || s=$?; [ "$s" = 1 ]
                        add --name Writer
                        """)
                // What others change in a known one is seen at a poll.
                try await first.shell(shorthand(first) + "within 10 'list | grep -q Writer'")
            }
        }

        @Test(.timeLimit(.minutes(2))) func othersSeeAContainerWhereItIsPublicOnly() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    D=\(domain.domainName); mkdir "$M/empty"
                    "$P" container add --app com.example.shown --name Shown --public $D
                    "$P" container add --app com.example.own --name Own $D
                    places() { printf 'places\\nq\\n' | "$P" pick --plain --at "$M/empty" --app $1 2>&1 |
                        grep -oE 'Shown|Own' | sort -u; }
                    [ "$(places com.example.own | tr '\\n' ' ')" = "Own Shown " ]
                    [ "$(places com.example.other)" = Shown ]
                    list() { "$P" run --app $1 --domain $D -- sh -c \
                        'curl -fsS --unix-socket "$PROMISEFS_SOCKET" http://promisefs/v1/containers' |
                        grep -oE '"name":"[A-Za-z]+"' | sort -u; }
                    [ "$(list com.example.other)" = '"name":"Shown"' ]
                    [ "$(list com.example.own | wc -l)" = 2 ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func whoWatchesHearsWhenTheDomainCanBeUsedAndWhenNot() async throws {
            try await MountedDomain.with { domain in
                let name = "D=\(domain.domainName)\n"
                try await domain.shell(
                    name
                        + """
                        "$P" container list --watch $D > "$T/seen" & echo $! > "$T/watch"
                        within 5 'grep -q "can be used" "$T/seen"'
                        """)
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    "\"$P\" sync \"$M\" 2> \"$T/said\" || true; within 20 'grep -q \"cannot be used: \" \"$T/seen\"'")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    "$P" sync "$M"; within 20 '[ "$(grep -c "can be used" "$T/seen")" = 2 ]'
                    kill "$(cat "$T/watch")"; [ "$(wc -l < "$T/seen")" = 3 ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func pythonMakesContainersReferencesAndBookmarks() async throws {
            let options = MountedDomain.Options(arguments: ["--upload-delay", "0s"])
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir "$M/a"; echo one > "$M/a/doc"
                    PYTHONPATH="$R/clients/python" python3 - "$M" <<'END'
                    import os, promisefs, sys
                    mount = sys.argv[1]
                    domain, _ = promisefs.locate(mount)
                    made = domain.add_container("com.example.editor", name="Editor", public=True)
                    assert made["documentsPath"] == "/Editor/Documents" and made["isPublic"], made
                    assert [c["application"] for c in domain.containers()["containers"]] == ["com.example.editor"]
                    assert domain.add_reference("/a/doc", "/Editor/Documents")["state"] == "found"
                    assert open(mount + "/Editor/Documents/doc").read() == "one\\n"
                    assert [r["target"] for r in domain.references()] == ["/a/doc"]
                    bookmark = domain.bookmark("/a/doc", "com.example.editor")
                    os.rename(mount + "/a/doc", mount + "/a/other")
                    found = domain.resolve_bookmark(bookmark, "com.example.editor")
                    assert found["path"] == "/a/other" and found["isStale"] and found["renewed"], found
                    assert found["attributes"]["kMDItemFSName"] == "other", found
                    domain.remove_reference("/Editor/Documents/doc")
                    assert domain.references("/") == [] and os.path.exists(mount + "/a/other")
                    assert domain.remove_container("com.example.editor")["name"] == "Editor"
                    END
                    """)
            }
        }
    }
}
