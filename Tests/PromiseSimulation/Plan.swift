/// What a seed stands for.
struct Plan {
    var store: (name: String, kind: StoreKind)
    var machineCount: Int
    var programCount: Int
    var actionCount: Int
    var line = Line()
    var kills: Int
    var cuts: Int
    var jumps: Int
    /// Calls of the disk that fail.
    var diskFaults: Int
    /// Only where they are asked for, so that seeds mean what they meant before.
    var powerCuts = 0
    /// How many daemons in a row are killed while they recover from each of them.
    var recoveryKills = 0
    /// Of somebody at the store itself.
    var strangerActions = 0
    /// Rights and times are changed, and compared at the end.
    var changesMetadata = false
    /// Files are so large that they come in pieces, and are read and written in parts.
    var hasLargeFiles = false
    var taste = Taste.usual
    /// One of these is played; none where the list is empty.
    var stories: [Situation.Story] = []

    /// `size`: how much happens, in percent of the usual.
    init(_ simulation: Simulation, size: Int, store: Int?) {
        self.store = StoreKind.all[store ?? simulation.pick(StoreKind.chosenCount)]
        machineCount = 1 + simulation.pick(3)
        programCount = 1 + simulation.pick(2)
        actionCount = max(1, (2 + simulation.pick(14)) * size / 100)
        if simulation.chance(60) {
            line.lost = simulation.pick(15)
            line.answerLost = simulation.pick(15)
            line.refused = simulation.chance(20) ? 3 : 0
            line.doubled = simulation.chance(20) ? simulation.pick(15) : 0
        }
        line.delayMax = 1 + simulation.pick(simulation.chance(30) ? 3_000 : 200)
        kills = simulation.chance(40) ? 1 + simulation.pick(3) : 0
        cuts = simulation.chance(40) ? 1 + simulation.pick(2) : 0
        jumps = simulation.chance(15) ? 1 : 0
        diskFaults = simulation.chance(25) ? 1 + simulation.pick(6) : 0
    }

    /// As the seed says, and without asking the simulation's chance, so that the rest is what it was without.
    mutating func cutPower(seed: UInt64) {
        powerCuts = 1 + Int(seed % 2)
        recoveryKills = Int(seed / 2 % 3)
    }

    /// As the seed says, and without asking the simulation's chance.
    mutating func inviteStranger(seed: UInt64) {
        strangerActions = 1 + Int(seed % 17)
        changesMetadata = true
        taste.addMetadata()
    }

    mutating func useLargeFiles() {
        hasLargeFiles = true
        line.broken = 15
    }

    /// Only what the situation makes happen befalls its machines, so that its end is certain; a few ordinary acts are
    /// woven in.
    mutating func situate(_ stories: [Situation.Story]) {
        self.stories = stories
        machineCount = max(2, machineCount)
        programCount = 1
        actionCount = actionCount % 2 == 0 ? 1 : min(actionCount, 6)
        let delayMax = min(line.delayMax, 300)
        line = Line(delayMax: delayMax)
        (kills, cuts, jumps, diskFaults, powerCuts, recoveryKills) = (0, 0, 0, 0, 0, 0)
    }

    var isAlone: Bool { machineCount == 1 && strangerActions == 0 }

    var text: String {
        "store \(store.name), machines \(machineCount), programs \(programCount), actions \(actionCount), "
            + "line \(line.lost)/\(line.answerLost)/\(line.refused)/\(line.doubled)/\(line.delayMax), "
            + "kills \(kills), cuts \(cuts), jumps \(jumps), disk faults \(diskFaults), power cuts \(powerCuts), "
            + "killed in recovery \(recoveryKills)" + (strangerActions > 0 ? ", stranger \(strangerActions)" : "")
            + (hasLargeFiles ? ", large files" : "")
    }
}

/// A plan with less in it. A schedule that fails is tried again with less and less, for people to read.
enum Reduction: String, CaseIterable {
    case fewerMachines = "machines", fewerPrograms = "programs", fewerActions = "actions", noKills = "kills",
        noCuts = "cuts", noJumps = "jumps", noDiskFaults = "faults", noPowerCuts = "powercuts",
        noRecoveryKills = "recoverykills", noLosses = "losses", noDelays = "delays", fewerStrangers = "strangers"

    /// False when there is nothing less.
    func apply(to plan: inout Plan) -> Bool {
        func drop(_ value: inout Int, to least: Int) -> Bool {
            defer { value = max(least, value - 1) }
            return value > least
        }
        switch self {
        case .fewerMachines: return drop(&plan.machineCount, to: 1)
        case .fewerPrograms: return drop(&plan.programCount, to: 1)
        case .fewerActions: return drop(&plan.actionCount, to: 1)
        case .fewerStrangers: return drop(&plan.strangerActions, to: 0)
        case .noKills: return drop(&plan.kills, to: 0)
        case .noCuts: return drop(&plan.cuts, to: 0)
        case .noJumps: return drop(&plan.jumps, to: 0)
        case .noDiskFaults: return drop(&plan.diskFaults, to: 0)
        case .noPowerCuts: return drop(&plan.powerCuts, to: 0)
        case .noRecoveryKills: return drop(&plan.recoveryKills, to: 0)
        case .noLosses:
            defer { (plan.line.lost, plan.line.answerLost, plan.line.refused, plan.line.doubled) = (0, 0, 0, 0) }
            return plan.line.lost + plan.line.answerLost + plan.line.refused + plan.line.doubled > 0
        case .noDelays:
            defer { plan.line.delayMax = 1 }
            return plan.line.delayMax > 1
        }
    }
}
