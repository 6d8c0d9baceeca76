import CFuse
import Glibc
import PromiseCore
import PromiseFilesystem

// Between libfuse's structures and the file system's values. Pointers of libfuse's are copied here, before anything waits.

extension FileName {
    /// A name of a request, NUL-terminated. Throws `.nameTooLong`: the kernel passes on up to 1024 bytes and more.
    init(_ name: UnsafePointer<CChar>?) throws(Failure) {
        let count = strlen(name!)
        guard count <= FileName.byteCountMax else {
            throw Failure(.nameTooLong, "a name has \(FileName.byteCountMax) bytes at most, not \(count)")
        }
        // The kernel has checked the rest: not empty, no slash, neither `.` nor `..`.
        self.init(trusted: copiedBytes(name))
    }
}

/// The bytes of a NUL-terminated string, without the NUL.
func copiedBytes(_ text: UnsafePointer<CChar>?) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: text!, count: strlen(text!)))
}

extension timespec {
    init(_ time: Timestamp) { self.init(tv_sec: time.seconds, tv_nsec: time.nanosecondPart) }
}

extension Timestamp {
    init(_ time: timespec) { self.init(seconds: time.tv_sec, nanoseconds: time.tv_nsec) }
}

extension stat {
    init(_ attributes: NodeAttributes) {
        self.init()
        st_ino = ino_t(attributes.node.rawValue)
        st_mode = attributes.kind.modeBits | attributes.permissions & 0o7777
        st_nlink = UInt(attributes.links)
        st_uid = attributes.owner
        st_gid = attributes.group
        st_size = off_t(clamping: attributes.size)
        st_blocks = blkcnt_t(clamping: attributes.blocks)
        // What programs take as the best size of a read.
        st_blksize = 4096
        st_rdev = dev_t(attributes.deviceNumber)
        st_atim = timespec(attributes.accessTime)
        st_mtim = timespec(attributes.modificationTime)
        st_ctim = timespec(attributes.changeTime)
    }
}

extension fuse_entry_param {
    init(_ entry: EntryReply) {
        self.init()
        ino = fuse_ino_t(entry.attributes.node.rawValue)
        attr = stat(entry.attributes)
        attr_timeout = entry.attributeLifetimeSeconds
        entry_timeout = entry.entryLifetimeSeconds
    }

    /// A name that does not exist, for the kernel to remember.
    init(absentForSeconds lifetime: Double) {
        self.init()
        entry_timeout = lifetime
    }

    /// A line of a listing without attributes: number and type only.
    init(node: NodeID, kind: NodeKind) {
        self.init()
        attr.st_ino = ino_t(node.rawValue)
        attr.st_mode = kind.modeBits
    }
}

extension AttributeChanges {
    /// `mask` has FUSE_SET_ATTR_* bits.
    init(_ status: stat, mask: CInt) {
        self.init()
        func has(_ bit: CInt) -> Bool { mask & bit != 0 }
        if has(FUSE_SET_ATTR_MODE) { permissions = status.st_mode & 0o7777 }
        if has(FUSE_SET_ATTR_UID) { owner = status.st_uid }
        if has(FUSE_SET_ATTR_GID) { group = status.st_gid }
        if has(FUSE_SET_ATTR_SIZE) { size = UInt64(max(status.st_size, 0)) }
        // The kernel sets the bit of the time and the bit of "now" together.
        if has(FUSE_SET_ATTR_ATIME_NOW) {
            accessTime = .now
        } else if has(FUSE_SET_ATTR_ATIME) {
            accessTime = .at(Timestamp(status.st_atim))
        }
        if has(FUSE_SET_ATTR_MTIME_NOW) {
            modificationTime = .now
        } else if has(FUSE_SET_ATTR_MTIME) {
            modificationTime = .at(Timestamp(status.st_mtim))
        }
        if has(FUSE_SET_ATTR_CTIME) { changeTime = Timestamp(status.st_ctim) }
        // libfuse's name for the bit that the kernel calls FATTR_KILL_SUIDGID (11).
        clearsSetID = has(FUSE_SET_ATTR_KILL_SUID)
    }
}

extension UnsafeMutablePointer<fuse_file_info> {
    var handle: HandleID { HandleID(pointee.fh) }
}
