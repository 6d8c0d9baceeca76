import Glibc
import PromiseCore
import PromiseSystem
import PromiseTestSupport
import Testing

/// The errno of what `body` throws; nil when it throws nothing.
func thrownErrno(_ body: () throws -> Void) -> CInt? {
    do {
        try body()
        return nil
    } catch {
        return (error as? SystemError)?.errno
    }
}

@Suite struct SystemCallTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("system") }

    @Test func failedCallThrowsItsErrnoAndLabel() {
        let error = #expect(throws: SystemError.self) {
            _ = try Descriptor.open(self.folder.path("missing"), flags: O_RDONLY, label: "test.open")
        }
        #expect(error?.errno == ENOENT && error?.label == "test.open")
        #expect(error?.description == "test.open: No such file or directory")
    }

    @Test func callReturnsWhatTheBodyReturns() throws {
        #expect(try call("test.call") { CInt(0) } == 0)
        #expect(try call("test.call") { -2 } == -2)
    }

    @Test func interruptedCallIsRepeated() throws {
        var attempts = 0
        let result = try call("test.call") {
            attempts += 1
            errno = EINTR
            return attempts < 3 ? -1 : attempts
        }
        #expect(result == 3)
    }

    @Test func badDescriptorTraps() async {
        await #expect(processExitsWith: .failure) { _ = try call("test.call") { close(-1) } }
    }

    @Test(arguments: [
        (ENOENT, .notFound), (EEXIST, .exists), (ENOTDIR, .notFolder), (EISDIR, .isFolder), (ENOTEMPTY, .notEmpty),
        (EXDEV, .crossDevice), (ENAMETOOLONG, .nameTooLong), (EPERM, .notPermitted), (EACCES, .refused), (EROFS, .readOnly),
        (ENOSPC, .storeFull), (EDQUOT, .quotaExceeded), (EFBIG, .tooLarge), (EINVAL, .invalid), (EOPNOTSUPP, .notSupported),
        (ENXIO, .outOfRange), (EMFILE, .tooManyOpen), (EIO, .inputOutput), (ENOTTY, .inputOutput),
    ] as [(CInt, Failure.Code)])
    func errnosHaveAMeaning(number: CInt, code: Failure.Code) {
        #expect(Failure(SystemError(errno: number, label: "test")).code == code)
    }

    /// "content.hydrate.copy: No space left on device" was what `fetch` said.
    @Test func aFullDiskIsASentenceWithoutTheNameOfACall() {
        for number in [ENOSPC, EDQUOT] {
            let message = Failure(SystemError(errno: number, label: "content.write")).message
            #expect(message.contains("local disk") && !message.contains("content.write"), "\(message)")
        }
    }

    @Test func renameFlagsAreHonoured() throws {
        try folder.write("a", to: "a")
        try folder.write("b", to: "b")
        let (a, b, c) = (folder.path("a"), folder.path("b"), folder.path("c"))
        #expect(thrownErrno { try PromiseSystem.rename(a, to: b, flags: .noReplace, label: "test.rename") } == EEXIST)
        #expect(thrownErrno { try PromiseSystem.rename(a, to: c, flags: .exchange, label: "test.rename") } == ENOENT)
        try PromiseSystem.rename(a, to: b, flags: .exchange, label: "test.rename")
        #expect(try folder.read("a") == Array("b".utf8) && folder.read("b") == Array("a".utf8))
        try PromiseSystem.rename(a, to: c, flags: .noReplace, label: "test.rename")
        try PromiseSystem.rename(c, to: b, label: "test.rename")
        #expect(try folder.names() == [Array("b".utf8)])
        #expect(try folder.read("b") == Array("b".utf8))
    }

    @Test func hostileNamesAreListedAsTheyAre() throws {
        let names: [[UInt8]] = [
            [0xFF, 0xFE], [0x0A], [0x20], [0x2E, 0x2E, 0x2E], [0x2D, 0x72, 0x66], [0xC3, 0xA9], [0x65, 0xCC, 0x81], [0x2A],
            [0x1B, 0x5B],
            Array(repeating: 0x78, count: 255),
        ]
        for name in names { try writeFile([], to: folder.path(name)) }
        let opened = try Descriptor.open(folder.path, flags: O_RDONLY | O_DIRECTORY, label: "test.open")
        let listed = try listFolder(opened, label: "test.list")
        #expect(Set(listed.map(\.name)) == Set(names) && listed.count == names.count)
        for entry in listed { #expect(try FileStatus.of(folder.path(entry.name), label: "test").inode == entry.inode) }
    }

    @Test func linksAreReadAndNotFollowed() throws {
        let target = [UInt8](repeating: 0xFE, count: 1000)
        try withCPath(target) { target in
            try withCPath(folder.path("link")) { link in _ = try call("test.link") { symlink(target, link) } }
        }
        #expect(try readLink(folder.path("link"), label: "test.readlink") == target)
        let status = try FileStatus.of(folder.path("link"), label: "test.status")
        #expect(status.kind == .link && status.size == 1000)
        try folder.write("", to: "file")
        #expect(thrownErrno { _ = try readLink(folder.path("file"), label: "test.readlink") } == EINVAL)
    }

    @Test func foldersAreMadeWithThoseAboveThem() throws {
        try makeFolders(folder.path("a/b/c"), label: "test.folders")
        try makeFolders(folder.path("a/b/c"), label: "test.folders")
        #expect(try FileStatus.of(folder.path("a/b/c"), label: "test").kind == .folder)
        try folder.write("", to: "file")
        #expect(thrownErrno { try makeFolders(folder.path("file/b"), label: "test.folders") } == ENOTDIR)
        #expect(thrownErrno { try PromiseSystem.unlink(folder.path("a"), isFolder: true, label: "test.unlink") } == ENOTEMPTY)
    }

    @Test(arguments: [Timestamp(nanoseconds: -1), Timestamp(nanoseconds: 1_234_567_890_123_456_789), .zero])
    func timesAreKeptToTheNanosecond(time: Timestamp) throws {
        try folder.write("x", to: "file")
        let before = try FileStatus.of(folder.path("file"), label: "test").accessTime
        try setTimes(of: folder.path("file"), access: nil, modification: time, label: "test.times")
        let after = try FileStatus.of(folder.path("file"), label: "test")
        #expect(after.modificationTime == time && after.accessTime == before)
    }

    @Test func descriptorIsClosedAtTheEndOfItsLife() throws {
        func openAndDrop() throws -> CInt {
            let file = try Descriptor.open(folder.path, flags: O_RDONLY | O_DIRECTORY, label: "test.open")
            #expect(fcntl(file.number, F_GETFD) & FD_CLOEXEC != 0)
            return dup(file.number)
        }
        let kept = try openAndDrop()
        #expect(fcntl(kept, F_GETFD) >= 0)
        let owned = Descriptor(adopting: kept)
        #expect(owned.release() == kept)
        #expect(close(kept) == 0)
    }
}

@Suite struct ProcessFamilyTests {
    @Test func aThreadBelongsToItsProcessAndThatToItsParent() throws {
        // The link leads to PROCESS/task/THREAD of whoever reads it (proc(5)).
        let link = try readLink(Array("/proc/thread-self".utf8), label: "test.thread")
        let thread = try #require(Int32(String(decoding: link.split(separator: 0x2F).last ?? [], as: UTF8.self)))
        let family = ProcessFamily.of(thread: thread)
        #expect(family?.process == getpid() && family?.parent == getppid())
        #expect(ProcessFamily.of(thread: -1) == nil)
    }
}

@Suite struct ProcessTableTests {
    @Test func whoHoldsALockIsFoundAndIsNotStuckInItsEnd() throws {
        let folder = try TemporaryFolder("lock")
        let file = try Descriptor.open(
            folder.path("lock"), flags: O_RDWR | O_CREAT, label: "test.lock")
        let inode = try FileStatus.of(descriptor: file.number, label: "test.inode").inode
        #expect(ProcessTable.lockHolders(inode: inode).isEmpty)
        #expect(flock(file.number, LOCK_EX) == 0)
        #expect(ProcessTable.lockHolders(inode: inode) == [getpid()])
        #expect(!ProcessTable.isStuckInItsEnd(getpid()))
        #expect(!ProcessTable.isStuckInItsEnd(0), "nobody")
    }
}

@Suite(.serialized) struct FaultInjectionTests {
    @Test func faultStrikesOnceAtItsLabelAfterTheSkippedCalls() {
        FaultInjection.arm(from: "test.fault:\(ENOSPC):2")
        func attempt() -> CInt? { thrownErrno { _ = try call("test.fault") { CInt(0) } } }
        #expect(thrownErrno { _ = try call("test.other") { CInt(0) } } == nil)
        #expect([attempt(), attempt(), attempt(), attempt()] == [nil, nil, ENOSPC, nil])
    }

    @Test(arguments: [nil, "", "label", "label:", "label:no"] as [String?])
    func nonsenseArmsNothing(text: String?) {
        FaultInjection.arm(from: text)
        #expect(FaultInjection.take("label") == nil)
    }
}
