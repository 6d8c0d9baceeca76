import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider

/// What programs do in a situation, and what can be seen of it.
extension Situation {
    /// In the store, before any machine looks.
    func prepare() {
        let folder = world.add(root, .folder, in: Store.root)
        for name in ["a", "b"] { expected[name] = add(name, folder) }
        expected["d/x"] = add("x", world.add(FileName("d")!, .folder, in: folder))
        world.add(FileName("v")!, .folder, in: folder)
        (expected["d/"], expected["v/"]) = ("", "")
    }

    private func add(_ name: String, _ folder: Int) -> String {
        let number = world.add(FileName(name)!, .file, in: folder)
        let text = String(decoding: world.store.items[number]!.bytes, as: UTF8.self)
        // What becomes of it is looked after here.
        world.ledger.gave([text])
        return text
    }

    func note(_ text: String) { simulation.note("\(root): \(text)") }
    func machine(_ number: Int) -> SimulatedMachine { world.machines[number] }
    func snag(_ number: Int, _ snag: Snag) { machine(number).provider.snags.append(snag) }
    func path(_ text: String) -> [FileName] { [root] + text.split(separator: "/").map { FileName(String($0))! } }

    // MARK: Time

    /// Up to so many milliseconds, or none.
    func pause(_ longest: Int) async {
        if simulation.chance(60) { await simulation.sleep(.milliseconds(simulation.pick(longest))) }
    }

    /// For what has to come; that it does not come within five minutes is a problem.
    func wait(_ what: String, until isThere: () -> Bool) async throws(Failure) {
        for _ in 0..<3_000 {
            if isThere() { return }
            await simulation.sleep(.milliseconds(50 + simulation.pick(100)))
        }
        throw Failure(.timedOut, "\(what) did not come")
    }

    /// What must hold all the time; `problem` is what it is if it does not.
    func watch(_ problem: String, seconds: Int, _ holds: () -> Bool) async throws(Failure) {
        for _ in 0..<seconds * 20 {
            guard holds() else { throw Failure(.stale, problem) }
            await simulation.sleep(.milliseconds(50))
        }
    }

    // MARK: Acts

    /// All of it is read, so that it is known.
    func look(_ number: Int) async throws(Failure) {
        let on = machine(number)
        _ = try await on.names(in: .root)
        for folder in ["", "d", "v"] { _ = try await on.names(in: try await on.node(at: path(folder)).node) }
        for file in ["a", "b", "d/x"] { _ = try await on.contents(of: try await on.node(at: path(file)).node) }
    }

    func save(_ number: Int, _ name: String, _ text: String, truncates: Bool = true) async throws(Failure) {
        note("machine \(number) saves \(name)")
        let on = machine(number)
        let file: SimulatedMachine.OpenFile
        if let node = try node(number, name) {
            file = try await on.open(node.id, flags: truncates ? 0o1002 : 2)
        } else {
            file = try await on.create(path(name))
        }
        defer { on.close(file) }
        if !text.isEmpty { try await on.write(Array(text.utf8), to: file, at: 0) }
    }

    func append(_ number: Int, _ name: String, _ text: String) async throws(Failure) {
        note("machine \(number) appends to \(name)")
        let on = machine(number)
        let file = try await on.open(try await on.node(at: path(name)).node, flags: 2)
        defer { on.close(file) }
        let size = try on.filesystem.attributes(of: file.node, handle: file.handle).attributes.size
        try await on.write(Array(text.utf8), to: file, at: size)
    }

    /// A folder, a link, or an empty file.
    func make(_ kind: NodeKind, _ number: Int, _ name: String) async throws(Failure) {
        note("machine \(number) makes \(name), a \(kind)")
        switch kind {
        case .folder: try await machine(number).makeFolder(path(name))
        case .link: try await machine(number).makeLink(path(name), to: "there")
        default: machine(number).close(try await machine(number).create(path(name)))
        }
    }

    func move(_ number: Int, _ name: String, to other: String) async throws(Failure) {
        note("machine \(number) moves \(name) to \(other)")
        try await machine(number).rename(path(name), to: path(other))
    }

    func remove(_ number: Int, _ name: String) async throws(Failure) {
        if try node(number, name)?.kind == .folder { return try await removeTree(number, name) }
        note("machine \(number) removes \(name)")
        try await machine(number).unlink(path(name)) { _ in }
    }

    func removeTree(_ number: Int, _ name: String) async throws(Failure) {
        note("machine \(number) removes the tree \(name)")
        let on = machine(number)
        for child in try await on.names(in: try await on.node(at: path(name)).node) {
            try await remove(number, "\(name)/\(child.display)")
        }
        try await on.removeFolder(path(name))
    }

    // MARK: What is seen

    func stored(_ name: String) -> Store.Item? { world.store.item(at: path(name)) }
    func storedText(_ name: String) -> String? { stored(name).map { String(decoding: $0.bytes, as: UTF8.self) } }

    /// What a machine shows there, by its index.
    func node(_ number: Int, _ name: String) throws(Failure) -> Node? {
        try machine(number).index.read { transaction throws(Failure) in
            var folder = NodeID.root
            for part in path(name) {
                guard let entry = try transaction.entry(in: folder, named: part) else { return nil }
                folder = entry.node
            }
            return try transaction.node(folder)
        }
    }

    func showsConflict(_ number: Int) -> Bool {
        ["", "d"].contains { folder in
            guard let node = try? node(number, folder) else { return false }
            let children = try? machine(number).index.read { transaction throws(Failure) in
                try transaction.children(of: node.id)
            }
            return children?.contains { $0.name.display.contains("conflict") } ?? false
        }
    }

    /// `text`: what it holds, as far as is known without asking for it.
    func shows(_ number: Int, _ name: String, _ text: String? = nil) -> Bool {
        guard let node = try? node(number, name) else { return false }
        guard let text else { return true }
        let bytes =
            node.content == .absent
            ? node.version.flatMap { world.store.contents[$0.rawValue] }
            : try? machine(number).localContents(of: node.id)
        return bytes.map { String(decoding: $0, as: UTF8.self) } == text
    }
}
