import Glibc
import Logging
import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseProvider
import PromiseSystem

// Making the local tree follow what the provider says.

/// What programs must be told after a transaction is committed.
struct Notices {
    var entries: [(parent: NodeID, name: FileName)] = []
    var nodes: [(node: NodeID, content: Bool)] = []
    var removedContent: [(node: NodeID, generation: Generation)] = []
    var hydrate: [NodeID] = []
    /// Something that is pinned is not here any more, or new.
    var hasPinned = false
    var discarded: [NodeID] = []
    /// Documents that are other nodes now.
    var replaced: [NodeID: NodeID] = [:]
    /// The same as `entries` and `nodes` as far as programs see it, for those that watch.
    var tree: [TreeChange] = []
}

extension SyncEngine {
    private static let divergencesPerTurn = 256

    /// Works off the differences between the provider and what was last agreed on.
    func applyDivergences() throws(Failure) {
        guard state.hasDivergences else { return }
        var progressed = false
        var position: Int64 = 0
        // Changes that have to wait, for claims e.g., do not hold up those behind them.
        while !progressed {
            let batch = try index.read { transaction throws(Failure) in
                try transaction.divergences(after: position, limit: SyncEngine.divergencesPerTurn)
            }
            for (_, identifier, _) in batch {
                if state.running.values.contains(where: { $0.identifier == identifier }) { continue }
                if try apply(identifier) { progressed = true }
            }
            guard let last = batch.last else { break }
            position = last.sequence
        }
        state.hasDivergences = progressed
        if state.hasDivergences { mailbox.wake() }
    }

    /// Who was in the way of a change has let go. From any thread.
    package func followAgain() {
        mailbox.post { engine in
            engine.state.hasDivergences = true
            engine.takeUpWaiting()
        }
    }

    /// Pending work that waited for a claim is due now, while the claim is there.
    private func takeUpWaiting() {
        let subjects = state.waitingForClaims
        state.waitingForClaims = []
        guard !subjects.isEmpty else { return }
        do throws(Failure) {
            try index.write { transaction throws(Failure) in
                for subject in subjects {
                    guard var row = try transaction.pending(subject) else { continue }
                    row.due = clock.now()
                    try transaction.setPending(row)
                }
            }
        } catch {
            // It is due by itself in a moment.
            logger.debug("waiting work was not taken up", metadata: ["reason": "\(error.message)"])
        }
    }

    /// One item; true when its difference is gone or another one. What has become pending work is looked at again when that is
    /// done.
    private func apply(_ identifier: ItemIdentifier) throws(Failure) -> Bool {
        var notices = Notices()
        // A file that a program has open while its content is replaced: the table of open files is asked inside.
        let isOther = try index.write { transaction throws(Failure) in
            let before = try transaction.remote(identifier)
            guard try follow(identifier, depth: 0, &notices, transaction) else { return false }
            return try transaction.remote(identifier) != before
        }
        send(notices)
        return isOther
    }

    func send(_ notices: Notices) {
        for node in notices.discarded { hydrator.discard(node, because: Failure(.stale, "the provider has another version now")) }
        if !notices.replaced.isEmpty { observer.nodesReplaced(notices.replaced) }
        for (node, generation) in notices.removedContent { remover.remove(node, generation) }
        for (parent, name) in notices.entries { observer.entryChanged(in: parent, named: name) }
        for (node, content) in notices.nodes { observer.nodeChanged(node, content: content) }
        if !notices.tree.isEmpty { observer.treeChanged(notices.tree) }
        notices.hydrate.forEach(hydrator.hydrateInBackground)
        if notices.hasPinned { state.fetches.lookForPinned() }
    }

    /// Plans and carries out local steps until none is left; true unless the item must wait.
    func follow(
        _ identifier: ItemIdentifier, depth: Int, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard depth < 64 else { return false }
        for _ in 0..<16 {
            let entry = try transaction.entry(for: identifier)
            let observation = try observation(of: identifier, entry, transaction)
            if case .present(let item)? = observation.remote, let synced = observation.synced, item.kind != synced.kind {
                // An identifier that stands for another kind of thing stands for another item, which a listing shows.
                try transaction.setRemote(identifier, .deleted)
                if let parent = item.parent { rescan(parent, after: .seconds(1)) }
                continue
            }
            let step = plan(observation)
            if let entry, let change = step.change, try !observer.mayFollow(change, of: entry.node, transaction) { return false }
            switch step {
            case .nothing:
                return true
            case .settle(let item):
                try settle(item, edits: nil, transaction)
            case .forget:
                try forgetItem(identifier, transaction)
                try transaction.deletePending(.deletion(identifier))
            case .insertLocal(let item):
                return try insertLocal(item, depth: depth, &notices, transaction)
            case .removeLocal:
                guard let entry, try !isUnderWay(below: entry, transaction) else { return false }
                try removeLocal(entry, depth: depth, &notices, transaction)
            case .moveLocal(let item):
                guard let entry, try moveLocal(entry, to: item, depth: depth, &notices, transaction) else { return false }
            case .replaceContent(let item):
                guard let entry else { return false }
                try replaceContent(of: entry, with: item, &notices, transaction)
            case .updateMetadata(let item):
                guard let entry else { return false }
                try updateMetadata(of: entry, from: item, &notices, transaction)
            case .detach:
                guard let entry else { return false }
                try detach(entry, &notices, transaction)
                return true
            case .keepBoth, .create, .push:
                guard let entry else { return false }
                try remind(.entry(entry.id), transaction)
                return true
            case .deleteRemote:
                try remind(.deletion(identifier), transaction)
                return true
            }
        }
        return false
    }

    func observation(
        of identifier: ItemIdentifier?, _ entry: Entry?, _ transaction: borrowing Transaction
    ) throws(Failure) -> Observation {
        let synced = try identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
        let remote = try identifier.flatMap { identifier throws(Failure) in try transaction.remote(identifier) }
        guard let entry, let node = try lookAt(entry.node, transaction) else {
            return Observation(local: nil, synced: synced?.item, remote: remote)
        }
        let isEdited =
            switch node.kind {
            case .file: synced.map { $0.edits != node.edits } ?? true
            case .link: synced.map { $0.item.target != node.target || $0.edits != node.edits } ?? true
            // One that was made anew under the item of another, which may have been removed there before anybody heard of it.
            case .folder: synced.map { $0.edits != node.edits } ?? false
            default: false
            }
        let local = Observation.Local(
            parent: try self.identifier(of: entry.parent, transaction), name: entry.name, kind: node.kind, isEdited: isEdited,
            metadata: Metadata(node))
        return Observation(local: local, synced: synced?.item, remote: remote)
    }

    /// The node, with what a program that has it open has written to it so far: that is an edit from the first byte.
    private func lookAt(_ id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Node? {
        guard let node = try transaction.node(id), node.kind == .file, node.isOpenForWriting else {
            return try transaction.node(id)
        }
        try observer.noteOpenWrites(of: id, transaction)
        return try transaction.node(id)
    }

    /// Both sides agree on `item` now. `edits`: the node's edits that the provider has; nil: as before.
    func settle(_ item: Item, edits: UInt64?, _ transaction: borrowing Transaction) throws(Failure) {
        let before = try transaction.synced(item.identifier)?.edits ?? 0
        try transaction.setSynced(SyncedItem(item: item, edits: edits ?? before))
        try transaction.setRemote(item.identifier, nil)
    }

    /// Both sides agree on content and metadata of `item`. A place it moved to stays to be followed: settled with the rest,
    /// it would make the place here look like a move made here, and undo theirs.
    func settleContent(of item: Item, edits: UInt64, _ transaction: borrowing Transaction) throws(Failure) {
        var agreed = item
        if let before = try transaction.synced(item.identifier)?.item {
            agreed.parent = before.parent
            agreed.name = before.name
        }
        try transaction.setSynced(SyncedItem(item: agreed, edits: edits))
        if isSame(agreed, item) {
            try transaction.setRemote(item.identifier, nil)
        } else {
            try transaction.setRemote(item.identifier, .present(item))
            state.hasDivergences = true
            mailbox.wake()
        }
    }

    /// Makes sure that pending work is planned again soon.
    func remind(_ subject: Pending.Subject, _ transaction: borrowing Transaction) throws(Failure) {
        if try transaction.pending(subject) == nil {
            try transaction.setPending(Pending(subject: subject, since: clock.now(), due: clock.now()))
        }
    }

    // MARK: Steps

    @discardableResult
    func insertPlaceholder(
        _ item: Item, in folder: NodeID, named name: FileName? = nil, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry {
        let name = name ?? item.name
        var node = Node(placeholderFor: item)
        if let parent = try transaction.node(folder), parent.pin != .automatic { node.pin = parent.pin }
        node = try transaction.insert(node)
        let entry = try transaction.insertEntry(in: folder, named: name, node: node.id, identifier: item.identifier)
        if item.kind == .folder { try transaction.countSubfolders(of: folder, 1) }
        try transaction.setSynced(SyncedItem(item: item, edits: 0))
        if try transaction.remote(item.identifier) != nil { try transaction.setRemote(item.identifier, nil) }
        try transaction.record(.created, node: node.id, parent: folder, name: name)
        return entry
    }

    private func insertLocal(
        _ item: Item, depth: Int, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = item.parent else { return false }
        if try transaction.remote(parent) != nil { _ = try follow(parent, depth: depth + 1, &notices, transaction) }
        guard let folder = try node(for: parent, transaction), try transaction.node(folder)?.isPopulated == true else {
            // Its folder is not known here: the item will be met when the folder is listed.
            try forgetItem(item.identifier, transaction)
            try transaction.deletePending(.deletion(item.identifier))
            return true
        }
        if let taken = try transaction.entry(in: folder, named: item.name) {
            if try takeOver(taken, by: item, &notices, transaction) {
                return try follow(item.identifier, depth: depth + 1, &notices, transaction)
            }
            guard try clear(taken, depth: depth, &notices, transaction) else { return false }
        }
        try transaction.deletePending(.deletion(item.identifier))
        let entry = try insertPlaceholder(item, in: folder, transaction)
        notices.noteAppeared(item.name, in: folder)
        if try transaction.node(entry.node)?.pin == .pinned { notices.hasPinned = true }
        return true
    }

    /// A name here meets a new item of the same name there. True when they are one and the same document from now on.
    private func takeOver(
        _ entry: Entry, by item: Item, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard var node = try transaction.node(entry.node), node.kind == item.kind, !entry.isExcluded else { return false }
        var entry = entry
        if let old = entry.identifier {
            // Another program replaced the file by renaming a new one over it: the same document, edited.
            guard node.kind == .file, case .deleted? = try transaction.remote(old) else { return false }
            let synced = try transaction.synced(old)
            try forgetItem(old, transaction)
            entry.identifier = item.identifier
            try transaction.update(entry)
            if let synced {
                var base = item
                base.version = synced.item.version
                base.metadata = synced.item.metadata
                try transaction.setSynced(SyncedItem(item: base, edits: synced.edits))
                try transaction.setRemote(item.identifier, .present(item))
            }
            return true
        }
        // Made on both sides. What the common base was is unknown, so that differing contents are a conflict.
        try forgetItem(item.identifier, transaction)
        entry.identifier = item.identifier
        try transaction.update(entry)
        var base = item
        if node.kind == .file {
            base.version = ContentVersion("")
            node.edits += 1
            try transaction.update(node)
        } else if node.kind == .link, node.target != item.target {
            base.version = ContentVersion("")
            base.target = nil
        }
        try transaction.setSynced(SyncedItem(item: base, edits: 0))
        try transaction.setRemote(item.identifier, .present(item))
        if node.kind == .folder { rescan(item.identifier) }
        return true
    }

    /// Makes a name free for an item of the provider; false when that must wait.
    private func clear(
        _ taken: Entry, depth: Int, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if let identifier = taken.identifier, try transaction.remote(identifier) != nil {
            // It is on its way elsewhere at the provider, too.
            _ = try follow(identifier, depth: depth + 1, &notices, transaction)
            if try transaction.entry(in: taken.parent, named: taken.name) == nil { return true }
        }
        guard let entry = try transaction.entry(in: taken.parent, named: taken.name) else { return true }
        try moveAside(entry, conflictsWith: nil, &notices, transaction)
        return true
    }

    /// Gives an entry a conflict name in its folder.
    func moveAside(
        _ entry: Entry, conflictsWith: ItemIdentifier?, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var moved = entry
        moved.name = try freeConflictName(for: entry.name, in: entry.parent, transaction)
        moved.conflictsWith = conflictsWith
        try transaction.update(moved)
        try transaction.record(.moved, node: entry.node, parent: entry.parent, name: moved.name)
        if !moved.isExcluded { try remind(.entry(moved.id), transaction) }
        notices.noteMoved(entry, to: moved)
    }

    /// In a folder here: the first that nothing has.
    package func freeConflictName(
        for name: FileName, in parent: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> FileName {
        let date = dateText(clock.now())
        var attempt = 1
        while true {
            let candidate = conflictName(of: name, host: configuration.hostName, date: date, attempt: attempt)
            if try transaction.entry(in: parent, named: candidate) == nil { return candidate }
            attempt += 1
        }
    }

    func moveLocal(
        _ entry: Entry, to item: Item, depth: Int, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = item.parent else { return false }
        if try transaction.remote(parent) != nil { _ = try follow(parent, depth: depth + 1, &notices, transaction) }
        guard let folder = try node(for: parent, transaction), try transaction.node(folder)?.isPopulated == true else {
            if try isUnderWay(below: entry, transaction) { return false }
            // Moved to where nothing is known yet. Content that exists only here must not go with it.
            if try removeLocal(entry, depth: depth, &notices, transaction) {
                try forgetItem(item.identifier, transaction)
            }
            return true
        }
        if try transaction.isInside(folder, entry.node) {
            // Two folders, each moved below the other, on two sides: the provider's tree has no circle, so ours gives way.
            guard try undoMove(above: folder, below: entry.node, depth: depth, &notices, transaction) else { return false }
        }
        if let taken = try transaction.entry(in: folder, named: item.name), taken.id != entry.id {
            guard try clear(taken, depth: depth, &notices, transaction) else { return false }
        }
        var moved = entry
        moved.parent = folder
        moved.name = item.name
        // Making room may have moved it already.
        let before = try transaction.entry(entry.id) ?? entry
        try transaction.update(moved)
        if item.kind == .folder, folder != before.parent {
            try transaction.countSubfolders(of: before.parent, -1)
            try transaction.countSubfolders(of: folder, 1)
        }
        try transaction.recordMove(from: entry, to: moved)
        notices.noteMoved(before, to: moved)
        if var synced = try transaction.synced(item.identifier) {
            synced.item.parent = item.parent
            synced.item.name = item.name
            try transaction.setSynced(synced)
        }
        return true
    }

    /// Of the folders from `folder` up to `node`, one that was moved here goes back where the provider has it.
    private func undoMove(
        above folder: NodeID, below node: NodeID, depth: Int, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard depth < 64 else { return false }
        var current = folder
        while current != node, let entry = try transaction.entries(of: current).first {
            if let identifier = entry.identifier, try transaction.remote(identifier) == nil,
                let agreed = try transaction.synced(identifier)?.item,
                try agreed.parent != self.identifier(of: entry.parent, transaction),
                let parent = try agreed.parent.flatMap({ parent throws(Failure) in try self.node(for: parent, transaction) }),
                try !transaction.isInside(parent, node)
            {
                logger.notice("a folder moved here went back: others moved the one that it was moved to")
                return try moveLocal(entry, to: agreed, depth: depth + 1, &notices, transaction)
            }
            current = entry.parent
        }
        return false
    }

    private func updateMetadata(
        of entry: Entry, from item: Item, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard var node = try transaction.node(entry.node) else { return }
        let editedAt = node.modificationTime
        let isEdited = try transaction.synced(item.identifier).map { $0.edits != node.edits } ?? false
        node.take(item.metadata)
        // The time of an edit made here is the edit's.
        if isEdited { node.modificationTime = editedAt }
        node.changeTime = clock.now()
        try transaction.update(node)
        try settle(item, edits: nil, transaction)
        try transaction.record(.modified, node: node.id, parent: entry.parent, name: entry.name)
        notices.noteModified(node.id, content: false)
    }

    /// Deleted there, edited here: it goes on as a new item.
    private func detach(
        _ entry: Entry, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = entry.identifier else { return }
        var entry = entry
        entry.identifier = nil
        try transaction.update(entry)
        try forgetItem(identifier, transaction)
        try remind(.entry(entry.id), transaction)
        try keepPieces(of: entry, &notices, transaction)
    }
}

extension Step {
    /// What it does to an item that is shown here, if others have to know before.
    fileprivate var change: RemoteChange? {
        switch self {
        case .replaceContent: .replaced
        case .moveLocal: .moved
        case .removeLocal: .removed
        default: nil
        }
    }
}

extension Metadata {
    package init(_ node: Node) {
        self.init(mode: node.mode, owner: node.owner, group: node.group, modificationTime: node.modificationTime)
    }
}

extension Node {
    /// A node for an item whose content is not local. The id is assigned by the index.
    init(placeholderFor item: Item) {
        self.init(
            id: .root, kind: item.kind, mode: item.metadata.mode, owner: item.metadata.owner, group: item.metadata.group,
            size: item.size, time: item.metadata.modificationTime, content: .absent, version: item.version)
        target = item.target
        lastUse = item.metadata.modificationTime
    }

    mutating func take(_ metadata: Metadata) {
        mode = metadata.mode
        owner = metadata.owner
        group = metadata.group
        modificationTime = metadata.modificationTime
    }
}

/// `2026-11-21`, in local time, for the names of conflict versions.
private func dateText(_ time: Timestamp) -> String {
    var seconds = time_t(time.seconds)
    var parts = tm()
    localtime_r(&seconds, &parts)
    func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
}
