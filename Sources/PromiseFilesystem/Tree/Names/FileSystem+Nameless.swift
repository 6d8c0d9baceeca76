import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// O_TMPFILE of open(2): a file that has no name until link(2) gives it one, and that is gone with its last close if none does.

extension FileSystem {
    package func createNameless(
        in parent: NodeID, permissions: UInt32, opening: OpenRequest, caller: Caller, reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        do throws(Failure) {
            // One that was made and not opened when it came first is left to the recovery of nameless files.
            if let made = try reopen(caller) {
                reply(.success(made))
                return nil
            }
            let (node, file) = try makeNameless(in: parent, permissions, isOpen: opening.isWritable, caller)
            reply(.success(opened(node, file, opening, caller)))
        } catch {
            reply(.failure(error))
        }
        return nil
    }

    private func makeNameless(
        in parent: NodeID, _ permissions: UInt32, isOpen: Bool, _ caller: Caller
    ) throws(Failure) -> (Node, SharedDescriptor) {
        try index.write { transaction throws(Failure) in
            let folder = try folder(parent, transaction)
            if folder.linkCount == 0 { throw Failure(.notFound, "the folder was removed") }
            var node = Node(
                id: .root, kind: .file, mode: permissions, owner: caller.user, group: caller.group, time: clock.now(),
                content: .whole)
            node.isOpenForWriting = isOpen
            // Recovery deletes it as it does any file that was unlinked while it was open.
            node.linkCount = 0
            let inherited = try inherit(from: folder, into: &node, caller, transaction)
            node = try transaction.insert(node)
            for (attribute, value) in inherited { try transaction.setAttribute(attribute, of: node.id, to: value) }
            return (node, try makeContent(of: &node, transaction))
        }
    }
}
