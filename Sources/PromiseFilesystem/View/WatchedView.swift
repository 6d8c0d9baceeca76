package import PromiseCore
import PromiseIndex
import PromiseSync
package import PromiseSystem

/// A view, and programs in it that watch by inotify(7): they hear of what is done outside by calls
/// of `promisefs-echo`, which are answered here without doing anything. Whatever it calls beyond
/// that is refused.
package final class WatchedView: ForwardedOperations, LockingOperations {
    package let inner: View
    let table = EchoTable()
    /// A program inside has asked for something since the last look, as it has to before it watches.
    let hasAsked = Flag()
    /// Somebody watched at the last look, or one is under way.
    let isWatched = Flag()

    package init(_ view: View) { inner = view }

    package var locks: any LockOperations { inner.locks }

    private var echoes: ViewEchoes { inner.tree.echoes.views }

    package func mounted(_ connection: MountConnection) {
        inner.mounted(connection)
        if let caller = connection.echoes { echoes.join(self, caller) }
    }

    package func ended() {
        echoes.leave(self)
        inner.ended()
    }

    private func noteQuestion() {
        if hasAsked.isRaised { return }
        hasAsked.raise()
        echoes.mayBeWatched()
    }

    private var notMeant: Failure {
        Failure(.notFound, "there is no such change to be shown now")
    }

    private func answer<Value>(
        _ reply: Reply<Value>, _ body: () throws(Failure) -> Value
    ) -> ParkedRequest? {
        do throws(Failure) { reply(.success(try body())) } catch { reply(.failure(error)) }
        return nil
    }

    // MARK: Names

    package func lookup(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<LookupReply>
    ) -> ParkedRequest? {
        guard table.isEcho(caller) else {
            noteQuestion()
            return inner.lookup(name, in: parent, caller: caller, reply: reply)
        }
        guard let answer = table.lookup(TreePlace(name, in: parent)) else {
            return inner.lookup(name, in: parent, caller: caller, reply: reply)
        }
        return self.answer(reply) { () throws(Failure) in
            switch answer.lookup {
            case .absent: .absent(lifetimeSeconds: 0)
            case .node(let node): .found(try entry(node, answer.gone))
            }
        }
    }

    /// With no more rights than the application has: a node without a name keeps those of its last.
    private func entry(_ node: NodeID, _ gone: Node?) throws(Failure) -> EntryReply {
        let reach = try inner.reach(node)
        if let entry = try? inner.tree.entry(of: node) { return inner.shown(entry, reach: reach) }
        guard let gone, gone.id == node else { throw notMeant }
        return inner.shown(inner.tree.remember(gone), reach: reach)
    }

    private func made(
        _ name: FileName, in parent: NodeID, _ reply: Reply<EntryReply>
    ) -> ParkedRequest? {
        answer(reply) { () throws(Failure) in
            guard let node = table.subject, table.makes(TreePlace(name, in: parent)) else {
                throw notMeant
            }
            return try entry(node.id, nil)
        }
    }

    package func makeFolder(
        _ name: FileName, in parent: NodeID, permissions: UInt32, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if table.isEcho(caller) { return made(name, in: parent, reply) }
        return inner.makeFolder(
            name, in: parent, permissions: permissions, caller: caller, reply: reply)
    }

    package func makeNode(
        _ name: FileName, in parent: NodeID, kind: NodeKind, permissions: UInt32,
        deviceNumber: UInt64, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if table.isEcho(caller) { return made(name, in: parent, reply) }
        return inner.makeNode(
            name, in: parent, kind: kind, permissions: permissions, deviceNumber: deviceNumber,
            caller: caller, reply: reply)
    }

    package func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8], caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        if table.isEcho(caller) { return made(name, in: parent, reply) }
        return inner.makeLink(name, in: parent, target: target, caller: caller, reply: reply)
    }

    package func unlink(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if table.isEcho(caller) { return removed(name, in: parent, reply) }
        return inner.unlink(name, in: parent, caller: caller, reply: reply)
    }

    package func removeFolder(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        if table.isEcho(caller) { return removed(name, in: parent, reply) }
        return inner.removeFolder(name, in: parent, caller: caller, reply: reply)
    }

    private func removed(
        _ name: FileName, in parent: NodeID, _ reply: Reply<Void>
    ) -> ParkedRequest? {
        answer(reply) { () throws(Failure) in
            guard table.removes(TreePlace(name, in: parent)) else { throw notMeant }
        }
    }

    package func rename(
        _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID,
        flags: RenameFlags, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        guard table.isEcho(caller) else {
            return inner.rename(
                name, in: parent, to: newName, in: newParent, flags: flags, caller: caller,
                reply: reply)
        }
        return answer(reply) { () throws(Failure) in
            let (from, to) = (TreePlace(name, in: parent), TreePlace(newName, in: newParent))
            guard table.moves(from, to: to) else { throw notMeant }
        }
    }

    package func create(
        _ name: FileName, in parent: NodeID, permissions: UInt32, opening: OpenRequest,
        caller: Caller, reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        if table.isEcho(caller) { return refused(reply) }
        return inner.create(
            name, in: parent, permissions: permissions, opening: opening, caller: caller,
            reply: reply)
    }

    private func refused<Value>(_ reply: Reply<Value>) -> ParkedRequest? {
        answer(reply) { () throws(Failure) in throw notMeant }
    }

    // MARK: Attributes and files

    package func attributes(
        of node: NodeID, handle: HandleID?
    ) throws(Failure) -> AttributesReply {
        noteQuestion()
        return try inner.attributes(of: node, handle: handle)
    }

    package func setAttributes(
        of node: NodeID, handle: HandleID?, _ changes: AttributeChanges, caller: Caller,
        reply: @escaping Reply<AttributesReply>
    ) -> ParkedRequest? {
        guard table.isEcho(caller) else {
            return inner.setAttributes(
                of: node, handle: handle, changes, caller: caller, reply: reply)
        }
        return answer(reply) { () throws(Failure) in try inner.attributes(of: node, handle: nil) }
    }

    package func open(
        _ node: NodeID, _ request: OpenRequest, caller: Caller, reply: @escaping Reply<OpenReply>
    ) -> ParkedRequest? {
        guard table.isEcho(caller) else {
            return inner.open(node, request, caller: caller, reply: reply)
        }
        reply(.success(OpenReply(handle: EchoTable.handle, isDirect: true)))
        return nil
    }
}
