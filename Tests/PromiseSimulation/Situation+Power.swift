import PromiseCore

/// A power cut when the store has lost what a machine had fetched from it.
extension Situation {
    /// Two files that were fetched exchange their contents; the store is told of one of them, so that it has the other one's
    /// content no more, and then the power fails. Nobody here has asked for a sync.
    func exchangeBeforePowerCut() async throws(Failure) {
        let other = simulation.chance(50) ? "b" : "d/x"
        let (first, last) = simulation.chance(50) ? ("a", other) : (other, "a")
        let texts = (expected[first]!, expected[last]!)
        snag(here, Snag("modify \(root)/\(last) content", delay: 60_000))
        note("machine \(here) exchanges \(first) and \(last)")
        try await machine(here).rename(path(first), to: path(last), isExchange: true)
        if simulation.chance(30) {
            // What the file of that name was is nobody's any more then, and goes at the store.
            try await remove(here, first)
            try await wait("the removal") { stored(first) == nil }
            (expected[first], expected[last]) = (nil, texts.0)
        } else {
            try await wait("the first content") { storedText(first) == texts.1 }
            (expected[first], expected[last]) = (texts.1, texts.0)
        }
        world.cutPower(here, startsPrograms: false)
    }

    var cutsPower: Bool { story == .exchangeBeforePowerCut || story == .endBeforePowerCut }

    /// What was saved while a machine was cut off waits there, its daemon ends in order, and the power fails.
    func endBeforePowerCut() async throws(Failure) {
        machine(here).provider.line.isOffline = true
        let token = world.ledger.token()
        if simulation.chance(50) {
            try await save(here, "a", token)
            expected["a"] = token
        } else {
            try await append(here, "a", token)
            expected["a"]! += token
        }
        await pause(3_000)
        do {
            try world.endAndCutPower(here)
        } catch {
            throw Failure(.inputOutput, "it did not end in order: \(error)")
        }
    }
}
