import PromiseCore
import PromiseIndex
import PromiseTestSupport
import Testing

/// Random bodies run on an index and on plain dictionaries; after each batch both must give the same answers and the index
/// must verify. Some bodies throw at the end; the index is reopened and checkpointed in between; the cache is tiny.
@Suite struct ModelTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    @Test(arguments: 0..<4) func anIndexBehavesLikeDictionaries(_ round: Int) throws {
        var run = Run(generator: SeededGenerator(for: "anIndexBehavesLikeDictionaries \(round)"))
        var index = try folder.open(cacheCountMax: 16)
        try index.write { transaction throws(Failure) in try transaction.setSetting("root.identifier", "root") }
        run.model.nodes[.root] = try index.read { transaction throws(Failure) in try transaction.node(.root) }
        for batch in 0..<25 {
            for _ in 0..<8 {
                let before = run.model
                let gaveUp = failure {
                    try index.write { transaction throws(Failure) in
                        for _ in 0..<Int.random(in: 1...6, using: &run.generator) { try run.step(transaction) }
                        if run.chance(5) { throw Failure(.interrupted, "the body gives up") }
                    }
                }
                if let gaveUp {
                    try #require(gaveUp == .interrupted)
                    run.model = before
                }
            }
            if batch % 5 == 4 {
                try index.checkpoint(keepingChanges: 40)
                try index.catchUpSearch()
            }
            if batch % 4 == 3 {
                index.close()
                index = try folder.open(cacheCountMax: 16)
            }
            let model = run.model
            try index.read { transaction throws(Failure) in
                // Nothing below throws another type; the expectations merely hide that from the compiler.
                do { try model.expectEqual(transaction, names: Run.names) } catch { throw error as! Failure }
            }
            let problems = try index.verify()
            try #require(problems == [])
        }
    }
}

/// One run: the generator and the model.
struct Run {
    static let names = [
        name("a"), name("b"), name("c"), name("A"), FileName([0xFF])!, FileName([0xFE])!, name("e\u{301}"), name("\u{E9}"),
    ]

    var generator: SeededGenerator
    var model = Model()
    private var clock: Int64 = 0
    private var itemCount = 0

    init(generator: SeededGenerator) { self.generator = generator }

    mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }

    private mutating func pick<Element>(_ choices: [Element]) -> Element? { choices.randomElement(using: &generator) }
    // Sorted, so that a seed repeats a run although dictionaries are shuffled.
    private mutating func anyNode(_ isWanted: (Node) -> Bool = { _ in true }) -> Node? {
        pick(model.nodes.values.filter(isWanted).sorted { $0.id < $1.id })
    }
    private mutating func anyEntry(_ isWanted: (Entry) -> Bool = { _ in true }) -> Entry? {
        pick(model.entries.values.filter(isWanted).sorted { $0.id < $1.id })
    }
    private mutating func anyFolder() -> NodeID { anyNode { $0.kind == .folder && $0.linkCount > 0 }!.id }

    mutating func step(_ transaction: borrowing Transaction) throws(Failure) {
        clock += 1
        switch Int.random(in: 0..<16, using: &generator) {
        case 0, 1, 2: try create(transaction)
        case 3: try link(transaction)
        case 4, 5: try rename(transaction)
        case 6: try exchange(transaction)
        case 7: try unlink(transaction)
        case 8: try forget(transaction)
        case 9: try change(transaction)
        case 10: try bind(transaction)
        case 11: try setRemote(transaction)
        case 12: try setPending(transaction)
        case 13, 14: try list(transaction)
        default: try setAttribute(transaction)
        }
    }

    private mutating func create(_ transaction: borrowing Transaction) throws(Failure) {
        let parent = anyFolder()
        let name = pick(Run.names)!
        let kind = pick([NodeKind.file, .file, .folder, .link])!
        var node = Node(id: .root, kind: kind, mode: 0o644, owner: 1, group: 2, time: time(clock))
        if kind == .link { node.target = [0xFF, UInt8(truncatingIfNeeded: clock)] }
        if model.entry(at: parent, name) != nil {
            // The node of a refused name is taken back by hand, as a caller would who goes on.
            let stored = try transaction.insert(node)
            do throws(Failure) {
                _ = try transaction.insertEntry(in: parent, named: name, node: stored.id, identifier: nil)
                Issue.record("a taken name was given twice")
            } catch {
                #expect(error.code == .exists)
            }
            try transaction.delete(stored.id)
            return
        }
        let made = try transaction.insert(node)
        model.nodes[made.id] = made
        let entry = try transaction.insertEntry(in: parent, named: name, node: made.id, identifier: nil)
        model.entries[entry.id] = entry
        try transaction.record(.created, node: made.id, parent: parent, name: name)
    }

    private mutating func link(_ transaction: borrowing Transaction) throws(Failure) {
        guard var node = anyNode({ $0.kind != .folder && $0.linkCount > 0 }) else { return }
        let parent = anyFolder()
        let name = pick(Run.names)!
        guard model.entry(at: parent, name) == nil else { return }
        let entry = try transaction.insertEntry(in: parent, named: name, node: node.id, identifier: nil, isExcluded: chance(2))
        model.entries[entry.id] = entry
        node.linkCount += 1
        try update(node, transaction)
    }

    private mutating func rename(_ transaction: borrowing Transaction) throws(Failure) {
        guard var entry = anyEntry() else { return }
        let parent = anyFolder()
        if model.nodes[entry.node]!.kind == .folder && model.isFolder(parent, inside: entry.node) { return }
        entry.parent = parent
        entry.name = pick(Run.names)!
        let holder = model.entry(at: parent, entry.name)
        do throws(Failure) {
            try transaction.update(entry)
            #expect(holder == nil || holder?.id == entry.id)
            model.entries[entry.id] = entry
            try transaction.record(.moved, node: entry.node, parent: parent, name: entry.name)
        } catch {
            #expect(error.code == .exists && holder != nil)
        }
    }

    private mutating func exchange(_ transaction: borrowing Transaction) throws(Failure) {
        let nodes = model.nodes
        let isNoFolder = { (entry: Entry) in nodes[entry.node]!.kind != .folder }
        guard let one = anyEntry(isNoFolder), let other = anyEntry(isNoFolder) else { return }
        try transaction.exchange(one.id, other.id)
        (model.entries[one.id]!.parent, model.entries[one.id]!.name) = (other.parent, other.name)
        (model.entries[other.id]!.parent, model.entries[other.id]!.name) = (one.parent, one.name)
    }

    private mutating func unlink(_ transaction: borrowing Transaction) throws(Failure) {
        guard let entry = anyEntry() else { return }
        var node = model.nodes[entry.node]!
        if node.kind == .folder && !model.children(of: node.id).isEmpty { return }
        try transaction.delete(entry.id)
        model.entries[entry.id] = nil
        model.pending[.entry(entry.id)] = nil
        node.linkCount = node.kind == .folder ? 0 : node.linkCount - 1
        try transaction.record(.deleted, node: node.id, parent: entry.parent, name: entry.name)
        if node.linkCount > 0 || chance(2) { return try update(node, transaction) }
        try remove(node.id, transaction)
    }

    private mutating func forget(_ transaction: borrowing Transaction) throws(Failure) {
        if let orphan = anyNode({ $0.linkCount == 0 }) { try remove(orphan.id, transaction) }
    }

    private mutating func remove(_ node: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        try transaction.delete(node)
        model.nodes[node] = nil
        model.attributes[node] = nil
        model.ranges[node] = nil
    }

    private mutating func update(_ node: Node, _ transaction: borrowing Transaction) throws(Failure) {
        try transaction.update(node)
        model.nodes[node.id] = node
    }

    private mutating func change(_ transaction: borrowing Transaction) throws(Failure) {
        guard var node = anyNode() else { return }
        node.mode = UInt32.random(in: 0...0o7777, using: &generator)
        node.owner = UInt32(clock)
        node.group = UInt32(clock + 1)
        node.accessTime = time(clock + 2)
        node.modificationTime = time(clock)
        node.changeTime = time(clock + 3)
        node.birthTime = time(clock + 4)
        node.device = UInt64(clock + 5)
        node.edits += 1
        if node.kind == .link { node.target = [UInt8(truncatingIfNeeded: clock)] }
        if node.kind == .folder { node.isPopulated.toggle() }
        if node.kind == .file && chance(2) {
            node.content = pick([.absent, .partial, .whole])!
            node.size = node.content == .partial ? 100 : UInt64(clock)
            node.localBytes = node.content == .absent ? 0 : UInt64(clock)
            node.lastUse = time(clock / 4)
            node.pin = pick(Pin.allCases)!
            node.isOpenForWriting = chance(3)
            node.durability = pick([.unknown, .whole, .begun])!
            node.generation = node.generation.next
            node.version = chance(2) ? nil : ContentVersion("\(clock)")
            let lower = UInt64.random(in: 0..<50, using: &generator)
            let some = ByteRangeSet([ByteRange(lower, lower + 9), ByteRange(60, 60 + lower % 40)])
            let ranges = node.content == .partial ? some : ByteRangeSet()
            try transaction.setRanges(of: node.id, to: ranges)
            model.ranges[node.id] = ranges
        }
        try update(node, transaction)
    }

    private mutating func bind(_ transaction: borrowing Transaction) throws(Failure) {
        guard var entry = anyEntry() else { return }
        if entry.identifier == nil {
            itemCount += 1
            entry.identifier = ItemIdentifier("item \(itemCount)")
        }
        let parent = pick(model.synced.keys.map(\.rawValue).sorted()) ?? "root"
        var value = SyncedItem(item: item(entry.identifier!.rawValue, in: parent, named: entry.name), edits: UInt64(clock))
        value.item.target = chance(3) ? [1] : nil
        try transaction.setSynced(value)
        model.synced[value.item.identifier] = value
        try transaction.update(entry)
        model.entries[entry.id] = entry
    }

    private mutating func list(_ transaction: borrowing Transaction) throws(Failure) {
        let folder = anyFolder()
        guard let parent = folder == .root ? ItemIdentifier("root") : model.entries(of: folder).first?.identifier else { return }
        itemCount += 1
        let isKnown = chance(4)
        let known = model.synced.keys.map(\.rawValue).sorted()
        let identifier = isKnown ? pick(known) ?? "item \(itemCount)" : "item \(itemCount)"
        let listed = item(
            identifier, in: parent.rawValue, named: pick(Run.names)!, kind: pick([.file, .folder])!, version: "\(clock)")
        var node = Node(
            id: .root, kind: listed.kind, mode: listed.metadata.mode, owner: listed.metadata.owner, group: listed.metadata.group,
            size: listed.size, time: listed.metadata.modificationTime, version: listed.version)
        node.birthTime = time(clock)
        let isFree = model.entry(at: folder, listed.name) == nil && model.synced[listed.identifier] == nil
        #expect(try transaction.insertListed(node, of: listed, in: folder) == isFree)
        guard isFree, let entry = try transaction.entry(in: folder, named: listed.name) else { return }
        try transaction.recordListed(from: entry.node, count: 1, in: folder)
        node.id = entry.node
        model.nodes[node.id] = node
        model.entries[entry.id] = entry
        model.synced[listed.identifier] = SyncedItem(item: listed, edits: 0)
    }

    private mutating func setRemote(_ transaction: borrowing Transaction) throws(Failure) {
        let known = model.synced.keys.map(\.rawValue).sorted()
        guard let identifier = pick(known), let parent = pick(known) else { return }
        let present = item(identifier, in: parent, named: pick(Run.names)!, version: "\(clock)")
        let state: RemoteState? = pick([nil, .deleted, .present(present)])!
        try transaction.setRemote(ItemIdentifier(identifier), state)
        model.remote[ItemIdentifier(identifier)] = state
    }

    private mutating func setPending(_ transaction: borrowing Transaction) throws(Failure) {
        var subjects: [Pending.Subject] = model.synced.keys.sorted { $0.rawValue < $1.rawValue }.map { .deletion($0) }
        if let entry = anyEntry() { subjects = subjects.suffix(3) + [.entry(entry.id)] }
        guard let subject = pick(subjects) else { return }
        if chance(3) {
            try transaction.deletePending(subject)
            model.pending[subject] = nil
            return
        }
        var row = Pending(subject: subject, since: time(clock), due: time(clock + 5))
        row.attempts = Int(clock % 7)
        row.error = chance(2) ? .offline : nil
        row.message = row.error == nil ? nil : "offline"
        try transaction.setPending(row)
        model.pending[subject] = row
    }

    private mutating func setAttribute(_ transaction: borrowing Transaction) throws(Failure) {
        guard let node = anyNode()?.id else { return }
        let name = [UInt8.random(in: 0xFD...0xFF, using: &generator)]
        if chance(3) {
            let wasThere = try transaction.removeAttribute(name, of: node)
            #expect(wasThere == (model.attributes[node, default: [:]].removeValue(forKey: name) != nil))
        } else {
            let value = [UInt8](repeating: 7, count: Int(clock % 300))
            try transaction.setAttribute(name, of: node, to: value)
            model.attributes[node, default: [:]][name] = value
        }
    }
}
