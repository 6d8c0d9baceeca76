import CFuse
import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem

// C callbacks of folders. A listing needs nothing of its reader, so the kernel is told to open folders by itself.

/// Asked for once (FUSE_NO_OPENDIR_SUPPORT of <linux/fuse.h>): from then on the kernel opens folders as the flags below say,
/// and closes them without a word. Kernels before 5.1 ask each time.
func serveOpenFolder(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    let offered = ct_negotiated(MountContext.transport(of: request!)).offered
    if offered & Negotiation.noOpenFolderFlag != 0 {
        _ = fuse_reply_err(request, ENOSYS)
    } else {
        _ = ct_reply_open(request!, 0, openCacheFolder | openKeepCache, 0)
    }
}

func serveReleaseFolder(_ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    _ = fuse_reply_err(request, 0)
}

func serveReadFolder(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ room: Int, _ cookie: off_t, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    readFolder(request!, NodeID(node), after: cookie, room: room, withAttributes: false)
}

func serveReadFolderWithAttributes(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ room: Int, _ cookie: off_t, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    readFolder(request!, NodeID(node), after: cookie, room: room, withAttributes: true)
}

private func readFolder(_ request: OpaquePointer, _ node: NodeID, after cookie: off_t, room: Int, withAttributes: Bool) {
    let page = ListingPage(request: request, room: room, hasAttributes: withAttributes)
    // A seekdir(3) to nonsense is a seek past the end, not a trap.
    let position = UInt64(bitPattern: Int64(cookie))
    let reply = Reply(request, .readFolder, node)
    reply.park(
        reply.filesystem.readFolder(node, after: position, withAttributes: withAttributes, add: { page.add($0) }) { result in
            reply.finish(result) { request, _ in fuse_reply_buf(request, page.memory, page.used) }
        })
}

/// One reply of readdir: lines in memory of the size that the kernel asked for.
///
/// Unchecked because nothing locks it: its lines are added, and then it is sent, by one thread at a time.
private final class ListingPage: @unchecked Sendable {
    let request: OpaquePointer
    let memory: UnsafeMutablePointer<CChar>
    let room: Int
    let hasAttributes: Bool
    private(set) var used = 0

    init(request: OpaquePointer, room: Int, hasAttributes: Bool) {
        self.request = request
        self.room = room
        self.hasAttributes = hasAttributes
        memory = .allocate(capacity: max(room, 1))
    }

    deinit { memory.deallocate() }

    /// False when the line does not fit; then nothing was written.
    func add(_ line: FolderEntry) -> Bool {
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
    reply.park(reply.filesystem.synchronizeFolder(node) { reply.finish($0) })
}
