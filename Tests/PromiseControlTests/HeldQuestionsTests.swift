import PromiseControl
import PromiseCoordination
import Testing

/// Presenters of what an application may only read: what their answers cost others.
@Suite struct HeldQuestionsTests {
    private let start = ContinuousClock.now
    private let viewer = PresenterID(rawValue: 1)
    private let other = PresenterID(rawValue: 2)

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    /// Each depth of folders cost five seconds, and each question of one that answered just in time.
    @Test func foldersInFoldersAndQuestionsInARowCostFiveSecondsInAll() {
        var questions = HeldQuestions()
        #expect(questions.ask(1, of: viewer, now: at(0)) == .seconds(5))
        questions.answered(1, now: at(4))
        #expect(questions.ask(2, of: viewer, now: at(4)) == .seconds(1))
        #expect(questions.ask(3, of: other, now: at(4.5)) == .seconds(0.5))
        #expect(questions.end(now: at(4.9)).isEmpty)
        #expect(questions.end(now: at(5)) == [2: viewer, 3: other])
        #expect(questions.ask(4, of: viewer, now: at(5)) == nil, "whoever asks next goes on at once")
        #expect(questions.ask(5, of: PresenterID(rawValue: 3), now: at(64)) == nil, "nor does a new one help")
        #expect(questions.ask(6, of: viewer, now: at(66)) == .seconds(5))
    }

    @Test func aPresenterThatNeverAnswersIsSilentAndNotAnsweredFor() {
        var questions = HeldQuestions()
        _ = questions.ask(1, of: viewer, now: at(0))
        #expect(questions.end(now: at(5)).isEmpty)
        #expect(questions.ask(2, of: other, now: at(5)) == nil)
    }

    @Test func whoAnswersSoonIsWaitedForAgainAndAgain() {
        var questions = HeldQuestions()
        for number in 0..<100 {
            let asked = at(Double(number) * 2)
            #expect(questions.ask(UInt64(number), of: viewer, now: asked)! > .seconds(4))
            questions.answered(UInt64(number), now: asked + .milliseconds(100))
        }
        _ = questions.ask(200, of: viewer, now: at(300))
        questions.removed(viewer, now: at(303))
        #expect(questions.ask(201, of: viewer, now: at(303)) == .seconds(2), "ending a presenter is an answer")
        #expect(questions.ask(202, of: viewer, now: at(303)) == .seconds(2))
    }
}
