package import PromiseCore
import PromiseFilesystem
import PromiseIndex
package import PromiseQuery

/// Promised values of an item: what is known of it without its content.
package struct PromisedValues: Sendable {
    package var node: NodeID
    /// Names from the root of the mount.
    package var path: [FileName]
    /// Without what is not known.
    package var values: [AttributeKey: QueryValue]

    package init(node: NodeID, path: [FileName], values: [AttributeKey: QueryValue]) {
        self.node = node
        self.path = path
        self.values = values
    }
}

/// Questions about many items, and what has changed. The index alone answers: no content, no
/// provider.
package struct Queries: Sendable {
    let index: Index
    let hub: QueryHub
    let filesystem: FileSystem

    /// Opens a question; whoever runs it gets the answer. Throws `.busy` when too many run.
    package func open(_ request: QueryRequest) throws(Failure) -> LiveQuery {
        let kind = try index.read { transaction throws(Failure) in
            try transaction.node(request.scope)?.kind
        }
        if let kind, kind != .folder, request.scope != .root {
            throw Failure(
                .notFolder, "nothing is below what is no folder: give a folder to look in")
        }
        return try hub.open(request)
    }

    /// The changes after a sequence number, oldest first.
    package func changes(since sequence: Int64, of journal: String?, limit: Int) throws(Failure)
        -> ChangePage
    {
        try ChangeJournal(index).page(since: sequence, of: journal, limit: limit)
    }

    /// Returns when live queries and the kernel have been told of everything that has changed so
    /// far; at once when there is nothing to tell, and after half a second in any case.
    package func settle() async {
        await hub.settle()
        await filesystem.waitUntilKernelIsTold(within: Stitching.limit)
    }

    /// Waits until there may be changes after a number, or until the time is over.
    package func waitForChange(after sequence: Int64, timeout: Duration) async {
        await hub.waitForChange(after: sequence, timeout: timeout)
    }
}
