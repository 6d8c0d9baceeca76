import PromiseCore
import PromiseFilesystem

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

    /// What was made without an answer is moved here when that is known, and others move it back.
    func movedBack() async throws(Failure) {
        let token = world.ledger.token()
        snag(here, Snag("create u", losesAnswer: true))
        try await save(here, "u", token)
        try await wait("what was sent") { storedText("u") == token }
        try await wait("the certainty") { (try? machine(here).isQuiet()) ?? false }
        try await move(here, "u", to: "w")
        try await wait("the move") { stored("w") != nil && stored("u") == nil }
        try await wait("the move, there") { shows(there, "w") && !shows(there, "u") }
        try await move(there, "w", to: "u")
        expected["u"] = token
    }

    /// Two machines make a file of one name, and the one that is refused is not told. Its file has a conflict's name then, until
    /// theirs is moved out of the way and others give it its own one.
    func conflictMovedBack() async throws(Failure) {
        let (ours, theirs) = (world.ledger.token(), world.ledger.token())
        snag(here, Snag("create u", losesAnswer: true, delay: 4_000))
        try await save(here, "u", ours)
        try await wait("the call") { machine(here).provider.snags.isEmpty }
        try await save(there, "u", theirs)
        try await wait("both") { storedText("u") == theirs && conflict(of: ours) != nil }
        try await move(here, "u", to: "w")
        try await wait("the move") { stored("w") != nil && stored("u") == nil }
        let name = conflict(of: ours)!
        try await wait("both, there") { shows(there, "w") && shows(there, name) && !shows(there, "u") }
        try await move(there, name, to: "u")
        (expected["u"], expected["w"]) = (ours, theirs)
    }

    /// A file is made and is empty, and no answer comes; what is written to it then is refused.
    func emptyMade() async throws(Failure) {
        snag(here, Snag("create u", losesAnswer: true))
        try await make(.file, here, "u")
        try await wait("what was made") { stored("u") != nil }
        machine(here).provider.line.isOffline = true
        for call in ["create", "modify \(root)"] { snag(here, Snag(call, refuses: true)) }
        let token = world.ledger.token()
        try await save(here, "u", token)
        let name = simulation.chance(50) ? "u" : "w"
        if name == "w" { try await move(here, "u", to: name) }
        await pause(3_000)
        machine(here).provider.line.isOffline = false
        expected[name] = token
    }

    /// A whole tree is removed by a machine that does not know yet that another one has moved it.
    /// It goes all the same, but for what that one has written.
    func treeMeetsMove() async throws(Failure) {
        machine(here).provider.line.isOffline = true
        let isEdited = simulation.chance(30)
        let token = world.ledger.token()
        if isEdited {
            try await append(there, "d/x", token)
            try await wait("the edit") { storedText("d/x")?.hasSuffix(token) ?? false }
        }
        try await move(there, "d", to: "w")
        try await wait("the move") { stored("w") != nil && stored("d") == nil }
        try await removeTree(here, "d")
        await pause(3_000)
        machine(here).provider.line.isOffline = false
        let text = expected.removeValue(forKey: "d/x")! + token
        expected["d/"] = nil
        if isEdited { return (expected["w/"], expected["w/x"]) = ("", text) }
        try await wait("the removal, where it was moved") { stored("w") == nil }
    }

    /// The name of a second version at the store.
    func conflict(of text: String) -> String? {
        guard let folder = stored("") else { return nil }
        let found = world.store.children(of: folder.number).first {
            $0.name.display.contains("conflict") && $0.bytes == Array(text.utf8)
        }
        return found?.name.display
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

    /// Two machines make the same exchange; of one half of it has arrived when it takes that back. Each
    /// content is somewhere, whoever has it under which name.
    func exchangedBack() async throws(Failure) {
        let texts = [world.ledger.token(), world.ledger.token()]
        for (name, text) in zip(["a", "b"], texts) {
            world.ledger.wrote(text, by: "here")
            try await save(here, name, text)
            expected[name] = nil
        }
        isUncertain = true
        func exchange(_ number: Int) async throws(Failure) {
            note("machine \(number) exchanges a and b")
            try await machine(number).rename(path("a"), to: path("b"), isExchange: true)
        }
        try await wait("both contents, there") { shows(there, "a", texts[0]) && shows(there, "b", texts[1]) }
        for name in ["a", "b"] { _ = try await machine(there).contents(of: try await machine(there).node(at: path(name)).node) }
        machine(there).provider.line.isOffline = true
        try await exchange(there)
        try await exchange(here)
        try await wait("half of the exchange") {
            storedText("a") == texts[1] || storedText("b") == texts[0]
        }
        machine(here).provider.line.isOffline = true
        machine(there).provider.line.isOffline = false
        try await wait("the other half") { storedText("a") == texts[1] && storedText("b") == texts[0] }
        try await wait("an end, there") { (try? machine(there).isQuiet()) ?? false }
        try await exchange(here)
        await pause(5_000)
        machine(here).provider.line.isOffline = false
    }
}
