import CPromiseSystem
import Glibc

// What the Glibc module does not know of: extended attributes, the file system below a descriptor, descriptor-only opens.

/// open(2): a descriptor that names a file without opening it. Only path calls, statx and fchownat take it; read, write,
/// futimens and fchmod give EBADF.
package let openPathOnly: CInt = 0o10000000

/// The value of an extended attribute of an entry in a folder, without following a link; nil when there is none, it is
/// longer than 1024 bytes, or the entry is gone. `.` asks for the folder itself. `name` is a literal, which ends with the
/// NUL that C needs. getxattrat(2).
///
/// Errors: EOPNOTSUPP where the file system has no such attributes.
package func attribute(
    _ name: StaticString, of path: [UInt8], in folder: CInt, label: StaticString
) throws(SystemError) -> [UInt8]? {
    let room = 1024
    // Missing is the ordinary answer, for every file of a listing: it is told apart before anything is allocated for it.
    let outcome: Result<[UInt8]?, SystemError> = withUnsafeTemporaryAllocation(byteCount: room, alignment: 8) { value in
        withCPath(path) { path in
            while true {
                let name = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
                let count = cps_get_attribute_at(folder, path, name, value.baseAddress!, room)
                if count >= 0 { return .success(Array(value[..<Int(count)])) }
                switch errno {
                case EINTR: continue
                case ENODATA, ERANGE, ENOENT: return .success(nil)
                case let code: return .failure(SystemError(errno: code, label: "\(label)"))
                }
            }
        }
    }
    return try outcome.get()
}

/// As `fileHandle`, in lower-case hexadecimal digits.
package func fileHandleText(of path: [UInt8], in folder: CInt) -> String? {
    withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { handle in
        var type: CInt = 0
        let bytes = handle.bindMemory(to: UInt8.self)
        let length = Int(withCPath(path) { path in cps_file_handle_at(folder, path, bytes.baseAddress!, 128, &type) })
        guard length > 0 else { return nil }
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
        return String(unsafeUninitializedCapacity: length * 2) { text in
            for index in 0..<length {
                text[2 * index] = digit(bytes[index] >> 4)
                text[2 * index + 1] = digit(bytes[index] & 15)
            }
            return length * 2
        }
    }
}

/// Sets an extended attribute of a file that is open for reading or writing. fsetxattr(2).
package func setAttribute(_ name: StaticString, to value: [UInt8], of descriptor: CInt, label: StaticString) throws(SystemError) {
    let name = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    _ = try call(label) { cps_set_attribute(descriptor, name, value, value.count) }
}

/// What programs noted of a file, `user.` attributes, goes to another one. fsetxattr(2).
package func copyAttributes(from source: CInt, to target: CInt, label: StaticString) throws(SystemError) {
    _ = try call(label) { cps_copy_attributes(source, target) }
}

/// Whether a symbolic link of a mount has the mark by which it stays on this machine. lgetxattr(2).
package func linkStays(_ path: [UInt8], label: StaticString) throws(SystemError) -> Bool {
    try withCPath(path) { path throws(SystemError) in try call(label) { cps_link_stays(path) } } > 0
}

/// Sets that mark; no error where links can have none. lsetxattr(2).
package func keepLink(_ path: [UInt8], label: StaticString) throws(SystemError) {
    _ = try withCPath(path) { path throws(SystemError) in try call(label) { cps_keep_link(path) } }
}

/// Who may do what with a file goes to another one, but for its mode. False where the source has an
/// access control list, and the file system of the target keeps none. acl(5).
package func copyAccess(
    from source: CInt, to target: CInt, isFolder: Bool, label: StaticString
) throws(SystemError) -> Bool {
    try call(label) { cps_copy_access(source, target, isFolder ? 1 : 0) } == 0
}

/// The path by which calls without a descriptor form reach an open file: `/proc/self/fd/N`. proc(5).
package func descriptorPath(_ descriptor: CInt) -> [UInt8] { Array("/proc/self/fd/\(descriptor)".utf8) }

/// What fstatfs(2) says of the file system a descriptor is on.
package struct FileSystemFacts: Sendable, Equatable {
    /// The magic number of its type.
    package var type: Int64
    /// Its own identity; 0 where it has none.
    package var identity: UInt64

    package static func of(descriptor: CInt, label: StaticString) throws(SystemError) -> FileSystemFacts {
        var type: Int64 = 0
        var identity: UInt64 = 0
        _ = try call(label) { cps_file_system(descriptor, &type, &identity) }
        return FileSystemFacts(type: type, identity: identity)
    }

    /// Syncing any file of it flushes the disk's cache after the call has begun, whatever there is to sync: ext2, ext3 and ext4
    /// (ext4_sync_file in fs/ext4/fsync.c of Linux).
    package var flushesWithAnyFile: Bool { type == 0xEF53 }

    /// Other machines may change what is on it without this kernel knowing, so inotify(7) does not tell of every change:
    /// NFS, SMB, CIFS, FUSE, 9p, Ceph, AFS.
    package var isShared: Bool {
        let shared: Set<Int64> = [
            0x6969, 0xFE53_4D42, 0xFF53_4D42, 0x6573_5546, 0x0102_1997, 0x00C3_6400, 0x5346_414F, 0x6B41_4653,
        ]
        return shared.contains(type)
    }

    /// Neither inode numbers nor handles are certain to stay with a file as long as it is there, as nothing on the medium keeps
    /// them: FUSE, FAT, exFAT, NTFS, SMB, CIFS, 9p, HFS+, VirtualBox' shared folders.
    package var forgetsWhichFileIsWhich: Bool {
        let forgetful: Set<Int64> = [
            0x6573_5546, 0x4D44, 0x2011_BAB0, 0x5346_544E, 0x7366_746E, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x0102_1997, 0x482B,
            0x786F_4256,
        ]
        return forgetful.contains(type)
    }
}

/// A counter that poll(2) can wait for, to wake a thread. eventfd(2).
package func makeEventDescriptor(label: StaticString) throws(SystemError) -> Descriptor {
    Descriptor(adopting: try call(label) { cps_event_descriptor() })
}
