import PromiseCore

/// Moves of which no answer came, while others put something new where the moved thing was.
extension Situation {
    /// The machine hears nothing for a while, or dies.
    func moveWithoutAnswer(isDeath: Bool) async throws(Failure) {
        let old = ["v", "a", "d"][simulation.pick(3)]
        let pause = isDeath ? 60_000 : 0
        snag(here, Snag("modify \(root)", losesAnswer: !isDeath, pause: pause))
        try await move(here, old, to: "w")
        try await wait("the move") { stored("w") != nil }
        if isDeath { world.stop(here) } else { machine(here).provider.line.isOffline = true }
        try await wait("the move, there") { shows(there, "w") && !shows(there, old) }
        try await putNew(at: old)
        await self.pause(3_000)
        if isDeath { _ = world.start(here) } else { machine(here).provider.line.isOffline = false }
        // Perhaps before it is known what became of the move.
        if simulation.chance(30) { try await removeMoved() }
    }

    /// It is sent again, and arrives when something new is where it begins.
    func movedAgain() async throws(Failure) {
        let old = ["v", "a", "d"][simulation.pick(3)]
        snag(here, Snag("modify \(root)", losesAnswer: true))
        snag(here, Snag("modify \(root)", delay: 12_000 + simulation.pick(8_000)))
        try await move(here, old, to: "w")
        try await wait("the move") { stored("w") != nil }
        try await wait("the move, there") { shows(there, "w") && !shows(there, old) }
        try await putNew(at: old)
        if simulation.chance(30) { try await removeMoved() }
    }

    /// By the other machine; what was there is at `w`.
    private func putNew(at old: String) async throws(Failure) {
        if old == "d" { expected["w/x"] = expected.removeValue(forKey: "d/x") }
        let token = world.ledger.token()
        if old == "a" {
            expected["w"] = expected["a"]
            expected["a"] = token
            try await save(there, old, token)
        } else {
            expected["w/"] = ""
            try await make(.folder, there, old)
            if simulation.chance(60) {
                try await save(there, old + "/y", token)
                expected[old + "/y"] = token
            }
        }
        try await wait("theirs") {
            expected[old + "/y"] == nil ? stored(old) != nil : stored(old + "/y") != nil
        }
    }

    private func removeMoved() async throws(Failure) {
        try await remove(here, "w")
        for path in ["w", "w/", "w/x"] { expected[path] = nil }
    }
}
