import PromiseCore
import PromiseSync
import Testing

@Suite struct FolderWalkTests {
    private let folders = (10..<70).map { NodeID($0) }
    private let parent = NodeID(2)
    /// Sorted by name the folders are in another order: 10, 13, 16 …, 11, 14 …, 12, 15 ….
    private var named: [(node: NodeID, name: FileName)] {
        folders.enumerated().map { (node: $1, name: FileName("\($0 % 3) \(100 + $0)")!) }
    }
    private var sorted: [NodeID] { named.sorted { $0.name < $1.name }.map(\.node) }

    private func ask(_ walk: inout FolderWalk, _ folder: NodeID, at seconds: Int) -> [NodeID] {
        walk.asked(for: folder, in: parent, at: .seconds(seconds)) { named }
    }

    /// As if each listing ended at once; what is listed already is not listed again. Returns what was listed.
    private func list(_ named: [NodeID], _ walk: inout FolderWalk, _ listed: inout Set<NodeID>) -> [NodeID] {
        var waiting = named
        var result: [NodeID] = []
        while let folder = waiting.first {
            waiting.removeFirst()
            if listed.insert(folder).inserted {
                result.append(folder)
                waiting += walk.ended(folder)
            } else {
                waiting += walk.skipped(folder)
            }
        }
        return result
    }

    /// Goes through the folders in this order; returns how often it had to wait, and what was listed ahead.
    private func go(_ order: [NodeID]) -> (waits: Int, ahead: [NodeID]) {
        var walk = FolderWalk()
        var listed: Set<NodeID> = []
        var waits = 0
        var ahead: [NodeID] = []
        for folder in order where !listed.contains(folder) {
            waits += 1
            listed.insert(folder)
            ahead += list(ask(&walk, folder, at: 20), &walk, &listed)
        }
        return (waits, ahead)
    }

    @Test func twoListingsAreNoWalk() {
        var walk = FolderWalk()
        #expect(ask(&walk, folders[0], at: 10) == [])
        #expect(ask(&walk, folders[1], at: 10) == [])
        // A long listing is waited for page by page.
        #expect(ask(&walk, folders[1], at: 10) == [])
    }

    @Test func whoGoesOnFindsTheNextFoldersListed() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, folders[position], at: 10) }
        #expect(ask(&walk, folders[2], at: 11) == Array(folders[3..<7]))
        // No more than were foreseen, until the walk has come to their end.
        for folder in folders[3..<7] { #expect(walk.ended(folder) == []) }
        #expect(ask(&walk, folders[7], at: 11) == Array(folders[8..<16]))
    }

    @Test func whoWaitsForWhatIsUnderWayHasMoreListed() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, folders[position], at: 10) }
        #expect(ask(&walk, folders[2], at: 11) == Array(folders[3..<7]))
        #expect(ask(&walk, folders[3], at: 11) == Array(folders[7..<15]))
        #expect(ask(&walk, folders[4], at: 11) == Array(folders[15..<19]))
        #expect(walk.ended(folders[3]) == [folders[19]])
    }

    @Test func whoReadsTheFolderHalfWayHasMoreListed() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, folders[position], at: 10) }
        for folder in ask(&walk, folders[2], at: 11) { _ = walk.ended(folder) }
        #expect(walk.mark == folders[4])
        #expect(walk.reached(folders[3], at: .seconds(11)) == [])
        #expect(walk.reached(folders[4], at: .seconds(11)) == Array(folders[7..<11]))
        #expect(walk.mark == folders[8])
    }

    @Test func aWalkWithAStackComesBackwards() {
        var walk = FolderWalk()
        for position in [59, 58] { _ = ask(&walk, folders[position], at: 10) }
        #expect(ask(&walk, folders[57], at: 11) == folders[53..<57].reversed())
        let (waits, ahead) = go(folders.reversed())
        #expect(waits <= 6)
        #expect(Set(ahead).count == ahead.count)
    }

    @Test func aWalkMaySortByName() {
        var walk = FolderWalk()
        for folder in sorted.prefix(2) { _ = ask(&walk, folder, at: 10) }
        #expect(ask(&walk, sorted[2], at: 11) == Array(sorted[3..<7]))
        #expect(go(sorted).waits <= 6)
        #expect(go(sorted.reversed()).waits <= 6)
    }

    @Test func whenNothingIsLeftInAFolderTheOneBeforeIsGoneOnWith() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, folders[position], at: 10) }
        for folder in ask(&walk, folders[2], at: 11) { _ = walk.ended(folder) }
        #expect(ask(&walk, folders[7], at: 11) == Array(folders[8..<16]))
        for position in 8..<15 { _ = walk.ended(folders[position]) }
        #expect(ask(&walk, folders[16], at: 11) == Array(folders[17..<32]))
        let inner = NodeID(50)
        #expect(walk.asked(for: inner, in: folders[16], at: .seconds(11)) { [(inner, FileName("inner")!)] } == [])
        #expect(walk.ended(folders[17]) == [folders[32]])
    }

    @Test func everyFolderIsNamedOnceAndTheLastOnesToo() {
        let (waits, ahead) = go(folders)
        #expect(Set(ahead).count == ahead.count)
        #expect(waits + ahead.count == folders.count)
        #expect(waits <= 6)
    }

    @Test func aListingThatEndsMakesRoomForTheNext() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, folders[position], at: 10) }
        for folder in ask(&walk, folders[2], at: 11) { _ = walk.ended(folder) }
        for position in [7, 16] { for folder in ask(&walk, folders[position], at: 11) { _ = walk.ended(folder) } }
        #expect(ask(&walk, folders[33], at: 11) == Array(folders[34..<50]))
        #expect(walk.ended(folders[34]) == [folders[50]])
        walk.stop()
        #expect(walk.ended(folders[35]) == [])
    }

    @Test func aPauseEndsAWalk() {
        var walk = FolderWalk()
        for position in 0..<2 { _ = ask(&walk, folders[position], at: 10) }
        #expect(ask(&walk, folders[2], at: 60) == [])
    }

    /// Folders of which each has three, and each of these two.
    private static func subfolders(of folder: NodeID) -> [(node: NodeID, name: FileName)] {
        let number = folder.rawValue
        let count: UInt64 = number == 1 ? 20 : number < 100 ? 3 : number < 1000 ? 2 : 0
        return (0..<count).map { index in
            let node = number == 1 ? 10 + index : number * 10 + index
            return (node: NodeID(node), name: FileName("folder \(node)")!)
        }
    }

    @Test(arguments: [true, false]) func aWalkThatGoesIntoItsFoldersFindsThoseInThemListed(descends: Bool) {
        var walk = FolderWalk()
        var listed: Set<NodeID> = [NodeID(1)]
        var waits = 0
        var ahead = 0
        func visit(_ folder: NodeID, in parent: NodeID) {
            if listed.insert(folder).inserted {
                waits += 1
                var waiting = walk.asked(for: folder, in: parent, at: .seconds(5)) { Self.subfolders(of: parent) }
                while let next = waiting.first {
                    waiting.removeFirst()
                    if listed.insert(next).inserted {
                        ahead += 1
                        waiting += walk.ended(next) { Self.subfolders(of: next) }
                    } else {
                        waiting += walk.skipped(next)
                    }
                }
            }
            if descends { for inner in Self.subfolders(of: folder) { visit(inner.node, in: folder) } }
        }
        for folder in Self.subfolders(of: NodeID(1)) { visit(folder.node, in: NodeID(1)) }
        // Of 20 + 60 + 120 folders; or of 20, of which what is in them is nobody's business.
        if descends { #expect(waits <= 20, "\(waits)") } else { #expect(ahead <= 20, "\(ahead)") }
    }
}
