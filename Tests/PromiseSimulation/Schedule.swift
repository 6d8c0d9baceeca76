import Glibc
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem

/// One seed's run: machines, programs and a store, until everything is at rest; then what must hold is
/// looked at.
///
/// Unchecked, as only the simulation's thread touches it, which `Simulation.check` looks after.
final class Schedule: @unchecked Sendable {
    let simulation: Simulation
    let plan: Plan
    let store: Store
    var machines: [SimulatedMachine] = []
    var ledger = Ledger()
    /// Of the machines, where their power may fail.
    private(set) var disks: [SimulatedDisk] = []
    private let folder: [UInt8]
    private let template: IndexTemplate
    /// Of what befalls daemons that recover, beside the simulation's.
    var recoveryChance: SeededRandom
    /// Of machines that live.
    private var runningPrograms: Int { machines.reduce(0) { $0 + $1.programCount } }
    private var incarnation = 0
    var problems: [String] = []
    /// Troubles that are still to come.
    var pendingTrouble = 0
    private var isSituationOver = true
    /// What is in a situation's folder at its end.
    private var expected: (folder: FileName, tree: Set<String>, orMore: Bool)?
    /// Of a machine that is alone: its tree when its programs had ended.
    private var treeAtEnd: [String]?

    /// `plan`: what is to happen, where it is not what the seed says.
    init(
        seed: UInt64, folder: [UInt8], template: IndexTemplate, size: Int, store: Int?,
        plan: (inout Plan) -> Void = { _ in },
        printsTrace: Bool
    ) {
        simulation = Simulation(seed: seed, printsTrace: printsTrace)
        recoveryChance = SeededRandom(seed: ~seed)
        var planned = Plan(simulation, size: size, store: store)
        plan(&planned)
        self.plan = planned
        self.store = Store(planned.store.kind)
        self.folder = folder
        self.template = template
    }

    /// The problems found; none is right.
    func run() -> [String] {
        simulation.note(plan.text)
        endDiskTrouble()
        defer { endDiskTrouble() }
        do {
            try begin()
            let limit = 400_000
            let isActive = simulation.run(atMost: limit) {
                runningPrograms == 0 && pendingTrouble == 0 && isSituationOver
            }
            if !isActive { problems.append("programs wait for ever: \(runningPrograms) of them") }
            if problems.isEmpty { try comeToRest(limit) }
            if problems.isEmpty { try check() }
        } catch {
            problems.append("it could not go on: \(error)")
        }
        for machine in machines where !machine.isDead { machine.kill() }
        machines = []
        SimulatedDisk.observe([])
        simulation.end()
        return problems
    }

    // MARK: Beginning

    private func begin() throws {
        let names = ["d0", "d1"].map { FileName($0)! }
        for name in names { add(name, .folder, in: Store.root) }
        for name in ["f0", "f1"] where simulation.chance(60) {
            add(FileName(name)!, .file, in: Store.root)
        }
        let situation = plan.stories.isEmpty ? nil : Situation(self)
        situation?.prepare()
        if plan.powerCuts > 0 || situation?.cutsPower == true {
            disks = (0..<plan.machineCount).map { SimulatedDisk(folder(of: $0)) }
            SimulatedDisk.observe(disks)
        }
        for number in 0..<plan.machineCount {
            machines.append(try makeMachine(number, after: nil))
            startPrograms(number)
            troubleLater(number)
        }
        strangerLater()
        guard let situation else { return }
        isSituationOver = false
        Task(executorPreference: simulation.tasks) { [self] in
            await situation.play()
            isSituationOver = true
        }
    }

    @discardableResult
    func add(_ name: FileName, _ kind: NodeKind, in parent: Int) -> Int {
        var bytes: [UInt8] = []
        if kind == .file {
            let token = ledger.token()
            ledger.wrote(token, by: "store")
            bytes = Array(token.utf8)
        }
        let number = store.nextNumber()
        store.put(
            Store.Item(
                number: number, parent: parent, name: name, kind: kind, bytes: bytes,
                version: kind == .folder ? "folder" : store.version(of: bytes),
                metadata: Store.metadata(kind == .folder ? 0o755 : 0o644)))
        return number
    }

    private func folder(of machine: Int) -> [UInt8] { folder + Array("/machine\(machine)".utf8) }

    func makeMachine(_ number: Int, after end: SimulatedMachine.End?) throws -> SimulatedMachine {
        let path = folder(of: number)
        try makeFolders(path, label: "simulation.folder")
        // What a power cut may leave has to be made where syncs are seen.
        if end == nil, disks.isEmpty { try template.copy(to: path) }
        let provider = StoreProvider(store, simulation, machine: "machine\(number)")
        provider.line = plan.line
        provider.pageSize = plan.taste.pageSize
        let machine = try SimulatedMachine(
            "host\(number)", path, provider, simulation,
            fetchSizes: plan.hasLargeFiles ? FetchSizes(unit: 4) : .usual)
        try machine.start(after: end)
        return machine
    }

    func startPrograms(_ number: Int) {
        let machine = machines[number]
        for program in 0..<plan.programCount {
            incarnation += 1
            let name = "m\(number)p\(program)i\(incarnation)"
            machine.programCount += 1
            let (count, pause) = (plan.actionCount, plan.taste.pause)
            Task(executorPreference: simulation.tasks) { [simulation] in
                for _ in 0..<count where !machine.isDead {
                    await simulation.sleep(.milliseconds(simulation.pick(pause)))
                    if machine.isDead { break }
                    await Program(simulation: simulation, world: self, on: machine, name: name)
                        .act()
                }
                machine.programCount -= 1
            }
        }
    }

    // MARK: What is seen

    /// What a file holds, as far as this machine knows it.
    func tokens(of id: NodeID, on machine: SimulatedMachine) throws(Failure) -> Set<String> {
        let node = try machine.index.read { transaction throws(Failure) in
            try transaction.node(id)
        }
        guard let node else { return [] }
        return Ledger.tokens(in: try bytes(of: node, on: machine))
    }

    /// Removed or replaced by somebody on this machine, and still open.
    func isNameless(_ id: NodeID, on machine: SimulatedMachine) throws(Failure) -> Bool {
        try machine.index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id) else { return true }
            let isDisplaced = try transaction.displaced(id) != nil
            return node.linkCount == 0 && !isDisplaced
        }
    }

    // MARK: Rest

    private func comeToRest(_ limit: Int) throws {
        simulation.note("calm")
        simulation.isResting = true
        for machine in machines { machine.provider.line = Line() }
        endDiskTrouble()
        if plan.isAlone, plan.powerCuts == 0 {
            // One that was cut off until now may know too little of the store.
            let found = try problemsOf(machines[0])
            if found.problems.isEmpty { treeAtEnd = found.tree }
        }
        for round in 0..<3 {
            for machine in machines {
                machine.engine.lookNow(everything: round > 0)
                machine.engine.notePending()
            }
            var quietSince: Duration?
            var instant = simulation.instantCount
            let isQuiet = simulation.run(atMost: limit) {
                // To look takes longer than most steps.
                guard simulation.instantCount > instant else { return false }
                instant = simulation.instantCount
                let isQuiet = machines.allSatisfy { (try? $0.isQuiet()) ?? false }
                if !isQuiet {
                    quietSince = nil
                } else if quietSince == nil {
                    quietSince = simulation.clock.uptime()
                }
                return quietSince.map { simulation.clock.uptime() - $0 > .seconds(7) } ?? false
            }
            // What nobody has looked at so far is listed now.
            if round == 0 { for machine in machines { _ = try problemsOf(machine) } }
            guard isQuiet else {
                problems.append("work does not come to an end")
                for machine in machines { problems += try remains(on: machine) }
                return
            }
        }
    }

    private func remains(on machine: SimulatedMachine) throws -> [String] {
        try machine.index.read { transaction throws(Failure) in
            var lines: [String] = []
            for pending in try transaction.allPending(limit: 20) {
                lines.append(
                    "\(machine.name): \(pending.subject) attempts \(pending.attempts): \(pending.message ?? "")"
                )
            }
            for (_, identifier, state) in try transaction.divergences(limit: 20) {
                lines.append("\(machine.name): differs \(identifier) \(state)")
            }
            return lines
        }
    }

    // MARK: What must hold

    private func check() throws {
        comparesMetadata = plan.changesMetadata && plan.store.kind.keepsTimes && !plan.store.kind.guesses
        var trees: [[String]] = []
        var present = storeTokens()
        for machine in machines {
            let found = try problemsOf(machine)
            problems += found.problems
            trees.append(found.tree)
            present.formUnion(found.tokens)
        }
        let there = storeTree(of: Store.root, "")
        for (machine, tree) in zip(machines, trees) where tree != there {
            let differences = Set(tree).symmetricDifference(there).sorted()
            problems.append("\(machine.name) and the store differ: \(differences)")
        }
        let lost = ledger.lost(present).filter { !store.overwritten.contains($0) }
        if !lost.isEmpty { problems.append("lost: \(lost)") }
        if let left = there.first(where: { $0.contains(".promisefs-") }) {
            problems.append("a temporary name is left: \(left)")
        }
        if let (folder, tree, orMore) = expected {
            let left = Set(there.filter { $0.hasPrefix(folder.display + "/") })
            let differences = (orMore ? tree.subtracting(left) : tree.symmetricDifference(left)).sorted()
            if !differences.isEmpty { problems.append("not what the situation leaves: \(differences)") }
        }
        // A request that is sent again by somebody in between is refused the second time, though it was done.
        if plan.line.doubled > 0 { return }
        // Where a disk does not give what was sent, and nobody answers that it arrived, that is not known again.
        let mayMissItsOwn = plan.store.kind.guesses && plan.diskFaults > 0 && plan.line.answerLost > 0
        if let treeAtEnd, !comparesMetadata, !mayMissItsOwn, treeAtEnd != there {
            let differences = Set(treeAtEnd).symmetricDifference(there).sorted()
            if !differences.isEmpty {
                problems.append(
                    "only one machine worked, and what it had is not what is there: \(differences)")
            }
        }
        // The same, where the name is taken by what was made without an answer.
        let knowsItsOwn = plan.store.kind.keepsTimes && !plan.store.kind.guesses
        let missesAnswers = plan.line.answerLost > 0 || plan.kills > 0
        // An upload of which the disk does not know is somebody else's.
        if plan.isAlone, plan.powerCuts == 0, knowsItsOwn || !missesAnswers,
            let conflict = there.first(where: { $0.contains("conflict") })
        {
            problems.append("a conflict, though only one machine worked: \(conflict)")
        }
    }

    /// Paths with their contents; those of folders end with a slash.
    func expect(_ tree: [String: String], in folder: FileName, orMore: Bool) {
        let lines = tree.map { path, text in
            "\(folder.display)/\(path)" + (path.hasSuffix("/") ? "" : text.hasPrefix("->") ? " \(text)" : "=\(text)")
        }
        expected = (folder, Set(lines + [folder.display + "/"]), orMore)
    }

    private func storeTokens() -> Set<String> {
        var result: Set<String> = []
        for item in store.items.values { result.formUnion(Ledger.tokens(in: item.bytes)) }
        return result
    }

    func storeTree(of folder: Int, _ path: String) -> [String] {
        var result: [String] = []
        for item in store.children(of: folder) {
            let name = path + item.name.display
            switch item.kind {
            case .folder:
                result.append(name + "/" + marks(of: item.metadata, isFolder: true))
                result += storeTree(of: item.number, name + "/")
            case .link:
                result.append("\(name) -> \(String(decoding: item.target ?? [], as: UTF8.self))")
            default:
                let text = String(decoding: item.bytes, as: UTF8.self)
                result.append("\(name)=\(text)" + marks(of: item.metadata, isFolder: false))
            }
        }
        return result.sorted()
    }

    private var comparesMetadata = false

    /// The time of a folder is another one on each side.
    private func marks(of metadata: Metadata, isFolder: Bool) -> String {
        guard comparesMetadata else { return "" }
        return " \(String(metadata.mode & 0o7777, radix: 8))" + (isFolder ? "" : " \(metadata.modificationTime.rawValue)")
    }

    private var found: Found?

    private struct Found {
        var tree: [String] = []
        var tokens: Set<String> = []
        var problems: [String] = []
    }

    private func problemsOf(_ machine: SimulatedMachine) throws -> Found {
        found = nil
        Task(executorPreference: simulation.tasks) {
            var result = Found()
            await self.walk(machine, .root, "", &result)
            self.found = result
        }
        guard simulation.run(atMost: 200_000, until: { found != nil }), var result = found else {
            return Found(problems: ["\(machine.name) cannot be read to its end"])
        }
        result.tree.sort()
        for problem in try machine.index.verify() {
            result.problems.append("\(machine.name): \(problem)")
        }
        return result
    }

    private func walk(
        _ machine: SimulatedMachine, _ folder: NodeID, _ path: String, _ found: inout Found
    ) async {
        do throws(Failure) {
            for name in try await machine.names(in: folder) {
                let child: Node? = try machine.index.read { transaction throws(Failure) in
                    guard let entry = try transaction.entry(in: folder, named: name) else {
                        return nil
                    }
                    return try transaction.node(entry.node)
                }
                guard let child else { continue }
                let place = path + name.display
                switch child.kind {
                case .folder:
                    found.tree.append(place + "/" + marks(of: Metadata(child), isFolder: true))
                    await walk(machine, child.id, place + "/", &found)
                case .link:
                    found.tree.append(
                        "\(place) -> \(String(decoding: child.target ?? [], as: UTF8.self))")
                default:
                    if try machine.hasHoles(child.id) {
                        let bytes = try machine.localContents(of: child.id) ?? []
                        found.tokens.formUnion(Ledger.tokens(in: bytes))
                        continue
                    }
                    let bytes = try await machine.contents(of: child.id)
                    found.tokens.formUnion(Ledger.tokens(in: bytes))
                    let text = String(decoding: bytes, as: UTF8.self)
                    found.tree.append("\(place)=\(text)" + marks(of: Metadata(child), isFolder: false))
                }
            }
        } catch {
            found.problems.append("\(machine.name): \(path) cannot be read: \(error.message)")
        }
    }
}
