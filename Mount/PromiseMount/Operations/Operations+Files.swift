import CFuse
import CFuseTransport
import Glibc
import PromiseCore
package import PromiseFilesystem

// C callbacks of open files.

// Flags of an OPEN reply (FOPEN_* of <linux/fuse.h>); the names in CFuseTransport.h are macros that Swift does not import.
let openDirect: UInt32 = 1 << 0
let openKeepCache: UInt32 = 1 << 1
let openCacheFolder: UInt32 = 1 << 3
private let openPassthrough: UInt32 = 1 << 7

/// The kernel refuses an open that has passthrough and one of the cache flags.
package func openFlags(_ opened: OpenReply) -> UInt32 {
    if opened.backing != nil { return openPassthrough }
    return (opened.isDirect ? openDirect : 0) | (opened.keepsCache ? openKeepCache : 0)
}

func serveOpen(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    let node = NodeID(node)
    let reply = Reply(request!, .open, node)
    let opening = OpenRequest(flags: file!.pointee.flags, clearsSetID: ct_current_request().clears_setid)
    reply.park(
        reply.filesystem.open(node, opening, caller: Caller(request!)) { result in
            reply.finish(result) { request, opened in
                ct_reply_open(request, opened.handle.rawValue, openFlags(opened), opened.backing?.rawValue ?? 0)
            }
        })
}

func serveRead(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ count: Int, _ offset: off_t, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let position = FilePosition(node: NodeID(node), handle: file!.handle, offset: UInt64(offset))
    let reply = Reply(request!, .read, position.node)
    reply.park(
        reply.filesystem.read(position, count: count, caller: Caller(request!)) { result in
            reply.finish(result) { request, content in
                switch content {
                case .descriptor(let descriptor, let range):
                    precondition(range.count <= UInt64(count), "a read of \(count) bytes is answered with \(range.count)")
                    return ct_reply_data(
                        MountContext.transport(of: request), request, reply.unique, descriptor, Int64(range.lower),
                        Int(range.count))
                case .bytes(let bytes):
                    precondition(bytes.count <= count, "a read of \(count) bytes is answered with \(bytes.count)")
                    return replyBytes(request, bytes)
                }
            }
        })
}

func serveWrite(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ bytes: UnsafePointer<CChar>?, _ count: Int, _ offset: off_t,
    _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    var position = FilePosition(node: NodeID(node), handle: file!.handle, offset: UInt64(offset))
    let reply = Reply(request!, .write, position.node)
    let details = ct_current_request()
    position.appends = file!.pointee.flags & O_APPEND != 0 && !details.is_page_write
    reply.park(
        reply.filesystem.write(
            position, UnsafeRawBufferPointer(start: bytes, count: count), clearsSetID: details.clears_setid,
            isPageWrite: details.is_page_write, caller: Caller(request!)
        ) { result in
            reply.finish(result) { request, written in
                precondition(written >= 0 && written <= count, "a write of \(count) bytes is answered with \(written)")
                return fuse_reply_write(request, written)
            }
        })
}

func serveSynchronize(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ dataOnly: CInt, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let node = NodeID(node)
    let reply = Reply(request!, .synchronize, node)
    reply.park(reply.filesystem.synchronize(node, handle: file!.handle, dataOnly: dataOnly != 0) { reply.finish($0) })
}

func serveAllocate(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ mode: CInt, _ offset: off_t, _ count: off_t,
    _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let position = FilePosition(node: NodeID(node), handle: file!.handle, offset: UInt64(offset))
    let reply = Reply(request!, .allocate, position.node)
    reply.park(
        reply.filesystem.allocate(position, count: UInt64(count), mode: mode, caller: Caller(request!)) { reply.finish($0) })
}

func serveSeek(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ offset: off_t, _ whence: CInt, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let node = NodeID(node)
    let handle = file!.handle
    answer(request!, .seek, node) { filesystem throws(Failure) in
        // lseek(2): SEEK_DATA is 3, SEEK_HOLE is 4.
        guard whence == 3 || whence == 4 else {
            throw Failure(.invalid, "only SEEK_DATA and SEEK_HOLE are asked of a file system, not \(whence)")
        }
        guard offset >= 0 else { throw Failure(.outOfRange, "there is nothing before the start") }
        let position = FilePosition(node: node, handle: handle, offset: UInt64(offset))
        return try filesystem.seek(position, to: whence == 3 ? .data : .hole)
    } send: { request, offset in
        fuse_reply_lseek(request, off_t(clamping: offset))
    }
}

// The signature is libfuse's.
func serveCopyRange(
    _ request: OpaquePointer?, _ source: fuse_ino_t, _ sourceOffset: off_t, _ sourceFile: UnsafeMutablePointer<fuse_file_info>?,
    _ target: fuse_ino_t, _ targetOffset: off_t, _ targetFile: UnsafeMutablePointer<fuse_file_info>?, _ count: Int, _ flags: CInt
) {
    let from = FilePosition(node: NodeID(source), handle: sourceFile!.handle, offset: UInt64(sourceOffset))
    let to = FilePosition(node: NodeID(target), handle: targetFile!.handle, offset: UInt64(targetOffset))
    let reply = Reply(request!, .copyRange, from.node)
    // Less than asked for is a legal answer, and the caller goes on: this thread serves others of its processor as well.
    let limit = min(count, 64 << 20)
    reply.park(
        reply.filesystem.copyRange(from: from, to: to, count: limit, caller: Caller(request!)) { result in
            reply.finish(result) { request, copied in fuse_reply_write(request, copied) }
        })
}

func serveRelease(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    MountContext.of(request!).filesystem.release(NodeID(node), handle: file!.handle)
    _ = fuse_reply_err(request, 0)
}
