import CAttributes
import Glibc
import NIOPosix
import PromiseCore
import Synchronization

// How documents are read and written: whole, off the caller's thread, and so that there is never half of one.

/// Tells one state of a file from another.
struct FileStamp: Equatable, Sendable {
    private var node: UInt64
    let size: Int
    private var seconds: Int
    private var nanoseconds: Int

    init(_ status: stat) {
        node = UInt64(status.st_ino)
        size = Int(status.st_size)
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}

/// Tells one state of a document from another; of a file package, of all its files by their paths in it.
struct DocumentStamp: Equatable, Sendable {
    var files: [[UInt8]: FileStamp]
}

/// A document's file by its absolute path. Blocks: to be used within `onThread`.
struct DocumentFile: Sendable {
    let path: [UInt8]

    /// Between two words about the progress.
    private static let stepByteCount = 1 << 20

    /// The concurrent pool must not wait for a disk, or for content that is on its way here.
    static func onThread<Value: Sendable>(
        _ body: @escaping @Sendable () throws(PromiseError) -> Value
    ) async throws -> Value {
        try await NIOThreadPool.singleton.runIfActive { try body() }
    }

    /// As it is now, also where the kernel has not heard yet of what it is told of. Nil when there is none.
    func stamp() throws(PromiseError) -> FileStamp? {
        var status = stat()
        _ = (realPath(path) ?? path).withCString { attributes_refresh($0) }
        if path.withCString({ stat($0, &status) }) == 0 { return FileStamp(status) }
        guard DocumentFile.isGone(errno) else { throw problem("cannot be looked at") }
        return nil
    }

    /// Nothing is there. All else may pass: a line that is down, a disk, a daemon.
    static func isGone(_ code: CInt) -> Bool { [ENOENT, ENOTDIR, ESTALE].contains(code) }

    /// `progress` is told of bytes as they come, and of how many there are.
    func read(_ progress: (Int, Int) -> Void) throws(PromiseError) -> (bytes: [UInt8], stamp: FileStamp) {
        let file = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard file >= 0 else { throw problem("cannot be opened") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw problem("cannot be looked at") }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let done = bytes.withUnsafeMutableBytes {
                Glibc.read(file, $0.baseAddress! + count, min($0.count - count, DocumentFile.stepByteCount))
            }
            if done < 0 && errno == EINTR { continue }
            guard done >= 0 else { throw problem("cannot be read") }
            if done == 0 { break }
            count += done
            progress(count, bytes.count)
        }
        return (Array(bytes[..<count]), FileStamp(status))
    }

    /// Writes a new file beside it, and puts that in its place when it is on the disk. It keeps permissions and extended
    /// attributes. A link stays, and what it leads to is replaced. `isNew`: throws when there is a file already. `lastLook`
    /// throws where the file is not to be replaced any more.
    func write(
        _ bytes: [UInt8], isNew: Bool, lastLook: () throws(PromiseError) -> Void, _ progress: (Int, Int) -> Void
    ) throws(PromiseError) -> FileStamp {
        let target = realPath(path)
        if !isNew, let target, target != path {
            return try DocumentFile(path: target).write(bytes, isNew: false, lastLook: lastLook, progress)
        }
        let draft = makeDraftName()
        // Of a process that was killed, and had this one's number.
        _ = draft.withCString { unlink($0) }
        let file = DocumentFile.make(draft, replacesOne: !isNew)
        guard file >= 0 else { throw problem("cannot be saved beside itself") }
        defer { close(file) }
        do throws(PromiseError) {
            try fill(file, with: bytes, progress)
            if !isNew { takeAttributes(to: file) }
            guard fsync(file) == 0 else { throw problem("cannot be written to the disk") }
            try lastLook()
            try takePlace(draft, isNew: isNew)
        } catch {
            _ = draft.withCString { unlink($0) }
            throw error
        }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw problem("cannot be looked at") }
        return FileStamp(status)
    }

    /// What is to replace a file is for nobody else until it has what that one lets others do.
    static func make(_ path: [UInt8], replacesOne: Bool) -> CInt {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        return path.withCString { open($0, flags, replacesOne ? 0o600 : 0o666) }
    }

    /// False for a placeholder.
    var isHere: Bool { state.map { !["placeholder", "partial"].contains($0) } ?? true }

    /// As the mount has it; nil where it says none.
    var state: String? {
        var value = [UInt8](repeating: 0, count: 64)
        let count = path.withCString { getxattr($0, "user.promisefs.state", &value, value.count) }
        return count < 0 ? nil : String(decoding: value[..<count], as: UTF8.self)
    }

    func fill(_ file: CInt, with bytes: [UInt8], _ progress: (Int, Int) -> Void) throws(PromiseError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress! + done, min($0.count - done, DocumentFile.stepByteCount))
            }
            guard count >= 0 || errno == EINTR else { throw problem("cannot be written") }
            done += max(count, 0)
            progress(done, bytes.count)
        }
    }

    /// A name that stays on this machine (`*~`), and that no other write takes, of this process or
    /// another.
    private func makeDraftName() -> [UInt8] {
        let slash = path.lastIndex(of: 0x2F) ?? 0
        let stem = DocumentFile.stem(of: path[(slash + 1)...])
        let end = "-\(DocumentFile.makeDraftMark())~"
        return path[...slash] + Array(".".utf8) + stem + Array(end.utf8)
    }

    /// Of this process, and of one write of it: two documents of one purpose do not wait for each
    /// other, and may be of the same file.
    static func makeDraftMark() -> String {
        "\(getpid())-\(draftCount.add(1, ordering: .relaxed).newValue)"
    }

    private static let draftCount = Atomic(0)

    /// What a draft is called after a document: of a long name every byte counts, too, as others may begin like it.
    static func stem(of name: ArraySlice<UInt8>) -> [UInt8] {
        guard name.count > 200 else { return Array(name) }
        let hash = name.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return name.prefix(180) + Array("-\(String(hash, radix: 16))".utf8)
    }

    private func takePlace(_ draft: [UInt8], isNew: Bool) throws(PromiseError) {
        let result = draft.withCString { draft in
            path.withCString { path in
                // link(2) replaces nothing.
                isNew ? link(draft, path) : rename(draft, path)
            }
        }
        guard result == 0 else { throw problem(isNew ? "cannot be made" : "cannot be replaced") }
        if isNew { _ = draft.withCString { unlink($0) } }
    }

    /// What the file that is replaced had; as far as it goes.
    func takeAttributes(to file: CInt) {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else { return }
        _ = fchown(file, status.st_uid, status.st_gid)
        _ = fchmod(file, status.st_mode & 0o7777)
        var names = [CChar](repeating: 0, count: 65_536)
        let count = path.withCString { listxattr($0, &names, names.count) }
        guard count > 0 else { return }
        for name in names[..<count].split(separator: 0) {
            let name = Array(name) + [0]
            var value = [UInt8](repeating: 0, count: 65_536)
            let size = path.withCString { getxattr($0, name, &value, value.count) }
            if size >= 0 { _ = fsetxattr(file, name, value, size, 0) }
        }
    }

    func problem(_ what: String) -> PromiseError {
        let code = errno
        let isRefused = [EACCES, EPERM, EROFS].contains(code)
        let isAway = [ENETDOWN, ETIMEDOUT].contains(code)
        return PromiseError(
            .local, "\(escapedForDisplay(path)) \(what): \(String(cString: strerror(code)))",
            exitStatus: isRefused ? 5 : isAway ? 4 : 1)
    }
}
