package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// xattr(7): those of users, ACLs, and the virtual ones that show and set an item's state.

extension FileSystem {
    private static let valueByteCountMax = 65_536
    private static let userPrefix = Array("user.".utf8)
    /// `ls -l` asks every file for it; where it is not supported, only the first one (coreutils' ls.c, getfilecon_cache).
    private static let labelName = Array("security.selinux".utf8)

    package func extendedAttribute(_ name: [UInt8], of id: NodeID, caller: Caller) throws(Failure) -> [UInt8] {
        if let virtual = VirtualAttribute(name) { return Array(try value(of: virtual, id).utf8) }
        let value = try index.read { transaction throws(Failure) in try transaction.attribute(name, of: id) }
        if let value { return value }
        if FsyncReach.isName(name) { return Array(fsyncs.reach(of: id).rawValue.utf8) }
        if name == FileSystem.labelName { throw Failure(.notSupported, "there are no labels of SELinux unless they were set") }
        throw Failure(.noAttribute, "there is no such attribute")
    }

    package func extendedAttributeNames(of id: NodeID) throws(Failure) -> [[UInt8]] {
        try index.read { transaction throws(Failure) in try transaction.attributeNames(of: id) }
    }

    package func setExtendedAttribute(
        _ name: [UInt8], of id: NodeID, to value: [UInt8], mode: AttributeWriteMode, clearsSetGroupID: Bool, caller: Caller
    ) throws(Failure) {
        try checkOwner(name, of: id, caller)
        if let virtual = VirtualAttribute(name) { return try set(virtual, of: id, to: value) }
        try VirtualAttribute.refuseUnknown(name)
        try AttributeSpace.check(name)
        guard value.count <= FileSystem.valueByteCountMax else {
            throw Failure(.attributeTooLarge, "an attribute has at most 64 KiB")
        }
        if isCarriedOut(caller) { return }
        try carryOut(caller) { transaction throws(Failure) in
            guard var node = try transaction.node(id) else { throw Failure(.stale, "the file is gone") }
            let exists = try transaction.attribute(name, of: id) != nil
            if mode == .createOnly && exists { throw Failure(.exists, "the attribute is there already") }
            if mode == .replaceOnly && !exists { throw Failure(.noAttribute, "there is no such attribute") }
            try setPlain(name, of: &node, to: value, transaction)
            if clearsSetGroupID, name == AccessControlList.accessName { node.mode &= ~0o2000 }
            node.changeTime = clock.now()
            try transaction.update(node)
        }
        attributeNews.note(name)
        engine.notePending()
    }

    /// What nobody checked before is the owner's and root's to change, as a file's mode is.
    private func checkOwner(_ name: [UInt8], of id: NodeID, _ caller: Caller) throws(Failure) {
        guard VirtualAttribute.isUnguarded(name), caller.user != 0 else { return }
        guard let node = try known(id) else { throw Failure(.stale, "the file is gone") }
        guard attributes(of: node).owner == caller.user else {
            throw Failure(.notPermitted, "only the owner of an item may change that")
        }
    }

    private func setPlain(
        _ name: [UInt8], of node: inout Node, to value: [UInt8], _ transaction: borrowing Transaction
    ) throws(Failure) {
        if name == AccessControlList.accessName {
            guard let list = AccessControlList(value) else { throw Failure(.invalid, "it is not an access control list") }
            node.mode = node.mode & 0o7000 | list.modeBits
            try markPending(namesOf: node.id, transaction)
            if list.isMinimal {
                _ = try transaction.removeAttribute(name, of: node.id)
                return
            }
        } else if name == AccessControlList.defaultName {
            guard node.kind == .folder else { throw Failure(.refused, "only folders have a default access control list") }
        } else if node.kind == .link || node.kind != .file && node.kind != .folder, name.starts(with: FileSystem.userPrefix) {
            throw Failure(.notPermitted, "only files and folders have user attributes")
        }
        if name == StayingMarks.nameOfLinks, node.kind != .link {
            throw Failure(.notSupported, "of files and folders it is 'user.promisefs.excluded'")
        }
        if StayingMarks.isName(name) {
            guard value == StayingMarks.value else { throw Failure(.invalid, "the value is 'true'; remove it to send the item") }
            try exclusion.keep(node, transaction)
        }
        if FsyncReach.isName(name) { try fsyncs.reach.note(value, of: node, transaction) }
        try transaction.setAttribute(name, of: node.id, to: value)
    }

    package func removeExtendedAttribute(_ name: [UInt8], of id: NodeID, caller: Caller) throws(Failure) {
        try checkOwner(name, of: id, caller)
        if VirtualAttribute(name) != nil { throw Failure(.notPermitted, "the state of an item cannot be removed") }
        if isCarriedOut(caller) { return }
        try carryOut(caller) { transaction throws(Failure) in
            guard var node = try transaction.node(id) else { throw Failure(.stale, "the file is gone") }
            guard try transaction.removeAttribute(name, of: id) else {
                // To have no list is what removing it asks for.
                if name == AccessControlList.accessName || name == AccessControlList.defaultName { return }
                throw Failure(.noAttribute, "there is no such attribute")
            }
            node.changeTime = clock.now()
            try transaction.update(node)
            guard StayingMarks.isName(name) else { return }
            try exclusion.release(node, transaction) { entry throws(Failure) in try markPending(entry, transaction) }
        }
        attributeNews.note(name)
        engine.notePending()
    }

    // MARK: Access control lists

    /// Attributes that a new node gets from its folder's default ACL; otherwise the caller's umask applies.
    func inheritAccessControl(
        from folder: Node, into node: inout Node, _ caller: Caller, _ transaction: borrowing Transaction
    ) throws(Failure) -> [([UInt8], [UInt8])] {
        guard node.kind != .link else { return [] }
        guard let value = try transaction.attribute(AccessControlList.defaultName, of: folder.id),
            var list = AccessControlList(value)
        else {
            node.mode &= ~caller.umask
            return []
        }
        list.limit(to: node.mode)
        node.mode = node.mode & 0o7000 | list.modeBits
        var inherited: [([UInt8], [UInt8])] = list.isMinimal ? [] : [(AccessControlList.accessName, list.bytes)]
        if node.kind == .folder { inherited.append((AccessControlList.defaultName, value)) }
        return inherited
    }

    func chmodAccessControl(of node: Node, _ transaction: borrowing Transaction) throws(Failure) {
        guard let value = try transaction.attribute(AccessControlList.accessName, of: node.id),
            var list = AccessControlList(value)
        else { return }
        list.setMode(node.mode)
        try transaction.setAttribute(AccessControlList.accessName, of: node.id, to: list.bytes)
    }
}
