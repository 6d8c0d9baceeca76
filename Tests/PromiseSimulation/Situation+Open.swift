import PromiseCore
import PromiseFilesystem

/// A file that a program has open for writing while others take its name.
extension Situation {
    /// What was written to it is seen before its name goes: it has a name again, and is sent, long before it is closed.
    func heldOpen() async throws(Failure) {
        let on = machine(here)
        let text = expected["a"]! + world.ledger.token()
        note("machine \(here) holds a")
        let file = try await on.open(try await on.node(at: path("a")).node, flags: 2)
        defer { on.close(file) }
        try await on.write(Array(text.utf8), to: file, at: 0)
        await pause(2_000)
        if simulation.chance(50) {
            try await remove(there, "a")
            try await wait("the removal") { stored("a")?.bytes != Array(expected["a"]!.utf8) }
            expected["a"] = text
        } else {
            expected["a"] = world.ledger.token()
            try await save(there, "a", expected["a"]!)
            isUncertain = true
        }
        try await wait("what is held") { storedText("a") == text || conflict(of: text) != nil }
    }
}
