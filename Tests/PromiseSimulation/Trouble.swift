import PromiseIndex
import PromiseCore
import PromiseSystem

// What befalls machines: they are killed and cut off, their clocks jump, their disks fail.

extension Schedule {
    func troubleLater(_ number: Int) {
        for _ in 0..<plan.kills where simulation.chance(60) { later { [self] in kill(number) } }
        for _ in 0..<plan.cuts where simulation.chance(60) { later { [self] in cut(number) } }
        for _ in 0..<plan.jumps {
            later { [self] in simulation.clock.jump(by: .seconds(simulation.pick(7_200) - 3_600)) }
        }
        for _ in 0..<plan.diskFaults { later { [self] in failDisk() } }
        for _ in 0..<plan.powerCuts { later { [self] in cutPower(number) } }
    }

    private func later(within milliseconds: Int = 20_000, _ body: @escaping () -> Void) {
        pendingTrouble += 1
        simulation.after(.milliseconds(simulation.pick(milliseconds))) { [self] in
            pendingTrouble -= 1
            body()
        }
    }

    private func cut(_ number: Int) {
        simulation.note("machine \(number) is cut off")
        let machine = machines[number]
        machine.provider.line.isOffline = true
        later(within: 15_000) { [self] in
            simulation.note("machine \(number) is back")
            machine.provider.line.isOffline = false
        }
    }

    private func kill(_ number: Int) {
        simulation.note("machine \(number) is killed")
        stop(number)
        if start(number) { startPrograms(number) }
    }

    func stop(_ number: Int) {
        endDiskTrouble()
        machines[number].kill()
    }

    /// What no program has asked to be on the disk may be gone, but what the provider has.
    private func cutPower(_ number: Int) {
        simulation.note("machine \(number) has no power any more")
        let image = disks[number].cutPower(simulation)
        do {
            let safe = try shownTokens(machines[number])
            ledger.powerFails(at: safe) { $0.hasPrefix("m\(number)p") }
            stop(number)
            try disks[number].restore(image)
        } catch {
            return problems.append("a disk does not start: \(error)")
        }
        if start(number, hasPowerFailed: true) { startPrograms(number) }
    }

    /// What the store has of files that the machine shows, under the item that they have or at their place. Whatever else it has
    /// may be removed, as the machine's save by rename or removal is still to be told.
    private func shownTokens(_ machine: SimulatedMachine) throws -> Set<String> {
        try machine.index.read { transaction throws(Failure) in try shownTokens(below: .root, Store.root, transaction) }
    }

    private func shownTokens(
        below folder: NodeID, _ number: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> Set<String> {
        var result: Set<String> = []
        let children = try transaction.children(of: folder, after: nil, limit: 1_000)
        for entry in children {
            guard let there = store.child(entry.name, of: number) else { continue }
            result.formUnion(Ledger.tokens(in: there.bytes))
            result.formUnion(try shownTokens(below: entry.node, there.number, transaction))
        }
        return result
    }

    /// It goes on with what is on its disk.
    func start(_ number: Int, hasPowerFailed: Bool = false) -> Bool {
        do {
            machines[number] = try makeMachine(number, after: hasPowerFailed ? .powerCut : .kill)
            return true
        } catch {
            problems.append("a machine that was killed does not start again: \(error)")
            return false
        }
    }

    // MARK: The disk

    /// Of calls that the simulation does not make itself, as it does to see what a file holds.
    private static let labels = [
        "content.write", "content.create", "content.truncate", "content.hydrate.write", "scratch.write",
        "digest.read", "upload.status", "index.journal.append",
    ]

    /// One of the next calls of this kind fails, on whichever machine it is made.
    private func failDisk() {
        let label = Schedule.labels[simulation.pick(Schedule.labels.count)]
        let code = simulation.chance(50) ? 28 : 5
        let fault = "\(label):\(code):\(simulation.pick(3))"
        simulation.note("the disk is to fail: \(fault)")
        FaultInjection.arm(from: fault)
    }

    func endDiskTrouble() { FaultInjection.arm(from: "none:5") }
}
