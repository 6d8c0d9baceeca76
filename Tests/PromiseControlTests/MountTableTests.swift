import Glibc
import PromiseKit
import Testing

@Suite struct MountTableTests {
    static let text = #"""
        22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
        40 22 0:44 / /mnt rw,nosuid,nodev shared:5 master:2 - fuse.promisefs work rw,user_id=1000,group_id=1000
        41 40 0:45 / /mnt/inner rw - tmpfs tmpfs rw
        42 22 0:46 / /with\040space\011tab\012line\134back rw - fuse.promisefs two rw,user_id=0
        43 22 0:44 /docs/a /bind rw - fuse.promisefs work rw,user_id=1000
        broken line
        """#
    let table = MountTable(parsing: text.utf8)

    @Test func escapesAndOptionalFieldsAreRead() throws {
        #expect(table.entries.count == 5)
        let entry = table.entries[1]
        #expect(entry.isPromiseFS && entry.domain == "work" && entry.user == 1000 && entry.identifier == 40)
        #expect(table.entries[3].mountPoint == Array("/with space\ttab\nline\\back".utf8))
        #expect(!table.entries[2].isPromiseFS)
    }

    /// `promisefs evict` of a file on the one worked on the other: `-o fsname=` had given it that name.
    @Test func aMountThatIsCalledAsAnotherDomainIsKnownByWhoServesIt() {
        var table = MountTable(
            parsing: """
                40 22 0:44 / /work rw - fuse.promisefs work rw,user_id=1000
                41 22 0:45 / /other rw - fuse.promisefs work rw,user_id=1000
                42 22 0:46 / /root rw - fuse.promisefs work rw,user_id=0
                43 22 0:44 /docs /bind rw - fuse.promisefs work rw,user_id=1000
                """.utf8)
        let serving = [("work", "/work"), ("other", "/other")].map {
            ServingProcess(user: 1000, domain: $0.0, mountPoint: Array($0.1.utf8))
        }
        table.nameDomains(hasSocket: { _ in true }, serving: { serving })
        #expect(table.entries.map(\.domain) == ["work", "other", "work", "work"])
        let (work, other) = (table.entries[0], table.entries[1])
        #expect(!work.isOfSameDomain(as: other) && table.promiseMounts(of: 1000).map(\.domain) == ["work", "other"])
    }

    @Test func nobodyIsLookedForWhereEachSourceHasASocket() {
        var table = MountTable(parsing: MountTableTests.text.utf8)
        var isAsked = false
        table.nameDomains(hasSocket: { _ in true }, serving: { isAsked = true; return [] })
        #expect(!isAsked, "a bind mount is the same mount")
    }

    @Test func bytesAboveASCIIStayThemselves() {
        let line = Array("1 1 0:1 / /a".utf8) + [0xFF] + Array(#"\377 rw - fuse.promisefs d rw"#.utf8)
        #expect(MountTable(parsing: line).entries.first?.mountPoint == Array("/a".utf8) + [0xFF, 0xFF])
    }

    @Test func theLongestMountPointHoldsAPath() {
        func holder(_ path: String) -> UInt64? { table.entry(holding: Array(path.utf8))?.identifier }
        #expect(holder("/mnt") == 40)
        #expect(holder("/mnt/a/b") == 40)
        #expect(holder("/mnt/inner/x") == 41)
        #expect(holder("/mntx") == 22)
        #expect(holder("/") == 22)
        let stacked = MountTable(
            entries: table.entries + [MountTable(parsing: "50 40 0:50 / /mnt rw - tmpfs t rw".utf8).entries[0]])
        #expect(stacked.entry(holding: Array("/mnt/a".utf8))?.identifier == 50)
    }

    @Test func domainsAreListedOnce() {
        #expect(table.promiseMounts.map(\.domain).sorted() == ["two", "work"])
    }

    @Test func pathsAreFoundBelowARealFolderWithoutFollowingTheLastLink() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let mount = folder.path + "/mount"
        mkdir(mount, 0o700)
        mkdir(mount + "/sub", 0o700)
        symlink("missing", mount + "/sub/link")
        symlink(mount, folder.path + "/outside")
        let line = "9 1 0:9 / \(mount) rw - fuse.promisefs d rw"
        let table = MountTable(parsing: ("1 0 0:1 / / rw - ext4 r rw\n" + line).utf8)
        func path(_ text: String) throws -> String {
            String(decoding: try Location.of(Array(text.utf8), in: table).path, as: UTF8.self)
        }
        #expect(try path(mount) == "")
        #expect(try path(mount + "/") == "")
        #expect(try path(mount + "/sub/link") == "sub/link")
        #expect(try path(mount + "/sub/../sub/.") == "sub")
        #expect(try path(mount + "/no/such/thing") == "no/such/thing")
        #expect(try path(folder.path + "/outside") == "")
        #expect(try path(folder.path + "/outside/sub") == "sub")
        let error = #expect(throws: PromiseError.self) { _ = try path(folder.path) }
        #expect(error?.exitStatus == 3 && error?.kind == .notPromiseFS)
        let missing = #expect(throws: PromiseError.self) { _ = try path(folder.path + "/no/such/thing") }
        #expect(missing?.exitStatus == 3)
    }

    @Test func aBoundPartNamesItemsFromTheRootOfTheDomain() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let table = MountTable(parsing: "9 1 0:9 /docs/a \(folder.path) rw - fuse.promisefs d rw".utf8)
        #expect(try Location.of(Array((folder.path + "/x").utf8), in: table).path == Array("docs/a/x".utf8))
        #expect(try Location.of(Array(folder.path.utf8), in: table).path == Array("docs/a".utf8))
    }

    @Test func dotsGoAwayWithoutLookingAtTheDisk() {
        #expect(simplified(Array("/a/./b//../c/".utf8)) == Array("/a/c".utf8))
        #expect(simplified(Array("/../..".utf8)) == Array("/".utf8))
    }
}

/// A folder of a test's own.
struct TemporaryFolder {
    let path: String

    init() throws {
        var template = Array("/tmp/promisefs-test-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil }
        try #require(made)
        let given = template.dropLast().map { UInt8(bitPattern: $0) }
        path = String(decoding: try #require(realPath(given)), as: UTF8.self)
    }

    /// The folder of a test holds links, folders and sockets at most two levels deep.
    func remove() { removeTree(path) }

    private func removeTree(_ path: String) {
        if let folder = opendir(path) {
            var names: [String] = []
            while let entry = readdir(folder) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
                if name != "." && name != ".." { names.append(name) }
            }
            closedir(folder)
            for name in names {
                var status = stat()
                let child = path + "/" + name
                if lstat(child, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { removeTree(child) } else { unlink(child) }
            }
        }
        rmdir(path)
    }
}
