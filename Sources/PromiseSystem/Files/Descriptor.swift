package import PromiseCore

import Glibc
import CPromiseSystem

/// An owned file descriptor: closed exactly once, by `close()` or at the end of its life. Close-on-exec from birth.
package struct Descriptor: ~Copyable, Sendable {
    package let number: CInt

    package init(adopting number: CInt) {
        precondition(number >= 0, "a descriptor is not negative: \(number)")
        self.number = number
    }

    deinit { _ = Glibc.close(number) }

    /// Hands the number to somebody who will close it.
    package consuming func release() -> CInt {
        let result = number
        discard self
        return result
    }

    /// openat(2). `path` is bytes without NUL; relative to `folder`, which defaults to the working directory.
    package static func open(
        _ path: [UInt8], in folder: CInt = AT_FDCWD, flags: CInt, mode: UInt32 = 0o600, label: StaticString
    ) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try withCPath(path) { path throws(SystemError) in
            try call(label) { cps_open_at(folder, path, flags | O_CLOEXEC, mode) }
        })
    }

    /// openat2(2) of what is there below `folder`, for a path in which others may put links: ELOOP
    /// where there is one, EXDEV where another mount is on the way.
    package static func open(
        _ path: [UInt8], beneath folder: CInt, flags: CInt, label: StaticString
    ) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try withCPath(path) { path throws(SystemError) in
            try call(label) { cps_open_beneath(folder, path, flags | O_CLOEXEC) }
        })
    }
}

/// Gives `body` the bytes as a C string. Traps on an embedded NUL, which no legal path has.
package func withCPath<Value, Problem: Error>(
    _ path: [UInt8], _ body: (UnsafePointer<CChar>) throws(Problem) -> Value
) throws(Problem) -> Value {
    // A short path is on the stack. Typed throws do not pass through, so the outcome is carried by a Result.
    let outcome: Result<Value, Problem> = withUnsafeTemporaryAllocation(of: CChar.self, capacity: path.count + 1) { buffer in
        let start = buffer.baseAddress!
        path.withUnsafeBytes { bytes in
            if let source = bytes.baseAddress { UnsafeMutableRawPointer(start).copyMemory(from: source, byteCount: bytes.count) }
        }
        start[path.count] = 0
        precondition(strlen(start) == path.count, "a path has no NUL")
        do throws(Problem) { return .success(try body(start)) } catch { return .failure(error) }
    }
    return try outcome.get()
}

/// What statx(2) says of a file; links are not followed.
package struct FileStatus: Sendable, Equatable {
    package var inode: UInt64
    package var device: UInt64
    /// As /proc/self/mountinfo numbers them; 0 before Linux 5.8.
    package var mount: UInt64
    package var size: UInt64
    /// 512-byte blocks allocated.
    package var blocks: UInt64
    package var deviceNumber: UInt64
    package var kind: NodeKind
    package var permissions: UInt32
    package var links: UInt32
    package var owner: UInt32
    package var group: UInt32
    package var accessTime: Timestamp
    package var modificationTime: Timestamp
    package var changeTime: Timestamp
    /// `.zero` where the file system does not record it.
    package var birthTime: Timestamp

    init(_ raw: cps_file_status) {
        inode = raw.inode
        device = raw.device
        mount = raw.mount
        size = raw.size
        blocks = raw.blocks
        deviceNumber = raw.device_number
        kind = NodeKind(modeBits: raw.mode) ?? .file
        permissions = raw.mode & 0o7777
        links = raw.links
        owner = raw.owner
        group = raw.group
        accessTime = Timestamp(nanoseconds: raw.access_time)
        modificationTime = Timestamp(nanoseconds: raw.modification_time)
        changeTime = Timestamp(nanoseconds: raw.change_time)
        birthTime = Timestamp(nanoseconds: raw.birth_time)
    }
}

extension FileStatus {
    /// Of a path, relative to `folder` (default: the working directory). Does not follow a final link.
    package static func of(_ path: [UInt8], in folder: CInt = AT_FDCWD, label: StaticString) throws(SystemError) -> FileStatus {
        var raw = cps_file_status()
        _ = try withCPath(path) { path throws(SystemError) in try call(label) { cps_status_at(folder, path, &raw) } }
        return FileStatus(raw)
    }

    /// Of an open file.
    package static func of(descriptor: CInt, label: StaticString) throws(SystemError) -> FileStatus {
        var raw = cps_file_status()
        _ = try call(label) { cps_status_at(descriptor, "", &raw) }
        return FileStatus(raw)
    }
}

/// A descriptor that several owners use; closed when the last lets go.
package final class SharedDescriptor: Sendable {
    private let descriptor: Descriptor
    package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    package var number: CInt { descriptor.number }
}
