import Glibc
import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider

// Names that come and move as they did at the provider.

extension Tree {
    @discardableResult
    static func insertPlaceholder(
        _ item: Item, in folder: NodeID, named name: FileName? = nil, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry {
        let name = name ?? item.name
        var node = Node(placeholderFor: item, seenAt: turn.now.time)
        if let parent = try transaction.node(folder), parent.pin != .automatic {
            node.pin = parent.pin
        }
        node = try transaction.insert(node)
        let entry = try transaction.insertEntry(
            in: folder, named: name, node: node.id, identifier: item.identifier)
        if item.kind == .folder { try transaction.countSubfolders(of: folder, 1) }
        try transaction.setSynced(SyncedItem(item: item, edits: 0))
        if try transaction.remote(item.identifier) != nil {
            try transaction.setRemote(item.identifier, nil)
        }
        try transaction.record(.created, node: node.id, parent: folder, name: name)
        try VersionsOfOthers.arrived(entry, node.kind, &turn, transaction)
        return entry
    }

    static func insertLocal(
        _ item: Item, depth: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = item.parent else { return false }
        if try transaction.remote(parent) != nil {
            _ = try follow(parent, depth: depth + 1, &turn, transaction)
        }
        guard let folder = try turn.node(for: parent, transaction),
            try transaction.node(folder)?.isPopulated == true
        else {
            // Its folder is not known here: the item will be met when the folder is listed.
            try turn.forgetItem(item.identifier, transaction)
            try transaction.deletePending(.deletion(item.identifier))
            return true
        }
        if let taken = try transaction.entry(in: folder, named: item.name) {
            if try takeOver(taken, by: item, &turn, transaction) {
                return try follow(item.identifier, depth: depth + 1, &turn, transaction)
            }
            guard try clear(taken, for: item, depth: depth, &turn, transaction) else { return false }
            // What had the name may have gone into this very item, which came first then.
            if try transaction.entry(for: item.identifier) != nil { return true }
            if try transaction.entry(in: folder, named: item.name) != nil { return false }
        }
        try transaction.deletePending(.deletion(item.identifier))
        let entry = try insertPlaceholder(item, in: folder, &turn, transaction)
        MovedFolders.noteAppeared(item, &turn)
        turn.notices.noteAppeared(item.name, in: folder)
        try FolderTimes.lookAfterChange(in: folder, &turn, transaction)
        if try transaction.node(entry.node)?.pin == .pinned { turn.lookForPinned() }
        return true
    }

    /// A name here meets a new item of the same name there. True when they are one and the same
    /// document from now on.
    private static func takeOver(
        _ entry: Entry, by item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let node = try transaction.node(entry.node), node.kind == item.kind, !entry.isExcluded
        else { return false }
        var entry = entry
        if let old = entry.identifier {
            // Another program replaced the file by renaming a new one over it: the same document,
            // edited.
            guard node.kind == .file, case .deleted? = try transaction.remote(old) else {
                return false
            }
            let synced = try transaction.synced(old)
            try turn.forgetItem(old, transaction)
            entry.identifier = item.identifier
            try transaction.update(entry)
            try transaction.moveVersions(from: old, to: item.identifier)
            if let synced {
                var base = item
                base.version = synced.item.version
                base.metadata = synced.item.metadata
                try transaction.setSynced(SyncedItem(item: base, edits: synced.edits))
                try transaction.setRemote(item.identifier, .present(item))
            }
            return true
        }
        // Made on both sides. What the common base was is unknown, so that differing contents are a
        // conflict.
        try turn.forgetItem(item.identifier, transaction)
        entry.identifier = item.identifier
        try transaction.update(entry)
        var base = item
        if node.kind == .file {
            base.version = .unagreed
            try UnagreedContent.count(node, of: entry, transaction)
        } else if node.kind == .link, node.target != item.target {
            base.version = .unagreed
            base.target = nil
        }
        try transaction.setSynced(SyncedItem(item: base, edits: 0))
        try transaction.setRemote(item.identifier, .present(item))
        if node.kind == .folder { turn.listAgain(item.identifier) }
        return true
    }

    /// Makes a name free for an item of the provider; false when that must wait.
    private static func clear(
        _ taken: Entry, for item: Item, depth: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if let identifier = taken.identifier, try transaction.remote(identifier) != nil {
            // It is on its way elsewhere at the provider, too.
            _ = try follow(identifier, depth: depth + 1, &turn, transaction)
            if try transaction.entry(in: taken.parent, named: taken.name) == nil { return true }
        }
        guard let entry = try transaction.entry(in: taken.parent, named: taken.name),
            entry.identifier != item.identifier
        else { return true }
        if try isLeaving(entry, for: item, &turn, transaction) { return false }
        // Two documents of one name: other machines see by the new one that there is a conflict.
        let isVersion = try transaction.node(entry.node)?.kind == item.kind && item.kind != .folder
        try moveAside(entry, conflictsWith: isVersion ? item.identifier : nil, &turn, transaction)
        return true
    }

    /// Whether the item that has a name here has left it at the provider, which shows `item` there, or
    /// another machine has moved it out of the way for a moment. Then nobody has to make way here.
    private static func isLeaving(
        _ entry: Entry, for item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let identifier = entry.identifier else { return false }
        switch try transaction.remote(identifier) {
        case .present(let present)?: return AsideName.isOne(present.name)
        case .deleted?: return false
        case nil: break
        }
        guard let agreed = try transaction.synced(identifier)?.item, agreed.name == entry.name,
            try agreed.parent == turn.identifier(of: entry.parent, transaction)
        else { return false }
        let mayBeElsewhere = try turn.destination(of: identifier, transaction) != nil
        if !turn.facts.knowsByPlace || mayBeElsewhere {
            turn.askNow(for: identifier)
        } else if agreed.kind == item.kind, try transaction.entry(for: item.identifier) == nil {
            // A place holds one item: this is the same one, under a name of its own.
            var same = item
            same.identifier = identifier
            try turn.forgetItem(item.identifier, transaction)
            try turn.observe(same, synced: try transaction.synced(identifier), transaction)
        } else {
            try transaction.setRemote(identifier, .deleted)
            turn.noteDivergence()
        }
        return true
    }

    /// Gives an entry a conflict name in its folder.
    static func moveAside(
        _ entry: Entry, conflictsWith: ItemIdentifier?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        var moved = entry
        moved.name = try freeConflictName(for: entry.name, in: entry.parent, &turn, transaction)
        moved.conflictsWith = conflictsWith
        try transaction.update(moved)
        try transaction.recordMove(from: entry, to: moved)
        if !moved.isExcluded { try turn.remind(.entry(moved.id), transaction) }
        turn.notices.noteMoved(entry, to: moved)
    }

    /// In a folder here: the first that nothing has.
    static func freeConflictName(
        for name: FileName, in parent: NodeID, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> FileName {
        let host = turn.facts.configuration.hostName
        return try freeConflictName(for: name, in: parent, host, turn.now.time, transaction)
    }

    /// For changes made elsewhere.
    static func freeConflictName(
        for name: FileName, in parent: NodeID, _ host: String, _ now: Timestamp,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> FileName {
        let date = dateText(now)
        var attempt = 1
        while true {
            let candidate = conflictName(of: name, host: host, date: date, attempt: attempt)
            if try transaction.entry(in: parent, named: candidate) == nil { return candidate }
            attempt += 1
        }
    }

    static func moveLocal(
        _ entry: Entry, to item: Item, depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = item.parent else { return false }
        if try transaction.remote(parent) != nil {
            _ = try follow(parent, depth: depth + 1, &turn, transaction)
        }
        guard let folder = try turn.node(for: parent, transaction),
            try transaction.node(folder)?.isPopulated == true
        else {
            if try isUnderWay(below: entry, &turn, transaction) { return false }
            // Moved to where nothing is known yet. Content that exists only here must not go with
            // it.
            if try removeLocal(entry, depth: depth, &turn, transaction) {
                try turn.forgetItem(item.identifier, transaction)
            }
            return true
        }
        if try transaction.isInside(folder, entry.node) {
            // Two folders, each moved below the other, on two sides: the provider's tree has no
            // circle, so ours gives way.
            guard try undoMove(above: folder, below: entry.node, depth: depth, &turn, transaction)
            else { return false }
        }
        if let taken = try transaction.entry(in: folder, named: item.name), taken.id != entry.id {
            guard try clear(taken, for: item, depth: depth, &turn, transaction) else { return false }
            if let other = try transaction.entry(in: folder, named: item.name), other.id != entry.id {
                return false
            }
        }
        var moved = entry
        moved.parent = folder
        moved.name = item.name
        // Making room may have moved it already.
        let before = try transaction.entry(entry.id) ?? entry
        try VersionsOfOthers.moves(before, to: &moved, transaction)
        try transaction.update(moved)
        if item.kind == .folder, folder != before.parent {
            try transaction.countSubfolders(of: before.parent, -1)
            try transaction.countSubfolders(of: folder, 1)
        }
        try transaction.recordMove(from: entry, to: moved)
        turn.notices.noteMoved(before, to: moved)
        try FolderTimes.lookAfterChange(in: folder, &turn, transaction)
        if before.parent != folder {
            try FolderTimes.lookAfterChange(in: before.parent, &turn, transaction)
        }
        if var synced = try transaction.synced(item.identifier) {
            synced.item.parent = item.parent
            synced.item.name = item.name
            try transaction.setSynced(synced)
        }
        return true
    }

    /// Of the folders from `folder` up to `node`, one that was moved here goes back where the
    /// provider has it.
    private static func undoMove(
        above folder: NodeID, below node: NodeID, depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard depth < 64 else { return false }
        var current = folder
        while current != node, let entry = try transaction.entries(of: current).first {
            if let identifier = entry.identifier, try transaction.remote(identifier) == nil,
                let agreed = try transaction.synced(identifier)?.item,
                try agreed.parent != turn.identifier(of: entry.parent, transaction),
                let parent = try agreed.parent.flatMap({ parent throws(Failure) in
                    try turn.node(for: parent, transaction)
                }),
                try !transaction.isInside(parent, node)
            {
                turn.log(
                    .notice,
                    "a folder moved here went back: others moved the one that it was moved to")
                return try moveLocal(entry, to: agreed, depth: depth + 1, &turn, transaction)
            }
            current = entry.parent
        }
        return false
    }

    /// Deleted there, edited here: it goes on as a new item.
    static func detach(
        _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = entry.identifier else { return }
        var entry = entry
        entry.identifier = nil
        try transaction.update(entry)
        try turn.forgetItem(identifier, transaction)
        try turn.remind(.entry(entry.id), transaction)
        try keepPieces(of: entry, &turn, transaction)
    }
}

extension Node {
    /// A node for an item whose content is not local. The id is assigned by the index.
    /// A folder whose time nobody tells is as old as we know it.
    init(placeholderFor item: Item, seenAt now: Timestamp) {
        let told = item.metadata.modificationTime
        let time = item.kind == .folder && told == .zero ? now : told
        self.init(
            id: .root, kind: item.kind, mode: item.metadata.mode, owner: item.metadata.owner,
            group: item.metadata.group,
            size: item.size, time: time, content: .absent,
            version: item.version)
        target = item.target
        lastUse = time
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
