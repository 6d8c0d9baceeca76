import Foundation
import PromiseCoordination
import PromiseCore
import PromiseTestSupport
import Testing

/// Claims on items and places while items are made, moved, replaced and removed by programs that ask nobody, beside a
/// reference that looks at the whole tree for every question.
@Suite struct PlaceModelTests {
    /// What is where. What was removed keeps its folder, as whoever waits for it still waits below that.
    private struct Tree {
        var parents: [NodeID: NodeID] = [:]
        var names: [NodeID: UInt8] = [:]
        var folders: [NodeID] = [.root]
        var last: UInt64 = 1

        func chain(_ node: NodeID) -> [NodeID] {
            var (result, current) = ([NodeID](), parents[node])
            while let folder = current {
                result.append(folder)
                current = parents[folder]
            }
            return result
        }

        func place(_ name: UInt8, in folder: NodeID) -> NodeID { .vacancy(FileName([0x61 + name])!, in: folder) }

        func place(of node: NodeID) -> NodeID? {
            guard let parent = parents[node], let name = names[node] else { return nil }
            return place(name, in: parent)
        }

        func isFree(_ name: UInt8, in folder: NodeID) -> Bool {
            !names.contains { $0.value == name && parents[$0.key] == folder }
        }

        mutating func make(_ name: UInt8, in folder: NodeID, isFolder: Bool) -> NodeID {
            last += 1
            let node = NodeID(last)
            (parents[node], names[node]) = (folder, name)
            if isFolder { folders.append(node) }
            return node
        }
    }

    /// One item of a claim: a node, or a place in a folder at which nothing was.
    private struct Wanted: CustomStringConvertible {
        var node: NodeID
        var folder: NodeID?
        var access: Access
        var place: NodeID?
        /// Something arrived at the place since.
        var wasVacant = false

        var description: String {
            "\(node)" + (folder.map { " in \($0)" } ?? "") + " \(access)" + (place.map { " at \($0)" } ?? "")
        }
    }

    private struct Reference {
        var tree = Tree()
        var claims: [(id: ClaimID, items: [Wanted])] = []
        var inside: Set<ClaimID> = []

        func folders(of item: Wanted) -> [NodeID] { item.folder.map { [$0] + tree.chain($0) } ?? tree.chain(item.node) }

        func conflict(_ left: [Wanted], _ right: [Wanted]) -> Bool {
            left.contains { one in
                right.contains { other in
                    guard one.access.conflicts(with: other.access) else { return false }
                    let isSame = [one.node, one.place].contains { own in
                        own != nil && (own == other.node || own == other.place)
                    }
                    return isSame || folders(of: one).contains(other.node) || folders(of: other).contains(one.node)
                }
            }
        }

        /// An item has moved away; `old`: from another folder.
        mutating func leave(_ node: NodeID, _ old: NodeID?) {
            for claim in claims.indices {
                let isInside = inside.contains(claims[claim].id)
                for index in claims[claim].items.indices where claims[claim].items[index].node == node {
                    let item = claims[claim].items[index]
                    let replaces = item.access == .write(.forReplacing)
                    guard let place = item.place, place != node, let old else {
                        if !replaces { claims[claim].items[index].place = nil }
                        continue
                    }
                    let vacancy = Wanted(node: place, folder: old, access: item.access, place: place)
                    if item.wasVacant, !isInside || replaces {
                        claims[claim].items[index] = vacancy
                    } else {
                        claims[claim].items[index].place = nil
                        if replaces { claims[claim].items.append(vacancy) }
                    }
                }
            }
        }

        mutating func change(_ body: (inout Wanted) -> Void) {
            for claim in claims.indices {
                for item in claims[claim].items.indices { body(&claims[claim].items[item]) }
            }
        }
    }

    private struct Case {
        var random: SeededGenerator
        var table = ClaimTable(answerLimit: .seconds(1))
        var reference = Reference()
        var problem: String?
        private var steps: [String] = []

        private static let accesses: [Access] = [
            .read([]), .read([]), .write([]), .write([]), .read(.immediatelyAvailableMetadataOnly),
            .write(.contentIndependentMetadataOnly), .write(.forDeleting), .write(.forMoving), .write(.forReplacing),
        ]

        init(_ random: SeededGenerator) {
            self.random = random
            let folder = reference.tree.make(0, in: .root, isFolder: true)
            _ = reference.tree.make(1, in: .root, isFolder: true)
            _ = reference.tree.make(0, in: folder, isFolder: false)
        }

        mutating func run(_ count: Int) -> String? {
            for _ in 0..<count where problem == nil {
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<4: claim()
                case 4, 5: release(reference.claims.randomElement(using: &random)?.id)
                case 6, 7: move()
                case 8: make()
                default: Bool.random(using: &random) ? replace() : remove()
                }
                look()
            }
            // Whoever is inside ends, so everybody gets in.
            while problem == nil, let first = reference.claims.first(where: { reference.inside.contains($0.id) })?.id {
                release(first)
                look()
            }
            if problem == nil, !reference.claims.isEmpty { problem = "nobody is inside, and \(reference.claims.count) wait" }
            return problem.map { "\($0) after\n" + steps.joined(separator: "\n") }
        }

        private mutating func anyFolder() -> NodeID { reference.tree.folders.randomElement(using: &random) ?? .root }
        private mutating func anyName() -> UInt8 { UInt8.random(in: 0..<4, using: &random) }

        private mutating func claim() {
            let items: [Wanted] = (0..<Int.random(in: 1...2, using: &random)).map { _ in
                let access = Case.accesses.randomElement(using: &random) ?? .read([])
                let (folder, name) = (anyFolder(), anyName())
                let place = reference.tree.place(name, in: folder)
                if access.isWriting, reference.tree.isFree(name, in: folder) {
                    return Wanted(node: place, folder: folder, access: access, place: place)
                }
                let node = reference.tree.names.keys.sorted().randomElement(using: &random) ?? .root
                return Wanted(node: node, access: access, place: reference.tree.place(of: node))
            }
            let id = table.claim(
                items.map {
                    Intent(node: $0.node, folders: reference.folders(of: $0), access: $0.access, place: $0.place)
                })
            reference.claims.append((id, items))
            steps.append("\(id) claims \(items)")
        }

        private mutating func release(_ id: ClaimID?) {
            guard let id else { return }
            table.release(id)
            steps.append("\(id) ends")
            reference.claims.removeAll { $0.id == id }
            reference.inside.remove(id)
        }

        private mutating func move() {
            guard let node = reference.tree.names.keys.sorted().randomElement(using: &random) else { return }
            let (folder, name) = (anyFolder(), anyName())
            guard reference.tree.isFree(name, in: folder), folder != node,
                !reference.tree.chain(folder).contains(node)
            else { return }
            let old = reference.tree.parents[node] ?? .root
            (reference.tree.parents[node], reference.tree.names[node]) = (folder, name)
            reference.leave(node, old == folder ? nil : old)
            steps.append("\(node) moves to \(name) in \(folder)")
            table.moved(MovedName(node, in: reference.tree.chain(node)))
            // Whoever was let in by that is inside when something arrives.
            look()
            arrive(node)
        }

        private mutating func make() {
            let (folder, name) = (anyFolder(), anyName())
            guard reference.tree.isFree(name, in: folder), reference.tree.names.count < 9 else { return }
            arrive(reference.tree.make(name, in: folder, isFolder: Bool.random(using: &random)))
        }

        /// Who has a claim on the place has it on what is there now.
        private mutating func arrive(_ node: NodeID) {
            guard let place = reference.tree.place(of: node) else { return }
            reference.change { item in
                guard item.node == place else { return }
                (item.node, item.folder, item.place, item.wasVacant) = (node, nil, place, true)
            }
            steps.append("\(node) arrives at \(place)")
            table.arrived(node, at: place, in: reference.tree.chain(node))
        }

        /// A document is saved by renaming a new file over it.
        private mutating func replace() {
            let files = reference.tree.names.keys.filter { !reference.tree.folders.contains($0) }.sorted()
            guard let old = files.randomElement(using: &random), let parent = reference.tree.parents[old],
                let name = reference.tree.names.removeValue(forKey: old)
            else { return }
            let new = reference.tree.make(name, in: parent, isFolder: false)
            reference.change { if $0.node == old { $0.node = new } }
            steps.append("\(new) replaces \(old)")
            table.replaced([ReplacedNode(old, by: new)])
        }

        private mutating func remove() {
            let tree = reference.tree
            let leaves = tree.names.keys.filter { node in !tree.names.keys.contains { tree.parents[$0] == node } }
            guard let node = leaves.sorted().randomElement(using: &random) else { return }
            steps.append("\(node) goes")
            reference.tree.names[node] = nil
            reference.tree.folders.removeAll { $0 == node }
        }

        private mutating func look() {
            for action in table.takeActions() {
                guard case .granted(let id) = action else {
                    problem = "nobody has a purpose or a presenter, and \(action)"
                    return
                }
                guard let claim = reference.claims.first(where: { $0.id == id }) else { continue }
                let other = reference.claims.first {
                    reference.inside.contains($0.id) && reference.conflict($0.items, claim.items)
                }
                steps.append("\(id) is inside")
                if let other { problem = "\(id) is let in, and \(other.id) is inside: \(claim.items) \(other.items)" }
                reference.inside.insert(id)
            }
            for claim in reference.claims {
                if table.nodes(of: claim.id) != claim.items.map(\.node) {
                    problem = "\(claim.id) is about \(table.nodes(of: claim.id)), not \(claim.items.map(\.node))"
                }
                let isFree = !reference.claims.contains {
                    $0.id != claim.id && reference.conflict($0.items, claim.items)
                }
                if isFree, !reference.inside.contains(claim.id) { problem = "\(claim.id) waits for nobody" }
            }
        }
    }

    /// 1,000,000 in the long version of the tests.
    @Test func claimsFollowWhatProgramsDoToTheTree() {
        var random = SeededGenerator(for: "claims on places")
        let isFull = ProcessInfo.processInfo.environment["PROMISEFS_SCALE"] == "full"
        for number in 0..<(isFull ? 1_000_000 : 1_000) {
            var one = Case(random)
            if let problem = one.run(24) { return #expect(Bool(false), "seed \(random.seed), case \(number): \(problem)") }
            random = one.random
        }
    }
}
