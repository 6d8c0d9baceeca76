import PromiseCore
import PromiseSync

extension FileSystem {
    /// What programs have written through mappings is in the kernel's pages for half a minute, where
    /// nobody sees it. Before it forgets pages the kernel hands that over, and has by the time when
    /// `waitUntilKernelIsTold` returns; syncfs(2) waits for no answer of a FUSE daemon (Linux 6.18,
    /// AS_NO_DATA_INTEGRITY). Returns at once: false when no file is written to.
    ///
    /// Not of a file that is being fetched: while somebody waits for a page of it, the kernel would
    /// take neither this notice nor any after it.
    package func takeWrittenPages() -> Bool {
        let nodes = opens.writtenNodes.filter { !engine.hydrator.isBusy($0) }
        for node in nodes { notifier?.invalidateContent(of: node, range: nil) }
        return !nodes.isEmpty
    }
}
