import PromiseCore
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// Two machines with the same provider, whose programs change one small tree at random, in each other's way.
@Suite struct MachinesTests {
    @Test(arguments: 0..<4) func twoMachinesShowTheSameInTheEndAndNothingIsLost(number: Int) async throws {
        try await converge("MachinesTests", nil, kills: number % 2 * 3)
    }

    @Test(arguments: [0, 3]) func twoMachinesOfAStoreOfPlacesShowTheSameInTheEndAndNothingIsLost(kills: Int) async throws {
        try await converge("MachinesTests, places", PlaceProvider(isPolled: true), kills: kills)
    }

    @Test(arguments: [0, 3]) func twoMachinesOfAStoreThatNumbersItsItemsShowTheSameInTheEnd(kills: Int) async throws {
        try await converge("MachinesTests, numbers", PlaceProvider(numbers: true, isPolled: true), kills: kills)
    }

    @Test(arguments: [0, 3]) func twoMachinesShowTheSameInTheEndOverABadLine(kills: Int) async throws {
        try await converge("MachinesTests, line", nil, isLineBad: true, kills: kills)
    }

    @Test(arguments: [false, true], [0, 3])
    func twoMachinesOfAStoreOfPlacesShowTheSameInTheEndOverABadLine(numbers: Bool, kills: Int) async throws {
        let name = "MachinesTests, \(numbers ? "numbers" : "places"), line"
        try await converge(name, PlaceProvider(numbers: numbers, isPolled: true), isLineBad: true, kills: kills)
    }

    /// What was written, and what was seen by whoever removed it or put something else in its place.
    private struct Texts {
        var written: Set<String> = []
        var given: Set<String> = []
        /// Nothing came from the other machine while something was given away.
        var areCertain = true
    }

    private func converge(_ name: String, _ places: PlaceProvider?, isLineBad: Bool = false, kills: Int) async throws {
        var random = SeededGenerator(for: "\(name), \(kills) kills")
        var one = try SimulatedDomain(places, lineSeed: isLineBad ? random.next() : nil)
        var other = try SimulatedDomain(lineSeed: isLineBad ? random.next() : nil, beside: one)
        for name in RandomTree.folders { await one.provider.makeFolder([name]) }
        var texts = Texts()
        for part in 0...kills {
            if part > 0 { (one, other) = (try SimulatedDomain(after: one), try SimulatedDomain(after: other)) }
            try await one.run {
                try await other.run {
                    let count = 160 / (kills + 1)
                    for step in part * count..<(part + 1) * count {
                        let isHere = random.next() % 2 == 0
                        // What the other machine explains: a name that has just gone.
                        try? await change(isHere ? one : other, &random, isHere ? "one \(step)" : "other \(step)", &texts)
                        if random.next() % 3 == 0 { try await Task.sleep(for: .microseconds(Int(random.next() % 12_000))) }
                    }
                    guard part == kills else { return }
                    try await expectTheSame(one, other, "seed \(random.seed)")
                    // A program waited for the engine while that rested.
                    guard texts.areCertain else { return print("\(name), seed \(random.seed): not checked for losses") }
                    let left = await one.provider.tree().compactMap(SimulatedDomain.text(ofLine:))
                    let lost = texts.written.subtracting(texts.given).subtracting(left)
                    #expect(lost == [], "seed \(random.seed)")
                }
            }
        }
    }

    private func expectTheSame(_ one: SimulatedDomain, _ other: SimulatedDomain, _ comment: String) async throws {
        for _ in 0..<20 {
            try await one.expectBothSidesTheSame(comment)
            try await other.expectBothSidesTheSame(comment)
            // What was read may have become another version meanwhile.
            if let here = try? await one.tree(), let there = try? await other.tree(), here == there { return }
        }
        Issue.record("\(comment): the machines go on changing the tree")
    }

    private func change(
        _ domain: SimulatedDomain, _ random: inout SeededGenerator, _ text: String, _ texts: inout Texts
    ) async throws {
        let tree = RandomTree()
        switch random.next() % 13 {
        case 0...3: try await write(text, to: tree.file(&random), domain, &texts)
        case 4: try await rename(tree.file(&random), to: tree.file(&random), domain, &texts)
        case 5: try await remove(tree.file(&random), domain, &texts)
        case 6:
            let temporary = tree.folder(&random) + ["new"]
            try await write(text, to: temporary, domain, &texts)
            try await rename(temporary, to: temporary.dropLast() + ["n\(random.next() % 3)"], domain, &texts)
        case 7, 8: try await domain.makeFolder(tree.subfolder(&random))
        case 9, 10: try await rename(tree.subfolder(&random), to: tree.subfolder(&random), domain, &texts)
        case 11: try await rename(tree.file(&random), to: tree.subfolder(&random), domain, &texts)
        default: try await remove(tree.subfolder(&random), domain, &texts)
        }
    }

    private func write(_ text: String, to path: [String], _ domain: SimulatedDomain, _ texts: inout Texts) async throws {
        try await giving(path, domain, &texts) { try await domain.write(text, to: path) }
        texts.written.insert(text)
    }

    private func remove(_ path: [String], _ domain: SimulatedDomain, _ texts: inout Texts) async throws {
        try await giving(path, domain, &texts) { try await domain.remove(path) }
    }

    private func rename(
        _ path: [String], to target: [String], _ domain: SimulatedDomain, _ texts: inout Texts
    ) async throws {
        if path == target { return }
        // Listed now, as nothing is while the engine rests.
        _ = try await domain.node(at: path)
        try await giving(target, domain, &texts) { try await domain.rename(path, to: target) }
    }

    /// Whatever this machine shows at the path may go by `body`, and nothing else comes there meanwhile.
    private func giving(
        _ path: [String], _ domain: SimulatedDomain, _ texts: inout Texts, _ body: () async throws -> Void
    ) async throws {
        while true {
            let before = try domain.stamps(at: path)
            let seen = try await domain.texts(at: path)
            let hold = Hold()
            await domain.engine.rest(at: hold)
            guard try domain.stamps(at: path) == before else {
                hold.letGo()
                continue
            }
            defer { if !hold.letGo() { texts.areCertain = false } }
            texts.given.formUnion(seen)
            try await body()
            return
        }
    }
}
