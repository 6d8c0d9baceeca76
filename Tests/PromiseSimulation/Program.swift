import PromiseCore
import PromiseFilesystem
import PromiseSystem

/// What one program does on one machine, at random: it writes in pieces, holds files open, saves in the ways of
/// editors, exchanges names, changes kinds, and moves folders into each other.
struct Program {
    let simulation: Simulation
    let world: Schedule
    let on: SimulatedMachine
    let name: String

    private static let folders = ["d0", "d1", "d2"].map { FileName($0)! }
    private static let files = ["f0", "f1", "f2", "f3"].map { FileName($0)! }

    private func folder() -> [FileName] {
        var path: [FileName] = []
        while path.count < 2, simulation.chance(world.plan.taste.depth) { path.append(anyFolder()) }
        return path
    }

    func file() -> [FileName] { folder() + [Program.files[simulation.pick(world.plan.taste.fileCount)]] }
    func subfolder() -> [FileName] { folder() + [anyFolder()] }
    private func anyFolder() -> FileName { Program.folders[simulation.pick(world.plan.taste.folderCount)] }

    func act() async {
        let act = world.plan.taste.pick(simulation)
        do throws(Failure) {
            switch act {
            case .save: try await save(file(), pieces: pieceCount())
            case .append: try await append(to: file())
            case .saveByRename: try await saveByRename(file())
            case .hold: try await hold(file())
            case .move: try await move(file(), to: file())
            case .exchange: try await exchange(file(), file())
            case .remove: try await remove(file())
            case .makeFolder: try await on.makeFolder(subfolder())
            case .moveFolder: try await move(subfolder(), to: subfolder())
            case .removeTree: try await removeTree(subfolder())
            case .makeLink: try await on.makeLink(file(), to: "target\(simulation.pick(3))")
            case .changeKind: try await move(file(), to: subfolder())
            case .read: try await read(file())
            case .evict: try on.evict(try await on.node(at: file()).node)
            case .map: try await map(file())
            case .rewrite: try await rewrite(file())
            case .changeMetadata: try await actOnMetadata()
            }
        } catch {
            // What others did explains it: a name that has just gone, a network that is away.
        }
    }

    func display(_ path: [FileName]) -> String { path.map(\.display).joined(separator: "/") }
    func note(_ what: String) { simulation.note("\(name) \(what)") }

    /// Opens, or makes.
    func open(_ path: [FileName], truncates: Bool) async throws(Failure) -> SimulatedMachine.OpenFile {
        let known: NodeID
        do throws(Failure) {
            let found = try await on.node(at: path)
            guard found.kind == .file else { throw Failure(.isFolder, "it is no file") }
            known = found.node
        } catch {
            guard error.code == .notFound else { throw error }
            return try await on.create(path)
        }
        guard truncates else { return try await on.open(known, flags: 2) }
        let seen = try world.tokens(of: known, on: on)
        let file = try await on.open(known, flags: 0o1002)
        world.ledger.gave(seen.union(try world.tokens(of: known, on: on)))
        return file
    }

    private func write(
        _ file: SimulatedMachine.OpenFile, at offset: UInt64, isPage: Bool = false
    ) async throws(Failure) {
        let token = world.ledger.token()
        note("writes \(token) at \(offset)")
        let before = try world.tokens(of: file.node, on: on)
        try await on.write(Array(token.utf8), to: file, at: offset, isPage: isPage)
        // What somebody here has removed or replaced is gone with its last close.
        if try world.isNameless(file.node, on: on) { return }
        world.ledger.wrote(token, by: name)
        // What it was written over has been seen.
        let after = try world.tokens(of: file.node, on: on)
        world.ledger.gave(before.subtracting(after).subtracting([token]))
    }

    private func synchronize(_ file: SimulatedMachine.OpenFile) async throws(Failure) {
        let held = try world.tokens(of: file.node, on: on)
        try await on.synchronize(file)
        world.ledger.sync(held)
    }

    func close(_ file: SimulatedMachine.OpenFile) {
        if !on.isDead { on.close(file) }
    }

    private func pause() async {
        if simulation.chance(40) { await simulation.sleep(.milliseconds(simulation.pick(800))) }
    }

    private func save(_ path: [FileName], pieces: Int) async throws(Failure) {
        note("saves \(display(path))")
        let file = try await open(path, truncates: true)
        defer { close(file) }
        for piece in 0..<pieces {
            try await write(file, at: UInt64(piece * Ledger.tokenSize))
            await pause()
            if on.isDead { return }
        }
        if simulation.chance(20) { try await synchronize(file) }
    }

    private func append(to path: [FileName]) async throws(Failure) {
        note("appends to \(display(path))")
        let file = try await open(path, truncates: false)
        defer { close(file) }
        let size = try on.filesystem.attributes(of: file.node, handle: file.handle).attributes.size
        try await write(file, at: size)
    }

    /// Has it open for long, and writes into it now and then.
    private func hold(_ path: [FileName]) async throws(Failure) {
        note("holds \(display(path))")
        let file = try await open(path, truncates: false)
        defer { close(file) }
        for _ in 0..<(1 + simulation.pick(3)) {
            await simulation.sleep(.milliseconds(simulation.pick(6_000)))
            if on.isDead { return }
            let size = try on.filesystem.attributes(of: file.node, handle: file.handle).attributes.size
            let isOverwriting = size >= UInt64(Ledger.tokenSize) && simulation.chance(40)
            try await write(file, at: isOverwriting ? offset(within: size) : size)
            if simulation.chance(20) { try await synchronize(file) }
        }
        note("lets go of \(display(path))")
    }

    /// The kernel writes the pages of a mapping when it likes, also long after its file was closed.
    private func map(_ path: [FileName]) async throws(Failure) {
        note("maps \(display(path))")
        let file = try await open(path, truncates: false)
        defer { close(file) }
        for _ in 0..<(1 + simulation.pick(3)) {
            await simulation.sleep(.milliseconds(simulation.pick(8_000)))
            if on.isDead { return }
            let size = try on.filesystem.attributes(of: file.node, handle: file.handle).attributes.size
            // A mapping ends where its file does.
            guard size >= UInt64(Ledger.tokenSize) else { continue }
            try await write(file, at: offset(within: size), isPage: true)
        }
        note("unmaps \(display(path))")
    }

    /// Another version of the same bytes.
    private func rewrite(_ path: [FileName]) async throws(Failure) {
        let found = try await on.node(at: path)
        guard found.kind == .file else { return }
        let bytes = try await on.contents(of: found.node)
        guard !bytes.isEmpty else { return }
        note("rewrites \(display(path))")
        let file = try await open(path, truncates: false)
        defer { close(file) }
        let before = try world.tokens(of: file.node, on: on)
        try await on.write(bytes, to: file, at: 0)
        world.ledger.gave(before.subtracting(try world.tokens(of: file.node, on: on)))
    }

    private func saveByRename(_ path: [FileName]) async throws(Failure) {
        note("saves \(display(path)) by rename")
        let temporary = path.dropLast() + [FileName("new-\(name)")!]
        let file = try await open(Array(temporary), truncates: true)
        do throws(Failure) { try await write(file, at: 0) } catch {
            close(file)
            throw error
        }
        close(file)
        await pause()
        try await rename(Array(temporary), to: path)
    }

    private func rename(_ path: [FileName], to target: [FileName]) async throws(Failure) {
        if path == target { return }
        var seen: Set<String> = []
        try await on.rename(path, to: target) { node throws(Failure) in seen = try world.tokens(of: node, on: on) }
        world.ledger.gave(seen)
    }

    private func move(_ path: [FileName], to target: [FileName]) async throws(Failure) {
        note("moves \(display(path)) to \(display(target))")
        try await rename(path, to: target)
    }

    private func exchange(_ path: [FileName], _ other: [FileName]) async throws(Failure) {
        if path == other { return }
        note("exchanges \(display(path)) and \(display(other))")
        try await on.rename(path, to: other, isExchange: true)
    }

    private func remove(_ path: [FileName]) async throws(Failure) {
        let found = try await on.node(at: path)
        guard found.kind != .folder else { return }
        note("removes \(display(path))")
        var seen: Set<String> = []
        try await on.unlink(path) { node throws(Failure) in seen = try world.tokens(of: node, on: on) }
        world.ledger.gave(seen)
    }

    private func removeTree(_ path: [FileName]) async throws(Failure) {
        let found = try await on.node(at: path)
        guard found.kind == .folder else { return try await remove(path) }
        note("removes the tree \(display(path))")
        for name in try await on.names(in: found.node) { try await removeTree(path + [name]) }
        try await on.removeFolder(path)
    }
}
