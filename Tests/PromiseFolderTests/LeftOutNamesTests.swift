import Glibc
import PromiseFolder
import PromiseSystem
import Testing

@Suite struct LeftOutNamesTests {
    /// A dead mount in a folder was a line of the log for each look at that.
    @Test func aNameIsToldOfOnceUntilItsReasonIsAnother() {
        let names = LeftOutNames()
        let name = Array("dead".utf8)
        let away = SystemError(errno: ENOTCONN, label: "test")
        #expect(names.isNews(away, of: name, in: "folder"))
        #expect(!names.isNews(away, of: name, in: "folder"))
        #expect(names.isNews(away, of: name, in: "another"))
        #expect(names.isNews(SystemError(errno: EIO, label: "test"), of: name, in: "folder"))
        names.forget(name, in: "folder")
        #expect(names.isNews(away, of: name, in: "folder"))
    }
}
