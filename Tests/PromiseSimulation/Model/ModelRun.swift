import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// One machine and a store that always answers: random calls, each compared with what a tree in memory does.
/// With faults each call is made again and again while one labelled call of the disk after the other fails in
/// it; a call that fails must leave everything as it was, open files and their contents included.
///
/// Unchecked, as only the simulation's thread touches it, which `Simulation.check` looks after.
final class ModelRun: @unchecked Sendable {
    private let schedule: Schedule
    private let withFaults: Bool
    private var tree = ReferenceTree()
    private var open: [Int: SimulatedMachine.OpenFile] = [:]
    private var tokenCount = 0
    /// By label of the disk's calls: how often one failed.
    private(set) var faults: [String: Int] = [:]

    private var simulation: Simulation { schedule.simulation }
    private var machine: SimulatedMachine { schedule.machines[0] }

    init(_ schedule: Schedule, withFaults: Bool) {
        self.schedule = schedule
        self.withFaults = withFaults
    }

    /// The first problem, or nil.
    func run(operations: Int) -> String? {
        defer {
            schedule.endDiskTrouble()
            for machine in schedule.machines where !machine.isDead { machine.kill() }
            schedule.machines = []
            simulation.end()
        }
        defer {
            simulation.note(
                "calls that failed: \(faults.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })"
            )
        }
        do {
            schedule.machines = [try schedule.makeMachine(0, after: nil)]
            for number in 0..<operations {
                if number > 0, canRecognize, simulation.chance(4) { try restart() }
                if let problem = try act() { return "operation \(number): \(problem)" }
                _ = simulation.run(atMost: simulation.pick(40)) { false }
            }
            return try settle()
        } catch {
            return "it could not go on: \(error)"
        }
    }

    /// What a killed daemon had made, and was renamed before its answer came, is at two places otherwise.
    private var canRecognize: Bool {
        schedule.store.kind.keepsTimes && !schedule.store.kind.guesses
    }

    private func token() -> [UInt8] {
        tokenCount += 1
        return Array("<\(tokenCount)>".utf8)
    }

    // MARK: One call

    private func act() throws -> String? {
        let operation = ModelOperation.any(simulation, tree, token: token)
        let code: Int32 = simulation.chance(50) ? 28 : 5
        for skip in 0..<500 {
            simulation.note("\(operation) \(skip)")
            if withFaults { FaultInjection.arm(from: "every:\(code):\(skip)") }
            guard let result = outcome(of: operation) else { return "\(operation) does not end" }
            let met = FaultInjection.met
            schedule.endDiskTrouble()
            if let met { faults[met, default: 0] += 1 }
            let context = "\(operation), with \(met ?? "nothing") failing, ended with \(result)"
            switch result {
            case .success(let count):
                if met == nil, operation.expectedProblem(tree) != nil {
                    return "\(context), and should have failed"
                }
                operation.apply(to: &tree, count: count)
                return try difference(context)
            case .failure(let failure):
                if let problem = try difference(context) { return problem }
                if met != nil { continue }
                let expected = operation.expectedProblem(tree)
                if failure.code == expected || operation.mayFail { return nil }
                return "\(context), not with \(expected.map { "\($0)" } ?? "success")"
            }
        }
        return "\(operation) makes more calls than it should"
    }

    private var ended: Result<Int, Failure>?

    private func outcome(of operation: ModelOperation) -> Result<Int, Failure>? {
        ended = nil
        Task(executorPreference: simulation.tasks) {
            do throws(Failure) {
                self.ended = .success(try await self.machine.perform(operation, &self.open))
            } catch {
                self.ended = .failure(error)
            }
        }
        _ = simulation.run(atMost: 100_000) { ended != nil }
        return ended
    }

    private var seen: Result<[String], Failure>?

    private func difference(_ context: String) throws -> String? {
        seen = nil
        Task(executorPreference: simulation.tasks) {
            do throws(Failure) {
                self.seen = .success(try await self.machine.lines(self.open, self.schedule.store))
            } catch {
                self.seen = .failure(error)
            }
        }
        guard simulation.run(atMost: 100_000, until: { seen != nil }), let seen else {
            return "\(context): it cannot be read"
        }
        let (here, expected) = (try seen.get(), tree.lines)
        guard here != expected else { return nil }
        return "\(context): there is \(Set(here).subtracting(expected).sorted()), "
            + "there should be \(Set(expected).subtracting(here).sorted())"
    }

    // MARK: The end

    private func restart() throws {
        simulation.note("killed")
        machine.kill()
        schedule.machines[0] = try schedule.makeMachine(0, after: .kill)
        open = [:]
        tree.open = [:]
        if let problem = try difference("killed and started again") {
            throw Failure(.invalid, problem)
        }
    }

    /// Everything has been told, and the store has what the tree has.
    private func settle() throws -> String? {
        for slot in open.keys.sorted() {
            machine.close(open.removeValue(forKey: slot)!)
            tree.open[slot] = nil
        }
        simulation.isResting = true
        machine.engine.lookNow(everything: false)
        machine.engine.notePending()
        let isDone = simulation.run(atMost: 400_000) { (try? machine.isQuiet()) ?? false }
        if !isDone { return "work does not come to an end" }
        if let problem = try difference("at rest") { return problem }
        let (there, expected) = (schedule.storeTree(of: Store.root, ""), tree.storable)
        guard there != expected else { return try machine.index.verify().first.map { "\($0)" } }
        return "at rest the store has \(Set(there).subtracting(expected).sorted()) "
            + "in place of \(Set(expected).subtracting(there).sorted())"
    }
}
