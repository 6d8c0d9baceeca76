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
        // No more while these are under way.
        #expect(ask(&walk, 3, at: 11) == [])
        for folder in folders[3..<5] { walk.ended(folder) }
        #expect(ask(&walk, 4, at: 11) == Array(folders[7..<9]))
    }

    @Test func everyFolderIsNamedOnceAndTheLastOnesToo() {
        var walk = FolderWalk()
        var named: [NodeID] = []
        for position in folders.indices {
            let next = ask(&walk, position, at: 20)
            named += next
            next.forEach { walk.ended($0) }
        }
        #expect(Set(named).count == named.count)
        #expect(Set(named).isSuperset(of: folders[4...]))
        #expect(FolderWalk.aheadCount == 4)
    }

    @Test func aPauseEndsAWalk() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, position, at: 10) }
        #expect(ask(&walk, 2, at: 60) == [])
    }
}
