import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What was sent and never answered was "running" for ten minutes, and nobody could see that the server was silent.
struct UploadProgressTests {
    private final class Clock: TimeSource {
        let time = Mutex(Duration.seconds(1_000))
        func now() -> Timestamp { Timestamp(seconds: 1_000_000, nanoseconds: 0).advanced(by: uptime()) }
        func uptime() -> Duration { time.withLock { $0 } }
        func pass(_ span: Duration) { time.withLock { $0 += span } }
    }

    private func source(in folder: TemporaryFolder) throws -> UploadSource {
        let content = try ContentStore(folder: folder.path("content"))
        let (node, generation) = (NodeID(rawValue: 7), Generation(rawValue: 1))
        _ = try content.create(node, generation, size: 4)
        return try UploadSource(content, node: node, generation: generation)
    }

    @Test func whoIsSentToAndDoesNotAnswerIsSilentSinceTheLastBytes() throws {
        let (clock, folder) = (Clock(), try TemporaryFolder("progress"))
        let (progress, source) = (UploadProgress(clock), try source(in: folder))
        let subject = Pending.Subject.entry(EntryID(rawValue: 3))
        progress.began(subject, of: NodeID(rawValue: 7), sending: source)
        for _ in 1...4 {
            clock.pass(.seconds(20))
            source.noteSent(1)
            #expect(progress.silentSince(subject) == nil, "it takes bytes, slowly")
        }
        let last = clock.now()
        clock.pass(.seconds(40))
        #expect(progress.silentSince(subject) == last && progress.silentSince() == last)
        #expect(progress.of(NodeID(rawValue: 7)) == 0.99)
        progress.ended(subject, of: NodeID(rawValue: 7))
        #expect(progress.silentSince(subject) == nil && progress.silentSince() == nil)
    }

    @Test func aRemovalThatIsNotAnsweredIsSilentSinceItBegan() {
        let clock = Clock()
        let progress = UploadProgress(clock)
        let (first, second) = (Pending.Subject.deletion(ItemIdentifier("a")), Pending.Subject.deletion(ItemIdentifier("b")))
        let start = clock.now()
        progress.began(first, of: nil, sending: nil)
        clock.pass(.seconds(29))
        progress.began(second, of: nil, sending: nil)
        #expect(progress.silentSince(first) == nil, "servers take their time")
        clock.pass(.seconds(2))
        #expect(progress.silentSince(first) == start && progress.silentSince(second) == nil)
        #expect(progress.silentSince() == start)
    }
}
