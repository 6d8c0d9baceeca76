import Glibc
import PromiseCore
import PromiseSystem
import Testing

@Suite struct WatchedNodesTests {
    private func found(_ text: String) -> WatchedNodes {
        var watched = WatchedNodes()
        watched.add(Array(text.utf8), (major: 0, minor: 0x34), 41)
        return watched
    }

    @Test func theWatchesOfOneDeviceAreFound() {
        let watched = found(
            """
            pos:\t0
            flags:\t02004000
            inotify wd:3 ino:9e7e sdev:34 mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:7e9e0000640d1b6d
            inotify wd:2 ino:11 sdev:800013 mask:800afce ignored_mask:0 
            fanotify ino:4f969 sdev:34 mflags:0 mask:3b ignored_mask:40000000 
            fanotify mnt_id:12 mflags:0 mask:3b ignored_mask:0
            """)
        #expect(watched.nodes == [NodeID(0x9e7e), NodeID(0x4f969)])
        #expect(!watched.isEverything)
        #expect(!watched.contains(NodeID(0x11)))
    }

    @Test(arguments: ["fanotify mnt_id:29 mflags:0 mask:3b", "fanotify sdev:34 mflags:0 mask:3b"])
    func whoWatchesTheMountWatchesEverything(line: String) {
        #expect(found(line).contains(NodeID(5)))
    }

    @Test(arguments: ["", "inotify", "inotify wd:1 ino:zz sdev:34x", "\u{0}\u{1}"]) func whatIsNoWatchIsNone(text: String) {
        #expect(found(text).isEmpty)
    }

    @Test func thisProcessIsSeenToWatch() throws {
        let notifications = inotify_init1(CInt(IN_CLOEXEC))
        try #require(notifications >= 0)
        defer { close(notifications) }
        var status = stat()
        try #require(stat("/usr", &status) == 0)
        try #require(inotify_add_watch(notifications, "/usr", UInt32(IN_CREATE)) >= 0)
        // makedev(3)'s layout.
        let device = UInt64(status.st_dev)
        let major = UInt32((device >> 8) & 0xFFF)
        let minor = UInt32((device & 0xFF) | ((device >> 12) & 0xFFF00))
        #expect(WatchedNodes.find(on: (major, minor), mount: .max).contains(NodeID(rawValue: UInt64(status.st_ino))))
    }
}
