/// What a program may do.
enum Act: CaseIterable {
    case save, append, saveByRename, hold, move, exchange, remove, makeFolder, moveFolder, removeTree, makeLink,
        changeKind, read, evict
    /// Only by taste, so that seeds mean what they meant before.
    case map, rewrite
    /// Only beside strangers.
    case changeMetadata
}

/// What the programs of one schedule like to do, and with how many names. One kind of schedule for all finds what many
/// different acts bring about; few acts and few names find what needs some of them again and again ("Swarm
/// Testing", Groce et al., ISSTA 2012).
struct Taste {
    private var weights: [(act: Act, weight: Int)]
    private(set) var fileCount = 4
    private(set) var folderCount = 3
    /// Of going one folder deeper, in percent.
    private(set) var depth = 45
    /// Between two acts, in milliseconds, at most.
    private(set) var pause = 1_500
    /// Items in one answer to a listing; nil: all of them.
    private(set) var pageSize: Int?

    static let usual = Taste(weights: [
        (.save, 22), (.append, 10), (.saveByRename, 10), (.hold, 6), (.move, 8), (.exchange, 4), (.remove, 7),
        (.makeFolder, 9), (.moveFolder, 8), (.removeTree, 4), (.makeLink, 3), (.changeKind, 3), (.read, 3), (.evict, 3),
    ])

    private init(weights: [(Act, Int)]) { self.weights = weights }

    /// Of a seed's own; takes nothing from the numbers of the schedule.
    init(seed: UInt64) {
        var random = SeededRandom(seed: seed ^ 0x7a57_e000_7a57_e000)
        func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        weights = []
        for act in Act.allCases where act != .changeMetadata && pick(100) < 45 { weights.append((act, 1 + pick(8))) }
        // Without content there is nothing to be lost.
        if pick(100) < 80 { weights.append((.save, 3 + pick(8))) }
        if weights.isEmpty { weights = Taste.usual.weights }
        fileCount = 1 + pick(4)
        folderCount = 1 + pick(3)
        depth = [15, 45, 80][pick(3)]
        pause = [100, 1_500, 6_000][pick(3)]
        pageSize = pick(100) < 40 ? 1 + pick(3) : nil
    }

    mutating func addMetadata() { weights.append((.changeMetadata, max(1, weights.reduce(0) { $0 + $1.weight } / 8))) }

    func pick(_ simulation: Simulation) -> Act {
        var number = simulation.pick(weights.reduce(0) { $0 + $1.weight })
        for (act, weight) in weights {
            if number < weight { return act }
            number -= weight
        }
        preconditionFailure("the weights have another sum")
    }

    var text: String {
        "taste " + weights.map { "\($0.act) \($0.weight)" }.joined(separator: ", ")
            + ", names \(fileCount)/\(folderCount)/\(depth), pause \(pause), pages \(pageSize.map(String.init) ?? "none")"
    }
}
