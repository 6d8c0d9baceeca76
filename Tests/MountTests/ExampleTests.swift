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
