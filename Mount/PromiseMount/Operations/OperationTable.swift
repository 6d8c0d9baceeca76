import CFuse
import PromiseFilesystem

/// libfuse's table of operations. What is missing the kernel does itself, or asks once and never again:
/// locks (but in a view), flush, access (`default_permissions`), ioctl, poll, bmap.
func makeOperationTable(withLocks: Bool) -> fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    table.`init` = negotiate
    table.lookup = serveLookup
    table.forget = serveForget
    table.forget_multi = serveForgetMany
    table.create = serveCreate
    table.mkdir = serveMakeFolder
    table.mknod = serveMakeNode
    table.symlink = serveMakeLink
    table.link = serveAddName
    table.unlink = serveUnlink
    table.rmdir = serveRemoveFolder
    table.rename = serveRename
    table.readlink = serveLinkTarget
    table.getattr = serveAttributes
    table.setattr = serveSetAttributes
    table.getxattr = serveExtendedAttribute
    table.listxattr = serveExtendedAttributeNames
    table.setxattr = serveSetExtendedAttribute
    table.removexattr = serveRemoveExtendedAttribute
    table.statfs = serveSpace
    table.opendir = serveOpenFolder
    table.readdir = serveReadFolder
    table.readdirplus = serveReadFolderWithAttributes
    table.fsyncdir = serveSynchronizeFolder
    table.releasedir = serveReleaseFolder
    table.open = serveOpen
    table.read = serveRead
    table.write = serveWrite
    table.fsync = serveSynchronize
    table.fallocate = serveAllocate
    table.lseek = serveSeek
    table.copy_file_range = serveCopyRange
    table.release = serveRelease
    if withLocks { addLocks(to: &table) }
    return table
}

/// Chooses among what the kernel offers and libfuse knows; CFuseTransport adds the rest.
private func negotiate(_ userData: UnsafeMutableRawPointer?, _ connection: UnsafeMutablePointer<fuse_conn_info>?) {
    guard let connection else { return }
    let wanted =
        FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS
        | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS | FUSE_CAP_SPLICE_WRITE
        // Attributes come with every page of a listing (no READDIRPLUS_AUTO): find(1) and others read all names first and
        // ask for attributes then, which would be a request for each.
        // The umask is applied here, because a folder with a default ACL replaces it.
        // Nodes are looked up by number for file handles: `.` and `..` of any node.
        | FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK | FUSE_CAP_EXPORT_SUPPORT
    // Left out on purpose: WRITEBACK_CACHE (it would take size, times and caller away), SPLICE_READ and SPLICE_MOVE (see
    // CFuseTransport), EXPLICIT_INVAL_DATA.
    // libfuse has set these where the table serves them.
    let locks = connection.pointee.want & UInt32(FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS)
    connection.pointee.want = (UInt32(wanted) | locks) & connection.pointee.capable
    // Reads ahead count as background; those that wait for a provider must not hold up all others. The default is 12.
    connection.pointee.max_background = 512
    connection.pointee.congestion_threshold = 384
}
