import CFuse
import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem

// C callbacks of attributes and of the file system as a whole.

func serveAttributes(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    let node = NodeID(node)
    let handle = file?.handle
    answer(request!, .attributes, node) { filesystem throws(Failure) in
        try filesystem.attributes(of: node, handle: handle)
    } send: { request, reply in
        sendAttributes(request, reply)
    }
}

func serveSetAttributes(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ status: UnsafeMutablePointer<stat>?, _ mask: CInt,
    _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let node = NodeID(node)
    let reply = Reply(request!, .setAttributes, node)
    let changes = AttributeChanges(status!.pointee, mask: mask)
    reply.park(
        reply.filesystem.setAttributes(of: node, handle: file?.handle, changes, caller: Caller(request!)) { result in
            reply.finish(result, send: sendAttributes)
        })
}

private func sendAttributes(_ request: OpaquePointer, _ reply: AttributesReply) -> CInt {
    var status = stat(reply.attributes)
    return fuse_reply_attr(request, &status, reply.attributeLifetimeSeconds)
}

func serveExtendedAttribute(_ request: OpaquePointer?, _ node: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ room: Int) {
    let node = NodeID(node)
    let caller = Caller(request!)
    let name = copiedBytes(name)
    if LinkTargets.isState(name) { return serveReferenceState(request, node, caller, room) }
    answer(request!, .extendedAttribute, node) { filesystem throws(Failure) in
        try fitting(filesystem.extendedAttribute(name, of: node, caller: caller), room)
    } send: { request, value in
        room == 0 ? fuse_reply_xattr(request, value.count) : replyBytes(request, value)
    }
}

/// What another domain may be asked for.
private func serveReferenceState(_ request: OpaquePointer?, _ node: NodeID, _ caller: Caller, _ room: Int) {
    let reply = Reply(request!, .extendedAttribute, node)
    reply.park(
        reply.filesystem.ask(.state, of: node, caller) { result in
            let fitted = result.flatMap { value in
                Result { () throws(Failure) in try fitting(value, room) }
            }
            reply.finish(fitted) { request, value in
                room == 0 ? fuse_reply_xattr(request, value.count) : replyBytes(request, value)
            }
        })
}

func serveExtendedAttributeNames(_ request: OpaquePointer?, _ node: fuse_ino_t, _ room: Int) {
    let node = NodeID(node)
    answer(request!, .extendedAttributeNames, node) { filesystem throws(Failure) in
        // listxattr(2): each name with its NUL.
        try fitting(filesystem.extendedAttributeNames(of: node).flatMap { $0 + [0] }, room)
    } send: { request, names in
        room == 0 ? fuse_reply_xattr(request, names.count) : replyBytes(request, names)
    }
}

/// getxattr(2): no room asks for the size only; too little is an error.
private func fitting(_ value: [UInt8], _ room: Int) throws(Failure) -> [UInt8] {
    if room > 0, value.count > room {
        throw Failure(.attributeTooLarge, "the value has \(value.count) bytes and the caller has room for \(room)")
    }
    return value
}

func serveSetExtendedAttribute(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?, _ count: Int,
    _ flags: CInt
) {
    let node = NodeID(node)
    let caller = Caller(request!)
    // setxattr(2): XATTR_CREATE is 1, XATTR_REPLACE is 2.
    let mode: AttributeWriteMode = flags & 1 != 0 ? .createOnly : flags & 2 != 0 ? .replaceOnly : .any
    let bytes = Array(UnsafeRawBufferPointer(start: value, count: count))
    let clearsSetGroupID = ct_current_request().clears_setid
    answer(request!, .setExtendedAttribute, node) { filesystem throws(Failure) in
        try filesystem.setExtendedAttribute(
            copiedBytes(name), of: node, to: bytes, mode: mode, clearsSetGroupID: clearsSetGroupID, caller: caller)
    } send: { request, _ in
        fuse_reply_err(request, 0)
    }
}

func serveRemoveExtendedAttribute(_ request: OpaquePointer?, _ node: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
    let node = NodeID(node)
    let caller = Caller(request!)
    answer(request!, .removeExtendedAttribute, node) { filesystem throws(Failure) in
        try filesystem.removeExtendedAttribute(copiedBytes(name), of: node, caller: caller)
    } send: { request, _ in
        fuse_reply_err(request, 0)
    }
}

func serveSpace(_ request: OpaquePointer?, _ node: fuse_ino_t) {
    answer(request!, .space, NodeID(node)) { filesystem throws(Failure) in
        try filesystem.space()
    } send: { request, space in
        var status = statvfs()
        status.f_bsize = UInt(space.blockSize)
        status.f_frsize = UInt(space.blockSize)
        status.f_blocks = fsblkcnt_t(space.blocks)
        status.f_bfree = fsblkcnt_t(space.blocksFree)
        status.f_bavail = fsblkcnt_t(space.blocksAvailable)
        status.f_files = fsfilcnt_t(space.nodes)
        status.f_ffree = fsfilcnt_t(space.nodesFree)
        status.f_favail = fsfilcnt_t(space.nodesFree)
        status.f_namemax = UInt(FileName.byteCountMax)
        return fuse_reply_statfs(request, &status)
    }
}
