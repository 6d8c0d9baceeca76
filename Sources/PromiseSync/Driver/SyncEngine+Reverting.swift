package import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

// Giving up changes that were made here.

extension SyncEngine {
    package var givenUp: GivenUpFiles { content.givenUp }

    /// Keeps the content of a change that is about to be given up. Returns the name of what is kept.
    package func keepGivenUp(_ node: Node, of path: [FileName]) throws(Failure) -> String {
        try givenUp.keep(node.id, node.generation, of: path, at: clock.now())
    }

    /// Gives up one change; what the provider has comes back. `kept`: whose content was kept before. A
    /// file that was written to since, or whose content was not kept at all, is left as it is: `.busy`.
    /// From any thread.
    package func revert(_ subject: Pending.Subject, kept: Node?) async -> Result<Void, Failure> {
        await withCheckedContinuation { continuation in
            let waiter = wait { continuation.resume(returning: $0) }
            mailbox.post(.revertWanted(subject, kept: kept, waiter))
        }
    }
}

extension Node {
    /// Whether it is a file with content that the provider was not told of. `agreed`: what both sides
    /// last agreed on.
    package func isEdited(since agreed: SyncedItem?) -> Bool {
        kind == .file && edits != agreed?.edits && (agreed != nil || size > 0)
    }
}
