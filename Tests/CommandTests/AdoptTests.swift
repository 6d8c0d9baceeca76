import Foundation
import PromiseSystem
import Testing

@testable import promisefs

/// One after the other: what is armed fails for whoever comes first.
@Suite(.serialized) struct AdoptTests {
    /// It was passed over, and the command ended with 0.
    @Test(arguments: [EIO, EACCES]) func whatCannotBeLookedAtIsNamed(_ problem: CInt) throws {
        let top = NSTemporaryDirectory() + "/adopt-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: top) }
        for name in ["from", "to"] {
            try FileManager.default.createDirectory(
                atPath: top + "/" + name, withIntermediateDirectories: true)
        }
        try "mine".write(toFile: top + "/from/file", atomically: false, encoding: .utf8)
        let (source, target) = (Array("\(top)/from".utf8), Array("\(top)/to".utf8))
        FaultInjection.arm(from: "adopt.look:\(problem)")
        var comparison = FolderComparison(source: source, target: target)
        try comparison.run()
        #expect(comparison.failures.count == 1 && comparison.added == 0)
        let sentence = try #require(comparison.failures.first?.message)
        #expect(sentence.contains("from/file' cannot be looked at"), "\(sentence)")
        var again = FolderComparison(source: source, target: target)
        try again.run()
        #expect(again.failures.isEmpty && again.added == 1)
        #expect(try String(contentsOfFile: top + "/to/file", encoding: .utf8) == "mine")
    }
}
