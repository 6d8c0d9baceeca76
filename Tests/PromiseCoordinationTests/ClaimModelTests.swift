import Foundation
import PromiseCoordination
import PromiseCore
import PromiseTestSupport
import Testing

/// The state machine against a model that is obviously right: a list of claims in the order of their coming, of which one is
/// inside if no conflicting one before it is still there.
@Suite struct ClaimModelTests {
    /// Root 1 holds 2 and 3, 2 holds 4.
    private static let folders: [UInt64: [UInt64]] = [1: [], 2: [1], 3: [1], 4: [2, 1]]
    private static let accesses: [Access] = [
        .read([]), .write([]), .read(.immediatelyAvailableMetadataOnly), .write(.contentIndependentMetadataOnly),
        .write(.forDeleting),
    ]

    private static func intent(_ node: UInt64, _ access: Access) -> Intent {
        Intent(node: NodeID(node), folders: (folders[node] ?? []).map { NodeID($0) }, access: access)
    }

    private struct Model {
        var claims: [(id: ClaimID, intents: [Intent])] = []

        func isInside(_ index: Int) -> Bool { !claims[..<index].contains { conflict($0.intents, claims[index].intents) } }

        private func conflict(_ left: [Intent], _ right: [Intent]) -> Bool {
            left.contains { one in
                right.contains { other in
                    let overlaps = one.node == other.node || one.folders.contains(other.node) || other.folders.contains(one.node)
                    return overlaps && one.access.conflicts(with: other.access)
                }
            }
        }
    }

    /// Every sequence of three claims of one item each, and every order in which they end.
    @Test func everySmallCaseIsAsTheModelSays() {
        let choices = (1...4).flatMap { node in Self.accesses.map { Self.intent(UInt64(node), $0) } }
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
        for first in choices {
            for second in choices {
                for third in choices {
                    var start = ClaimTable(answerLimit: .seconds(1))
                    var model = Model()
                    for intent in [first, second, third] { model.claims.append((start.claim([intent]), [intent])) }
                    for order in orders {
                        var (table, rest) = (start, model)
                        for index in order {
                            guard agree(table, rest) else { return #expect(Bool(false), "\(first) \(second) \(third) \(order)") }
                            let id = model.claims[index].id
                            table.release(id)
                            rest.claims.removeAll { $0.id == id }
                        }
                        if table.claimCount != 0 { #expect(Bool(false), "nothing is left") }
                    }
                }
            }
        }
    }

    private func agree(_ table: ClaimTable, _ model: Model) -> Bool {
        model.claims.indices.allSatisfy { table.isGranted(model.claims[$0].id) == model.isInside($0) }
    }

    @Test func randomBatchesAreAsTheModelSays() {
        var random = SeededGenerator(for: "claims")
        for _ in 0..<300 {
            var table = ClaimTable(answerLimit: .seconds(1))
            var model = Model()
            for _ in 0..<40 {
                if Bool.random(using: &random) || model.claims.isEmpty {
                    let intents = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                        Self.intent(
                            UInt64.random(in: 1...4, using: &random), Self.accesses.randomElement(using: &random) ?? .read([]))
                    }
                    model.claims.append((table.claim(intents), intents))
                } else {
                    let index = Int.random(in: model.claims.indices, using: &random)
                    table.release(model.claims[index].id)
                    model.claims.remove(at: index)
                }
                if !agree(table, model) { return #expect(Bool(false), "seed \(random.seed)") }
                // The oldest is always inside: so everybody gets in when those before him end.
                if let oldest = model.claims.first, !table.isGranted(oldest.id) { #expect(Bool(false), "seed \(random.seed)") }
            }
            for claim in model.claims { table.release(claim.id) }
            #expect(table.claimCount == 0)
        }
    }

    /// Presenters that save by claims of their own, and items that move: as long as granted claims end and questions are
    /// answered, somebody gets on.
    @Test func presentersThatSaveAndItemsThatMoveLeaveNobodyWaitingForHimself() {
        var random = SeededGenerator(for: "saving presenters")
        let purposes = (0..<3).map { Purpose(rawValue: "\($0)") }
        for _ in 0..<400 {
            var table = ClaimTable(answerLimit: .seconds(1))
            var (open, questions): (Set<ClaimID>, [UInt64]) = ([], [])
            func carryOut() {
                for action in table.takeActions() {
                    switch action {
                    case .refused(let claim, _): open.remove(claim)
                    case .ask(_, _, let number, _): questions.append(number)
                    case .granted, .tell, .overdue: break
                    }
                }
            }
            for _ in 0..<30 {
                let node = UInt64.random(in: 1...4, using: &random)
                let folders = (Self.folders[node] ?? []).map { NodeID($0) }
                switch Int.random(in: 0..<9, using: &random) {
                case 0, 1: _ = table.addPresenter(of: NodeID(node), in: folders, purpose: purposes.randomElement(using: &random))
                case 2: if let question = questions.popLast() { table.answered(question) }
                case 3: table.moved(MovedName(NodeID(4), in: Bool.random(using: &random) ? [.root] : [NodeID(2), .root]))
                default:
                    let access = Self.accesses.randomElement(using: &random) ?? .read([])
                    let purpose = Bool.random(using: &random) ? purposes.randomElement(using: &random) : nil
                    open.insert(table.claim([Self.intent(node, access)], purpose: purpose))
                }
                carryOut()
            }
            while !open.isEmpty {
                if let granted = open.filter({ table.isGranted($0) }).min() {
                    table.release(granted)
                    open.remove(granted)
                } else if let question = questions.popLast() {
                    table.answered(question)
                } else {
                    return #expect(Bool(false), "nobody gets on: seed \(random.seed)")
                }
                carryOut()
            }
            #expect(table.claimCount == 0, "seed \(random.seed)")
        }
    }

    /// How fast, printed: a release build grants more than a million claims a second. The long version of the tests alone.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["PROMISEFS_SCALE"] == "full")) func claimsASecond() {
        var table = ClaimTable(answerLimit: .seconds(1))
        let intents = [Self.intent(4, .write([]))]
        let count = 1_000_000
        let time = ContinuousClock().measure {
            for _ in 0..<count {
                let id = table.claim(intents)
                _ = table.takeActions()
                table.release(id)
            }
        }
        print("claims a second: \(Int(Double(count) / (time / .seconds(1))))")
        #expect(table.claimCount == 0)
    }

    /// With presenters that answer, or not, or die, and claims that are given up: everybody gets in or is told why not.
    @Test func nothingIsLeftWaiting() {
        var random = SeededGenerator(for: "presenters")
        for _ in 0..<200 {
            var table = ClaimTable(answerLimit: .seconds(1))
            var time = Duration.zero
            var settled: Set<ClaimID> = []
            var claims: [ClaimID] = []
            var presenters: [PresenterID] = []
            for _ in 0..<40 {
                time += .milliseconds(100)
                let node = UInt64.random(in: 1...4, using: &random)
                switch Int.random(in: 0..<6, using: &random) {
                case 0:
                    let folders = (Self.folders[node] ?? []).map { NodeID($0) }
                    presenters.append(table.addPresenter(of: NodeID(node), in: folders))
                case 1: if let presenter = presenters.popLast() { table.removePresenter(presenter, now: time) }
                case 2: if let claim = claims.randomElement(using: &random) { table.release(claim, now: time) }
                default:
                    let access = Self.accesses.randomElement(using: &random) ?? .read([])
                    claims.append(table.claim([Self.intent(node, access)], now: time, deadline: time + .seconds(30)))
                }
                for action in table.takeActions() {
                    switch action {
                    case .granted(let claim), .refused(let claim, _): settled.insert(claim)
                    case .ask(_, _, let number, _): if Bool.random(using: &random) { table.answered(number, now: time) }
                    case .tell, .overdue: break
                    }
                }
                table.tick(now: time)
            }
            for claim in claims {
                while table.nextDeadline != nil, !table.isGranted(claim) {
                    time += .seconds(1)
                    table.tick(now: time)
                }
                table.release(claim, now: time)
            }
            #expect(table.claimCount == 0 && table.nextDeadline == nil, "seed \(random.seed)")
        }
    }
}
