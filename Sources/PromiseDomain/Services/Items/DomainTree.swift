import Glibc
import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem

/// What services need of a domain's tree: to find items, to make some, to note what they are called.
struct DomainTree: Sendable {
    let index: Index
    let engine: SyncEngine
    let filesystem: FileSystem
    let provider: any Provider
    let domainName: String
    /// The root of the domain: another one is another account.
    let account: ItemIdentifier
    /// How long the provider may be silent about a folder.
    let patience: Duration
    /// The domain is mounted read-only, and so for services, too.
    let isReadOnly: Bool

    /// So that the kernel shows what was made when the call returns.
    private static let kernelPatience = Duration.seconds(1)

    // MARK: Finding

    /// Names from the root of the mount to a node. Lists folders at the provider when they are not known yet.
    func node(at path: [FileName]) async throws(Failure) -> NodeID { try await item(at: path).node }

    func item(at path: [FileName]) async throws(Failure) -> NamedItem {
        var current = NamedItem(node: .root)
        for name in path {
            try await list(current.node)
            let parent = current.node
            let entry = try index.read { transaction throws(Failure) in try transaction.entry(in: parent, named: name) }
            guard let entry else { throw Failure(.notFound, "there is no '\(name.display)' in the mount") }
            current = NamedItem(node: entry.node, entry: entry.id)
        }
        return current
    }

    /// Makes a folder's children known; does nothing for what is no folder.
    func list(_ folder: NodeID) async throws(Failure) {
        while true {
            let node = try index.read { transaction throws(Failure) in try transaction.node(folder) }
            guard let node, node.kind == .folder, !node.isPopulated else { return }
            // Part by part: what is large may take long, and a part may not.
            let attempt = Attempt { [engine] in
                await withCheckedContinuation { continuation in
                    engine.listMore(of: folder) { continuation.resume(returning: $0) }
                }
            }
            guard let result = await attempt.outcome(within: patience) else {
                throw Failure(.timedOut, "the provider did not answer in time")
            }
            try result.get()
        }
    }

    /// As `ItemFinder`; what is not known here is looked for at the provider: where it was, and then
    /// everywhere. What cannot be looked for to the end is not taken for deleted.
    func find(
        _ key: ItemKey, bound: EntryID?, _ search: ItemSearch
    ) async throws(Failure) -> ItemFinder.Finding {
        var finding = try look(for: key, bound: bound)
        if finding.fate == .unknown, engine.connectionFailure == nil {
            _ = try? await node(at: finding.path)
            finding = try look(for: key, bound: bound)
        }
        guard finding.fate != .found, let missing = finding.missing else { return finding }
        switch await search.find(missing) {
        case .found: return try look(for: key, bound: bound)
        case .nowhere: return finding
        case .unfinished:
            finding.fate = .unknown
            return finding
        }
    }

    /// The same, also by what other machines say of their moves.
    func find(
        _ key: ItemKey, bound: EntryID?, _ search: ItemSearch, _ notes: MoveNotes
    ) async throws(Failure) -> ItemFinder.Finding {
        let finding = try await find(key, bound: bound, search)
        guard finding.fate.mayHaveMoved else { return finding }
        await notes.ask()
        return try await find(key, bound: bound, search)
    }

    /// `believesNotes`: false where what is found is a right: whoever writes to the storage writes
    /// its notes.
    func look(
        for key: ItemKey, bound: EntryID?, believesNotes: Bool = true
    ) throws(Failure) -> ItemFinder.Finding {
        try index.read { transaction throws(Failure) in
            var finder = ItemFinder(key, bound: bound)
            finder.believesNotes = believesNotes
            return try finder.find(transaction)
        }
    }

    /// This machine's name, where identifiers are those of the machine.
    func machine() throws(Failure) -> String { try DomainTree.machine(index) }

    static func machine(_ index: Index) throws(Failure) -> String {
        let name = ItemFinder.machineSetting
        let known = try index.read { transaction throws(Failure) in try transaction.setting(name) }
        if let known { return known }
        let fresh = String(UInt64.random(in: 0 ... .max), radix: 36)
        try index.write { transaction throws(Failure) in
            try transaction.setSetting(name, fresh)
        }
        return fresh
    }

    /// What to note of an item. Its identifier is nil before the provider has it, and is kept in the
    /// index from when it has.
    func noted(_ item: NamedItem) throws(Failure) -> (key: ItemKey, entry: Entry, node: Node) {
        let known = try key(of: item)
        // At a store that knows places only others' moves are found by their notes.
        if known.key.identifier != nil || known.entry.isExcluded
            || provider.capabilities.contains(.placeIdentifiers)
        {
            return known
        }
        try index.write { transaction throws(Failure) in try NotedName.noteUnsent(known.entry.id, transaction) }
        // It may have got one a moment before that.
        return try key(of: item)
    }

    /// What is known of an item. Its identifier is nil before the provider has it.
    func key(of item: NamedItem) throws(Failure) -> (key: ItemKey, entry: Entry, node: Node) {
        let known: (Node, Entry, [FileName])? = try index.read { transaction throws(Failure) in
            let names = try transaction.entries(of: item.node)
            guard let entry = names.first(where: { $0.id == item.entry }) ?? names.first,
                let folder = try transaction.path(of: entry.parent),
                let row = try transaction.node(item.node)
            else { return nil }
            return (row, entry, folder + [entry.name])
        }
        guard let (row, entry, path) = known else { throw Failure(.gone, "the item is gone") }
        var machine: String?
        if let identifier = entry.identifier, !identifier.isNumber,
            provider.capabilities.contains(.placeIdentifiers)
        {
            machine = try self.machine()
        }
        let key = ItemKey(
            identifier: entry.identifier, machine: machine, kind: row.kind, path: path)
        return (key, entry, row)
    }

    /// The same once the provider has the item, or as it is when that takes longer.
    func sentKey(
        of item: NamedItem, within limit: Duration
    ) async throws(Failure) -> (key: ItemKey, entry: Entry, node: Node) {
        let end = ContinuousClock.now + limit
        while true {
            let known = try key(of: item)
            let isOver = ContinuousClock.now >= end || Task.isCancelled
            if known.key.identifier != nil || known.entry.isExcluded || isOver { return known }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    // MARK: Making

    func demandWritable() throws(Failure) {
        if isReadOnly { throw Failure(.readOnly, "the domain is mounted read-only: nothing in it can be changed") }
    }

    func makeFolder(_ name: FileName, in parent: NodeID) async throws(Failure) -> NodeID {
        let caller = try owner()
        return try await made(name, in: parent) { [filesystem] reply in
            _ = filesystem.makeFolder(
                name, in: parent, permissions: 0o755, caller: caller, reply: reply)
        }
    }

    func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8]
    ) async throws(Failure) -> NodeID {
        let caller = try owner()
        return try await made(name, in: parent) { [filesystem] reply in
            _ = filesystem.makeLink(
                name, in: parent, target: target, caller: caller, reply: reply)
        }
    }

    func unlink(_ name: FileName, in parent: NodeID) async throws(Failure) {
        try demandWritable()
        let caller = try owner()
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Void, Failure>, Never>) in
            _ = filesystem.unlink(name, in: parent, caller: caller) {
                continuation.resume(returning: $0)
            }
        }
        try result.get()
        await show(name, in: parent)
    }

    func removeFolder(_ name: FileName, in parent: NodeID) async throws(Failure) {
        try demandWritable()
        let caller = try owner()
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Void, Failure>, Never>) in
            _ = filesystem.removeFolder(name, in: parent, caller: caller) {
                continuation.resume(returning: $0)
            }
        }
        try result.get()
        await show(name, in: parent)
    }

    private func made(
        _ name: FileName, in parent: NodeID,
        _ body: @escaping @Sendable (@escaping FileSystem.Reply<EntryReply>) -> Void
    ) async throws(Failure) -> NodeID {
        try demandWritable()
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<EntryReply, Failure>, Never>) in
            body { continuation.resume(returning: $0) }
        }
        let node = try result.get().attributes.node
        // The kernel has not asked for it, so that it will not forget it either.
        filesystem.forget(node, lookups: 1)
        await show(name, in: parent)
        return node
    }

    private func show(_ name: FileName, in parent: NodeID) async {
        filesystem.entryChanged(in: parent, named: name)
        await filesystem.waitUntilKernelIsTold(within: DomainTree.kernelPatience)
    }

    /// What is made belongs to whom the domain belongs to.
    private func owner() throws(Failure) -> Caller {
        let root = try index.read { transaction throws(Failure) in try transaction.node(.root) }
        return Caller(
            user: root?.owner ?? geteuid(), group: root?.group ?? getegid(), process: 0)
    }
}
