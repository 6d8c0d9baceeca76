import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// Going on with a mount whose daemon has died: what the kernel has open stays open, and a request that comes again is
// answered from what became of it the first time.

extension FileSystem {
    /// Changes of the tree that the kernel may not have been told of before the last daemon died.
    private static let untoldCountMax: Int64 = 20_000

    // MARK: Requests

    /// Changes the index for a request, so that a successor knows whether it was done. `isFreeing`: see `Index.writeFreeing`.
    func carryOut<Value>(
        _ caller: Caller, isFreeing: Bool = false, _ body: (borrowing Transaction) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        guard let record = opens.record(for: caller) else { return try isFreeing ? index.writeFreeing(body) : index.write(body) }
        func noted(_ transaction: borrowing Transaction) throws(Failure) -> Value {
            let value = try body(transaction)
            if transaction.hasChanged { record.carry(caller.request, body: transaction.body) }
            return value
        }
        do throws(Failure) {
            return try isFreeing ? index.writeFreeing(noted) : index.write(noted)
        } catch {
            record.withdraw(caller.request)
            throw error
        }
    }

    /// The daemon before has done it; only the answer is missing.
    func isCarriedOut(_ caller: Caller) -> Bool { caller.isResent && carriedOut.contains(caller.request) }

    /// The answer to a request that made this name. Throws `.notFound` when it is gone again.
    func entry(_ name: FileName, in parent: NodeID) throws(Failure) -> EntryReply {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: parent, named: name), let node = try transaction.node(entry.node) else {
                throw Failure(.notFound, "it was removed again")
            }
            return remember(node)
        }
    }

    /// As `create`, of a file that the same request has made before; nil when it has not.
    func recreate(
        _ name: FileName, in parent: NodeID, _ opening: OpenRequest, _ caller: Caller
    ) throws(Failure) -> CreateReply? {
        if let made = try reopen(caller) { return made }
        guard isCarriedOut(caller) else { return nil }
        let node = try index.read { transaction throws(Failure) in
            try transaction.entry(in: parent, named: name).flatMap { entry throws(Failure) in try transaction.node(entry.node) }
        }
        guard let node else { throw Failure(.notFound, "it was removed again") }
        opens.announce(node.id)
        do throws(Failure) {
            let opened = try grant(node.id, opening, caller)
            return CreateReply(entry: remember(try known(node.id) ?? node), opened: opened)
        } catch {
            withdraw(node.id)
            throw error
        }
    }

    /// The answer to a request that made and opened a file before; nil when it has not.
    func reopen(_ caller: Caller) throws(Failure) -> CreateReply? {
        guard caller.isResent, let known = opens.takeInherited(caller.request), let node = try self.known(known.node) else {
            return nil
        }
        let opened = OpenReply(handle: known.handle, backing: known.backing, keepsCache: true)
        return CreateReply(entry: remember(node), opened: opened)
    }

    // MARK: Open files

    /// Once, before requests are served and after `mounted`: opens the content of what is open, and notes what the kernel has
    /// written meanwhile.
    package func resumeOpenFiles() {
        echoes.refuseStrays()
        references.withLock { $0.areInherited = true }
        for id in opens.inheritedNodes {
            do throws(Failure) {
                guard let node = try known(id), node.kind == .file else { continue }
                opens.resume(id, with: try fileToServe(node).file)
            } catch {
                logger.error("an open file was lost", metadata: ["node": "\(id)", "reason": "\(error.message)"])
            }
        }
        noteOpenWrites()
        tellUntoldChanges()
    }

    private func tellUntoldChanges() {
        do throws(Failure) {
            let changes = try index.read { transaction throws(Failure) in
                try transaction.changes(
                    since: try transaction.lastChange() - FileSystem.untoldCountMax, limit: Int(FileSystem.untoldCountMax))
            }
            for change in changes {
                if let name = change.name { notifier?.expireEntry(name, in: change.parent) }
                notifier?.invalidateContent(of: change.parent, range: nil)
                notifier?.invalidateContent(of: change.node, range: nil)
            }
        } catch {
            logger.error("the kernel may show what has changed", metadata: ["reason": "\(error.message)"])
        }
    }
}
