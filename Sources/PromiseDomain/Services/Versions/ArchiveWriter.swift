import CArchive
import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem

/// Streams one ZIP archive into a file, by libarchive (archive_write(3)). For one thread.
final class ArchiveWriter {
    /// Owned, and freed once.
    private let archive: OpaquePointer
    private let isGivenUp: () -> Bool

    /// The descriptor stays the caller's. Once `isGivenUp`, what is added throws `.interrupted`.
    init(_ descriptor: CInt, isGivenUp: @escaping () -> Bool = { false }) throws(Failure) {
        self.isGivenUp = isGivenUp
        guard let archive = archive_write_new() else { throw Failure(.inputOutput, "there is no memory for an archive") }
        self.archive = archive
        archive_write_set_format_zip(archive)
        // What says that its names are UTF-8 must have no others: programs cannot open it at all.
        archive_write_set_options(archive, "zip:hdrcharset=UTF-8")
        try check(archive_write_open_fd(archive, descriptor))
    }

    deinit { archive_write_free(archive) }

    /// `path` is relative; `descriptor` is read for a file's content, `size` bytes of it.
    func add(_ path: [UInt8], _ node: ArchivedNode, descriptor: CInt? = nil) throws(Failure) {
        try goOn()
        guard let entry = archive_entry_new() else { throw Failure(.inputOutput, "there is no memory for an archive") }
        defer { archive_entry_free(entry) }
        let name = String(validating: path, as: UTF8.self) == nil ? Array(escapedForDisplay(path).utf8) : path
        withCPath(name) { path in
            archive_entry_set_pathname(entry, path)
            archive_entry_set_pathname_utf8(entry, path)
        }
        // As bytes: the form for UTF-8 asks the process's locale, and leaves out what that has not.
        if let target = node.target { withCPath(target) { archive_entry_set_symlink(entry, $0) } }
        archive_entry_set_filetype(entry, UInt32(node.kind))
        archive_entry_set_perm(entry, mode_t(node.mode & 0o7777))
        archive_entry_set_mtime(entry, time_t(node.time.seconds), 0)
        archive_entry_set_size(entry, Int64(clamping: node.size))
        try check(archive_write_header(archive, entry))
        guard let descriptor else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { buffer.deallocate() }
        var done: UInt64 = 0
        while done < node.size {
            try goOn()
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(node.size - done, UInt64(buffer.count)))])
            let count: Int
            do throws(SystemError) {
                count = try readFully(descriptor, into: room, at: done, label: "archive.read")
            } catch {
                throw Failure(error)
            }
            guard count > 0 else { throw Failure(.busy, "a file became shorter while it was archived") }
            guard archive_write_data(archive, room.baseAddress, count) == count else { throw problem() }
            done += UInt64(count)
        }
    }

    /// Writes the archive's end.
    func finish() throws(Failure) { try check(archive_write_close(archive)) }

    private func goOn() throws(Failure) {
        if isGivenUp() { throw Failure(.interrupted, "nobody waits for the archive any more") }
    }

    private func check(_ status: CInt) throws(Failure) {
        if status < ARCHIVE_WARN { throw problem() }
    }

    private func problem() -> Failure {
        let reason = archive_error_string(archive).map { String(cString: $0) } ?? "for no known reason"
        let code: Failure.Code = archive_errno(archive) == ENOSPC ? .storeFull : .inputOutput
        return Failure(code, "the archive could not be written: \(reason)")
    }
}

/// What an archive says of a file, folder or link.
struct ArchivedNode {
    /// S_IFREG, S_IFDIR or S_IFLNK.
    var kind: mode_t
    var mode: UInt32
    var time: Timestamp
    var size: UInt64
    var target: [UInt8]?

    /// Nil for what no archive holds.
    init?(_ node: Node) {
        switch node.kind {
        case .file: kind = S_IFREG
        case .folder: kind = S_IFDIR
        case .link: kind = S_IFLNK
        case .fifo, .socket, .characterDevice, .blockDevice: return nil
        }
        mode = node.mode
        time = node.modificationTime
        size = node.kind == .file ? node.size : 0
        target = node.target
    }
}
