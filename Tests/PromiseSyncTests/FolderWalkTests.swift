import PromiseCore
import PromiseSync
import Testing

@Suite struct FolderWalkTests {
    private let folders = (10..<40).map { NodeID($0) }
    private let parent = NodeID(2)

    private func ask(_ walk: inout FolderWalk, _ position: Int, at seconds: Int) -> [NodeID] {
        walk.asked(for: folders[position], in: parent, at: .seconds(seconds)) { folders }
    }

    @Test func twoListingsAreNoWalk() {
        var walk = FolderWalk()
        #expect(ask(&walk, 0, at: 10) == [])
        #expect(ask(&walk, 1, at: 10) == [])
    }

    @Test func whoGoesOnFindsTheNextFoldersListed() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, position, at: 10) }
        #expect(ask(&walk, 2, at: 11) == Array(folders[3..<7]))
        // No more than were foreseen, until the walk has come to their end.
        for folder in folders[3..<7] { #expect(walk.ended(folder) == []) }
        #expect(ask(&walk, 7, at: 11) == Array(folders[8..<16]))
    }

    @Test func aListingThatEndsMakesRoomForTheNext() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, position, at: 10) }
        _ = ask(&walk, 2, at: 11).map { walk.ended($0) }
        _ = ask(&walk, 7, at: 11).map { walk.ended($0) }
        #expect(ask(&walk, 16, at: 11) == Array(folders[17..<25]))
        #expect(walk.ended(folders[17]) == [folders[25]])
        walk.stop()
        #expect(walk.ended(folders[18]) == [])
    }

    @Test func everyFolderIsNamedOnceAndTheLastOnesToo() {
        var walk = FolderWalk()
        var named: [NodeID] = []
        var listed: Set<NodeID> = []
        for position in folders.indices where !listed.contains(folders[position]) {
            var next = ask(&walk, position, at: 20)
            while let folder = next.popLast() {
                named.append(folder)
                listed.insert(folder)
                next += walk.ended(folder)
            }
        }
        #expect(Set(named).count == named.count)
        #expect(listed.count >= folders.count - 6)
    }

    @Test func aPauseEndsAWalk() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, position, at: 10) }
        #expect(ask(&walk, 2, at: 60) == [])
    }
}
