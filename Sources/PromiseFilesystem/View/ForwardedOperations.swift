package import PromiseCore
package import PromiseSystem

/// Hands every operation on to another file system, but for those that a type has itself.
package protocol ForwardedOperations: FileSystemOperations {
    associatedtype Inner: FileSystemOperations
    var inner: Inner { get }
}

extension ForwardedOperations {
    package func mounted(_ connection: MountConnection) { inner.mounted(connection) }
    package func ended() { inner.ended() }
    package func interrupt(_ request: ParkedRequest) { inner.interrupt(request) }

    // MARK: Names

    package func lookup(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<LookupReply>
    ) -> ParkedRequest? {
        inner.lookup(name, in: parent, caller: caller, reply: reply)
    }

    package func entry(of node: NodeID) throws(Failure) -> EntryReply { try inner.entry(of: node) }

    package func parentEntry(of folder: NodeID) throws(Failure) -> EntryReply {
        try inner.parentEntry(of: folder)
    }

    package func forget(_ node: NodeID, lookups: UInt64) { inner.forget(node, lookups: lookups) }

    package func create(
        _ name: FileName, in parent: NodeID, permissions: UInt32, opening: OpenRequest,
        caller: Caller, reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        inner.create(
            name, in: parent, permissions: permissions, opening: opening, caller: caller,
            reply: reply)
    }

    package func createNameless(
        in parent: NodeID, permissions: UInt32, opening: OpenRequest, caller: Caller,
        reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest? {
        inner.createNameless(
            in: parent, permissions: permissions, opening: opening, caller: caller, reply: reply)
    }

    package func makeFolder(
        _ name: FileName, in parent: NodeID, permissions: UInt32, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.makeFolder(name, in: parent, permissions: permissions, caller: caller, reply: reply)
    }

    package func makeNode(
        _ name: FileName, in parent: NodeID, kind: NodeKind, permissions: UInt32,
        deviceNumber: UInt64, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.makeNode(
            name, in: parent, kind: kind, permissions: permissions, deviceNumber: deviceNumber,
            caller: caller, reply: reply)
    }

    package func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8], caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.makeLink(name, in: parent, target: target, caller: caller, reply: reply)
    }

    package func addName(
        _ name: FileName, in parent: NodeID, to node: NodeID, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest? {
        inner.addName(name, in: parent, to: node, caller: caller, reply: reply)
    }

    package func unlink(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.unlink(name, in: parent, caller: caller, reply: reply)
    }

    package func removeFolder(
        _ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.removeFolder(name, in: parent, caller: caller, reply: reply)
    }

    package func rename(
        _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID,
        flags: RenameFlags, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.rename(
            name, in: parent, to: newName, in: newParent, flags: flags, caller: caller,
            reply: reply)
    }

    package func linkTarget(of node: NodeID) throws(Failure) -> [UInt8] {
        try inner.linkTarget(of: node)
    }

    package func ask(
        _ what: LinkQuestion, of node: NodeID, _ caller: Caller, reply: @escaping LinkReply
    ) -> ParkedRequest? {
        inner.ask(what, of: node, caller, reply: reply)
    }

    // MARK: Attributes

    package func attributes(
        of node: NodeID, handle: HandleID?
    ) throws(Failure) -> AttributesReply {
        try inner.attributes(of: node, handle: handle)
    }

    package func setAttributes(
        of node: NodeID, handle: HandleID?, _ changes: AttributeChanges, caller: Caller,
        reply: @escaping Reply<AttributesReply>
    ) -> ParkedRequest? {
        inner.setAttributes(of: node, handle: handle, changes, caller: caller, reply: reply)
    }

    package func extendedAttribute(
        _ name: [UInt8], of node: NodeID, caller: Caller
    ) throws(Failure) -> [UInt8] {
        try inner.extendedAttribute(name, of: node, caller: caller)
    }

    package func extendedAttributeNames(of node: NodeID) throws(Failure) -> [[UInt8]] {
        try inner.extendedAttributeNames(of: node)
    }

    package func setExtendedAttribute(
        _ name: [UInt8], of node: NodeID, to value: [UInt8], mode: AttributeWriteMode,
        clearsSetGroupID: Bool, caller: Caller
    ) throws(Failure) {
        try inner.setExtendedAttribute(
            name, of: node, to: value, mode: mode, clearsSetGroupID: clearsSetGroupID,
            caller: caller)
    }

    package func removeExtendedAttribute(
        _ name: [UInt8], of node: NodeID, caller: Caller
    ) throws(Failure) {
        try inner.removeExtendedAttribute(name, of: node, caller: caller)
    }

    package func space() throws(Failure) -> FileSystemSpace { try inner.space() }

    // MARK: Folders

    package func readFolder(
        _ node: NodeID, after cookie: UInt64, withAttributes: Bool,
        add: @escaping @Sendable (FolderEntry) -> Bool, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.readFolder(
            node, after: cookie, withAttributes: withAttributes, add: add, reply: reply)
    }

    package func synchronizeFolder(
        _ node: NodeID, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.synchronizeFolder(node, reply: reply)
    }

    // MARK: Files

    package func open(
        _ node: NodeID, _ request: OpenRequest, caller: Caller, reply: @escaping Reply<OpenReply>
    ) -> ParkedRequest? {
        inner.open(node, request, caller: caller, reply: reply)
    }

    package func read(
        _ position: FilePosition, count: Int, caller: Caller, reply: @escaping Reply<ReadReply>
    ) -> ParkedRequest? {
        inner.read(position, count: count, caller: caller, reply: reply)
    }

    package func write(
        _ position: FilePosition, _ bytes: UnsafeRawBufferPointer, clearsSetID: Bool,
        isPageWrite: Bool, caller: Caller, reply: @escaping Reply<Int>
    ) -> ParkedRequest? {
        inner.write(
            position, bytes, clearsSetID: clearsSetID, isPageWrite: isPageWrite, caller: caller,
            reply: reply)
    }

    package func synchronize(
        _ node: NodeID, handle: HandleID, dataOnly: Bool, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.synchronize(node, handle: handle, dataOnly: dataOnly, reply: reply)
    }

    package func allocate(
        _ position: FilePosition, count: UInt64, mode: Int32, caller: Caller,
        reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        inner.allocate(position, count: count, mode: mode, caller: caller, reply: reply)
    }

    package func seek(_ position: FilePosition, to target: SeekTarget) throws(Failure) -> UInt64 {
        try inner.seek(position, to: target)
    }

    package func copyRange(
        from source: FilePosition, to target: FilePosition, count: Int, caller: Caller,
        reply: @escaping Reply<Int>
    ) -> ParkedRequest? {
        inner.copyRange(from: source, to: target, count: count, caller: caller, reply: reply)
    }

    package func release(_ node: NodeID, handle: HandleID) { inner.release(node, handle: handle) }
}
