import Glibc
import PromiseKit
import Testing

@testable import promisefs

@Suite struct TargetTests {
    private func location(of word: String, domain: String, namesDomain: Bool) throws -> Location {
        let options = "rw,user_id=\(geteuid())"
        let line = "40 22 0:44 / /nowhere/mount rw - fuse.promisefs \(domain) \(options)"
        let table = MountTable(parsing: line.utf8)
        return try Targets.location(of: Array(word.utf8), in: table, namesDomain: namesDomain)
    }

    /// `promisefs evict work` beside a folder `work` was about the whole domain of that name.
    @Test func aFolderThatIsHereIsNotTheDomainOfItsName() throws {
        let error = #expect(throws: PromiseError.self) {
            _ = try location(of: "/usr", domain: "/usr", namesDomain: false)
        }
        #expect(error?.kind == .notPromiseFS && error?.exitStatus == 3)
        #expect(try location(of: "/usr", domain: "/usr", namesDomain: true).isMountPoint)
        let word = "no-such-word-here"
        #expect(try location(of: word, domain: word, namesDomain: false).isMountPoint)
    }
}
