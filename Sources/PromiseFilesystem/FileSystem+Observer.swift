package import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

// What the engine's changes mean to programs on the mount.

extension FileSystem: LocalTreeObserver {
    package func isOpen(_ node: NodeID) -> Bool { opens.isOpen(node) }

    package func entryChanged(in parent: NodeID, named name: FileName) {
        guard let notifier else { return }
        notifier.invalidateEntry(name, in: parent)
        // The folder's own times and the listing that the kernel keeps.
        notifier.invalidateContent(of: parent, range: nil)
    }

    package func nodeChanged(_ node: NodeID, content: Bool) {
        if content {
            notifier?.invalidateContent(of: node, range: nil)
        } else {
            notifier?.invalidateAttributes(of: node)
        }
    }

    package func noteOpenWrites() {
        for node in opens.writtenNodes { noteWrites(of: node, isClosing: !opens.mayBeWritten(node)) }
    }

    package func takeRecentUses() -> [NodeID: Timestamp] { opens.takeRecentUses() }
}
