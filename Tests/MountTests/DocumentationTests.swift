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
