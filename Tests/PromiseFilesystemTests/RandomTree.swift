import PromiseTestSupport

/// Few names, so that whoever draws them gets into the way of others.
struct RandomTree {
    static let folders = ["f0", "f1", "f2"]

    func folder(_ random: inout SeededGenerator) -> [String] {
        let top = RandomTree.folders.randomElement(using: &random)!
        return random.next() % 2 == 0 ? [top] : [top, "d\(random.next() % 2)"]
    }

    func file(_ random: inout SeededGenerator) -> [String] { folder(&random) + ["n\(random.next() % 3)"] }

    /// One below another now and then.
    func subfolder(_ random: inout SeededGenerator) -> [String] { folder(&random) + ["d\(random.next() % 2)"] }
}
