import PromiseCore
import PromiseFilesystem
import PromiseSystem

/// A small story on two machines, in a folder of its own: what has to come together for a certain fault hardly ever
/// does by chance. Its details are the seed's: who is who, names, kinds, pauses. What is there at its end is certain.
///
/// Each begins with the files `a` and `b`, the folder `d` with the file `x` in it, and the empty folder `v`.
///
/// Unchecked, as only the simulation's thread touches it, which `Simulation.check` looks after.
final class Situation: @unchecked Sendable {
    enum Story: CaseIterable {
        case refusedCall, folderGoesMeanwhile, exchange, failedWrite, sameContent, listingInPages, twoOperations, cutMove,
            deathInMove, oldListing, removedWhileSent, savedTwice, editMeetsMove, newNameOfOld, movedAgain,
            linkShownAsFile, exchangeBeforePowerCut, movedBack, conflictMovedBack,
            endBeforePowerCut, heldOpen, treeMeetsMove, emptyMade, exchangedBack,
            removalMeetsEdit, movedOn, editedInPieces, piecesStored, removalMeetsMove, removalMeetsCopy

        /// What a seed chooses from. The others are played by their names alone, so that seeds mean
        /// what they meant before.
        static let chosen = allCases.filter { !byName.contains($0) }
        private static let byName: [Story] = [
            .treeMeetsMove, .emptyMade, .exchangedBack, .removalMeetsEdit, .movedOn, .editedInPieces,
            .piecesStored, .removalMeetsMove, .removalMeetsCopy,
        ]
    }

    let simulation: Simulation
    let world: Schedule
    let story: Story
    let root = FileName("s")!
    let (here, there): (Int, Int)
    /// What is to be below the folder at the end, with contents; folders end with a slash.
    var expected: [String: String] = [:]
    /// There may be more.
    var isUncertain = false
    private var read: [UInt8]?

    init(_ world: Schedule) {
        (self.world, simulation) = (world, world.simulation)
        let stories = world.plan.stories
        story = stories[world.simulation.pick(stories.count)]
        let isSwapped = world.simulation.chance(50)
        (here, there) = isSwapped ? (1, 0) : (0, 1)
    }

    func play() async {
        note("situation \(story)")
        do throws(Failure) {
            try await look(here)
            try await look(there)
            switch story {
            case .refusedCall: try await refusedCall()
            case .folderGoesMeanwhile: try await folderGoesMeanwhile()
            case .exchange: try await exchange()
            case .failedWrite: try await failedWrite()
            case .sameContent: try await sameContent()
            case .listingInPages: try await listingInPages()
            case .twoOperations: try await twoOperations()
            case .cutMove: try await moveWithoutAnswer(isDeath: false)
            case .deathInMove: try await moveWithoutAnswer(isDeath: true)
            case .oldListing: try await oldListing()
            case .removedWhileSent: try await removedWhileSent()
            case .savedTwice: try await savedTwice()
            case .editMeetsMove: try await editMeetsMove()
            case .newNameOfOld: try await newNameOfOld()
            case .movedAgain: try await movedAgain()
            case .linkShownAsFile: try await linkShownAsFile()
            case .exchangeBeforePowerCut: try await exchangeBeforePowerCut()
            case .movedBack: try await movedBack()
            case .conflictMovedBack: try await conflictMovedBack()
            case .endBeforePowerCut: try await endBeforePowerCut()
            case .heldOpen: try await heldOpen()
            case .treeMeetsMove: try await treeMeetsMove()
            case .emptyMade: try await emptyMade()
            case .exchangedBack: try await exchangedBack()
            case .removalMeetsEdit: try await removalMeetsEdit()
            case .movedOn: try await movedOn()
            case .editedInPieces: try await editedInPieces()
            case .piecesStored: try await piecesStored()
            case .removalMeetsMove: try await removalMeetsMove()
            case .removalMeetsCopy: try await removalMeetsCopy()
            }
            note("the situation is over")
            world.expect(expected, in: root, orMore: isUncertain)
        } catch {
            world.problems.append("\(story): \(error.message)")
        }
    }

    // MARK: Stories

    /// What was refused is made by somebody else: it is theirs.
    private func refusedCall() async throws(Failure) {
        let kind = [NodeKind.folder, .link, .file][simulation.pick(3)]
        snag(here, Snag("create u", refuses: true))
        try await make(kind, here, "u")
        try await wait("the refusal") { machine(here).provider.snags.isEmpty }
        await simulation.sleep(.milliseconds(1_000 + simulation.pick(3_000)))
        try await remove(here, "u")
        await pause(3_000)
        try await make(kind, there, "u")
        try await wait("theirs") { stored("u") != nil }
        expected[kind == .folder ? "u/" : "u"] = kind == .link ? "-> there" : ""
    }

    /// Others move or remove a folder while the store is told of something in it.
    private func folderGoesMeanwhile() async throws(Failure) {
        try await make(.folder, there, "q")
        try await wait("the folder q") { shows(here, "q") }
        expected["q/"] = ""
        let token = world.ledger.token()
        let act = simulation.pick(3)
        let name = ["d/g", "d/h", "d/x"][act]
        let inFolder = ["d/", "d/x", name]
        snag(here, Snag(act == 1 ? "create h" : "modify \(root)", pause: 8_000 + simulation.pick(8_000)))
        switch act {
        case 0:
            try await move(here, "a", to: name)
            expected[name] = expected.removeValue(forKey: "a")
        case 1:
            try await save(here, name, token)
            expected[name] = token
        default:
            try await append(here, name, token)
            expected[name] = expected[name]! + token
        }
        let text = expected[name]!
        try await wait("what was sent") { storedText(name) == text }
        try await wait("what was sent, there") { shows(there, name, text) }
        await pause(1_000)
        if act != 2, simulation.chance(50) {
            try await removeTree(there, "d")
            try await wait("the removal") { stored("d") == nil }
            for path in inFolder { expected[path] = nil }
        } else {
            try await move(there, "d", to: "q/d")
            try await wait("the move") { stored("q/d") != nil }
            for path in inFolder { if let text = expected.removeValue(forKey: path) { expected["q/" + path] = text } }
        }
    }

    /// Names are exchanged, and who only looks makes no conflict of it, not for a moment.
    private func exchange() async throws(Failure) {
        let other = simulation.chance(50) ? "b" : "d/x"
        for _ in 0..<3 { snag(there, Snag("modify \(root)", pause: 1_000 + simulation.pick(3_000))) }
        let texts = (expected["a"]!, expected[other]!)
        if simulation.chance(20) {
            note("exchanges a and \(other)")
            try await machine(there).rename(path("a"), to: path(other), isExchange: true)
        } else {
            for (old, new) in [("a", "t"), (other, "a"), ("t", other)] { try await move(there, old, to: new) }
        }
        try await watch("a conflict, though only one machine worked", seconds: 20) { !showsConflict(here) }
        try await wait("the exchange") { storedText("a") == texts.1 && storedText(other) == texts.0 }
        (expected["a"], expected[other]) = (texts.1, texts.0)
    }

    /// The disk takes no byte of what is written into a placeholder: it is what it was, and can be read.
    private func failedWrite() async throws(Failure) {
        let text = String(repeating: world.ledger.token(), count: 1 + simulation.pick(3))
        try await save(there, "c", text)
        try await wait("the file") { storedText("c") == text && shows(here, "c", text) }
        expected["c"] = text
        let node = try await machine(here).node(at: path("c")).node
        let file = try await machine(here).open(node, flags: 1)
        FaultInjection.arm(from: "content.write:28:0")
        let offset = UInt64(simulation.pick(text.utf8.count))
        do throws(Failure) {
            try await machine(here).write(Array(world.ledger.token().utf8), to: file, at: offset)
            throw Failure(.invalid, "the write did not fail")
        } catch where error.code == .storeFull {
            world.endDiskTrouble()
        }
        machine(here).close(file)
        read = nil
        Task(executorPreference: simulation.tasks) { [self] in read = try? await machine(here).contents(of: node) }
        try await wait("the content of what could not be written to") { read != nil }
        guard read == Array(text.utf8) else { throw Failure(.stale, "a write that failed has changed the file") }
    }

    /// Others write the same bytes anew while somebody edits or removes the file: that is no conflict.
    private func sameContent() async throws(Failure) {
        let token = world.ledger.token()
        if simulation.chance(50) {
            let text = expected["a"]! + world.ledger.token()
            try await save(here, "a", text)
            expected["a"] = text
            try await wait("the first content, there") { shows(there, "a", text) }
        }
        let text = expected["a"]!
        if simulation.chance(30) { return try await sameContentWhileAway(text, token) }
        machine(here).provider.line.isOffline = true
        let isRemoval = simulation.chance(50)
        let isEarly = simulation.chance(50)
        func act() async throws(Failure) {
            if isRemoval { return try await remove(here, "a") }
            try await append(here, "a", token)
        }
        if isEarly { try await act() }
        let before = stored("a")
        try await save(there, "a", text, truncates: false)
        // A store that makes versions of contents tells of the time only.
        try await wait("the new version") {
            let now = stored("a")
            return now?.version != before?.version
                || now?.metadata.modificationTime != before?.metadata.modificationTime
        }
        if !isEarly { try await act() }
        await pause(3_000)
        machine(here).provider.line.isOffline = false
        expected["a"] = isRemoval ? nil : text + token
    }

    /// The same bytes are written anew by a machine that is cut off, while others edit the file.
    private func sameContentWhileAway(_ text: String, _ token: String) async throws(Failure) {
        _ = try await machine(there).contents(of: try await machine(there).node(at: path("a")).node)
        machine(there).provider.line.isOffline = true
        try await save(there, "a", text, truncates: false)
        try await append(here, "a", token)
        try await wait("the edit") { storedText("a") == text + token }
        await pause(3_000)
        machine(there).provider.line.isOffline = false
        expected["a"] = text + token
    }

    /// A folder is gone, and goes on here as another one, while a listing of the first is on its way.
    private func listingInPages() async throws(Failure) {
        machine(here).provider.pageSize = 1 + simulation.pick(2)
        for name in ["d/y", "d/z"] { try await save(there, name, world.ledger.token()) }
        try await wait("the files") { shows(here, "d/y") && shows(here, "d/z") }
        snag(here, Snag("list \(root)/d after", pause: 10_000 + simulation.pick(5_000)))
        try await save(there, "d/zz", world.ledger.token())
        try await wait("the listing") { machine(here).provider.snags.isEmpty }
        machine(here).provider.losesChanges = true
        let token = world.ledger.token()
        try await save(here, "d/n", token)
        try await wait("the file zz") { stored("d/zz") != nil }
        try await removeTree(there, "d")
        try await wait("the removal") { stored("d") == nil }
        await simulation.sleep(.seconds(simulation.pick(8)))
        machine(here).provider.losesChanges = false
        try await wait("what was made") { storedText("d/n") == token }
        expected["d/n"] = token
        expected["d/x"] = nil
    }

    /// What is being moved is removed here, and others put something where it was.
    private func twoOperations() async throws(Failure) {
        let (old, new) = simulation.chance(50) ? ("v", "w") : ("a", "w")
        snag(here, Snag("modify \(root)", pause: 8_000 + simulation.pick(5_000)))
        try await move(here, old, to: new)
        try await wait("the move") { stored(new) != nil }
        try await wait("the move, there") { shows(there, new) && !shows(there, old) }
        if old == "v" { try await make(.folder, there, old) } else { try await save(there, old, expected["a"]!) }
        try await wait("theirs") { stored(old) != nil }
        if old == "v" { try await removeTree(here, new) } else { try await remove(here, new) }
        try await wait("the removal") { stored(new) == nil }
    }

    /// A listing from before shows what was since changed here: it is not believed.
    private func oldListing() async throws(Failure) {
        snag(here, Snag("list \(root)", pause: 4_000 + simulation.pick(5_000)))
        let extra = world.ledger.token()
        try await save(there, "z", extra)
        try await wait("the listing") { machine(here).provider.snags.isEmpty }
        await simulation.sleep(.milliseconds(400))
        let act = simulation.pick(3)
        let token = world.ledger.token()
        switch act {
        case 0: try await save(here, "a", token)
        case 1: try await remove(here, "a")
        default: try await move(here, "a", to: "w")
        }
        try await watch("what was done here was undone for a moment", seconds: 10) {
            act == 0 ? shows(here, "a", token) : !shows(here, "a") && (act == 1 || shows(here, "w"))
        }
        expected["z"] = extra
        switch act {
        case 0: expected["a"] = token
        case 1: expected["a"] = nil
        default: expected["w"] = expected.removeValue(forKey: "a")
        }
    }

    /// A file goes while it is being sent.
    private func removedWhileSent() async throws(Failure) {
        let isNew = simulation.chance(50)
        let name = isNew ? "u" : "a"
        let losesAnswer = simulation.chance(50)
        snag(here, Snag(isNew ? "create u" : "modify \(root)", losesAnswer: losesAnswer, pause: simulation.pick(6_000)))
        let token = world.ledger.token()
        try await save(here, name, token)
        try await wait("what was sent") { storedText(name) == token }
        try await remove(here, name)
        try await wait("the removal") { stored(name) == nil }
        expected[name] = nil
    }

    /// Its answer is lost, and it is written to again before that is known.
    private func savedTwice() async throws(Failure) {
        let isNew = simulation.chance(50)
        let name = isNew ? "u" : "a"
        let first = world.ledger.token()
        snag(here, Snag(isNew ? "create u" : "modify \(root)", losesAnswer: true))
        try await save(here, name, first)
        try await wait("what was sent") { storedText(name) == first }
        machine(here).provider.line.isOffline = true
        let isLonger = simulation.chance(50)
        let text = isLonger ? first + world.ledger.token() : world.ledger.token()
        try await save(here, name, text)
        await pause(2_000)
        machine(here).provider.line.isOffline = false
        expected[name] = text
    }

    /// Content is sent to what others move meanwhile. A store of places knows nothing of that.
    private func editMeetsMove() async throws(Failure) {
        guard !world.store.kind.byPlace else { return }
        let goal = simulation.chance(50) ? "w" : "d/w"
        let token = world.ledger.token()
        snag(here, Snag("modify \(root)", delay: simulation.chance(50) ? 5_000 : 0, pause: simulation.pick(5_000)))
        try await append(here, "a", token)
        if simulation.chance(50) { try await wait("the edit") { storedText("a")?.hasSuffix(token) ?? false } }
        try await move(there, "a", to: goal)
        try await wait("the edit, where it was moved") { storedText(goal)?.hasSuffix(token) ?? false }
        expected[goal] = expected["a"]! + token
        expected["a"] = nil
    }

    /// Others make a link, which a listing shows as a file where it does not tell of links: it is moved before more is known.
    private func linkShownAsFile() async throws(Failure) {
        try await make(.link, there, "u")
        try await wait("the link") { shows(here, "u") }
        try await move(here, "u", to: "w")
        try await wait("the move") { stored("w") != nil && stored("u") == nil }
        expected["w"] = "-> there"
    }

    /// A new file has the name that another one had, whose own edit is being compared with that of others; they
    /// remove it meanwhile. What others wrote and what was written here are in conflict, so names are not certain.
    private func newNameOfOld() async throws(Failure) {
        machine(here).provider.line.isOffline = true
        try await save(there, "a", world.ledger.token())
        try await save(here, "a", written("here"))
        try await move(here, "a", to: "g")
        try await wait("their edit") { storedText("a") != expected["a"]! }
        snag(here, Snag("fetch", pause: 8_000))
        machine(here).provider.line.isOffline = false
        try await wait("the comparison") { machine(here).provider.snags.isEmpty }
        try await remove(there, "a")
        try await wait("their removal") { stored("a") == nil }
        let token = written("here")
        try await save(here, "a", token)
        (expected["a"], isUncertain) = (token, true)
    }

    func written(_ who: String) -> String {
        let token = world.ledger.token()
        world.ledger.wrote(token, by: who)
        return token
    }
}
