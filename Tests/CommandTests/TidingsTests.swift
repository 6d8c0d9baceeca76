import PromiseCore
import Testing

@testable import promisefs

/// What `promisefs notify` tells, and what it keeps to itself.
@Suite struct TidingsTests {
    /// What is told at each look, one after the other.
    private func titles(of looks: [Tidings.Look]) -> [[String]] {
        var tidings = Tidings(domain: "work", place: "/work")
        return looks.map { tidings.take($0).tidings.map(\.title) }
    }

    @Test func aConflictIsToldOnceAndFurtherOnesAMinuteLater() {
        let told = titles(of: [
            .init(time: .seconds(0)), .init(time: .seconds(30), conflicts: 1), .init(time: .seconds(60), conflicts: 3),
            .init(time: .seconds(90), conflicts: 3), .init(time: .seconds(900), conflicts: 1),
            .init(time: .seconds(930), conflicts: 2),
        ])
        let expected = [
            [], ["work: 1 document is in conflict"], [], ["work: 3 documents are in conflict"], [],
            ["work: 2 documents are in conflict"],
        ]
        #expect(told == expected)
    }

    @Test func aChangeIsRefusedWhenItIsAtTwoLooks() {
        let told = titles(of: [
            .init(time: .seconds(0), refused: 2), .init(time: .seconds(30), refused: 1), .init(time: .seconds(300), refused: 1),
        ])
        #expect(told == [[], ["work: 1 change is not taken by the provider"], []])
        var tidings = Tidings(domain: "work", place: "/work")
        _ = tidings.take(.init(time: .seconds(0), refused: 1))
        let second = tidings.take(.init(time: .seconds(30), refused: 1, reason: "/a: no room")).tidings
        #expect(second.map(\.text) == ["/a: no room\nSee: promisefs pending /work"])
    }

    @Test func onlyADownloadThatTookLongIsSaidToHaveEnded() {
        var tidings = Tidings(domain: "work", place: "/work")
        _ = tidings.take(.init(time: .seconds(0), downloads: ["/film": "/film", "/note": "/note"]))
        let goesOn = tidings.take(.init(time: .seconds(10), downloads: ["/film": "/film"])).ended
        #expect(goesOn.isEmpty)
        let ended = tidings.take(.init(time: .seconds(40))).ended
        #expect(ended.map(\.name) == ["/film"])
        #expect(tidings.arrived("/film").title == "work: '/film' is here")
        let later = tidings.take(.init(time: .seconds(80))).ended
        #expect(later.isEmpty)
    }
}
