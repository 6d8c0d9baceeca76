import PromiseKit
import PromiseWire
import Synchronization
import Testing

/// What the end of a daemon means to whoever follows what it tells.
@Suite(.timeLimit(.minutes(1))) struct DaemonSuccessionTests {
    private let broken = PromiseError(.brokenReply, "the connection broke", exitStatus: 4)
    private let silent = PromiseError(.notAnswering, "it did not answer in time", exitStatus: 4)
    private let ending = PromiseError(
        ProblemDocument(
            code: "interrupted", title: "Interrupted", status: 503, detail: "it is ending", exitStatus: 1))

    private func made() -> DaemonSuccession {
        DaemonSuccession(of: "work", patience: .milliseconds(500), whenSilent: .seconds(3))
    }

    private func nobody() throws(PromiseError) -> Int { throw silent }

    /// Both were the end with status 0, or both that with status 4.
    @Test func aDomainThatWasUnmountedIsNoDaemonThatDied() async throws {
        for end in [nil, ending] {
            var succession = made()
            #expect(try await succession.next(after: end, nobody) == nil)
        }
        let error = await #expect(throws: PromiseError.self) {
            var succession = made()
            _ = try await succession.next(after: broken, nobody)
        }
        #expect(error?.exitStatus == 4 && error?.message.contains("has died") == true)
    }

    /// It was given up after ten seconds, and replaced after a minute.
    @Test func aSilentDaemonIsWaitedForAsLongAsItsReplacementTakes() async throws {
        let start = ContinuousClock.now
        var succession = made()
        let reply = try await succession.next(after: silent) { () async throws(PromiseError) in
            guard ContinuousClock.now - start > .seconds(1) else { throw silent }
            return 7
        }
        #expect(reply == 7)
        let error = await #expect(throws: PromiseError.self) {
            _ = try await succession.next(after: silent, nobody)
        }
        #expect(error?.exitStatus == 4 && error?.message.contains("does not answer") == true)
    }

    /// One that ends still takes questions for a moment, and breaks off its answers.
    @Test func whatAnEndingDaemonBreaksOffIsStillItsEnd() async throws {
        var succession = made()
        #expect(try await succession.next(after: nil) { () async throws(PromiseError) in 7 } == 7)
        #expect(try await succession.next(after: broken, nobody) == nil)
    }

    /// A daemon that was killed soon after its domain was mounted again had been unmounted, with status 0.
    @Test func aDaemonThatDiesSoonAfterItsDomainWasMountedAgainHasDied() async throws {
        var succession = made()
        #expect(try await succession.next(after: nil) { () async throws(PromiseError) in 7 } == 7)
        succession.heard()
        let error = await #expect(throws: PromiseError.self) {
            _ = try await succession.next(after: broken, nobody)
        }
        #expect(error?.exitStatus == 4 && error?.message.contains("has died") == true)
    }

    /// An event that made no sense was asked for again and again, without end.
    @Test func anAnswerThatMakesNoSenseIsNoEndOfADaemon() async throws {
        let nonsense = PromiseError(.brokenReply, "that makes no sense", exitStatus: 1)
        let error = await #expect(throws: PromiseError.self) {
            var succession = made()
            _ = try await succession.next(after: nonsense) { () async throws(PromiseError) in 7 }
        }
        #expect(error == nonsense)
    }
}
