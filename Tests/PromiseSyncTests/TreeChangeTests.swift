import PromiseCore
import PromiseIndex
import PromiseSync
import Testing

@Suite struct TreeChangeTests {
    private let node = Node(id: NodeID(7), kind: .file, mode: 0o600, owner: 0, group: 0, time: .zero)

    private func place(_ name: String) -> TreePlace { TreePlace(FileName(name)!, in: .root) }
    private func text(_ changes: [TreeChange]) -> [String] {
        changes.map { change in
            switch change {
            case .appeared(let place): "+\(place.name.display)"
            case .gone(let place, _): "-\(place.name.display)"
            case .moved(_, let from, let to): "\(from.name.display)>\(to.name.display)"
            case .modified(let node, _): "*\(node)"
            }
        }
    }

    private func moved(_ from: String, _ to: String) -> TreeChange { .moved(node.id, from: place(from), to: place(to)) }

    @Test func whatMakesWayBeforeItGoesIsGoneFromWhereItWas() {
        let changes: [TreeChange] = [moved("a", "aside"), .appeared(place("a")), .gone(place("aside"), node)]
        #expect(text(changes.condensed) == ["-a", "+a"])
    }

    @Test func aChainOfMovesIsOne() {
        #expect(text([moved("a", "b"), moved("b", "c"), moved("c", "d")].condensed) == ["a>d"])
    }

    @Test func whatComesAndGoesIsNothing() {
        #expect(text([TreeChange.appeared(place("a")), .gone(place("a"), node)].condensed) == [])
    }

    @Test func whatComesAndMovesComesToItsLastPlace() {
        #expect(text([TreeChange.appeared(place("a")), moved("a", "b"), moved("b", "c")].condensed) == ["+c"])
    }

    @Test func aReplacedFileGoesAndComes() {
        let changes: [TreeChange] = [
            .gone(place("a"), node), .appeared(place("a")), .gone(place("a"), node), .appeared(place("a")),
        ]
        #expect(text(changes.condensed) == ["-a", "+a"])
    }

    @Test func twoThatChangePlacesMoveBoth() {
        let other = TreeChange.moved(NodeID(8), from: place("b"), to: place("a"))
        #expect(text([moved("a", "aside"), other, moved("aside", "b")].condensed) == ["b>a", "a>b"])
    }
}
