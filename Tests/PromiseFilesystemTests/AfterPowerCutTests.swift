import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseTestSupport
import Testing

/// What a power cut has torn never replaces a version at the provider, and what fsync covered stays.
@Suite(.timeLimit(.minutes(5))) struct AfterPowerCutTests {
    private let written = Timestamp(seconds: 9, nanoseconds: 0)

    private func node(_ durability: Durability, size: UInt64 = 100, _ change: (inout Node) -> Void = { _ in }) -> Node {
        var node = Node(
            id: NodeID(5), kind: .file, mode: 0o644, owner: 0, group: 0, size: size, time: written, content: .whole,
            version: ContentVersion("1"))
        node.durability = durability
        change(&node)
        return node
    }

    private func judge(
        _ node: Node, isAgreed: Bool = false, hasAgreed: Bool = true, size: UInt64? = 100, at seconds: Int = 9,
        isComplete: Bool = true
    ) -> AfterPowerCut {
        let found = size.map { (size: $0, modificationTime: Timestamp(seconds: seconds, nanoseconds: 0)) }
        return AfterPowerCut.judge(
            node, isAgreed: isAgreed, hasAgreed: hasAgreed, found: found, isComplete: { isComplete })
    }

    /// Numbers of changes that a power cut has taken are given again: who remembered one missed the new ones.
    @Test(arguments: [true, false]) func numbersOfChangesAreAnotherJournalsAfterwards(hasPowerFailed: Bool) async throws {
        let domain = try SimulatedDomain()
        let before = try domain.index.write { transaction throws(Failure) in try ChangeNumbers.identify(transaction) }
        try await domain.run {}
        let next = try SimulatedDomain(after: domain)
        try next.filesystem.recover(isUnclean: true, hasPowerFailed: hasPowerFailed)
        let after = try next.index.write { transaction throws(Failure) in try ChangeNumbers.identify(transaction) }
        #expect((after == before) == !hasPowerFailed)
        try await next.run {}
    }

    /// An empty file took the place of a version at the provider.
    @Test func anEditThatIsEmptyOrShorterNowIsNotUploaded() {
        #expect(judge(node(.unknown), size: nil) == .giveUp)
        #expect(judge(node(.unknown), size: 0) == .giveUp)
        #expect(judge(node(.unknown), size: 60) == .doubt)
        #expect(judge(node(.unknown), at: 8) == .doubt)
    }

    /// Of fetched content that was edited in place zeros took the place of the provider's bytes.
    @Test func anEditWithBlocksThatNeverReachedTheDiskIsNotUploaded() {
        #expect(judge(node(.unknown), isComplete: false) == .doubt)
        #expect(judge(node(.unknown) { $0.content = .partial }) == .doubt)
    }

    @Test func anEditThatIsAllThereIsUploaded() {
        #expect(judge(node(.unknown)) == .keep)
        #expect(judge(node(.unknown), hasAgreed: false) == .keep)
        #expect(judge(node(.unknown), hasAgreed: false, size: 60) == .takeAsEdit)
    }

    @Test func whatWasSynchronizedIsWhatTheDiskHas() {
        for durability in [Durability.whole, .begun] {
            #expect(judge(node(durability)) == .keep)
            #expect(judge(node(durability), size: 120, at: 10) == .takeAsEdit)
        }
    }

    /// The index on the disk knew nothing of the open for writing, and nobody looked at the content file.
    @Test func synchronizedContentThatIsNewerThanTheIndexIsAnEdit() {
        #expect(judge(node(.whole), isAgreed: true, at: 10) == .takeAsEdit)
    }

    @Test func whatTheProviderHasIsFetchedAgain() {
        #expect(judge(node(.unknown), isAgreed: true) == .fetchAgain)
        #expect(judge(node(.begun), isAgreed: true, size: 0) == .fetchAgain)
        #expect(judge(node(.whole), isAgreed: true) == .keep)
        #expect(judge(node(.unknown) { $0.isOpenForWriting = true }, isAgreed: true, at: 10) == .doubt)
    }

    /// What had been fetched since its fsync was zeros on the disk, and was read as content for good.
    @Test func ofAFileThatIsOnlyHereInPartAFsyncMakesNoMoreCertainThanTheEdits() {
        for durability in [Durability.whole, .begun] {
            let partial = node(durability) { $0.content = .partial }
            #expect(judge(partial, isAgreed: true) == .fetchAgain)
            #expect(judge(partial) == .keep, "an edit that was synchronized stays")
        }
    }

    /// The index had all that had come since the fsync: zeros of a power cut were uploaded with what was written.
    @Test func whatIsFetchedAfterAnFsyncIsNotCountedWithWhatIsOnTheDisk() async throws {
        let domain = try SimulatedDomain(uploadDelay: .seconds(3600))
        // Beside other tests all of it may have come before anybody looks.
        let names = ["a", "b", "c", "d", "e", "f"]
        for name in names { await domain.provider.put(name, String(repeating: "x", count: 8 << 20)) }
        try await domain.run {
            for name in names {
                let file = try await domain.open([name])
                defer { domain.close(file) }
                try await domain.write("mine", to: file)
                try await domain.synchronize(file)
                let hydrator = domain.engine.hydrator
                let range = ByteRange(offset: 5 << 20, count: 4096)
                let fetched: Result<Void, Failure> = await withCheckedContinuation { continuation in
                    _ = hydrator.read(file.node, range) { continuation.resume(returning: $0) }
                }
                try fetched.get()
                // Stores how far the file has come.
                hydrator.release(file.node)
                let (isWhole, stored) = try domain.index.read { transaction throws(Failure) in
                    (try transaction.node(file.node)?.content == .whole, try transaction.ranges(of: file.node))
                }
                if isWhole { continue }
                #expect(stored.missing(in: ByteRange(0, 4)).isEmpty, "\(stored)")
                #expect(stored.missing(in: range) == [range], "\(stored)")
                return
            }
            Issue.record("each file had come as a whole")
        }
    }

    @Test func contentThatWasSynchronizedBeforeTheProviderGotMoreIsNotCertain() {
        var node = node(.whole)
        node.noteWritten()
        #expect(node.durability == .begun)
        node.version = ContentVersion("2")
        #expect(node.durability == .unknown)
    }

    /// Zeros had the size and the time of what had arrived, and were taken for it.
    @Test func whatWasFoundIsNotTakenForWhatWasSentByItsTime() {
        var node = node(.doubtful)
        #expect(node.recognizableTime != node.modificationTime)
        node.noteWritten()
        #expect(node.durability == .begun && node.recognizableTime == node.modificationTime)
    }
}
