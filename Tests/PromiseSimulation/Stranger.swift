import PromiseCore
import PromiseProvider

/// What somebody does at the store itself, past all machines: another client, or programs in the folder that is the
/// store. He has seen all that is there in the moment in which he acts, and each act is one step.
struct Stranger {
    let simulation: Simulation
    let world: Schedule
    private var store: Store { world.store }

    private static let folders = ["d0", "d1", "d2"].map { FileName($0)! }
    private static let files = ["f0", "f1", "f2", "f3"].map { FileName($0)! }

    private func folder() -> [FileName] {
        var path: [FileName] = []
        while path.count < 2, simulation.chance(world.plan.taste.depth) { path.append(anyFolder()) }
        return path
    }

    private func file() -> [FileName] { folder() + [Stranger.files[simulation.pick(world.plan.taste.fileCount)]] }
    private func subfolder() -> [FileName] { folder() + [anyFolder()] }
    private func anyFolder() -> FileName { Stranger.folders[simulation.pick(world.plan.taste.folderCount)] }

    func act() {
        switch simulation.pick(16) {
        case 0...2: write(file(), keepsRest: false)
        case 3: write(file(), keepsRest: true)
        case 4: replace(file(), by: .file)
        case 5: replace(subfolder(), by: .folder)
        case 6: replace(simulation.chance(50) ? file() : subfolder(), by: simulation.chance(50) ? .file : .link)
        case 7: remove(file())
        case 8: remove(subfolder())
        case 9, 10: move(file(), to: simulation.chance(70) ? file() : subfolder())
        case 11, 12: move(subfolder(), to: subfolder())
        case 13: exchange(file(), file())
        case 14: touch(file())
        default: setMode(simulation.chance(50) ? file() : subfolder())
        }
    }

    private func note(_ what: String, _ path: [FileName]) {
        simulation.note("a stranger \(what) \(path.map(\.display).joined(separator: "/"))")
    }

    private func parent(of path: [FileName]) -> Int? {
        guard let item = store.item(at: path.dropLast()), item.kind == .folder else { return nil }
        return item.number
    }

    private func metadata(_ kind: NodeKind) -> Metadata {
        var metadata = Store.metadata(kind == .folder ? 0o755 : 0o644)
        metadata.modificationTime = simulation.timeOfWrite()
        return metadata
    }

    private func token() -> [UInt8] {
        let token = world.ledger.token()
        world.ledger.wrote(token, by: "stranger")
        simulation.note("a stranger writes \(token)")
        return Array(token.utf8)
    }

    // MARK: Acts

    private func write(_ path: [FileName], keepsRest: Bool) {
        guard var item = store.item(at: path) else { return make(.file, at: path) }
        guard item.kind == .file else { return }
        note(keepsRest ? "appends to" : "writes", path)
        if !keepsRest { world.ledger.gave(Ledger.tokens(in: item.bytes)) }
        item.bytes = (keepsRest ? item.bytes : []) + token()
        item.version = store.version(of: item.bytes)
        item.metadata.modificationTime = simulation.timeOfWrite()
        store.put(item)
    }

    private func make(_ kind: NodeKind, at path: [FileName]) {
        guard let parent = parent(of: path), store.item(at: path) == nil else { return }
        note("makes, a \(kind),", path)
        let bytes = kind == .file ? token() : []
        let target = kind == .link ? Array("target\(simulation.pick(3))".utf8) : nil
        let number = store.nextNumber()
        store.put(
            Store.Item(
                number: number, parent: parent, name: path.last!, kind: kind, bytes: bytes, target: target,
                version: kind == .folder ? "folder" : store.version(of: bytes + (target ?? [])),
                metadata: metadata(kind)))
    }

    /// What is new takes the name in one step, as by `rename(2)`.
    private func replace(_ path: [FileName], by kind: NodeKind) {
        guard parent(of: path) != nil else { return }
        removeNow(path)
        make(kind, at: path)
    }

    private func remove(_ path: [FileName]) {
        guard store.item(at: path) != nil else { return }
        note("removes", path)
        removeNow(path)
    }

    private func removeNow(_ path: [FileName]) {
        if let item = store.item(at: path) { remove(item) }
    }

    private func remove(_ item: Store.Item) {
        for child in store.children(of: item.number) { remove(child) }
        world.ledger.gave(Ledger.tokens(in: item.bytes))
        store.remove(item.number)
    }

    private func move(_ path: [FileName], to other: [FileName]) {
        guard path != other, var item = store.item(at: path), let parent = parent(of: other),
            !store.isInside(parent, item.number)
        else { return }
        if let held = store.item(at: other) {
            // As rename(2) does, and not what it is in.
            guard (held.kind == .folder) == (item.kind == .folder), !store.isInside(item.number, held.number),
                store.children(of: held.number).isEmpty
            else { return }
            remove(held)
        }
        note("moves to \(other.map(\.display).joined(separator: "/"))", path)
        (item.parent, item.name) = (parent, other.last!)
        store.put(item)
    }

    private func exchange(_ path: [FileName], _ other: [FileName]) {
        guard path != other, var item = store.item(at: path), var second = store.item(at: other),
            item.kind != .folder, second.kind != .folder
        else { return }
        note("exchanges with \(other.map(\.display).joined(separator: "/"))", path)
        (item.parent, item.name, second.parent, second.name) = (second.parent, second.name, item.parent, item.name)
        store.put(item)
        store.put(second)
    }

    /// The same bytes are another version where that is a time.
    private func touch(_ path: [FileName]) {
        guard var item = store.item(at: path), item.kind == .file else { return }
        note("touches", path)
        item.version = store.version(of: item.bytes)
        item.metadata.modificationTime = simulation.timeOfWrite()
        store.put(item)
    }

    private func setMode(_ path: [FileName]) {
        guard var item = store.item(at: path), item.kind != .link else { return }
        note("sets the mode of", path)
        item.metadata.mode = (item.kind == .folder ? [0o700, 0o755] : [0o600, 0o644])[simulation.pick(2)]
        store.put(item)
    }
}
