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
