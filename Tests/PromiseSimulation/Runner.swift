import Glibc
import PromiseSystem

/// Runs the schedules of seeds below one folder.
struct Runner {
    let options: Options
    let base: String
    private let template: IndexTemplate

    init(options: Options, base: String) {
        self.options = options
        self.base = base
        template = IndexTemplate(Array("\(base)/template".utf8))
    }

    func run(_ seed: UInt64, _ reductions: [Reduction]) -> (Schedule, problems: [String]) {
        let folder = "\(base)/\(seed)"
        defer { remove(folder) }
        Watchdog.begin(seed)
        let schedule = Schedule(
            seed: seed, folder: Array(folder.utf8), template: template, size: options.size, store: options.store,
            plan: { plan in
                if options.isSwarm { plan.taste = Taste(seed: seed) }
                if options.hasPowerCuts { plan.cutPower(seed: seed) }
                if options.hasStrangers { plan.inviteStranger(seed: seed) }
                if options.hasLargeFiles { plan.useLargeFiles() }
                for reduction in reductions { _ = reduction.apply(to: &plan) }
                if let stories = options.stories { plan.situate(stories) }
                if options.operations != nil { plan.line = Line() }
            }, printsTrace: options.printsTrace)
        guard let operations = options.operations else { return (schedule, schedule.run()) }
        let problem = ModelRun(schedule, withFaults: options.withFaults).run(operations: operations)
        return (schedule, problem.map { [$0] } ?? [])
    }

    // MARK: Less

    /// Takes away what a failure does not need, and returns the command that shows it.
    func shrink(_ seed: UInt64) -> String {
        if let operations = options.operations {
            let faults = options.withFaults ? " --faults" : ""
            return "simulate --model \(operations) --seed \(seed)\(faults) --trace"
        }
        var kept = options.reductions
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for reduction in Reduction.allCases {
                while isLess(seed, kept, reduction), !run(seed, kept + [reduction]).problems.isEmpty {
                    kept.append(reduction)
                    hasChanged = true
                }
            }
        }
        let less = kept.isEmpty ? "" : " --less " + kept.map(\.rawValue).joined(separator: ",")
        let size = options.size == 100 ? "" : " --size \(options.size)"
        let store = options.store.map { " --store \($0)" } ?? ""
        let swarm = options.isSwarm ? " --swarm" : ""
        let power = options.hasPowerCuts ? " --power-cuts" : ""
        let strangers = options.hasStrangers ? " --strangers" : ""
        let large = options.hasLargeFiles ? " --large-files" : ""
        let stories = options.stories.map { " --situation " + $0.map { "\($0)" }.joined(separator: ",") } ?? ""
        return "simulate --seed \(seed)\(swarm)\(power)\(strangers)\(large)\(stories)\(size)\(store)\(less) --trace"
    }

    /// Whether there is something left to be taken away.
    private func isLess(_ seed: UInt64, _ reductions: [Reduction], _ next: Reduction) -> Bool {
        let simulation = Simulation(seed: seed, printsTrace: false)
        var plan = Plan(simulation, size: options.size, store: options.store)
        if options.hasPowerCuts { plan.cutPower(seed: seed) }
        if options.hasStrangers { plan.inviteStranger(seed: seed) }
        for reduction in reductions { _ = reduction.apply(to: &plan) }
        return next.apply(to: &plan)
    }

    // MARK: The folder

    func removeTree() { remove(base) }

    /// With everything below it.
    private func remove(_ path: String) {
        guard let folder = opendir(path) else {
            unlink(path)
            return
        }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        closedir(folder)
        for name in names { remove("\(path)/\(name)") }
        rmdir(path)
    }
}
