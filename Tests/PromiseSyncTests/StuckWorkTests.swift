import PromiseCore
import PromiseSync
import Testing

struct StuckWorkTests {
    private func answers(
        _ code: Failure.Code?, _ looks: [(isStuck: Bool, second: Int)]
    ) -> [Bool] {
        var stuck = StuckWork()
        return looks.map { stuck.isHopeless($0.isStuck, code, at: .seconds($0.second)) }
    }

    /// A folder that another machine was just moving was looked for, and whoever waited was told after two
    /// seconds that it is not on the server.
    @Test(arguments: [Failure.Code.conflict, .notFound, .stale])
    func whatMayGoOnByALookIsWaitedFor(code: Failure.Code) {
        let looks = [(true, 10), (true, 14), (false, 15), (true, 16), (true, 21)]
        #expect(answers(code, looks) == [false, false, false, false, true])
    }

    /// A lock that a killed program had left at the server ends after half a minute; whoever waited was told
    /// after six seconds that another program holds it.
    @Test func whatPassesByItselfIsWaitedFor() {
        #expect(answers(.timedOut, [(true, 10), (true, 41), (true, 50)]) == [false, false, true])
    }

    @Test(arguments: [Failure.Code.refused, nil]) func whatIsRefusedIsToldAtOnce(code: Failure.Code?) {
        #expect(answers(code, [(false, 10), (true, 11)]) == [false, true])
    }
}
