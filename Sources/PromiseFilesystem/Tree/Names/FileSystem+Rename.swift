package import PromiseCore
import PromiseIndex
import PromiseSync
package import PromiseSystem
import Synchronization

// rename(2) in all its forms.

extension FileSystem {
    private struct Renaming {
        var source: Entry
        var sourceNode: Node
        var target: Entry?
        var targetNode: Node?
        var newParent: Node
        var newName: FileName
    }

    package func rename(
        _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags, caller: Caller,
        reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if let answer = echoed(moving: TreePlace(name, in: parent), to: TreePlace(newName, in: newParent), by: caller) {
            reply(answer)
            return nil
        }
        let access = UnawareAccess.renaming(name, in: parent, to: newName, newParent: newParent)
        let missing = Chosen(parent)
        return inTurn(for: access, caller, listing: { missing.folder }, reply: reply) {
            [self] () throws(Failure) in
            if isCarriedOut(caller) { return () }
            var removed: Removed?
            var before: [Entry] = []
            let isDone: Bool = try carryOut(caller) { transaction throws(Failure) in
                for folder in [try folder(parent, transaction), try folder(newParent, transaction)] where !folder.isPopulated {
                    missing.folder = folder.id
                    return false
                }
                let renaming = try find(
                    name, in: parent, newName, in: newParent, flags, caller, transaction)
                before = [renaming.source] + (renaming.target.map { [$0] } ?? [])
                if let targetNode = renaming.targetNode, targetNode.kind == .folder, !targetNode.isPopulated,
                    !flags.contains(.exchange)
                {
                    missing.folder = targetNode.id
                    return false
                }
                if flags.contains(.exchange) {
                    try exchange(renaming, transaction)
                } else {
                    removed = try replace(renaming, transaction)
                    if flags.contains(.whiteout) { try leaveWhiteout(name, in: parent, caller, transaction) }
                }
                try touchFolders(of: renaming, from: parent, isExchange: flags.contains(.exchange), transaction)
                return true
            }
            guard isDone else { return nil }
            follow(before)
            for source in before { opens.noteRenamed(source.node) }
            if let source = before.first { succession.follow(to: source.node) }
            finish(removed)
            engine.notePending()
            return ()
        }
    }

    /// The two folders of a rename, of which one may have a subfolder more and one less.
    private func touchFolders(
        of renaming: Renaming, from parent: NodeID, isExchange: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let newParent = renaming.newParent.id
        let goes = renaming.sourceNode.kind == .folder ? 1 : 0
        let replaced = renaming.targetNode?.kind == .folder ? 1 : 0
        let change = isExchange ? replaced - goes : -goes
        if newParent == parent {
            return try touch(try folder(parent, transaction), subfolders: change + goes - replaced, transaction)
        }
        try touch(try folder(parent, transaction), subfolders: change, transaction)
        try touch(try folder(newParent, transaction), subfolders: goes - replaced, transaction)
    }

    /// RENAME_WHITEOUT: a character device 0:0 takes the old name, which tells an overlay that something was there.
    private func leaveWhiteout(
        _ name: FileName, in parent: NodeID, _ caller: Caller, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let whiteout = Node(
            id: .root, kind: .characterDevice, mode: 0, owner: caller.user, group: caller.group, time: clock.now())
        _ = try enter(whiteout, name, in: try folder(parent, transaction), caller, transaction)
    }

    private func find(
        _ name: FileName, in parent: NodeID, _ newName: FileName, in newParent: NodeID, _ flags: RenameFlags,
        _ caller: Caller, _ transaction: borrowing Transaction
    ) throws(Failure) -> Renaming {
        guard let source = try transaction.entry(in: parent, named: name), let sourceNode = try transaction.node(source.node)
        else {
            throw Failure(.notFound, "there is no such name")
        }
        if let only = caller.onlyNames, try !only.areAll(of: sourceNode.id, transaction) {
            throw Failure(.crossDevice, "the file has another name elsewhere")
        }
        let target = try transaction.entry(in: newParent, named: newName)
        if flags.contains(.noReplace) && target != nil { throw Failure(.exists, "the new name is taken") }
        if flags.contains(.exchange) && target == nil { throw Failure(.notFound, "there is nothing to exchange with") }
        let newFolder = try folder(newParent, transaction)
        if newFolder.linkCount == 0 { throw Failure(.notFound, "the folder was removed") }
        let targetNode = try target.flatMap { target throws(Failure) in try transaction.node(target.node) }
        // The kernel sees to that, by what it knew before others moved a folder.
        if sourceNode.kind == .folder, newParent != parent, try transaction.isInside(newParent, sourceNode.id) {
            throw Failure(.invalid, "a folder cannot be moved into itself")
        }
        if flags.contains(.exchange), let targetNode, targetNode.kind == .folder, newParent != parent,
            try transaction.isInside(parent, targetNode.id)
        {
            throw Failure(.invalid, "a folder cannot be moved into itself")
        }
        return Renaming(
            source: source, sourceNode: sourceNode, target: target, targetNode: targetNode, newParent: newFolder, newName: newName
        )
    }

    private func replace(_ renaming: Renaming, _ transaction: borrowing Transaction) throws(Failure) -> Removed? {
        guard let target = renaming.target, let targetNode = renaming.targetNode else {
            let place = TreePlace(renaming.newName, in: renaming.newParent.id)
            try exclusion.handOn(left: place, to: renaming.source, renaming.sourceNode.kind, at: clock.now(), transaction)
            try move(renaming, transaction)
            return nil
        }
        // Two names of one file: rename(2) does nothing.
        if target.node == renaming.source.node { return nil }
        if targetNode.kind == .folder {
            if renaming.sourceNode.kind != .folder { throw Failure(.isFolder, "the new name is a folder") }
            if try transaction.hasChildren(targetNode.id) { throw Failure(.notEmpty, "the folder at the new name is not empty") }
        } else if renaming.sourceNode.kind == .folder {
            throw Failure(.notFolder, "the new name is not a folder")
        }
        if try isSafeSave(renaming, target, targetNode, transaction) {
            return try trash.replace(target, targetNode, transaction) { () throws(Failure) in
                try putUnder(target, targetNode, renaming.source, renaming.sourceNode, transaction)
            }
        }
        try exclusion.handOn(from: target, to: renaming.source, renaming.sourceNode.kind, transaction)
        let removed = try trash.replace(target, targetNode, transaction) { () throws(Failure) in
            try remove(target, targetNode, transaction)
        }
        try move(renaming, transaction)
        return removed
    }

    // MARK: Saving by a temporary file

    /// A file that was made here just now is renamed over another: the usual way to save a document.
    private func isSafeSave(
        _ renaming: Renaming, _ target: Entry, _ targetNode: Node,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let kind = renaming.sourceNode.kind
        guard kind == targetNode.kind, kind != .folder, kind.isStorable else { return false }
        guard !target.isExcluded, succession.isJustMade(renaming.source, renaming.sourceNode)
        else { return false }
        return try !isAwaitedByOtherName(target, targetNode, transaction)
    }

    /// Another name, of which the provider knows nothing yet, has its content from this name's item
    /// only.
    func isAwaitedByOtherName(
        _ entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard node.kind == .file, node.content != .whole else { return false }
        return try nextName(of: node, besides: entry, transaction) != nil
    }

    var succession: Succession { Succession(tree: self) }

    /// The document keeps its entry, with its identifier; what is under it is the new file's node.
    func putUnder(
        _ target: Entry, _ targetNode: Node, _ source: Entry, _ sourceNode: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Removed? {
        try transaction.delete(source.id)
        // The new file, or the second version of a conflict, may be an item of its own by now, which goes.
        if let identifier = source.identifier, try transaction.synced(identifier) != nil {
            lastCopies.note(sourceNode)
            try markPending(.deletion(identifier), transaction)
        }
        var document = target
        document.node = sourceNode.id
        try transaction.update(document)
        // Told of the node that its presenters follow to.
        try transaction.recordVersion(.versionLost, source)
        var node = sourceNode
        node.changeTime = clock.now()
        node.pin = targetNode.pin
        let agreed = try target.identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
        // Counted as an edit of the document, whatever the new node counted before.
        node.succeed(max(targetNode.edits, agreed?.edits ?? 0))
        try transaction.update(node)
        try markPending(namesOf: node.id, transaction)
        try transaction.record(.deleted, node: node.id, parent: source.parent, name: source.name)
        try transaction.recordReplacement(of: targetNode.id, by: document)
        return try release(targetNode, transaction)
    }

    // MARK: Moving

    private func move(_ renaming: Renaming, _ transaction: borrowing Transaction) throws(Failure) {
        var entry = renaming.source
        var node = renaming.sourceNode
        entry.parent = renaming.newParent.id
        entry.name = renaming.newName
        // Whoever renames the second version of a conflict has dealt with it.
        try transaction.recordVersion(.versionResolved, renaming.source)
        entry.conflictsWith = nil
        node.changeTime = clock.now()
        try exclusion.noteLeft(renaming.source, node.kind, as: renaming.newName, at: node.changeTime, transaction)
        try classify(&entry, &node, was: renaming.source, transaction)
        leftNames.note(moved: renaming.source, node.kind, at: node.changeTime)
        try transaction.update(entry)
        try transaction.update(node)
        let isGivingWay = !entry.isExcluded && entry.identifier != nil && exclusion.rules.excludes(entry.name)
        try markPending(entry, isGivingWay: isGivingWay, transaction)
        if entry.id == renaming.source.id { try transaction.recordMove(from: renaming.source, to: entry) }
    }

    /// Under its new name an entry may stay on this machine, or may be a document that had this name before.
    private func classify(
        _ entry: inout Entry, _ node: inout Node, was source: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let isExcluded = try exclusion.covers(entry.name, node.kind, in: entry.parent, of: node.id, transaction)
        if isExcluded, !entry.isExcluded {
            if try exclusion.isThere(entry, node, transaction) {
                // The provider has the only other copy. Should the document be made anew, that is the item, and this stays here.
                guard try exclusion.covers(entry.parent, transaction) else {
                    leftNames.note(source)
                    return
                }
                // Folders with items, and content that is not here, cannot. Programs copy what cannot be renamed.
                guard node.kind != .folder && (node.kind != .file || node.content == .whole) else {
                    throw Failure(.crossDevice, "'\(entry.name)' is at the provider, and its new folder stays on this machine")
                }
            }
            if let identifier = entry.identifier {
                lastCopies.note(node)
                try transaction.rememberPin(node.pin, of: identifier)
                try markPending(.deletion(identifier), transaction)
            }
            try transaction.deletePending(.entry(entry.id))
            if source.identifier == nil, node.kind == .file { leftNames.note(source) }
            entry.identifier = nil
            entry.isExcluded = true
        } else if !isExcluded, entry.isExcluded {
            entry.isExcluded = false
        }
        if node.kind == .folder && entry.isExcluded != source.isExcluded {
            try transaction.update(entry)
            try exclusion.spread(entry.isExcluded, below: node.id, transaction) { child throws(Failure) in
                try markPending(child, transaction)
            }
        }
        guard !entry.isExcluded, succession.isJustMade(entry, node),
            let adopted = try succession.adoptable(
                entry.name, node.kind, in: entry.parent, besides: entry, transaction)
        else { return }
        if let identifier = entry.identifier {
            lastCopies.note(node)
            try markPending(.deletion(identifier), transaction)
        }
        node.succeed(adopted.edits)
        if let pin = adopted.pin { node.pin = pin }
        if adopted.document != nil {
            try transaction.delete(entry.id)
            try transaction.record(.deleted, node: node.id, parent: source.parent, name: source.name)
            let place = TreePlace(entry.name, in: entry.parent)
            entry = try succession.name(node.id, at: place, as: adopted, isExcluded: false, transaction)
        } else if let item = adopted.item {
            entry.identifier = item.identifier
        }
        if let item = adopted.item { try markAdopted(item, transaction) }
    }

    // MARK: Exchanging

    private func exchange(_ renaming: Renaming, _ transaction: borrowing Transaction) throws(Failure) {
        guard let second = renaming.target, let secondNode = renaming.targetNode else { return }
        if renaming.source.node == second.node { return }
        let nodes = [renaming.sourceNode, secondNode]
        if PackageExchange.isOne(renaming.source, second, nodes) {
            return try PackageExchange(tree: self).exchange(renaming.source, second, transaction)
        }
        if nodes.allSatisfy({ $0.kind == .file && $0.content == .whole }) {
            try exchangeContents(renaming.source, renaming.sourceNode, second, secondNode, transaction)
        } else {
            try exchangePlaces(renaming.source, second, transaction)
        }
    }

    /// Folders, links and what is not local: each item goes where the other was, as by three renames.
    private func exchangePlaces(_ first: Entry, _ second: Entry, _ transaction: borrowing Transaction) throws(Failure) {
        try transaction.exchange(first.id, second.id)
        for before in [first, second] {
            guard var entry = try transaction.entry(before.id), var node = try transaction.node(entry.node) else { continue }
            try transaction.recordVersion(.versionResolved, before)
            entry.conflictsWith = nil
            node.changeTime = clock.now()
            try classify(&entry, &node, was: before, transaction)
            try transaction.update(entry)
            try transaction.update(node)
            try markPending(entry, transaction)
            if entry.id == before.id { try transaction.recordMove(from: before, to: entry) }
        }
    }

    /// Two files exchange their contents under their names: each name stays the document it was, as when a document is saved
    /// by an exchange with its new version.
    private func exchangeContents(
        _ first: Entry, _ firstNode: Node, _ second: Entry, _ secondNode: Node, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var (first, firstNode, second, secondNode) = (first, firstNode, second, secondNode)
        (first.node, second.node) = (second.node, first.node)
        try transaction.update(first)
        try transaction.update(second)
        let now = clock.now()
        let edits = max(firstNode.edits, secondNode.edits) + 1
        (firstNode.edits, secondNode.edits) = (edits, edits)
        (firstNode.changeTime, secondNode.changeTime) = (now, now)
        (firstNode.pin, secondNode.pin) = (secondNode.pin, firstNode.pin)
        for node in [firstNode, secondNode] {
            lastCopies.note(node)
            try transaction.update(node)
        }
        for (entry, old) in [(first, second.node), (second, first.node)] {
            // Their other names have another content now, too.
            try markPending(namesOf: entry.node, transaction)
            try transaction.recordReplacement(of: old, by: entry)
        }
    }
}
