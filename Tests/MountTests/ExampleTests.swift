import Foundation
import PromiseKit
import Testing

extension MountSuites {
    /// The mounts that PromiseKit gives to the tests of other programs.
    @Suite struct TemporaryMountTests {
        private struct Broken: Error {}

        @Test(.timeLimit(.minutes(1))) func theExampleOfItsCommentRuns() async throws {
            let program = Machine.executable
            try await TemporaryMount.with(content: ["a.txt": "one"], executable: program) { mount in
                try mount.setFaults(["offline=true"])
                let path = mount.mountPoint + "/a.txt"
                #expect(throws: (any Error).self) { try String(contentsOfFile: path, encoding: .utf8) }
            }
        }

        /// A program that knows nothing of mounts, tested with a provider that is slow, offline and failing.
        @Test(.timeLimit(.minutes(2))) func theExampleIsTestedInSwiftToo() async throws {
            let content = ["one.txt": "a b c", "below/two.txt": "d e"]
            let program = Machine.repository + "/Examples/WordCount/wordcount.py"
            try await TemporaryMount.with(content: content, executable: Machine.executable) { mount in
                let command = "python3 '\(program)' '\(mount.mountPoint)'"
                try mount.setFaults(["delay=500ms", "only=fetchContents"])
                let begun = ContinuousClock.now
                let slow = try await runShell(command)
                #expect(slow.output.contains("3 one.txt") && slow.output.contains("2 below/two.txt"))
                #expect(ContinuousClock.now - begun >= .seconds(1))
            }
            try await TemporaryMount.with(content: content, executable: Machine.executable) { mount in
                let command = "python3 '\(program)' '\(mount.mountPoint)'"
                _ = try await runShell("ls '\(mount.mountPoint)/below'; cat '\(mount.mountPoint)/one.txt'")
                try mount.setFaults(["offline=true"])
                let offline = try await runShell(command)
                #expect(offline.status == 1 && offline.output.contains("3 one.txt"))
                #expect(offline.errorText.contains("below/two.txt: Network is down"))
                try mount.setFaults(["fail=2"])
                try Data("f".utf8).write(to: URL(fileURLWithPath: mount.mountPoint + "/three.txt"))
                try mount.setFaults([])
                try await mount.synchronize()
                #expect(try String(contentsOfFile: mount.cloud + "/three.txt", encoding: .utf8) == "f")
            }
        }

        @Test(.timeLimit(.minutes(2))) func aMountForATestSuffersWhatItIsToldAndIsGoneAfterwards() async throws {
            var place = ""
            try await TemporaryMount.with(content: ["a": "one", "below/b": "two"], executable: Machine.executable) { mount in
                place = mount.mountPoint
                #expect(try String(contentsOfFile: place + "/below/b", encoding: .utf8) == "two")
                try mount.setFaults(["offline=true"])
                #expect(throws: (any Error).self) { try String(contentsOfFile: place + "/a", encoding: .utf8) }
                try mount.setFaults([])
                try Data("more".utf8).write(to: URL(fileURLWithPath: place + "/c"))
                try await mount.synchronize()
                #expect(try String(contentsOfFile: mount.cloud + "/c", encoding: .utf8) == "more")
            }
            #expect(!FileManager.default.fileExists(atPath: URL(fileURLWithPath: place).deletingLastPathComponent().path))
            await #expect(throws: Broken.self) {
                try await TemporaryMount.with(executable: Machine.executable) { mount in
                    place = mount.mountPoint
                    throw Broken()
                }
            }
            #expect(!FileManager.default.fileExists(atPath: place))
            await #expect(throws: PromiseError.self) { try await TemporaryMount.with(executable: "/nowhere/promisefs") { _ in } }
        }
    }
}
