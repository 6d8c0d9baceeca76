package import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

// Attributes. Everything belongs to the application's user: it can be changed by nobody there.

extension View {
    /// What is set by a name of this product is the person's to set: what stays here, what is fetched.
    private static let ownPrefixes = ["user.promisefs.", "system.promisefs."].map { Array($0.utf8) }

    package func attributes(
        of node: NodeID, handle: HandleID?
    ) throws(Failure) -> AttributesReply {
        guard case .tree(let number) = ViewNode(node) else {
            return AttributesReply(ownFolder(ViewNode(node)), attributeLifetimeSeconds: 0)
        }
        // What is open stays open when its grant goes, and shows no right that is gone.
        let rights: ViewRights =
            isOpen(number, by: handle)
            ? max(try reach(number).rights, .read)
            : try demand(.read, of: number, "attributes").rights
        let found = try tree.attributes(of: number, handle: handle)
        return AttributesReply(shown(found.attributes, rights), attributeLifetimeSeconds: 0)
    }

    private func isOpen(_ node: NodeID, by handle: HandleID?) -> Bool {
        guard let handle, !policy.endsOpenFiles else { return false }
        return state.withLock { $0.files[handle]?.node == node }
    }

    package func setAttributes(
        of node: NodeID, handle: HandleID?, _ changes: AttributeChanges, caller: Caller,
        reply: @escaping Reply<AttributesReply>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            guard case .tree(let node) = ViewNode(node) else {
                policy.refused("setAttributes", node)
                throw Failure(.refused, "the view's own folders stay as they are")
            }
            let rights = try demand(.readWrite, of: node, "setAttributes").rights
            var changes = changes
            let isOwn = [(changes.owner, launch.user), (changes.group, launch.group)]
                .allSatisfy { $0 == nil || $0 == $1 }
            guard isOwn else {
                policy.refused("setAttributes", node)
                throw Failure(.notPermitted, "nothing in a view is given to others")
            }
            (changes.owner, changes.group) = (nil, nil)
            changes.permissions = changes.permissions?.withoutSetID
            let isCut = changes.size != nil
            return tree.setAttributes(
                of: node, handle: handle, changes, caller: through(caller)
            ) { [self] result in
                if case .success = result { tell(of: .modified(node, content: isCut)) }
                reply(
                    result.map {
                        AttributesReply(shown($0.attributes, rights), attributeLifetimeSeconds: 0)
                    })
            }
        }
    }

    package func extendedAttribute(
        _ name: [UInt8], of node: NodeID, caller: Caller
    ) throws(Failure) -> [UInt8] {
        guard case .tree(let node) = ViewNode(node) else {
            throw Failure(.noAttribute, "the view's own folders have none")
        }
        try demand(.read, of: node, "extendedAttribute")
        return try VirtualAttribute.told(
            name, try tree.extendedAttribute(name, of: node, caller: through(caller)))
    }

    package func extendedAttributeNames(of node: NodeID) throws(Failure) -> [[UInt8]] {
        guard case .tree(let node) = ViewNode(node) else { return [] }
        try demand(.read, of: node, "extendedAttributeNames")
        return try tree.extendedAttributeNames(of: node)
    }

    package func setExtendedAttribute(
        _ name: [UInt8], of node: NodeID, to value: [UInt8], mode: AttributeWriteMode,
        clearsSetGroupID: Bool, caller: Caller
    ) throws(Failure) {
        let node = try nodeToSet(name, node)
        try tree.setExtendedAttribute(
            name, of: node, to: value, mode: mode, clearsSetGroupID: clearsSetGroupID,
            caller: through(caller))
        tell(of: .modified(node, content: false))
    }

    package func removeExtendedAttribute(
        _ name: [UInt8], of node: NodeID, caller: Caller
    ) throws(Failure) {
        let node = try nodeToSet(name, node)
        try tree.removeExtendedAttribute(name, of: node, caller: through(caller))
        tell(of: .modified(node, content: false))
    }

    private func nodeToSet(_ name: [UInt8], _ node: NodeID) throws(Failure) -> NodeID {
        guard case .tree(let node) = ViewNode(node), !View.ownPrefixes.contains(where: { name.starts(with: $0) }) else {
            policy.refused("setExtendedAttribute", node)
            throw Failure(.notPermitted, "it is not the application's to set")
        }
        try demand(.readWrite, of: node, "setExtendedAttribute")
        return node
    }

    package func space() throws(Failure) -> FileSystemSpace { try tree.space() }
}
