import CFuse
import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem
import PromiseSystem

// C callbacks of names: decode, ask the file system, reply. They run on libfuse's threads, so they are free functions.

func serveLookup(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
    let parent = NodeID(parent)
    // FUSE_EXPORT_SUPPORT: of any node, which need not be a folder, without a name.
    if let name, strcmp(name, ".") == 0 || strcmp(name, "..") == 0 {
        let isParent = name[1] != 0
        return answer(request!, .lookup, parent) { filesystem throws(Failure) in
            isParent ? try filesystem.parentEntry(of: parent) : try filesystem.entry(of: parent)
        } send: { request, found in
            var entry = fuse_entry_param(found)
            return fuse_reply_entry(request, &entry)
        }
    }
    let reply = Reply(request!, .lookup, parent)
    withName(name, reply) { name in
        reply.filesystem.lookup(name, in: parent, caller: Caller(request!)) { result in
            reply.finish(result) { request, found in
                var entry =
                    switch found {
                    case .found(let entry): fuse_entry_param(entry)
                    case .absent(let lifetime): fuse_entry_param(absentForSeconds: lifetime)
                    }
                return fuse_reply_entry(request, &entry)
            }
        }
    }
}

func serveForget(_ request: OpaquePointer?, _ node: fuse_ino_t, _ lookups: UInt64) {
    MountContext.of(request!).filesystem.forget(NodeID(node), lookups: lookups)
    fuse_reply_none(request)
}

func serveForgetMany(_ request: OpaquePointer?, _ count: Int, _ items: UnsafeMutablePointer<fuse_forget_data>?) {
    let filesystem = MountContext.of(request!).filesystem
    for item in UnsafeBufferPointer(start: items, count: count) { filesystem.forget(NodeID(item.ino), lookups: item.nlookup) }
    fuse_reply_none(request)
}

func serveCreate(
    _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ mode: mode_t,
    _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let parent = NodeID(parent)
    let details = ct_current_request()
    let opening = OpenRequest(flags: file!.pointee.flags, clearsSetID: details.clears_setid)
    let reply = Reply(request!, .create, parent)
    if details.is_nameless {
        return reply.park(
            reply.filesystem.createNameless(
                in: parent, permissions: mode & 0o7777, opening: opening, caller: Caller(request!)
            ) { reply.finish(created: $0) })
    }
    withName(name, reply) { name in
        reply.filesystem.create(name, in: parent, permissions: mode & 0o7777, opening: opening, caller: Caller(request!)) {
            reply.finish(created: $0)
        }
    }
}

func serveMakeFolder(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ mode: mode_t) {
    let parent = NodeID(parent)
    let reply = Reply(request!, .makeFolder, parent)
    withName(name, reply) { name in
        reply.filesystem.makeFolder(name, in: parent, permissions: mode & 0o7777, caller: Caller(request!)) {
            reply.finish(entry: $0)
        }
    }
}

func serveMakeNode(
    _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ mode: mode_t, _ device: dev_t
) {
    let parent = NodeID(parent)
    let reply = Reply(request!, .makeNode, parent)
    // mknod(2): no type means a file.
    let kind = mode & 0o170000 == 0 ? NodeKind.file : NodeKind(modeBits: mode)
    guard let kind, kind != .folder, kind != .link else {
        return reply.fail(Failure(.invalid, "a node of type \(mode & 0o170000) cannot be made by mknod"))
    }
    withName(name, reply) { name in
        reply.filesystem.makeNode(
            name, in: parent, kind: kind, permissions: mode & 0o7777, deviceNumber: UInt64(device), caller: Caller(request!)
        ) { reply.finish(entry: $0) }
    }
}

func serveMakeLink(
    _ request: OpaquePointer?, _ target: UnsafePointer<CChar>?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?
) {
    let parent = NodeID(parent)
    let reply = Reply(request!, .makeLink, parent)
    let target = copiedBytes(target)
    withName(name, reply) { name in
        reply.filesystem.makeLink(name, in: parent, target: target, caller: Caller(request!)) { reply.finish(entry: $0) }
    }
}

func serveAddName(_ request: OpaquePointer?, _ node: fuse_ino_t, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
    let node = NodeID(node)
    let parent = NodeID(parent)
    let reply = Reply(request!, .addName, node)
    withName(name, reply) { name in
        reply.filesystem.addName(name, in: parent, to: node, caller: Caller(request!)) { reply.finish(entry: $0) }
    }
}

func serveUnlink(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
    let parent = NodeID(parent)
    let reply = Reply(request!, .unlink, parent)
    withName(name, reply) { name in
        reply.filesystem.unlink(name, in: parent, caller: Caller(request!)) { reply.finish($0) }
    }
}

func serveRemoveFolder(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
    let parent = NodeID(parent)
    let reply = Reply(request!, .removeFolder, parent)
    withName(name, reply) { name in
        reply.filesystem.removeFolder(name, in: parent, caller: Caller(request!)) { reply.finish($0) }
    }
}

func serveRename(
    _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ newParent: fuse_ino_t,
    _ newName: UnsafePointer<CChar>?, _ flags: UInt32
) {
    let parent = NodeID(parent)
    let newParent = NodeID(newParent)
    let reply = Reply(request!, .rename, parent)
    let flags = RenameFlags(rawValue: flags)
    guard flags.subtracting([.noReplace, .exchange, .whiteout]).isEmpty else {
        return reply.fail(Failure(.invalid, "rename knows no flags but RENAME_NOREPLACE, RENAME_EXCHANGE and RENAME_WHITEOUT"))
    }
    withName(name, reply) { name in
        withName(newName, reply) { newName in
            reply.filesystem.rename(name, in: parent, to: newName, in: newParent, flags: flags, caller: Caller(request!)) {
                reply.finish($0)
            }
        }
        return nil
    }
}

func serveLinkTarget(_ request: OpaquePointer?, _ node: fuse_ino_t) {
    let node = NodeID(node)
    let reply = Reply(request!, .linkTarget, node)
    reply.park(
        reply.filesystem.ask(.target, of: node, Caller(request!)) { result in
            reply.finish(result) { request, target in replyBytes(request, target) }
        })
}

/// Copies a name and has the request parked when `body` says so; a name that is too long is the answer.
private func withName(_ name: UnsafePointer<CChar>?, _ reply: Reply, _ body: (FileName) -> ParkedRequest?) {
    do throws(Failure) {
        reply.park(body(try FileName(name)))
    } catch {
        reply.fail(error)
    }
}

extension Reply {
    func finish(created result: Result<CreateReply, Failure>) {
        finish(result) { request, created in
            var entry = fuse_entry_param(created.entry)
            let opened = created.opened
            return ct_reply_create(request, &entry, opened.handle.rawValue, openFlags(opened), opened.backing?.rawValue ?? 0)
        }
    }

    func finish(entry result: Result<EntryReply, Failure>) {
        finish(result) { request, entry in
            var entry = fuse_entry_param(entry)
            return fuse_reply_entry(request, &entry)
        }
    }
}

/// fuse_reply_buf(3) with bytes of an array.
func replyBytes(_ request: OpaquePointer, _ bytes: [UInt8]) -> CInt {
    bytes.withUnsafeBytes { fuse_reply_buf(request, $0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count) }
}
