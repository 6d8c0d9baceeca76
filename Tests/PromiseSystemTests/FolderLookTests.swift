import Glibc
import PromiseSystem
import PromiseTestSupport
import Testing

/// A look at a folder by a process of its own.
@Suite struct FolderLookTests {
    @Test func aFolderIsFoundWhereItsLinksLead() throws {
        let folder = try TemporaryFolder("look")
        try folder.makeFolder("real")
        try folder.makeLink("link", to: "real")
        guard case .found(let path) = lookAtFolder(folder.path("link"), flags: openPathOnly) else {
            Issue.record("the folder is not found")
            return
        }
        #expect(path == folder.path("real"))
    }

    @Test(arguments: [("missing", ENOENT), ("file", ENOTDIR)])
    func whatIsNoFolderSaysWhy(name: String, problem: CInt) throws {
        let folder = try TemporaryFolder("look")
        try folder.write("text", to: "file")
        guard case .failed(let error) = lookAtFolder(folder.path(name), flags: O_RDONLY) else {
            Issue.record("it was opened as a folder")
            return
        }
        #expect(error.errno == problem)
    }
}
