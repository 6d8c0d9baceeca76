import PromiseCore
import PromiseFilesystem
import PromiseTestSupport
import Testing

@Suite struct RestingBackingsTests {
    private func backing(_ number: Int) -> BackingID { BackingID(rawValue: Int32(number)) }

    @Test func aRegistrationIsTakenUpOnceAndOnlyForItsGeneration() {
        var resting = RestingBackings(countMax: 4)
        #expect(resting.rest(backing(1), NodeID(7), Generation(2)) == [])
        #expect(resting.take(NodeID(7), Generation(3)) == nil)
        #expect(resting.take(NodeID(8), Generation(2)) == nil)
        #expect(resting.take(NodeID(7), Generation(2)) == backing(1))
        #expect(resting.take(NodeID(7), Generation(2)) == nil && resting.drop(NodeID(7)) == nil)
    }

    @Test func whatRestedLongestGoesFirst() {
        var resting = RestingBackings(countMax: 2)
        #expect(resting.rest(backing(1), NodeID(1), Generation(1)) == [])
        #expect(resting.rest(backing(2), NodeID(2), Generation(1)) == [])
        // Used again, so it has rested for a shorter time than the other.
        #expect(resting.take(NodeID(1), Generation(1)) == backing(1))
        #expect(resting.rest(backing(1), NodeID(1), Generation(1)) == [])
        #expect(resting.rest(backing(3), NodeID(3), Generation(1)) == [backing(2)])
        // Another generation of the same node takes its place.
        #expect(resting.rest(backing(4), NodeID(3), Generation(2)) == [backing(3)])
        #expect(resting.count == 2)
    }

    @Test(arguments: 1...5) func everyRegistrationIsHandedBackOnce(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var resting = RestingBackings(countMax: 16)
        var next = 0
        var held: [NodeID: BackingID] = [:]
        var released: Set<BackingID> = []
        for _ in 0..<5000 {
            let node = NodeID(UInt64.random(in: 2..<50, using: &generator))
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: if let dropped = resting.drop(node) { #expect(released.insert(dropped).inserted) }
            case 1: if let taken = resting.take(node, Generation(1)) { held[node] = taken }
            default:
                guard held[node] == nil || Bool.random(using: &generator) else { continue }
                next += held[node] == nil ? 1 : 0
                let backing = held.removeValue(forKey: node) ?? backing(next)
                for surplus in resting.rest(backing, node, Generation(1)) { #expect(released.insert(surplus).inserted) }
            }
            #expect(resting.count <= 16)
        }
        #expect(released.count + resting.count + held.count == next)
    }
}
