import Foundation
import Testing

/// What `scripts/workloads/mutations.py` puts into the engine has its place there.
@Suite struct MutationTests {
    /// A text that has changed is left out when the faults are put in, and nobody would see that one is not looked for.
    @Test func eachFaultFindsTheTextItReplaces() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", SourceTree.root + "/scripts/workloads/mutations.py", "--check"]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let said = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(said)")
    }
}
