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

    /// It goes on with what is on its disk.
    func start(_ number: Int) -> Bool {
        do {
            machines[number] = try makeMachine(number, isAfterKill: true)
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
