import CFuse
import CFuseTransport
import PromiseCore
import PromiseFilesystem

/// Which operation a request is, for the log.
enum FuseOperation: String, Sendable {
    case lookup, create, makeFolder, makeNode, makeLink, addName, unlink, removeFolder, rename, linkTarget
    case attributes, setAttributes, extendedAttribute, extendedAttributeNames, setExtendedAttribute, removeExtendedAttribute,
        space
    case readFolder, synchronizeFolder
    case open, read, write, synchronize, allocate, seek, copyRange, release
    case testLock, setLock, flush
}

extension Caller {
    /// On the serving thread only: the kernel's number of the request is the thread's.
    init(_ request: OpaquePointer) {
        let context = fuse_req_ctx(request).pointee
        let details = ct_current_request()
        self.init(
            user: context.uid, group: context.gid, process: context.pid, umask: UInt32(context.umask),
            request: details.unique, isResent: details.is_resent)
    }
}
