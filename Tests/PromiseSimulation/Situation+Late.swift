import PromiseCore
import PromiseFilesystem

/// What others do between the moment at which something was known here and the moment at which that is acted upon.
extension Situation {
    /// The call that removes a file is on its way when others edit it: what they wrote comes back.
    func removalMeetsEdit() async throws(Failure) {
        // Without conditions it goes, and nobody could keep it.
        guard world.store.kind.hasConditions else { return }
        let name = simulation.chance(50) ? "a" : "d/x"
        snag(here, Snag("delete \(root)/\(name)", delay: 12_000 + simulation.pick(8_000)))
        try await remove(here, name)
        try await wait("the call") { machine(here).provider.snags.isEmpty }
        let token = world.ledger.token()
        let text = simulation.chance(50) ? expected[name]! + token : token
        try await save(there, name, text)
        try await wait("the edit") { storedText(name) == text }
        expected[name] = text
    }

    /// A file is saved under another name and moved over its own, which the store is told of as an edit and a removal.
    /// The removal was carried out and its answer lost when others have moved the file back: what is there is theirs.
    func removalMeetsMove() async throws(Failure) {
        let (old, new) = simulation.chance(50) ? ("n", "b") : ("d/n", "a")
        let text = written("here")
        try await save(here, old, text)
        try await wait("the file") { storedText(old) == text && shows(there, old, text) }
        let isCut = simulation.chance(50)
        let pause = isCut ? 0 : 20_000 + simulation.pick(5_000)
        snag(here, Snag("delete \(root)/\(old)", losesAnswer: true, pause: pause))
        try await move(here, old, to: new)
        try await wait("the move") { stored(old) == nil && storedText(new) == text }
        if isCut { machine(here).provider.line.isOffline = true }
        try await wait("the move, there") { shows(there, new, text) && !shows(there, old) }
        try await move(there, new, to: old)
        try await wait("their move") { storedText(old) == text && stored(new) == nil }
        // What of the move was not answered may be told of as something new.
        if isCut { (expected[new], isUncertain) = (nil, true) } else { (expected[old], expected[new]) = (text, nil) }
        machine(here).provider.line.isOffline = false
        await simulation.sleep(.seconds(30))
    }

    /// As `removalMeetsMove`, but what others move there is a copy of theirs, and nobody looked at it here.
    func removalMeetsCopy() async throws(Failure) {
        let text = written("here")
        try await save(here, "n", text)
        try await wait("the file") { storedText("n") == text && shows(there, "n", text) }
        try await save(there, "d/c", text)
        try await wait("the copy") { storedText("d/c") == text && shows(here, "d/c") }
        snag(here, Snag("delete \(root)/n", losesAnswer: true))
        try await remove(here, "n")
        try await wait("the removal") { stored("n") == nil }
        machine(here).provider.line.isOffline = true
        try await wait("the removal, there") { !shows(there, "n") }
        try await move(there, "d/c", to: "n")
        try await wait("their move") { storedText("n") == text && stored("d/c") == nil }
        expected["n"] = text
        if simulation.chance(50) {
            try await removeTree(there, "d")
            try await wait("the removal of the folder") { stored("d") == nil }
            (expected["d/"], expected["d/x"]) = (nil, nil)
        }
        machine(here).provider.line.isOffline = false
        await simulation.sleep(.seconds(30))
    }

    /// A move was carried out, and its machine died before the answer came; others have moved the thing on since. A
    /// machine that starts looks before it tells: told once more, the first move would undo the second.
    func movedOn() async throws(Failure) {
        let old = ["v", "a", "d"][simulation.pick(3)]
        snag(here, Snag("modify \(root)", pause: 60_000))
        try await move(here, old, to: "w")
        try await wait("the move") { stored("w") != nil }
        world.stop(here)
        try await wait("the move, there") { shows(there, "w") && !shows(there, old) }
        try await move(there, "w", to: "g")
        try await wait("their move") { stored("g") != nil && stored("w") == nil }
        await pause(3_000)
        _ = world.start(here)
        for end in ["", "/", "/x"] { expected["g" + end] = expected.removeValue(forKey: old + end) }
    }

    /// A file is written to while it comes, and others replace it in the middle of that: of what has come nobody knows
    /// of which version it is. What was written here is kept beside theirs, with holes, and is sent to nobody.
    func editedInPieces() async throws(Failure) {
        let texts = (0..<2).map { _ in (0..<60).map { _ in world.ledger.token() }.joined() }
        try await save(there, "c", texts[0])
        try await wait("the file") { storedText("c") == texts[0] && shows(here, "c", texts[0]) }
        // Nothing else tells of the new version before the fetch ends.
        for _ in 0..<3 { snag(here, Snag("list \(root)", delay: 45_000)) }
        snag(here, Snag("fetch \(root)/c", partPause: 700))
        note("machine \(here) writes into c")
        let on = machine(here)
        let file = try await on.open(try await on.node(at: path("c")).node, flags: 1)
        try await on.write(Array(world.ledger.token().utf8), to: file, at: 0)
        on.close(file)
        try await wait("the fetch") { !on.provider.snags.contains { $0.partPause > 0 } }
        await simulation.sleep(.milliseconds(1_000 + simulation.pick(1_000)))
        try await save(there, "c", texts[1])
        try await wait("the new version") { storedText("c") == texts[1] }
        expected["c"] = texts[1]
        try await wait("both") { showsConflict(here) }
    }

    /// As `editedInPieces`, but others overwrite the file in place, the fetch goes on with their bytes, and a program
    /// writes once more before its end says so: what has come by then of theirs is no piece of ours.
    func piecesStored() async throws(Failure) {
        let texts = (0..<2).map { _ in (0..<60).map { _ in world.ledger.token() }.joined() }
        try await save(there, "c", texts[0])
        try await wait("the file") { storedText("c") == texts[0] && shows(here, "c", texts[0]) }
        for _ in 0..<3 { snag(here, Snag("list \(root)", delay: 14_000)) }
        snag(here, Snag("fetch \(root)/c", partPause: 2_000))
        let first = try await writeBeginning(of: "c")
        try await wait("the fetch") { !machine(here).provider.snags.contains { $0.partPause > 0 } }
        await simulation.sleep(.milliseconds(1_000 + simulation.pick(1_000)))
        try await save(there, "c", texts[1])
        try await wait("the new version") { storedText("c") == texts[1] }
        await simulation.sleep(.milliseconds(5_000))
        let second = try await writeBeginning(of: "c")
        if simulation.chance(50) {
            world.stop(here)
            await pause(3_000)
            _ = world.start(here)
        }
        expected["c"] = texts[1]
        try await wait("both") { showsConflict(here) }
        await simulation.sleep(.seconds(20))
        let (ours, on) = (Array(texts[0].utf8), machine(here))
        for name in try await on.names(in: try await on.node(at: path("")).node) where name.display.contains("conflict") {
            let bytes = try on.localContents(of: try await on.node(at: [root, name]).node) ?? []
            let written = max(first, second)
            for index in bytes.indices.dropFirst(written) where bytes[index] != 0 && bytes[index] != ours[index] {
                throw Failure(.stale, "byte \(index) of theirs is a piece of ours")
            }
        }
    }

    /// How many bytes it was.
    private func writeBeginning(of name: String) async throws(Failure) -> Int {
        note("machine \(here) writes into \(name)")
        let (on, bytes) = (machine(here), Array(world.ledger.token().utf8))
        let file = try await on.open(try await on.node(at: path(name)).node, flags: 1)
        defer { on.close(file) }
        try await on.write(bytes, to: file, at: 0)
        return bytes.count
    }
}
