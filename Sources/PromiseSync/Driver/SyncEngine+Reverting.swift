package import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

// Giving up changes that were made here.

extension SyncEngine {
    package var givenUp: GivenUpFiles { content.givenUp }

    /// Keeps the content of a change that is about to be given up.
    package func keepGivenUp(_ node: Node, of path: [FileName]) throws(Failure) {
        try givenUp.keep(node.id, node.generation, of: path, at: clock.now())
    }

    /// Gives up one change; what the provider has comes back. From any thread.
    package func revert(_ subject: Pending.Subject) async -> Result<Void, Failure> {
        await withCheckedContinuation { continuation in
            let waiter = wait { continuation.resume(returning: $0) }
            mailbox.post(.revertWanted(subject, waiter))
        }
    }
}
