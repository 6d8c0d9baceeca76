import Foundation
import Testing

extension MountSuites {
    /// What the documents show works as it is written there.
    @Suite struct DocumentationTests {
        @Test(.timeLimit(.minutes(2))) func thePythonExamplesOfADocumentRun() async throws {
            let text = try String(contentsOfFile: Machine.repository + "/docs/QUERIES.md", encoding: .utf8)
            let examples = text.components(separatedBy: "```python\n").dropFirst().compactMap {
                $0.components(separatedBy: "\n```").first
            }
            #expect(!examples.isEmpty)
            var options = MountedDomain.Options()
            options.prepare = "head -c 2000 /dev/zero > \"$C/report.pdf\""
            try await MountedDomain.with(options) { domain in
                for example in examples {
                    let script = example.replacing("/mnt/", with: domain.mount + "/")
                    let command = "PYTHONPATH=\"$R/clients/python\" python3 - <<'END'\n\(script)\nEND"
                    let result = try await domain.shell(command)
                    #expect(result.output.contains("/report.pdf"))
                }
            }
        }

        /// As mount(8) calls its helper.
        @Test(.timeLimit(.minutes(1))) func theLinesOfFstabInADocumentMount() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    grep -E '^    [^ ]+ +/mnt/[^ ]+ +promisefs ' "$R/docs/OPERATIONS.md" > "$T/fstab"
                    [ "$(wc -l < "$T/fstab")" = 2 ]
                    mkdir -p "$XDG_CONFIG_HOME/promisefs"; ln -s "$P" "$T/mount.promisefs"; echo one > "$C/file"; number=0
                    printf '[domains.work]\nprovider = "folder:%s"\n' "$C" > "$XDG_CONFIG_HOME/promisefs/config.toml"
                    while read -r source place type options dump pass; do
                        number=$((number + 1)); echo "$source on $place of $type with $options"
                        options="rw,$options,state-dir=$S/$number"
                        "$T/mount.promisefs" "${source/#folder:*/folder:$C}" "$M" -o "$options" < /dev/null
                        [ "$(cat "$M/file")" = one ]; case $options in *,ro,*) not touch "$M/new" ;; *) touch "$M/new" ;; esac
                        "$P" unmount --wait "$M"
                    done < "$T/fstab"
                    """)
            }
        }

        /// The lines that are no `sh`, as they name a place or a server that nobody has: these stand in for it.
        @Test(.timeLimit(.minutes(1))) func theLinesOfADocumentThatNameAPlaceRun() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo one > \"$C/file\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    grep -E '^    promisefs find FOLDER ' "$R/docs/OPERATIONS.md" > "$T/lines"; [ "$(wc -l < "$T/lines")" = 1 ]
                    ls "$M" > /dev/null; read -r _ command _ words < "$T/lines"
                    "$P" $command "$M" $words > "$T/events" & trap "kill $!" EXIT
                    within 10 'grep -q promisefs.state.*placeholder "$T/events"'
                    cat "$M/file"; within 10 'grep -q promisefs.state.*current "$T/events"'
                    grep -ohE '^    .*make [a-z]+.*' "$R"/docs/OPERATIONS.md "$R"/README.md | grep -oE 'make [a-z]+' \\
                        > "$T/targets"
                    [ "$(wc -l < "$T/targets")" -ge 6 ]; sort -u "$T/targets" | while read -r _ target; do
                        make -n -C "$R" "$target" > /dev/null
                    done
                    """)
            }
        }

        @Test(
            .timeLimit(.minutes(1)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no account to set up"))
        func theLineThatSetsUpAnAccountRuns() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options(), mounts: false) { domain in
                    try await domain.shell(
                        """
                        line=$(grep -E '^    promisefs setup --yes .*webdav' "$R/docs/OPERATIONS.md"); promisefs() { "$P" "$@"; }
                        account="webdav+http://\(WebDAVServer.user)@${U#http://}"; unset PROMISEFS_USER PROMISEFS_PASSWORD
                        cd "$HOME"; (umask 077; echo '\(WebDAVServer.password)' > secret); echo one > "$C/file"
                        trap '"$P" unmount --lazy work 2> /dev/null || true' EXIT
                        # No test touches the units of whoever runs it.
                        eval "${line/webdav+https:\\/\\/ann@example.com\\/files/$account} --no-enable"
                        within 5 '[ "$(cat work/file)" = one ]'; "$P" unmount --wait work
                        """)
                }
            }
        }

        @Test(.timeLimit(.minutes(2)), arguments: ["QUERIES.md", "COORDINATION.md", "DOCUMENTS.md", "OPERATIONS.md"])
        func theShellExamplesOfADocumentRun(document: String) async throws {
            let text = try String(contentsOfFile: Machine.repository + "/docs/" + document, encoding: .utf8)
            let examples = text.components(separatedBy: "```sh\n").dropFirst().compactMap {
                $0.components(separatedBy: "\n```").first
            }
            #expect(!examples.isEmpty)
            try await MountedDomain.with { domain in
                for example in examples {
                    try await domain.shell(
                        "SOCKET=\"$XDG_RUNTIME_DIR/promisefs/\(domain.domainName).sock\"; ls \"$M\" > /dev/null\n"
                            + "promisefs() { \"$P\" \"$@\"; }\n" + example)
                }
            }
        }
    }
}
