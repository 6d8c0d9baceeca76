import CPromiseSystem
import Glibc
package import PromiseCore

// The system calls that content, folders and the mount share, each with the label of its call site.

/// What the kernel counts in. EFBIG for what is beyond it: an index may hold a size that a server made up.
private func fileOffset(_ start: UInt64, _ count: Int, _ label: StaticString) throws(SystemError) -> off_t {
    guard let offset = off_t(exactly: start.plus(UInt64(count))) else { throw SystemError(errno: EFBIG, label: "\(label)") }
    return offset
}

/// Reads at an offset until `buffer` is full or the file ends; returns the byte count. pread(2).
package func readFully(
    _ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64, label: StaticString
) throws(SystemError) -> Int {
    var done = 0
    while done < buffer.count {
        let start = buffer.baseAddress! + done
        let room = buffer.count - done
        let position = try fileOffset(offset, done, label)
        let count = try call(label) { pread(descriptor, start, room, position) }
        if count == 0 { break }
        done += count
    }
    return done
}

/// Writes all of `bytes` at an offset; a short write is continued. pwrite(2).
package func writeFully(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, label: StaticString
) throws(SystemError) {
    if let problem = writeSome(descriptor, bytes, at: offset, label: label).problem {
        throw problem
    }
}

/// As `writeFully`, for who has to say how much was written when the rest was not.
package func writeSome(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, label: StaticString
) -> (count: Int, problem: SystemError?) {
    var done = 0
    do throws(SystemError) {
        while done < bytes.count {
            let start = bytes.baseAddress! + done
            let rest = FaultInjection.accepted(bytes.count - done, label)
            let position = try fileOffset(offset, done, label)
            done += try call(label) { pwrite(descriptor, start, rest, position) }
        }
    } catch {
        return (done, error)
    }
    return (done, nil)
}

/// The same, of an array.
package func writeFully(_ descriptor: CInt, _ bytes: [UInt8], at offset: UInt64, label: StaticString) throws(SystemError) {
    // Typed throws do not pass through withUnsafeBytes, so the outcome is carried by a Result.
    let outcome: Result<Void, SystemError> = bytes.withUnsafeBytes { bytes in
        do throws(SystemError) {
            return .success(try writeFully(descriptor, bytes, at: offset, label: label))
        } catch {
            return .failure(error)
        }
    }
    try outcome.get()
}

/// Copies inside the kernel where it can (copy_file_range(2)), else through a buffer. Returns the bytes copied, which
/// are fewer than `count` only when the source ends.
package func copyBytes(
    from source: CInt, at sourceOffset: UInt64, to target: CInt, at targetOffset: UInt64, count: UInt64, label: StaticString
) throws(SystemError) -> UInt64 {
    let (done, problem) = copySome(
        from: source, at: sourceOffset, to: target, at: targetOffset, count: count, label: label)
    if let problem { throw problem }
    return done
}

/// As `copyBytes`, for who has to say how much was copied when the rest was not.
package func copySome(
    from source: CInt, at sourceOffset: UInt64, to target: CInt, at targetOffset: UInt64,
    count: UInt64, label: StaticString
) -> (count: UInt64, problem: SystemError?) {
    var done: UInt64 = 0
    while done < count {
        let rest = FaultInjection.accepted(Int(min(count - done, 1 << 30)), label)
        do throws(SystemError) {
            let from = try fileOffset(sourceOffset, Int(done), label)
            let to = try fileOffset(targetOffset, Int(done), label)
            let copied = try call(label) {
                cps_copy_file_range(source, Int64(from), target, Int64(to), rest)
            }
            if copied == 0 { return (done, nil) }
            done += UInt64(copied)
        } catch {
            // Not every pair of file systems can; what is left goes through memory.
            guard error.errno == EXDEV || error.errno == EINVAL || error.errno == EOPNOTSUPP || error.errno == ENOSYS else {
                return (done, error)
            }
            return copyThroughMemory(
                from: source, at: sourceOffset, to: target, at: targetOffset, count: count, done: done, label: label)
        }
    }
    return (done, nil)
}

private func copyThroughMemory(
    from source: CInt, at sourceOffset: UInt64, to target: CInt, at targetOffset: UInt64, count: UInt64, done start: UInt64,
    label: StaticString
) -> (count: UInt64, problem: SystemError?) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    var done = start
    while done < count {
        let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(count - done, UInt64(buffer.count)))])
        let read: Int
        do throws(SystemError) {
            read = try readFully(source, into: piece, at: sourceOffset + done, label: label)
        } catch {
            return (done, error)
        }
        if read == 0 { break }
        let bytes = UnsafeRawBufferPointer(rebasing: piece[..<read])
        let (written, problem) = writeSome(target, bytes, at: targetOffset + done, label: label)
        done += UInt64(written)
        if let problem { return (done, problem) }
    }
    return (done, nil)
}

/// renameat2(2).
package struct RenameFlags: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let noReplace = RenameFlags(rawValue: 1)
    package static let exchange = RenameFlags(rawValue: 2)
    package static let whiteout = RenameFlags(rawValue: 4)
}

package func rename(
    _ from: [UInt8], in fromFolder: CInt = AT_FDCWD, to: [UInt8], in toFolder: CInt = AT_FDCWD, flags: RenameFlags = [],
    label: StaticString
) throws(SystemError) {
    try withCPath(from) { from throws(SystemError) in
        try withCPath(to) { to throws(SystemError) in
            _ = try call(label) { cps_rename_at(fromFolder, from, toFolder, to, flags.rawValue) }
        }
    }
}

/// A file in `folder` that has no name, open for reading and writing: it is gone with its last close unless `giveName`
/// comes before. Throws EOPNOTSUPP, EISDIR or ENOENT where the file system has none such. O_TMPFILE of open(2).
package func openNameless(
    in folder: [UInt8], mode: UInt32, label: StaticString
) throws(SystemError) -> Descriptor {
    Descriptor(adopting: try withCPath(folder) { folder throws(SystemError) in
        try call(label) { cps_open_nameless(folder, mode) }
    })
}

/// Throws EEXIST when the name is taken. linkat(2), as it says of files that O_TMPFILE has made.
package func giveName(_ path: [UInt8], to descriptor: CInt, label: StaticString) throws(SystemError) {
    let own = Array("/proc/self/fd/\(descriptor)".utf8)
    try withCPath(own) { own throws(SystemError) in
        try withCPath(path) { path throws(SystemError) in
            _ = try call(label) { linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) }
        }
    }
}

/// A further name for a file; throws EEXIST when the name is taken. linkat(2).
package func link(_ from: [UInt8], in fromFolder: CInt = AT_FDCWD, to: [UInt8], label: StaticString) throws(SystemError) {
    try withCPath(from) { from throws(SystemError) in
        try withCPath(to) { to throws(SystemError) in _ = try call(label) { linkat(fromFolder, from, AT_FDCWD, to, 0) } }
    }
}

package func unlink(_ path: [UInt8], in folder: CInt = AT_FDCWD, isFolder: Bool = false, label: StaticString) throws(SystemError)
{
    try withCPath(path) { path throws(SystemError) in
        _ = try call(label) { unlinkat(folder, path, isFolder ? AT_REMOVEDIR : 0) }
    }
}

package func makeFolder(_ path: [UInt8], in folder: CInt = AT_FDCWD, mode: UInt32 = 0o700, label: StaticString)
    throws(SystemError)
{
    try withCPath(path) { path throws(SystemError) in _ = try call(label) { mkdirat(folder, path, mode) } }
}

/// Makes a folder and what is missing above it; one that exists is fine.
package func makeFolders(_ path: [UInt8], mode: UInt32 = 0o700, label: StaticString) throws(SystemError) {
    do throws(SystemError) {
        try makeFolder(path, mode: mode, label: label)
    } catch {
        if error.errno == EEXIST { return }
        guard error.errno == ENOENT, let slash = path.lastIndex(of: 0x2F), slash > 0 else { throw error }
        try makeFolders(Array(path[..<slash]), mode: mode, label: label)
        try makeFolder(path, mode: mode, label: label)
    }
}

package func synchronize(_ descriptor: CInt, dataOnly: Bool, label: StaticString) throws(SystemError) {
    _ = try call(label) { dataOnly ? fdatasync(descriptor) : fsync(descriptor) }
}

/// All of the file system that the file is on. syncfs(2).
package func synchronizeFileSystem(_ descriptor: CInt, label: StaticString) throws(SystemError) {
    _ = try call(label) { cps_sync_file_system(descriptor) }
}

/// Lets the disk begin to write what a later `synchronize` waits for. Makes nothing durable, so it has no failure.
package func beginWriting(_ descriptor: CInt) { _ = cps_begin_writing(descriptor) }

/// Waits until the disk has all bytes of a file, perhaps in its cache. They are durable after the disk's next flush, if they only
/// replaced what was in the same blocks. sync_file_range(2).
package func finishWriting(_ descriptor: CInt, label: StaticString) throws(SystemError) {
    _ = try call(label) { cps_finish_writing(descriptor) }
}

package func truncate(_ descriptor: CInt, to size: UInt64, label: StaticString) throws(SystemError) {
    let size = try fileOffset(size, 0, label)
    _ = try call(label) { ftruncate(descriptor, size) }
}

/// futimens(2) with one or both times; nil leaves a time as it is.
package func setTimes(
    _ descriptor: CInt, access: Timestamp?, modification: Timestamp?, label: StaticString
) throws(SystemError) {
    let times = [timespec(access), timespec(modification)]
    _ = try call(label) { futimens(descriptor, times) }
}

/// utimensat(2) on a path, not following a link.
package func setTimes(
    of path: [UInt8], in folder: CInt = AT_FDCWD, access: Timestamp?, modification: Timestamp?, label: StaticString
) throws(SystemError) {
    let times = [timespec(access), timespec(modification)]
    try withCPath(path) { path throws(SystemError) in
        _ = try call(label) { utimensat(folder, path, times, AT_SYMLINK_NOFOLLOW) }
    }
}

extension timespec {
    /// nil stands for UTIME_OMIT.
    fileprivate init(_ time: Timestamp?) {
        if let time {
            self.init(tv_sec: time.seconds, tv_nsec: time.nanosecondPart)
        } else {
            self.init(tv_sec: 0, tv_nsec: (1 << 30) - 2)
        }
    }
}

/// The target of a symbolic link, as bytes. readlinkat(2).
package func readLink(_ path: [UInt8], in folder: CInt = AT_FDCWD, label: StaticString) throws(SystemError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX) + 1)
    let room = buffer.count
    let count = try withCPath(path) { path throws(SystemError) in
        try call(label) {
            buffer.withUnsafeMutableBytes { bytes in
                readlinkat(folder, path, bytes.baseAddress!.assumingMemoryBound(to: CChar.self), room)
            }
        }
    }
    return Array(buffer[..<count])
}

/// The names in a folder with their kinds where the file system tells, without `.` and `..`. readdir(3).
package func listFolder(_ descriptor: consuming Descriptor, label: StaticString) throws(SystemError) -> [(
    name: [UInt8], inode: UInt64
)] {
    let number = descriptor.release()
    guard let stream = fdopendir(number) else {
        let code = errno
        _ = Glibc.close(number)
        throw SystemError(errno: code, label: "\(label)")
    }
    defer { closedir(stream) }
    var result: [(name: [UInt8], inode: UInt64)] = []
    while true {
        if let fault = FaultInjection.take(label), fault != EINTR { throw SystemError(errno: fault, label: "\(label)") }
        errno = 0
        guard let record = readdir(stream) else {
            let code = errno
            if code != 0 { throw SystemError(errno: code, label: "\(label)") }
            return result
        }
        let name = withUnsafeBytes(of: &record.pointee.d_name) { bytes in Array(bytes.prefix { $0 != 0 }) }
        if name == [0x2E] || name == [0x2E, 0x2E] { continue }
        result.append((name, UInt64(record.pointee.d_ino)))
    }
}

/// The file system's own stable name of a file: not given to another file when the inode number is. Nil where the file
/// system has none (name_to_handle_at(2) gives EOPNOTSUPP).
package func fileHandle(of path: [UInt8], in folder: CInt = AT_FDCWD) -> [UInt8]? {
    var handle = [UInt8](repeating: 0, count: 128)
    var type: CInt = 0
    let length = withCPath(path) { path in cps_file_handle_at(folder, path, &handle, 128, &type) }
    guard length > 0 else { return nil }
    return Array(handle[..<Int(length)])
}

/// Shares the blocks of `source` with the empty file `target` (FICLONE); false where the disk cannot.
package func clone(_ source: CInt, to target: CInt) -> Bool { cps_clone(source, target) == 0 }

/// Frees the blocks of a range; the bytes read as zero afterwards.
package func punchHole(_ descriptor: CInt, _ range: ByteRange, label: StaticString) throws(SystemError) {
    let (start, count) = (try fileOffset(range.lower, 0, label), try fileOffset(range.count, 0, label))
    _ = try call(label) { cps_punch_hole(descriptor, Int64(start), Int64(count)) }
}

/// fallocate(2) with its mode bits.
package func allocate(_ descriptor: CInt, mode: CInt, _ range: ByteRange, label: StaticString) throws(SystemError) {
    let (start, count) = (try fileOffset(range.lower, 0, label), try fileOffset(range.count, 0, label))
    _ = try call(label) { cps_fallocate(descriptor, mode, Int64(start), Int64(count)) }
}

/// Whether anybody but `descriptor`, which is open for reading only, has its file open for writing or mapped so; false where
/// the file system cannot tell. A mapping outlives the descriptor that it was made of (mmap(2)), and shows nowhere else.
package func hasWriters(_ descriptor: CInt) -> Bool { cps_has_writers(descriptor) == 1 }
