import Foundation
import PromiseSystem
import Testing

/// Programs that are asked, and programs that never end.
@Suite struct ChildProcessTests {
    private func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }

    @Test func aProgramIsGivenATextAndSaysWhatItSays() {
        let answer = ChildProcess.exchange(
            words("cat"), input: Array("a secret".utf8), limit: .seconds(60))
        #expect(answer?.status == 0 && answer?.output == Array("a secret".utf8))
        // It reads nothing, and has ended before anything is written.
        let failed = ChildProcess.exchange(
            words("sh", "-c", "exit 3"), input: Array("x".utf8), limit: .seconds(60))
        #expect(failed?.status == 3 && failed?.output == [])
        #expect(ChildProcess.exchange(words("/nowhere/program"), limit: .seconds(60)) == nil)
        #expect(ChildProcess.exchange(words("sleep", "60"), limit: .milliseconds(100)) == nil)
    }

    @Test func aProgramThatDoesNotEndIsLeft() {
        let begun = ContinuousClock.now
        #expect(ChildProcess.runOrLeave(words("sleep", "60"), limit: .milliseconds(100)) == .left)
        #expect(ContinuousClock.now - begun < .seconds(50))
        #expect(ChildProcess.runOrLeave(words("true"), limit: .seconds(60)) == .ended(0))
        #expect(
            ChildProcess.runOrLeave(words("sh", "-c", "exit 7"), limit: .seconds(60)) == .ended(7))
        #expect(
            ChildProcess.runOrLeave(words("/nowhere/program"), limit: .seconds(60)) == .notStarted)
    }

    /// What waits for any child, as the tests of programs that trap do, would meet it for ever.
    @Test func aProgramThatWasLeftIsNoZombieWhenItHasEnded() throws {
        #expect(ChildProcess.runOrLeave(words("sleep", "60"), limit: .milliseconds(100)) == .left)
        let end = ContinuousClock.now + .seconds(120)
        while try zombies(of: "sleep").contains(getpid()) {
            try #require(ContinuousClock.now < end, "it is a zombie")
            usleep(10_000)
        }
    }

    /// The parents of those that have ended and were not waited for.
    private func zombies(of program: String) throws -> [pid_t] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { name in
            guard Int32(name) != nil,
                let text = readSmallFile(Array("/proc/\(name)/stat".utf8)).map({ String(decoding: $0, as: UTF8.self) }),
                text.contains("(\(program)) Z ")
            else { return nil }
            return text.split(separator: " ").dropFirst(3).first.flatMap { pid_t($0) }
        }
    }

    /// A thumbnailer in its sandbox had the daemon's listening socket, and answered in its place.
    @Test func aProgramHasNothingOfWhatIsOpenHereAndNoVariablesButThoseNamed() throws {
        // As libraries open theirs: exec leaves it open.
        let left = open("/dev/null", O_RDONLY)
        defer { close(left) }
        #expect(ChildProcess.run(words("test", "!", "-e", "/proc/self/fd/\(left)"), limit: .seconds(60)))
        setenv("PROMISEFS_TEST_SECRET", "hunter2", 1)
        defer { unsetenv("PROMISEFS_TEST_SECRET") }
        let hasSecret = words("sh", "-c", "test \"$PROMISEFS_TEST_SECRET\" = hunter2")
        #expect(ChildProcess.run(hasSecret, limit: .seconds(60)))
        #expect(!ChildProcess.run(hasSecret, environment: ["PATH"], limit: .seconds(60)))
    }
}
