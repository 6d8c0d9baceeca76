import Glibc
import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What programs write to files that they have open while others change, replace or remove these.
@Suite struct OpenFileTests {
    private enum Change: CaseIterable { case edit, removal, removalOfTheFolder }

    /// A file in a folder is open here; `body` is given it, and `change`, which returns when it is seen here.
    private func whileOpen(
        _ change: Change,
        _ body: (SimulatedDomain, SimulatedDomain.OpenFile, () async throws -> Void) async throws -> Void
    ) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.makeFolder(["folder"])
            try await domain.write("start", to: ["folder", "file"])
            try await domain.expectBothSidesTheSame("before")
            // A write so soon after the one before could not be told from it.
            try await Task.sleep(for: .milliseconds(30))
            let file = try await domain.open(["folder", "file"])
            try await body(domain, file) {
                switch change {
                case .edit: await domain.provider.write("theirs", to: ["folder", "file"])
                case .removal: await domain.provider.remove(at: ["folder", "file"])
                case .removalOfTheFolder: await domain.provider.remove(at: ["folder"])
                }
                try await domain.untilReplaced(["folder", "file"], file.node)
            }
        }
    }

    private func texts(_ domain: SimulatedDomain) async throws -> [String] {
        try await domain.expectBothSidesTheSame()
        return try await domain.tree().compactMap(SimulatedDomain.text(ofLine:)).sorted()
    }

    /// Only close and fsync told the engine of it: `echo … >>` while another machine saved was enough.
    @Test func whatWasWrittenToAnOpenFileBeforeOthersReplacedItIsKept() async throws {
        try await whileOpen(.edit) { domain, file, change in
            try await domain.write("mine!", to: file)
            try await change()
            domain.close(file)
            #expect(try await texts(domain) == ["mine!", "theirs"])
        }
    }

    @Test func whatWasWrittenToAnOpenFileAfterOthersReplacedItIsKept() async throws {
        try await whileOpen(.edit) { domain, file, change in
            try await change()
            try await domain.write("mine!", to: file)
            domain.close(file)
            #expect(try await texts(domain) == ["mine!", "theirs"])
            let names = try await domain.tree().filter { $0.contains("conflict") }
            #expect(names.count == 1, "the document that took the name keeps it: \(names)")
        }
    }

    /// It counted as a write: the whole file was uploaded, and the time undone.
    @Test(.timeLimit(.minutes(2))) func aTimeThatOthersGiveToAnOpenFileIsNoWrite() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["a"])
            try await domain.expectBothSidesTheSame("before")
            let sent = domain.engine.bytesUploaded
            let file = try await domain.open(["a"])
            let item = try #require(await domain.provider.item(at: [FileName("a")!])).item
            await domain.provider.change(item.identifier, time: 77)
            while try await domain.node(at: ["a"]).modificationTime.seconds != 77 {
                try await Task.sleep(for: .milliseconds(5))
            }
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            #expect(domain.engine.bytesUploaded == sent)
            #expect(try await domain.node(at: ["a"]).modificationTime.seconds == 77)
            let stored = try #require(await domain.provider.item(at: [FileName("a")!])).item
            #expect(stored.metadata.modificationTime.seconds == 77)
        }
    }

    /// Its time was all that told of it: programs that keep a file's time, and backups that give it
    /// back after they have read, while another program writes.
    @Test(arguments: [false, true])
    func whatWasWrittenBeforeTheFileWasGivenATimeIsSent(isAnotherTime: Bool) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("start", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            let before = try await domain.node(at: ["file"]).modificationTime
            // A write so soon after the one before could not be told from it.
            try await Task.sleep(for: .milliseconds(30))
            let file = try await domain.open(["file"])
            try await domain.write("mine!", to: file)
            try await domain.give(isAnotherTime ? before.advanced(by: .seconds(-60)) : before, to: file)
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["file=mine!"])
        }
    }

    /// The name does not go at all.
    @Test func whatWasWrittenToAnOpenFileBeforeOthersRemovedItIsKept() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("start", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            try await Task.sleep(for: .milliseconds(30))
            let file = try await domain.open(["file"])
            try await domain.write("mine!", to: file)
            await domain.provider.remove(at: ["file"])
            try await domain.untilForgotten("file")
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["file=mine!"])
        }
    }

    @Test func whatWasWrittenToAnOpenFileAfterOthersRemovedItGetsItsNameAgain() async throws {
        try await whileOpen(.removal) { domain, file, change in
            try await change()
            try await domain.write("mine!", to: file)
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["folder/", "folder/file=mine!"])
        }
    }

    @Test func whatWasWrittenToAnOpenFileAfterOthersRemovedItsFolderIsInTheFolderAbove() async throws {
        try await whileOpen(.removalOfTheFolder) { domain, file, change in
            try await change()
            try await domain.write("mine!", to: file)
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["file=mine!"])
        }
    }

    @Test(arguments: [false, true]) func aFileThatNobodyWroteToIsGoneWithItsLastClose(isRemoved: Bool) async throws {
        try await whileOpen(isRemoved ? .removal : .edit) { domain, file, change in
            try await change()
            domain.close(file)
            #expect(try await texts(domain) == (isRemoved ? [] : ["theirs"]))
            let node = try domain.index.read { transaction throws(Failure) in
                try transaction.node(file.node)
            }
            #expect(node == nil)
        }
    }

    /// The last writer had left the look at it to an open that was under way, and that came to nothing: the file was open for
    /// writing for good.
    @Test(arguments: [false, true]) func anOpenThatIsInterruptedLeavesNothingOpen(isRemoved: Bool) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let gate = Gate()
            await domain.provider.holdFetches(at: gate)
            let node = try await domain.placeholder("file", of: "theirs")
            // O_WRONLY
            let file = try await domain.open(["file"], flags: 1)
            let codes = Mutex([Failure.Code?]())
            let parked = domain.begin(opening: node) { result in
                codes.withLock { codes in
                    if case .failure(let failure) = result { codes.append(failure.code) } else { codes.append(nil) }
                }
            }
            if isRemoved { try await domain.remove(["file"]) }
            domain.close(file)
            domain.filesystem.interrupt(try #require(parked))
            #expect(codes.withLock { $0 } == [.interrupted])
            #expect(!domain.filesystem.isOpen(node))
            let left = try domain.index.read { transaction throws(Failure) in try transaction.node(node) }
            #expect(left?.isOpenForWriting == (isRemoved ? nil : false))
            await domain.provider.holdFetches(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == (isRemoved ? [] : ["file=theirs"]))
        }
    }

    /// O_RDONLY | O_TRUNC. The kernel took it to be empty, and nothing had been done.
    @Test func aFileThatIsOpenedForReadingIsEmptiedIfThatIsAskedFor() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("start", to: ["here"])
            try await domain.expectBothSidesTheSame("before")
            _ = try await domain.placeholder("there", of: "theirs")
            for name in ["here", "there"] { domain.close(try await domain.open([name], flags: 0o1000)) }
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["here=", "there="])
        }
    }

    /// They failed with ESTALE.
    @Test func whoWaitsForTheContentOfAFileThatIsEmptiedGetsWhatIsThere() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let gate = Gate()
            await domain.provider.holdFetches(at: gate)
            let small = try await domain.placeholder("small", of: "theirs")
            _ = try await domain.placeholder("large", of: String(repeating: "a", count: 1_200_000))
            let large = try await domain.open(["large"])
            let answers = Mutex([String]())
            let opening = domain.begin(opening: small) { result in
                answers.withLock { $0.append("\(result.map { _ in "open" })") }
                if case .success(let opened) = result { domain.filesystem.release(small, handle: opened.handle) }
            }
            let reading = domain.begin(reading: 10, of: large) { result in
                answers.withLock { $0.append("\(result.map { "'\($0)'" })") }
            }
            #expect(opening != nil && reading != nil)
            try await domain.cut(small, to: 0)
            try await domain.cut(large.node, to: 0)
            #expect(answers.withLock { $0 } == ["success(\"open\")", "success(\"\\'\\'\")"])
            domain.close(large)
            await domain.provider.holdFetches(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["large=", "small="])
        }
    }

    /// The open failed with `EIO`, or what was then written went to a content file that nothing names.
    @Test(.timeLimit(.minutes(2))) func whoOpensAPlaceholderWhileOthersEmptyItWritesToWhatIsThere() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let gate = Gate()
            await domain.provider.holdFetches(at: gate)
            let names = (100..<300).map { "file-\($0)" }
            for name in names { await domain.provider.write("theirs", to: [name]) }
            _ = try await domain.placeholder("last", of: "theirs")
            for (number, name) in names.enumerated() {
                let node = try await domain.node(at: [name]).node
                let emptying = OwnedThread(name: "emptying") {
                    usleep(UInt32(number % 20) * 10)
                    let caller = Caller(user: 0, group: 0, process: 0)
                    let changes = AttributeChanges(size: 0)
                    _ = domain.filesystem.setAttributes(of: node, handle: nil, changes, caller: caller) { _ in }
                }
                // O_WRONLY
                let file = try await domain.open([name], flags: 1)
                emptying.join()
                try await domain.write("mine", to: file)
                domain.close(file)
            }
            await domain.provider.holdFetches(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            let texts = try await domain.tree().compactMap(SimulatedDomain.text(ofLine:))
            #expect(texts.sorted() == [String](repeating: "mine", count: names.count) + ["theirs"])
        }
    }

    /// It waited until requests are given up, not failing with `ENETDOWN` at once.
    @Test func whatNeedsAllOfAFileFailsAtOnceWhileItCannotCome() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let gate = Gate()
            await domain.provider.holdFetches(at: gate)
            _ = try await domain.placeholder("file", of: "theirs")
            // O_WRONLY
            let file = try await domain.open(["file"], flags: 1)
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            while domain.engine.connectionFailure == nil { try await Task.sleep(for: .milliseconds(2)) }
            let codes = Mutex([Failure.Code?]())
            let parked = domain.begin(allocating: 100, of: file) { result in
                codes.withLock { codes in
                    if case .failure(let failure) = result { codes.append(failure.code) } else { codes.append(nil) }
                }
            }
            #expect(parked == nil)
            #expect(codes.withLock { $0 } == [.offline])
            await domain.provider.fail(nil)
            await domain.provider.holdFetches(at: nil)
            gate.open()
            domain.close(file)
            try await domain.expectBothSidesTheSame()
        }
    }

    /// A daemon that starts deletes what has no name, which this must not be taken for.
    @Test func whatWasWrittenToAReplacedFileOutlivesTheDaemon() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("start", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            try await Task.sleep(for: .milliseconds(30))
            let file = try await domain.open(["file"])
            await domain.provider.write("theirs", to: ["file"])
            try await domain.untilReplaced(["file"], file.node)
            try await domain.write("mine!", to: file)
        }
        let next = try SimulatedDomain(after: domain)
        try await next.run {
            let left = try await texts(next)
            #expect(left == ["mine!", "theirs"])
        }
    }

    /// A large placeholder was open for writing when its daemon was killed, and nobody had written: what had been fetched of
    /// it gave its content file a time of its own, by which all of it was fetched and sent again.
    @Test func whatWasOnlyFetchedOfAnOpenFileIsNoEditAfterAKill() async throws {
        let domain = try SimulatedDomain()
        var found: NodeID?
        try await domain.run {
            let id = try await domain.placeholder("file", of: String(repeating: "a", count: 1_200_000))
            found = id
            try domain.index.write { transaction throws(Failure) in
                guard var node = try transaction.node(id) else { return }
                node.generation = node.generation.next
                node.content = .partial
                node.isOpenForWriting = true
                _ = try domain.content.create(id, node.generation, size: node.size)
                try transaction.setRanges(of: id, to: ByteRangeSet([ByteRange(0, 4096)]))
                try transaction.update(node)
            }
        }
        let id = try #require(found)
        let next = try SimulatedDomain(after: domain)
        try await next.run {
            let node = try next.index.read { transaction throws(Failure) in try transaction.node(id) }
            #expect(node?.content == .absent && node?.isOpenForWriting == false)
            #expect(try next.index.read { transaction throws(Failure) in try transaction.allPending(limit: 1).isEmpty })
            #expect(try next.index.read { transaction throws(Failure) in try transaction.ranges(of: id).isEmpty })
            #expect(try await next.tree().map(\.count) == ["file=".count + 1_200_000])
        }
    }
}
