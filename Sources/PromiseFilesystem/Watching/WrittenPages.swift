import PromiseCore
import PromiseSync

/// What programs have written through mappings: it is in the kernel's pages for half a minute, where
/// nobody sees it.
package struct WrittenPages: Sendable {
    private let filesystem: FileSystem

    package init(of filesystem: FileSystem) { self.filesystem = filesystem }

    /// Before the kernel forgets pages it hands over what was written, and has by the time when
    /// `FileSystem.waitUntilKernelIsTold` returns; syncfs(2) waits for no answer of a FUSE daemon
    /// (Linux 6.18, AS_NO_DATA_INTEGRITY). Returns at once: false when no file is written to.
    ///
    /// Not of a file that is being fetched: while somebody waits for a page of it, the kernel would
    /// take neither this notice nor any after it.
    package func take() -> Bool {
        let hydrator = filesystem.engine.hydrator
        let nodes = filesystem.opens.writtenNodes.filter { !hydrator.isBusy($0) }
        for node in nodes { filesystem.notifier?.invalidateContent(of: node, range: nil) }
        return !nodes.isEmpty
    }
}
