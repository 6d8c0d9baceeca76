import CSimulatedDisk
import Glibc
import PromiseCore
import PromiseIndex
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

    /// Somebody at the store itself, who acts once.
    func strangerLater() {
        for _ in 0..<plan.strangerActions { later { [self] in Stranger(simulation: simulation, world: self).act() } }
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
    func cutPower(_ number: Int, startsPrograms: Bool = true) {
        simulation.note("machine \(number) has no power any more")
        let image = disks[number].cutPower(simulation)
        do {
            let safe = try shownTokens(machines[number])
            ledger.powerFails(at: safe) { $0.hasPrefix("m\(number)p") }
            stop(number)
            try disks[number].restore(image)
            for kill in 0..<plan.recoveryKills {
                try killInRecovery(number, from: kill == 0 ? image : nil)
            }
        } catch {
            return problems.append("a disk does not start: \(error)")
        }
        if start(number, after: .powerCut), startsPrograms { startPrograms(number) }
    }

    /// The power fails when the daemon has ended in order, and nobody takes that for a power cut.
    func endAndCutPower(_ number: Int) throws {
        try machines[number].endInOrder()
        try disks[number].restore(disks[number].cutPower(simulation))
        _ = start(number, after: .order)
    }

    /// The daemon that starts is killed before one of its calls, in a process of its own, which leaves on the disk what
    /// it did until then. All of that is taken for synchronized. One that comes to its end begins again with what the
    /// power cut has left, where that is given, and is killed earlier.
    private func killInRecovery(_ number: Int, from image: SimulatedDisk.Image?) throws {
        // Between two commits is where a thing is half done, and those are few among all calls.
        let isCommit = recoveryChance.next() % 4 > 0
        var count = recoveryChance.next() % (isCommit ? 12 : 600)
        while true {
            let fault = "\(isCommit ? "index.journal.append" : "every"):KILL:\(count)"
            let status = recoverInChild(number, with: fault)
            simulation.note("machine \(number) recovers until \(fault): status \(status)")
            if status == 256 { problems.append("a daemon does not recover") }
            guard status == 0, count > 0, let image else { break }
            count /= 2
            try disks[number].restore(image)
        }
        disks[number].takeAllForSynced()
    }

    private func recoverInChild(_ number: Int, with fault: String) -> CInt {
        let child = csd_fork()
        guard child != 0 else {
            FaultInjection.arm(from: fault)
            _exit((try? makeMachine(number, after: .powerCut)) == nil ? 1 : 0)
        }
        var status: CInt = 0
        waitpid(child, &status, 0)
        return status
    }

    /// What the store has of files that the machine shows, under the item that they have or at their place. Whatever else it has
    /// may be removed, as the machine's save by rename or removal is still to be told; and what is not in the newer content
    /// that the machine has for the item, as after an exchange of names.
    private func shownTokens(_ machine: SimulatedMachine) throws -> Set<String> {
        let shown = try machine.index.read { transaction throws(Failure) in
            try shownFiles(below: .root, Store.root, transaction)
        }
        var result: Set<String> = []
        for (edited, bytes) in shown {
            var tokens = Ledger.tokens(in: bytes)
            if let edited, let local = try machine.localContents(of: edited) {
                tokens.formIntersection(Ledger.tokens(in: local))
            }
            result.formUnion(tokens)
        }
        return result
    }

    /// With the node, where it has whole content that was edited since both sides agreed.
    private func shownFiles(
        below folder: NodeID, _ number: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [(edited: NodeID?, there: [UInt8])] {
        var result: [(edited: NodeID?, there: [UInt8])] = []
        for entry in try transaction.children(of: folder, after: nil, limit: 1_000) {
            guard let there = store.child(entry.name, of: number) else { continue }
            let agreed = try entry.identifier.flatMap { identifier throws(Failure) in
                try transaction.synced(identifier)
            }
            let node = try transaction.node(entry.node)
            let isEdited = node.map { $0.content == .whole && $0.edits != agreed?.edits } ?? false
            result.append((isEdited ? entry.node : nil, there.bytes))
            result += try shownFiles(below: entry.node, there.number, transaction)
        }
        return result
    }

    /// It goes on with what is on its disk.
    func start(_ number: Int, after end: SimulatedMachine.End = .kill) -> Bool {
        do {
            machines[number] = try makeMachine(number, after: end)
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
