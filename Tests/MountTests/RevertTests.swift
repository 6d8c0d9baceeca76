import Testing

extension MountSuites {
    /// What the provider refuses, or was not told yet, can be given up.
    @Suite struct RevertTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = """
                echo old > "$C/doc"; echo link > "$C/mode"; echo moved > "$C/moved"; chmod 644 "$C/mode"
                mkdir -p "$C/d/e"; echo x > "$C/d/e/gone"
                """
            return options
        }

        /// > `promisefs revert` gives up changes that were made here
        @Test(.timeLimit(.minutes(2))) func aChangeThatTheProviderRefusesCanBeGivenUp() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -lR \"$M\" > /dev/null; cat \"$M/doc\" \"$M/d/e/gone\" > /dev/null")
                let before = try await domain.shell("cd \"$C\"; find . -type f -exec stat -c '%n %a %Y' {} + | sort").text
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    echo new > "$M/doc"; chmod 600 "$M/mode"; mv "$M/moved" "$M/d/elsewhere"; rm -r "$M/d/e"
                    echo edited > "$M/d/elsewhere"
                    echo made > "$M/made"; mkdir "$M/folder"; echo y > "$M/folder/file"
                    "$P" revert "$M" | grep -q 'changes given up'
                    "$P" pending "$M" --json | grep -q '"pathBytes"' && exit 1
                    cat "$M/made" && exit 1; [ ! -e "$M/folder" ]; [ ! -e "$M/d/elsewhere" ]; [ -e "$M/moved" ]
                    [ "$(stat -c %a "$M/mode")" = 644 ]
                    """)
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 20 'cat "$M/doc"'; [ "$(cat "$M/doc")" = old ]; [ "$(cat "$M/d/e/gone")" = x ]
                    [ "$(cat "$M/moved")" = moved ]
                    # What was moved is listed where it is now.
                    for name in doc made moved; do
                        id=$("$P" versions "$M/$name" | grep -o 'given-up-[0-9-]*')
                        "$P" versions "$M/$name" --get "$id" -o "$T/$name"
                    done
                    [ "$(cat "$T/doc" "$T/made" "$T/moved" | tr '\\n' ' ')" = "new made edited " ]
                    not "$P" revert "$M/doc" 2> "$T/err"; grep -q 'nothing of it waits' "$T/err"
                    """)
                try await domain.synchronize()
                let after = try await domain.shell("cd \"$C\"; find . -type f -exec stat -c '%n %a %Y' {} + | sort").text
                #expect(after == before)
                try await domain.expectProviderEqualsMount()
            }
        }

        /// The new target stayed, and went to the provider beside the old one later, as a conflict.
        @Test(.timeLimit(.minutes(2))) func aLinkThatLeadsElsewhereLeadsWhereItDidAgain() async throws {
            var options = MountedDomain.Options()
            options.prepare = "ln -s one \"$C/link\"; ln -s two \"$C/other\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" > /dev/null")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    ln -sfn new "$M/link"; rm "$M/other"; ln -s newer "$M/other"
                    "$P" revert "$M" | grep -q 'changes given up'
                    "$P" pending "$M" --json | grep -q '"pathBytes"' && exit 1; true
                    """)
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 20 '[ "$(readlink "$M/link" "$M/other" | paste -sd" ")" = "one two" ]'
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(ls "$M" | paste -sd' ')" = "link other" ]
                    [ "$(readlink "$C/link" "$C/other" | paste -sd' ')" = "one two" ]
                    """)
            }
        }

        /// Two at once: one of them ended at the first change that the other had given up.
        @Test(.timeLimit(.minutes(2))) func twoThatGiveUpTheSameDoNotDisturbEachOther() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls \"$M\" > /dev/null")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    mkdir "$M/many"; for i in $(seq 300); do echo $i > "$M/many/$i"; done
                    "$P" revert "$M" > "$T/one" & "$P" revert "$M" > "$T/two" || [ $? = 1 ]; wait $!
                    [ ! -e "$M/many" ]; [ "$("$P" pending "$M")" = "nothing is pending" ]
                    """)
                try domain.setFaults([])
            }
        }

        /// It took the document from under whoever had a claim on it.
        @Test(.timeLimit(.minutes(2))) func whatIsGivenUpWaitsForClaims() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/doc\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    echo new > "$M/doc"
                    "$P" coordinate read "$M/doc" -- sh -c '
                        echo > "$1/in"; sleep 2; cat "$2" > "$1/read"' sh "$T" "$M/doc" & p=$!
                    within 10 '[ -e "$T/in" ]'; "$P" revert "$M/doc"; wait $p; [ "$(cat "$T/read")" = new ]
                    echo newer > "$M/doc"; rm "$T/in"
                    "$P" coordinate read "$M/doc" -- sh -c 'echo > "$1/in"; sleep 60' sh "$T" & p=$!
                    within 10 '[ -e "$T/in" ]'; s=0; "$P" revert "$M/doc" 2> "$T/err" || s=$?; kill $p
                    [ $s != 0 ]; grep -q 'did not let go' "$T/err"; [ "$(cat "$M/doc")" = newer ]
                    """)
                try domain.setFaults([])
            }
        }
    }
}
