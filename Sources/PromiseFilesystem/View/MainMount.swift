package import PromiseCore
import PromiseIndex
import PromiseSync
package import PromiseSystem
import Synchronization

/// The mount that the owner's programs use, beside views: its kernel tells programs that watch there
/// of what is done there, and views hear of it from here. While nobody can watch in a view an
/// operation costs one look at a flag more.
package final class MainMount: ForwardedOperations {
    package let inner: FileSystem
    /// What was opened for writing, and its content then.
    private let written = Mutex<[HandleID: Stamp]>([:])

    private struct Stamp: Equatable {
        var size: UInt64
        var time: Timestamp
        var edits: UInt64
    }

    package init(_ tree: FileSystem) { inner = tree }

    private var views: ViewEchoes { inner.echoes.views }

    private func told<Value: Sendable>(
        _ reply: @escaping Reply<Value>, _ changes: TreeChange...
    ) -> Reply<Value> {
        told(reply, changes)
    }

    private func told<Value: Sendable>(
        _ reply: @escaping Reply<Value>, _ changes: [TreeChange]
    ) -> Reply<Value> {
        guard views.isWanted else { return reply }
        return { [views] result in
            if case .success = result { views.add(changes) }
            reply(result)
        }
    }

    private func node(named name: FileName, in folder: NodeID) -> Node? {
        let found = try? inner.index.read { transaction throws(Failure) in
            try transaction.entry(in: folder, named: name).flatMap { entry throws(Failure) in
                try transaction.node(entry.node)
            }
        }
        return found ?? nil
    }

    // MARK: Names

    package func create(
        _ name: FileName, in parent: NodeID, permissions: UInt32, opening: OpenRequest,
        caller: Caller, reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        inner.create(
            name, in: parent, permissions: permissions, opening: opening, caller: caller,
            reply: told(reply, .appeared(TreePlace(name, in: parent))))
    }

    package func makeFolder(
        _ name: FileName, in parent: NodeID, permissions: UInt32, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.makeFolder(
            name, in: parent, permissions: permissions, caller: caller,
            reply: told(reply, .appeared(TreePlace(name, in: parent))))
    }

    package func makeNode(
        _ name: FileName, in parent: NodeID, kind: NodeKind, permissions: UInt32,
        deviceNumber: UInt64, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.makeNode(
            name, in: parent, kind: kind, permissions: permissions, deviceNumber: deviceNumber,
            caller: caller, reply: told(reply, .appeared(TreePlace(name, in: parent))))
    }

    package func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8], caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.makeLink(
            name, in: parent, target: target, caller: caller,
            reply: told(reply, .appeared(TreePlace(name, in: parent))))
    }

    package func addName(
        _ name: FileName, in parent: NodeID, to node: NodeID, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.addName(
            name, in: parent, to: node, caller: caller,
            reply: told(reply, .appeared(TreePlace(name, in: parent))))
    }

    package func unlink(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.unlink(name, in: parent, caller: caller, reply: toldGone(name, in: parent, reply))
    }

    package func removeFolder(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.removeFolder(
            name, in: parent, caller: caller, reply: toldGone(name, in: parent, reply))
    }

    private func toldGone(
        _ name: FileName, in parent: NodeID, _ reply: @escaping Reply<Void>
    ) -> Reply<Void> {
        guard views.isWanted, let node = node(named: name, in: parent) else { return reply }
        return told(reply, .gone(TreePlace(name, in: parent), node))
    }

    package func rename(
        _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID,
        flags: RenameFlags, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        var reply = reply
        if views.isWanted, let moved = node(named: name, in: parent) {
            let (from, to) = (TreePlace(name, in: parent), TreePlace(newName, in: newParent))
            let replaced = node(named: newName, in: newParent)
            reply = told(
                reply, changes(moved, from, replaced, to, isExchange: flags.contains(.exchange)))
        }
        return inner.rename(
            name, in: parent, to: newName, in: newParent, flags: flags, caller: caller,
            reply: reply)
    }

    private func changes(
        _ moved: Node, _ from: TreePlace, _ replaced: Node?, _ to: TreePlace, isExchange: Bool
    ) -> [TreeChange] {
        guard let replaced, replaced.id != moved.id else {
            return replaced == nil ? [.moved(moved.id, from: from, to: to)] : []
        }
        return isExchange
            ? [.gone(from, moved), .gone(to, replaced), .appeared(from), .appeared(to)]
            : [.gone(to, replaced), .moved(moved.id, from: from, to: to)]
    }

    // MARK: Attributes

    package func setAttributes(
        of node: NodeID, handle: HandleID?, _ changes: AttributeChanges, caller: Caller,
        reply: @escaping Reply<AttributesReply>
    ) -> ParkedRequest? {
        inner.setAttributes(
            of: node, handle: handle, changes, caller: caller,
            reply: told(reply, .modified(node, content: changes.size != nil)))
    }

    package func setExtendedAttribute(
        _ name: [UInt8], of node: NodeID, to value: [UInt8], mode: AttributeWriteMode,
        clearsSetGroupID: Bool, caller: Caller
    ) throws(Failure) {
        try inner.setExtendedAttribute(
            name, of: node, to: value, mode: mode, clearsSetGroupID: clearsSetGroupID,
            caller: caller)
        if views.isWanted { views.add([.modified(node, content: false)]) }
    }

    package func removeExtendedAttribute(
        _ name: [UInt8], of node: NodeID, caller: Caller
    ) throws(Failure) {
        try inner.removeExtendedAttribute(name, of: node, caller: caller)
        if views.isWanted { views.add([.modified(node, content: false)]) }
    }

    // MARK: Files

    // The kernel writes without telling anybody, so views hear of it when the file is closed.

    package func open(
        _ node: NodeID, _ request: OpenRequest, caller: Caller, reply: @escaping Reply<OpenReply>
    ) -> ParkedRequest? {
        guard views.isWanted, request.isWritable || request.truncates,
            let stamp = stamp(of: node)
        else {
            return inner.open(node, request, caller: caller, reply: reply)
        }
        return inner.open(node, request, caller: caller) { [self] result in
            if case .success(let opened) = result, opened.handle != EchoTable.handle {
                written.withLock { $0[opened.handle] = stamp }
            }
            reply(result)
        }
    }

    package func release(_ node: NodeID, handle: HandleID) {
        let before = written.withLock { $0.removeValue(forKey: handle) }
        guard views.isWanted, handle != EchoTable.handle else {
            return inner.release(node, handle: handle)
        }
        let known = before ?? stamp(of: node)
        inner.release(node, handle: handle)
        if let now = stamp(of: node), now != known {
            views.add([.modified(node, content: true)])
        }
    }

    private func stamp(of node: NodeID) -> Stamp? {
        guard let found = try? inner.known(node), found.kind == .file else { return nil }
        return Stamp(size: found.size, time: found.modificationTime, edits: UInt64(found.edits))
    }
}
