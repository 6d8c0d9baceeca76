import CFuse
import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem

// C callbacks of open folders.

func serveOpenFolder(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    let node = NodeID(node)
    let reply = Reply(request!, .openFolder, node)
    reply.park(
        reply.filesystem.openFolder(node, caller: Caller(request!)) { result in
            reply.finish(result) { request, opened in
                var flags: UInt32 = 0
                if opened.cachesListing { flags |= openCacheFolder }
                if opened.keepsCache { flags |= openKeepCache }
                return ct_reply_open(request, opened.handle.rawValue, flags, 0)
            }
        })
}

func serveReadFolder(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ room: Int, _ cookie: off_t, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    readFolder(request!, NodeID(node), file!.handle, after: cookie, room: room, withAttributes: false)
}

func serveReadFolderWithAttributes(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ room: Int, _ cookie: off_t, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    readFolder(request!, NodeID(node), file!.handle, after: cookie, room: room, withAttributes: true)
}

private func readFolder(
    _ request: OpaquePointer, _ node: NodeID, _ handle: HandleID, after cookie: off_t, room: Int, withAttributes: Bool
) {
    let memory = UnsafeMutablePointer<CChar>.allocate(capacity: max(room, 1))
    defer { memory.deallocate() }
    var page = ListingPage(request: request, memory: memory, room: room, hasAttributes: withAttributes)
    // A seekdir(3) to nonsense is a seek past the end, not a trap.
    let position = UInt64(bitPattern: Int64(cookie))
    answer(request, .readFolder, node) { filesystem throws(Failure) in
        try filesystem.readFolder(node, handle: handle, after: position, withAttributes: withAttributes) { page.add($0) }
    } send: { request, _ in
        fuse_reply_buf(request, memory, page.used)
    }
}

/// One reply of readdir: lines in memory of the size that the kernel asked for.
private struct ListingPage {
    let request: OpaquePointer
    let memory: UnsafeMutablePointer<CChar>
    let room: Int
    let hasAttributes: Bool
    var used = 0

    /// False when the line does not fit; then nothing was written.
    mutating func add(_ line: FolderEntry) -> Bool {
        precondition(line.nextCookie != 0, "a line's cookie is where the next one starts, and that is never 0")
        precondition(
            !line.name.isEmpty && line.name.count <= FileName.byteCountMax,
            "a listed name has 1 to 255 bytes, not \(line.name.count)")
        let place = memory + used
        let left = room - used
        let size: Int
        if hasAttributes {
            var entry = line.entry.map { fuse_entry_param($0) } ?? fuse_entry_param(node: line.node, kind: line.kind)
            size = ct_add_entry_plus(request, place, left, line.name, line.name.count, &entry, line.nextCookie)
        } else {
            size = ct_add_entry(
                request, place, left, line.name, line.name.count, line.node.rawValue, line.kind.modeBits, line.nextCookie)
        }
        if size > left { return false }
        used += size
        return true
    }
}

func serveSynchronizeFolder(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ dataOnly: CInt, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let node = NodeID(node)
    let reply = Reply(request!, .synchronizeFolder, node)
    reply.park(reply.filesystem.synchronizeFolder(node, handle: file!.handle) { reply.finish($0) })
}

func serveReleaseFolder(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    MountContext.of(request!).filesystem.releaseFolder(NodeID(node), handle: file!.handle)
    _ = fuse_reply_err(request, 0)
}
