import Foundation
import PromiseKit
import PromisePicker
import Testing

@Suite struct CopiedSourceTests {
    private func withSource(_ body: (_ path: String, _ source: CopiedSource) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "/copied-source-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/source"
        try Data("old".utf8).write(to: URL(fileURLWithPath: path))
        let file = open(path, O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        try body(path, try CopiedSource(Array(path.utf8), openAs: file))
    }

    private func link(_ path: String) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: path)
    }

    @Test func whatStayedAsItWasCopiedBecomesALink() throws {
        try withSource { path, source in
            try source.becomeLink(to: Array("/elsewhere".utf8))
            #expect(link(path) == "/elsewhere")
        }
    }

    /// The link took its place all the same, and what was written while it was copied was nowhere.
    @Test func whatWasWrittenWhileItWasCopiedStays() throws {
        for isReplaced in [false, true] {
            try withSource { path, source in
                let place = URL(fileURLWithPath: path)
                try Data("newer".utf8).write(to: place, options: isReplaced ? .atomic : [])
                let refusal = #expect(throws: PromiseError.self) {
                    try source.becomeLink(to: Array("/elsewhere".utf8))
                }
                #expect(refusal?.exitStatus == 6)
                #expect(link(path) == nil)
                #expect(try String(contentsOf: place, encoding: .utf8) == "newer")
            }
        }
    }
}
