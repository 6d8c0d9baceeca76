import PromiseCoordination
package import PromiseCore
package import PromiseIndex
package import PromiseSync
package import PromiseSystem
import Synchronization

// What the engine's changes mean to programs on the mount.

extension FileSystem: LocalTreeObserver {
    package func giveTime(toOpen node: Node) throws(Failure) {
        guard let file = opens.writeFile(of: node.id) else { return }
        let since = opens.writingSince(node.id)
        let found = try WrittenFile(file, since: since, label: "filesystem.give")
        // The new time would say that nothing was written since the open.
        if found.isRecent { opens.doubtWriting(node.id) }
        try stamp(file, node.modificationTime)
    }

    package func isOpen(_ node: NodeID) -> Bool { opens.isOpen(node) }

    package func entryChanged(in parent: NodeID, named name: FileName) {
        guard let notifier else { return }
        notifier.invalidateEntry(name, in: parent)
        // The folder's own times and the listing that the kernel keeps.
        notifier.invalidateContent(of: parent, range: nil)
    }

    /// It is looked up again when it is used next.
    package func nameMayBeStale(_ name: FileName, in parent: NodeID) { notifier?.expireEntry(name, in: parent) }

    package func nodeChanged(_ node: NodeID, content: Bool) {
        if content {
            notifier?.invalidateContent(of: node, range: nil)
        } else {
            notifier?.invalidateAttributes(of: node)
        }
    }

    package func treeChanged(_ changes: [TreeChange]) {
        for case .gone(_, var folder) in changes where folder.kind == .folder {
            // Others have removed it: it answers who works in it, as one that is removed here, and has nothing in it.
            (folder.linkCount, folder.isPopulated) = (0, true)
            references.withLock { $0.keep(folder) }
        }
        echoes.add(changes)
    }

    package func noteOpenWrites() {
        for node in opens.writtenNodes {
            noteWrites(of: node, isClosing: !opens.mayBeWritten(node))
            settleIfUnused(node)
        }
    }

    package func mayFollow(
        _ change: RemoteChange, of node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard coordinator.isActive else { return true }
        // One for each name: when one is moved meanwhile, the others are where they were.
        let intents = try transaction.foldersOfNames(node).map { folders in
            Intent(node: node, folders: folders, access: .write(change.options))
        }
        return intents.isEmpty || remoteClaims.isGranted(node, intents) { [engine] in engine.followAgain() }
    }

    package var keepsLastCopies: Bool { lastCopies.areWaiting }

    package func remoteChangesFollowed() { remoteClaims.releaseGranted() }

    package func isUsed(_ node: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard coordinator.isActive, let folders = try transaction.foldersAboveNames(of: node) else { return false }
        return coordinator.isUsed(Intent(node: node, folders: folders, access: .write(.forEvicting)))
    }

    package func watchedNodes() -> WatchedNodes {
        var found = echoes.watchedNodes()
        found.nodes.formUnion(coordinator.presentedNodes)
        // Which folders a query is about is not asked.
        if stitching.isWanted { found.isEverything = true }
        return found
    }

    package func namesReplaced(_ before: [Entry]) { follow(before) }

    /// For the daemon's own work, whose caller looks at the mount next: names and contents that the kernel still remembers would
    /// show what was. Not longer than `limit`, as the kernel takes no notice of a folder in which a call waits.
    package func waitUntilKernelIsTold(within limit: Duration) async {
        guard let notifier else { return }
        let noted = notifier.progress.noted
        let start = clock.uptime()
        while notifier.progress.told < noted, clock.uptime() - start < limit, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(1))
        }
    }

    package func takeRecentUses() -> [NodeID: Timestamp] { opens.takeRecentUses() }
}

extension RemoteChange {
    fileprivate var options: WritingOptions {
        switch self {
        case .replaced: []
        case .moved: .forMoving
        case .removed: .forDeleting
        }
    }
}
