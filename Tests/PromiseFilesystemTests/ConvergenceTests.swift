import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Programs here and others at the provider change one small tree at random, in each other's way. Whatever they did, work
/// comes to an end, and then both sides show the same.
@Suite struct ConvergenceTests {
    /// In every other of them the daemon is killed three times meanwhile.
    @Test(arguments: 0..<8) func bothSidesShowTheSameInTheEnd(number: Int) async throws {
        try await converge("ConvergenceTests", nil, kills: number % 2 * 3)
    }

    /// Of a store that knows items by their places and tells of no changes.
    @Test(arguments: [0, 3]) func bothSidesOfAStoreOfPlacesShowTheSameInTheEnd(kills: Int) async throws {
        try await converge("ConvergenceTests, places", PlaceProvider(isPolled: true), kills: kills)
    }

    @Test(arguments: [0, 3]) func bothSidesOfAStoreThatNumbersItsItemsShowTheSameInTheEnd(kills: Int) async throws {
        try await converge("ConvergenceTests, numbers", PlaceProvider(numbers: true, isPolled: true), kills: kills)
    }

    /// A part of what is asked fails, and a part is carried out without an answer.
    @Test(arguments: 0..<4) func bothSidesShowTheSameInTheEndOverABadLine(number: Int) async throws {
        try await converge("ConvergenceTests, line", nil, isLineBad: true, kills: number % 2 * 3)
    }

    @Test(arguments: [0, 3]) func bothSidesOfAStoreOfPlacesShowTheSameInTheEndOverABadLine(kills: Int) async throws {
        try await converge("ConvergenceTests, places, line", PlaceProvider(isPolled: true), isLineBad: true, kills: kills)
    }

    /// Whose tree nobody else changes, finds it there as it is here, nothing twice and nothing under another name. At a store of
    /// places an empty folder that was removed may come back.
    @Test(arguments: [0, 3]) func whatProgramsMadeAloneIsThereOverABadLineAsTheyMadeIt(kills: Int) async throws {
        try await converge("ConvergenceTests, alone", nil, isLineBad: true, isAlone: true, kills: kills)
        let places = PlaceProvider(isPolled: true)
        try await converge("ConvergenceTests, alone, places", places, isLineBad: true, isAlone: true, kills: kills)
    }

    private func converge(
        _ name: String, _ places: PlaceProvider?, isLineBad: Bool = false, isAlone: Bool = false, kills: Int
    ) async throws {
        var random = SeededGenerator(for: "\(name), \(kills) kills")
        var domain = try SimulatedDomain(places, lineSeed: isLineBad ? random.next() : nil)
        for name in RandomTree.folders { await domain.provider.makeFolder([name]) }
        for part in 0...kills {
            if part > 0 { domain = try SimulatedDomain(after: domain) }
            try await domain.run {
                let count = 120 / (kills + 1)
                for step in part * count..<(part + 1) * count { try await change(domain, &random, step, isAlone) }
                guard part == kills else { return }
                let made = isAlone ? try await domain.treeOnceCalm() : nil
                try await domain.expectBothSidesTheSame("seed \(random.seed)")
                guard let made else { return }
                let left = try await domain.tree()
                #expect(Set(made).subtracting(left) == [], "seed \(random.seed)")
                if places == nil { #expect(Set(left).subtracting(made) == [], "seed \(random.seed)") }
            }
        }
    }

    private func change(
        _ domain: SimulatedDomain, _ random: inout SeededGenerator, _ step: Int, _ isAlone: Bool
    ) async throws {
        if random.next() % 4 == 0, !isAlone {
            await changeThere(domain.provider, &random, step)
        } else {
            // What the others explain: a name that has just gone.
            try? await changeHere(domain, &random, step)
        }
        if random.next() % 3 == 0 { try await Task.sleep(for: .microseconds(Int(random.next() % 12_000))) }
    }

    // MARK: Steps

    private let tree = RandomTree()

    private func changeHere(_ domain: SimulatedDomain, _ random: inout SeededGenerator, _ step: Int) async throws {
        switch random.next() % 14 {
        case 0...2: try await domain.write("here \(step)", to: tree.file(&random))
        case 3: try await domain.rename(tree.file(&random), to: tree.file(&random))
        case 4: try await domain.remove(tree.file(&random))
        case 5:
            let temporary = tree.folder(&random) + ["new"]
            try await domain.write("saved \(step)", to: temporary)
            try await domain.rename(temporary, to: temporary.dropLast() + ["n\(random.next() % 3)"])
        case 6, 7: try await domain.makeFolder(tree.subfolder(&random))
        case 8, 9: try await domain.rename(tree.subfolder(&random), to: tree.subfolder(&random))
        // A folder where a file was, and a file where a folder was.
        case 10:
            let moved = random.next() % 2 == 0 ? tree.file(&random) : tree.subfolder(&random)
            try await domain.rename(moved, to: tree.subfolder(&random))
        case 11: try await exchange(domain, tree.folder(&random), "d\(random.next() % 2)")
        default: try await domain.remove(tree.subfolder(&random))
        }
    }

    /// A folder and one in it change places.
    private func exchange(_ domain: SimulatedDomain, _ outer: [String], _ name: String) async throws {
        let aside = ["aside"]
        try await domain.rename(outer + [name], to: aside)
        try await domain.rename(outer, to: aside + [name])
        try await domain.rename(aside, to: outer)
    }

    private func changeThere(_ provider: MemoryProvider, _ random: inout SeededGenerator, _ step: Int) async {
        switch random.next() % 6 {
        case 0, 1: await provider.write("there \(step)", to: tree.file(&random))
        case 2: await provider.remove(at: tree.file(&random))
        case 3: await provider.move(from: tree.file(&random), to: tree.file(&random))
        case 4: await provider.move(from: tree.subfolder(&random), to: tree.subfolder(&random))
        default:
            if random.next() % 2 == 0 {
                await provider.makeFolder(tree.subfolder(&random))
            } else {
                await provider.remove(at: tree.subfolder(&random))
            }
        }
    }
}
