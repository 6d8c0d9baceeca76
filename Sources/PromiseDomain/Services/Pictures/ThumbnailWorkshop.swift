import Glibc
import PromiseCore
import PromiseSystem

/// A folder for one run of a program that reads what strangers sent; gone with this value. Root's programs run as nobody, and
/// then it lies in a folder of root's: whoever runs as nobody can put nothing in its place, and what is in it is not followed.
final class ThumbnailWorkshop {
    static let nobody: uid_t = 65_534
    private static let document = Array("document".utf8)
    private static let picture = Array("picture.png".utf8)

    private let outside: [UInt8]
    private let inside: Descriptor
    /// The folder, absolute.
    var place: String { String(decoding: outside + ThumbnailWorkshop.work, as: UTF8.self) }
    /// As they are called in it.
    var source: String { String(decoding: ThumbnailWorkshop.document, as: UTF8.self) }
    var result: String { String(decoding: ThumbnailWorkshop.picture, as: UTF8.self) }

    /// Nil when it cannot be made.
    init?() {
        let isRoot = geteuid() == 0
        // Where nobody may look, a folder of root's own would be of no use.
        var template = Array("\(ThumbnailWorkshop.base)/promisefs-thumbnail-XXXXXX".utf8CString)
        let isMade = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil }
        guard isMade else { return nil }
        outside = template.dropLast().map { UInt8(bitPattern: $0) }
        let work = outside + ThumbnailWorkshop.work
        guard (try? makeFolders(work, label: "thumbnail.workshop.make")) != nil,
            let folder = try? Descriptor.open(
                work, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "thumbnail.workshop.open")
        else {
            try? unlink(work, isFolder: true, label: "thumbnail.workshop.undo")
            try? unlink(outside, isFolder: true, label: "thumbnail.workshop.undoOutside")
            return nil
        }
        inside = folder
        guard !isRoot || giveAway(inside.number) && withCPath(outside, { chmod($0, 0o711) }) == 0 else { return nil }
    }

    deinit {
        ThumbnailWorkshop.clear(inside.number, depth: 0)
        try? unlink(outside + ThumbnailWorkshop.work, isFolder: true, label: "thumbnail.workshop.remove")
        try? unlink(outside, isFolder: true, label: "thumbnail.workshop.removeOutside")
    }

    /// Programs make folders in what is their home (~/.cache). Nothing is followed.
    private static func clear(_ folder: CInt, depth: Int) {
        guard depth < depthMax,
            let open = try? Descriptor.open(
                [0x2E], in: folder, flags: O_RDONLY | O_DIRECTORY, label: "thumbnail.workshop.look"),
            let names = try? listFolder(open, label: "thumbnail.workshop.list")
        else { return }
        for (name, _) in names {
            if (try? unlink(name, in: folder, label: "thumbnail.workshop.clear")) != nil { continue }
            // A program may put a link there at any moment.
            _ = withCPath(name) { fchmodat(folder, $0, 0o700, AT_SYMLINK_NOFOLLOW) }
            if let inner = try? Descriptor.open(
                name, in: folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "thumbnail.workshop.inner")
            {
                clear(inner.number, depth: depth + 1)
            }
            try? unlink(name, in: folder, isFolder: true, label: "thumbnail.workshop.clearFolder")
        }
    }

    private static let depthMax = 64
    private static let prefix = Array("promisefs-thumbnail-".utf8)
    private static let ageMin: Int64 = 3_600

    private static var base: String { geteuid() == 0 ? "/tmp" : environment("TMPDIR") ?? "/tmp" }

    /// Removes what daemons that were killed have left; of this user, and old. Blocks.
    static func sweep(now: Timestamp) {
        guard let folder = try? Descriptor.open(
            Array(base.utf8), flags: O_RDONLY | O_DIRECTORY, label: "thumbnail.leftover.open"),
            let open = try? Descriptor.open(
                [0x2E], in: folder.number, flags: O_RDONLY | O_DIRECTORY, label: "thumbnail.leftover.look"),
            let names = try? listFolder(open, label: "thumbnail.leftover.list")
        else { return }
        for (name, _) in names where name.starts(with: prefix) {
            guard let left = try? Descriptor.open(
                name, in: folder.number, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "thumbnail.leftover.left"),
                let status = try? FileStatus.of(descriptor: left.number, label: "thumbnail.leftover.status"),
                status.owner == geteuid(),
                now.seconds - status.modificationTime.seconds > ageMin
            else { continue }
            clear(left.number, depth: 0)
            try? unlink(name, in: folder.number, isFolder: true, label: "thumbnail.leftover.remove")
        }
    }

    /// Makes the document, which `fill` writes.
    func makeSource(_ fill: (CInt) throws(SystemError) -> Void) throws(SystemError) {
        let file = try Descriptor.open(
            ThumbnailWorkshop.document, in: inside.number, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600,
            label: "thumbnail.document")
        try fill(file.number)
        if geteuid() == 0, !giveAway(file.number) { throw SystemError(errno: errno, label: "thumbnail.document.owner") }
    }

    /// What the program made; nil when that is no file or too large.
    func readResult(countMax: Int) -> [UInt8]? {
        // A link is not followed, and a pipe not waited for.
        guard let file = try? Descriptor.open(
            ThumbnailWorkshop.picture, in: inside.number, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK, label: "thumbnail.result"),
            let status = try? FileStatus.of(descriptor: file.number, label: "thumbnail.result.status"),
            status.kind == .file, status.size <= countMax
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let count = bytes.withUnsafeMutableBytes {
            (try? readFully(file.number, into: $0, at: 0, label: "thumbnail.result.read")) ?? 0
        }
        return Array(bytes[..<count])
    }

    private static let work = Array("/work".utf8)
}

/// By the descriptor: a path could lead elsewhere by then.
private func giveAway(_ descriptor: CInt) -> Bool {
    fchown(descriptor, ThumbnailWorkshop.nobody, ThumbnailWorkshop.nobody) == 0
}
