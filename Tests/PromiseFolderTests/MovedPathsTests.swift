import PromiseCore
import PromiseFolder
import Testing

@Suite struct MovedPathsTests {
    private func path(_ text: String) throws -> [FileName] {
        try text.split(separator: "/").map { try #require(FileName(Array($0.utf8))) }
    }

    @Test func aPathIsFollowedThroughAllMovesAfterIt() throws {
        var moved = MovedPaths()
        moved.note(from: try path("a"), to: try path("b"))
        moved.note(from: try path("b/c"), to: try path("d"))
        #expect(moved.successors(of: try path("a/c/file")) == [try path("d/file")])
        #expect(moved.successors(of: try path("b/c/file")) == [try path("d/file")])
        #expect(moved.successors(of: try path("e/file")) == [])
    }

    /// The same name may have stood for one thing and then for another.
    @Test func aPathThatWasMovedTwiceMayLeadToTwoPlaces() throws {
        var moved = MovedPaths()
        moved.note(from: try path("a"), to: try path("b"))
        moved.note(from: try path("x"), to: try path("a"))
        moved.note(from: try path("a"), to: try path("c"))
        #expect(moved.successors(of: try path("a/file")) == [try path("c/file"), try path("b/file")])
    }

    @Test func movesOfLongAgoAreForgotten() throws {
        var moved = MovedPaths()
        for number in 0..<(MovedPaths.countMin * 3) {
            moved.note(from: try path("\(number)"), to: try path("moved/\(number)"))
        }
        #expect(moved.successors(of: try path("0")) == [])
        #expect(moved.successors(of: try path("\(MovedPaths.countMin * 3 - 1)")).count == 1)
    }
}
