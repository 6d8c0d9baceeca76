import Foundation
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// What is left when a body throws, or when the disk is full: the state before, in the tables and in memory.
@Suite struct RollbackTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    @Test func aBodyThatThrowsChangesNothing() throws {
        let index = try folder.open()
        let kept = try index.write { transaction throws(Failure) in
            try transaction.setSetting("key", "before")
            return try transaction.make(named: name("kept"))
        }
        let counts = try index.read { transaction throws(Failure) in try transaction.counts() }
        #expect(
            failure {
                try index.write { transaction throws(Failure) in
                    var node = kept.node
                    node.localBytes = 99
                    try transaction.update(node)
                    var entry = kept.entry
                    entry.name = name("renamed")
                    try transaction.update(entry)
                    try transaction.make(named: name("new"))
                    try transaction.setSetting("key", "after")
                    throw Failure(.notEmpty, "the body gives up")
                }
            } == .notEmpty)
        try index.read { transaction throws(Failure) in
            #expect(try transaction.node(kept.node.id) == kept.node)
            #expect(try transaction.entry(in: .root, named: name("kept")) == kept.entry)
            #expect(try transaction.entry(in: .root, named: name("renamed")) == nil)
            #expect(try transaction.entry(in: .root, named: name("new")) == nil)
            #expect(try transaction.setting("key") == "before")
            #expect(try transaction.counts() == counts)
        }
        #expect(try index.verify() == [])
    }

    @Test func aFullDatabaseGivesStoreFullAndTheIndexGoesOn() throws {
        let index = try folder.open()
        let kept = try index.write { transaction throws(Failure) in try transaction.make(named: name("kept")) }
        try index.setFull(true)
        let big = [UInt8](repeating: 1, count: 60_000)
        func fill() throws {
            for number in 0..<100 {
                try index.write { transaction throws(Failure) in
                    let made = try transaction.make(named: name("\(number)"))
                    // Even a body that goes on after the failure is undone as a whole.
                    do throws(Failure) {
                        try transaction.setAttribute([1], of: made.node.id, to: big)
                    } catch {
                        #expect(error.code == .storeFull)
                    }
                }
            }
        }
        #expect(failure(fill) == .storeFull)
        #expect(try index.verify() == [])
        #expect(try index.read { transaction throws(Failure) in try transaction.node(kept.node.id) } == kept.node)
        try index.setFull(false)
        try index.write { transaction throws(Failure) in
            for entry in try transaction.children(of: .root) where entry.id != kept.entry.id {
                try transaction.delete(entry.id)
                try transaction.delete(entry.node)
            }
        }
        try fill()
        #expect(try index.verify() == [])
    }

    /// On a full disk the journal, whose room is its own, goes on taking changes; when it is full too, bodies fail, and what
    /// was answered stays. Removing works by what is kept in reserve.
    @Test(.enabled(if: canMount, "mounting a tmpfs takes root"))
    func onAFullDiskNothingAnsweredIsLostAndRemovingWorks() throws {
        let mount = folder.string + "/full"
        try folder.makeFolder("full")
        try #require(run("/bin/mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", mount))
        defer { _ = run("/bin/umount", "-l", mount) }
        let path = Array((mount + "/index.sqlite").utf8)
        let index = try Index(path: path, journalByteCount: 262_144)
        defer { index.close() }
        var made: [Entry] = []
        var failedCount = 0
        while failedCount < 20, made.count < 5_000 {
            do throws(Failure) {
                made.append(
                    try index.write { transaction throws(Failure) in
                        let new = try transaction.make(named: name("\(made.count) \(failedCount)"))
                        try transaction.setAttribute([1], of: new.node.id, to: [UInt8](repeating: 1, count: 3_000))
                        return new.entry
                    })
            } catch {
                #expect(error.code == .storeFull)
                failedCount += 1
            }
        }
        #expect(failedCount == 20 && made.count > 100)
        func expectAll(_ index: Index) throws {
            let found = try index.read { transaction throws(Failure) in try transaction.children(of: .root).map(\.id) }
            #expect(Set(found) == Set(made.map(\.id)))
        }
        try expectAll(index)
        // A check commits what is open; it said that the disk is full.
        #expect(try index.verify() == [])
        let killed = try Index(path: try folder.copyOfDatabase("killed", from: path), journalByteCount: 262_144)
        try expectAll(killed)
        #expect(try killed.verify() == [])
        for entry in made.prefix(50) {
            try index.writeFreeing { transaction throws(Failure) in
                try transaction.delete(entry.id)
                try transaction.delete(entry.node)
            }
        }
        made.removeFirst(50)
        try expectAll(index)
        try index.checkpoint()
        try expectAll(index)
        try #require(run("/bin/mount", "-o", "remount,size=32m", mount))
        try index.write { transaction throws(Failure) in made.append(try transaction.make(named: name("more")).entry) }
        try expectAll(index)
        #expect(try index.verify() == [])
    }

    /// A small tmpfs, without room for a journal: each body is a commit, which fails with ENOSPC from the kernel.
    @Test(.enabled(if: canMount, "mounting a tmpfs takes root"))
    func aCommitOnAFullDiskFailsAndTheIndexGoesOn() throws {
        let mount = folder.string + "/small"
        try folder.makeFolder("small")
        try #require(run("/bin/mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", mount))
        defer { _ = run("/bin/umount", "-l", mount) }
        let path = Array((mount + "/index.sqlite").utf8)
        let index = try Index(path: path)
        defer { index.close() }
        let done = Monitor<(saved: [NodeID], failed: Int, codes: Set<Failure.Code>)>(([], 0, []))
        @Sendable func write(_ thread: Int, _ number: Int) {
            do throws(Failure) {
                let node = try index.write { transaction throws(Failure) in
                    let node = try transaction.make(named: name("\(thread) \(number)")).node.id
                    try transaction.setAttribute([1], of: node, to: [UInt8](repeating: 1, count: 3_000))
                    return node
                }
                done.withLock { $0.saved.append(node) }
            } catch {
                done.withLock { state in
                    state.failed += 1
                    state.codes.insert(error.code)
                }
            }
        }
        let threads = (0..<8).map { thread in
            OwnedThread(name: "writer") {
                for number in 0..<100 { write(thread, number) }
            }
        }
        for thread in threads { thread.join() }
        let state = done.withLock { $0 }
        #expect(state.failed > 0 && state.codes == [.storeFull])
        #expect(state.saved.count > 0 && state.saved.count + state.failed == 800)
        try index.read { transaction throws(Failure) in
            for node in state.saved { #expect(try transaction.node(node) != nil) }
            #expect(try transaction.counts().nodes == state.saved.count + 1)
        }
        try #require(run("/bin/mount", "-o", "remount,size=16m", mount))
        write(9, 9)
        #expect(done.withLock { $0.saved.count } == state.saved.count + 1)
        #expect(try index.verify() == [])
    }

    private static var canMount: Bool { getuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount") }

    private func run(_ program: String, _ arguments: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
