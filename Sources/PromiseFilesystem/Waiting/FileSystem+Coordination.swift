import Glibc
package import PromiseCoordination
package import PromiseCore
import PromiseIndex
import PromiseSystem

// Programs that know nothing of coordination are bound by it too: an operation that conflicts with a claim is parked until
// its turn comes. Without claims and presenters it costs one look at a number.

/// What a request on the mount is about to do.
enum UnawareAccess {
    case writing(NodeID)
    /// By name, without opening it.
    case truncating(NodeID)
    /// Mode, owner, times.
    case changing(NodeID)
    case making(FileName, in: NodeID)
    case removing(FileName, in: NodeID)
    case renaming(FileName, in: NodeID, to: FileName, newParent: NodeID)
}

extension FileSystem {
    enum Turn {
        case goOn
        /// Answered, or it will be.
        case taken(ParkedRequest?)
    }

    /// Parks a request that has to wait for others; `again` carries it out when its turn has come, or when it has waited for
    /// as long as requests may.
    func turn<Value: Sendable>(
        for access: UnawareAccess, _ caller: Caller, reply: @escaping Reply<Value>,
        again: @escaping @Sendable () -> ParkedRequest?
    ) -> Turn {
        guard let intents = awaited(by: access, caller) else { return .goOn }
        if coordinator.mode == .refuse {
            reply(.failure(Failure(.busy, "somebody has a claim on it")))
            return .taken(nil)
        }
        let awaited = coordinator.awaited(intents) { isDescendant(caller.process, of: $0) }
        let request = parking.enter(process: caller.process) { reply(.failure($0)) }
        let goOn: @Sendable (ClaimID?, Coordinator.ClaimOutcome) -> Void = { [self] claim, _ in
            workers.submit { [self] in
                if parking.claimToGoOn(request) {
                    coordinator.letPass(caller.request)
                    let successor = again()
                    _ = coordinator.isPassing(caller.request)
                    parking.follow(request, successor)
                }
                if let claim { coordinator.release(claim) }
            }
        }
        do throws(Failure) {
            let claim = try coordinator.claim(
                awaited, purpose: nil, timeout: patience(for: access), handler: goOn)
            try? settlePlaces(of: awaited)
            parking.onAbandon(request) { [coordinator] in coordinator.release(claim) }
        } catch {
            goOn(nil, .granted)
        }
        return .taken(request)
    }

    /// What a request is about, where somebody's claim is in its way; nil: nobody's is, or it need
    /// not wait any more.
    func awaited(by access: UnawareAccess, _ caller: Caller) -> [Intent]? {
        guard coordinator.isActive, coordinator.mode != .advisory, caller.process != getpid()
        else { return nil }
        if coordinator.isPassing(caller.request) { return nil }
        guard let intents = try? UnawareIntents.of(access, index), !intents.isEmpty,
            coordinator.isInTheWay(of: intents, isInside: { isDescendant(caller.process, of: $0) })
        else { return nil }
        return intents
    }

    /// Then it goes on as if there were no claims. Opening waits for a little less than requests may be parked. While a name is
    /// being made, removed or renamed the kernel holds the folder's lock, and while attributes change the file's
    /// (filesystems/directory-locking of its documentation): nobody can look up or make a name there, whoever
    /// has the claim included. So that is not for long, unless it is set so.
    private func patience(for access: UnawareAccess) -> Duration {
        let most = configuration.requestDeadline * 4 / 5
        return switch access {
        case .writing: most
        case .truncating, .changing, .making, .removing, .renaming: min(configuration.nameDeadline, most)
        }
    }

    /// What was entered with the folders that an item was in may have missed that it moved meanwhile: it is told until the
    /// index says what was told last. Later moves are told by whoever makes them. Of an item with several names it is in
    /// the folders of one of them.
    package func settlePlaces(of intents: [Intent]) throws(Failure) {
        for var intent in intents {
            let others = intents.filter { $0.node == intent.node }.map(\.folders)
            while let known = try foldersOfNames(intent.node, index), !known.contains(intent.folders),
                let folders = known.first(where: { !others.contains($0) }) ?? known.first
            {
                coordinator.moved(MovedName(intent.node, in: folders, names: known))
                intent.folders = folders
            }
        }
    }

    /// Claims and presenters follow what became of names before its caller goes on. `before`: the names, as they were.
    func follow(_ before: [Entry]) {
        guard coordinator.isActive, !before.isEmpty else { return }
        var replaced: [ReplacedNode] = []
        for old in before {
            let entry = try? index.read { transaction throws(Failure) in try transaction.entry(old.id) }
            guard let entry else { continue }
            let place = OldPlace(parent: old.parent, name: old.name)
            let hasMoved = place != OldPlace(parent: entry.parent, name: entry.name)
            let name = try? index.read { transaction throws(Failure) in try MovedName(entry, transaction) }
            if old.node != entry.node {
                replaced.append(
                    ReplacedNode(
                        old.node, by: entry.node, name: old.id, parent: old.parent,
                        newFolders: hasMoved ? name?.folders : nil))
            } else if let name {
                coordinator.moved(name, from: place, at: .vacancy(entry.name, in: entry.parent))
            }
        }
        if !replaced.isEmpty { coordinator.replaced(replaced, by: index.newestChange) }
    }

    /// Whether somebody has the item, or something below it, open for writing.
    package func isWritten(_ node: NodeID) -> Bool {
        opens.writtenNodes.contains { written in
            if written == node { return true }
            let folders = try? index.read { transaction throws(Failure) in
                try transaction.foldersAboveNames(of: written)
            }
            return folders?.contains(node) ?? false
        }
    }
}

/// Of each of its names; nil of what is no more.
private func foldersOfNames(_ node: NodeID, _ index: Index) throws(Failure) -> [[NodeID]]? {
    if node == .root { return [[]] }
    return try index.read { transaction throws(Failure) in
        let result = try transaction.foldersOfNames(node)
        return result.isEmpty ? nil : result
    }
}

extension MovedName {
    /// Nil when a folder above is gone.
    init?(_ entry: Entry, _ transaction: borrowing Transaction) throws(Failure) {
        guard let folders = try transaction.foldersAbove(entry) else { return nil }
        self.init(entry.node, in: folders, names: try transaction.foldersOfNames(entry.node), entry: entry.id)
    }
}

/// Whether a thread belongs to a process or to one that it started, directly or not: the kernel names threads, and a claim
/// names a process.
private func isDescendant(_ thread: Int32, of ancestor: Int32) -> Bool {
    var current = thread
    for _ in 0..<64 where current > 1 {
        guard let family = ProcessFamily.of(thread: current) else { return false }
        if family.process == ancestor { return true }
        current = family.parent
    }
    return false
}

/// What an access of a program that knows nothing is about.
private enum UnawareIntents {
    static func of(_ access: UnawareAccess, _ index: Index) throws(Failure) -> [Intent] {
        try index.read { transaction throws(Failure) in
            switch access {
            case .writing(let node), .truncating(let node): return try ofAllNames(of: node, [], transaction)
            case .changing(let node): return try ofAllNames(of: node, .contentIndependentMetadataOnly, transaction)
            case .making(let name, let folder): return try vacancy(name, in: folder, transaction)
            case .removing(let name, let folder):
                guard let entry = try transaction.entry(in: folder, named: name) else { return [] }
                return try intent(entry, .forDeleting, transaction)
            case .renaming(let name, let folder, let newName, let newFolder):
                guard let entry = try transaction.entry(in: folder, named: name) else { return [] }
                let source = try intent(entry, .forMoving, transaction)
                guard let target = try transaction.entry(in: newFolder, named: newName) else {
                    return source + (try vacancy(newName, in: newFolder, transaction))
                }
                return source + (try intent(target, .forReplacing, transaction))
            }
        }
    }

    /// Of a file that has several names whoever has a claim on any folder of them is in the way. Nothing for what has no name
    /// any more: nobody can have a claim on it.
    private static func ofAllNames(
        of node: NodeID, _ options: WritingOptions, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Intent] {
        if node == .root { return [Intent(node: .root, folders: [], access: .write(options))] }
        var result: [Intent] = []
        for entry in try transaction.entries(of: node) { result += try intent(entry, options, transaction) }
        return result
    }

    private static func intent(
        _ entry: Entry, _ options: WritingOptions, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Intent] {
        guard let folders = try transaction.foldersAbove(entry) else { return [] }
        let place = NodeID.vacancy(entry.name, in: entry.parent)
        let names = options.isDisjoint(with: [.forDeleting, .forReplacing]) ? [] : try transaction.entries(of: entry.node)
        let others = Set(names.map(\.id).filter { $0 != entry.id })
        return [
            Intent(
                node: entry.node, folders: folders, access: .write(options), place: place, stayingNames: others)
        ]
    }

    /// What is made in a folder is not there yet: it concerns whoever has a claim on the folder, and not on what else is in it.
    private static func vacancy(
        _ name: FileName, in folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Intent] {
        guard let above = try transaction.foldersAbove(folder) else { return [] }
        return [Intent(node: .vacancy(name, in: folder), folders: [folder] + above, access: .write([]))]
    }
}
