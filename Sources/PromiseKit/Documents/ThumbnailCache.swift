import CZlib
import Crypto
import Glibc
import PromiseCore
import Synchronization

/// The pictures that file managers of the freedesktop.org desktops look for before they open a file: with a picture there, the
/// content of a placeholder is not fetched to make one. As the Thumbnail Managing Standard has it: PNG files named by the MD5 of
/// the document's URI, which say in themselves of which document and which state of it they are.
public struct ThumbnailCache: Sendable {
    /// The standard's folders, and how many pixels a side their pictures have at most.
    public static let sizes: [(folder: String, pixels: Int)] = [
        ("normal", 128), ("large", 256), ("x-large", 512), ("xx-large", 1024),
    ]

    public let folder: [UInt8]

    public init(folder: [UInt8]) { self.folder = folder }

    /// `$XDG_CACHE_HOME/thumbnails`; nil when nobody has a home.
    public static var ofUser: ThumbnailCache? {
        func value(_ name: String) -> [UInt8]? {
            guard let value = getenv(name), value.pointee == 0x2F else { return nil }
            return UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) }
        }
        guard let base = value("XDG_CACHE_HOME") ?? value("HOME").map({ $0 + Array("/.cache".utf8) }) else { return nil }
        return ThumbnailCache(folder: base + Array("/thumbnails".utf8))
    }

    /// Puts a PNG where a file manager looks for the picture of a document. `path` is absolute, as the file manager shows it;
    /// `modifiedAt`: seconds and nanoseconds, as stat(2) shows it. Replaces the one there was, at once. Blocks.
    public func place(
        _ picture: [UInt8], in size: String, of path: [UInt8], modifiedAt time: (seconds: Int, nanoseconds: Int)
    ) throws(PromiseError) {
        let uri = ThumbnailCache.uri(of: path)
        let place = folder + Array("/\(size)".utf8)
        makeFolders(place)
        let name = Insecure.MD5.hash(data: Array(uri.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let file = place + Array("/\(name).png".utf8)
        removeDrafts(in: place)
        // Others may write the same picture, in this process and in containers that share the home.
        let draft = place + Array("/\(name).\(UInt64.random(in: 0 ... .max)).new".utf8)
        guard let bytes = ThumbnailCache.adding(ThumbnailCache.marks(uri, time), to: picture) else {
            throw PromiseError(.local, "what should be a picture is no PNG", exitStatus: 1)
        }
        guard write(bytes, to: draft), draft.withCString({ draft in file.withCString { rename(draft, $0) } }) == 0 else {
            let reason = String(cString: strerror(errno))
            _ = draft.withCString { unlink($0) }
            throw PromiseError(.local, "\(escapedForDisplay(file)) cannot be written: \(reason)", exitStatus: 1)
        }
    }

    /// Puts a document's picture there in every size. `path`: bytes from the root of the domain, of what `location` is or holds.
    /// Throws as `PromiseClient.thumbnail` does. Blocks for a moment: it looks at the file and writes four.
    public func place(_ path: [UInt8], below location: Location, from client: PromiseClient) async throws(PromiseError) {
        // Where the user sees it; the rest of the path is that of the domain's root, which may be mounted in part.
        let below = path.dropFirst(location.path.count)
        let separator: [UInt8] = below.isEmpty || below.first == 0x2F || location.absolutePath.last == 0x2F ? [] : [0x2F]
        let absolute = location.absolutePath + separator + below
        var status = stat()
        guard absolute.withCString({ lstat($0, &status) }) == 0 else {
            throw PromiseError(.local, "\(escapedForDisplay(absolute)) has gone", exitStatus: 1)
        }
        for (folder, pixels) in ThumbnailCache.sizes {
            let picture = try await client.thumbnail(of: path, size: pixels)
            try place(picture, in: folder, of: absolute, modifiedAt: (status.st_mtim.tv_sec, status.st_mtim.tv_nsec))
        }
    }

    /// `file://` and the path, with what GLib (g_filename_to_uri) escapes escaped: file managers build the same text.
    public static func uri(of path: [UInt8]) -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()&=+$,:@/".utf8)
        var result = Array("file://".utf8)
        for byte in path {
            guard !plain.contains(byte) else {
                result.append(byte)
                continue
            }
            let digits = Array(String(byte, radix: 16, uppercase: true).utf8)
            result += [UInt8(ascii: "%")] + (digits.count == 1 ? [UInt8(ascii: "0")] : []) + digits
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Chunks that say which document, and which state of it, a picture is of. The standard has the time in whole seconds, and
    /// GLib takes a `tEXt` chunk with anything else for a wrong one. tumbler (4.16 and newer) wants microseconds, and takes the
    /// last time that it finds, in a chunk of any kind, before it knows the URI as well: so those come first, as `iTXt`.
    static func marks(_ uri: String, _ time: (seconds: Int, nanoseconds: Int)) -> [UInt8] {
        let fraction = String(String(1_000_000 + time.nanoseconds / 1000).dropFirst())
        // Not compressed, in no language, not translated (PNG 1.2, 4.2.3.3).
        return chunk("iTXt", Array("Thumb::MTime\0\0\0\0\0\(time.seconds).\(fraction)".utf8))
            + chunk("tEXt", Array("Thumb::URI\0\(uri)".utf8)) + chunk("tEXt", Array("Thumb::MTime\0\(time.seconds)".utf8))
            + chunk("tEXt", Array("Software\0PromiseFS".utf8))
    }

    /// The PNG with chunks after its header (RFC 2083, 3.2); nil when it is none.
    static func adding(_ chunks: [UInt8], to picture: [UInt8]) -> [UInt8]? {
        let headerEnd = 33
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        guard picture.count > headerEnd, picture.starts(with: signature) else { return nil }
        return picture[..<headerEnd] + chunks + picture[headerEnd...]
    }

    private static func chunk(_ kind: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(kind.utf8) + data
        let sum = body.withUnsafeBufferPointer { UInt32(truncatingIfNeeded: crc32(0, $0.baseAddress, UInt32($0.count))) }
        return bigEndian(UInt32(data.count)) + body + bigEndian(sum)
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    /// Folders that were looked through for drafts.
    private static let swept = Mutex<Set<[UInt8]>>([])
    /// No draft takes so long: whoever wrote it has ended.
    private static let draftAgeMax = 3_600

    /// Those that were left by processes that ended in the middle: nobody else removes them. Looked
    /// for once, as there may be thousands of pictures.
    private func removeDrafts(in place: [UInt8]) {
        guard ThumbnailCache.swept.withLock({ $0.insert(place).inserted }),
            let folder = place.withCString({ opendir($0) })
        else { return }
        defer { closedir(folder) }
        var drafts: [[UInt8]] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if ThumbnailCache.isDraft(name) { drafts.append(place + [0x2F] + name) }
        }
        let now = time(nil)
        for draft in drafts {
            var status = stat()
            guard draft.withCString({ lstat($0, &status) }) == 0,
                status.st_mtim.tv_sec < now - ThumbnailCache.draftAgeMax
            else { continue }
            _ = draft.withCString { unlink($0) }
        }
    }

    /// An MD5, a number and `new`: as no other program's files are called.
    private static func isDraft(_ name: [UInt8]) -> Bool {
        let parts = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let digits = Set("0123456789abcdef".utf8)
        return parts.count == 3 && parts[0].count == 32 && parts[0].allSatisfy(digits.contains)
            && parts[1].allSatisfy { (0x30...0x39).contains($0) } && parts[2].elementsEqual("new".utf8)
    }

    /// Private to the user, as the standard asks for.
    private func makeFolders(_ path: [UInt8]) {
        guard path.withCString({ mkdir($0, 0o700) }) != 0, errno == ENOENT, let slash = path.lastIndex(of: 0x2F), slash > 0 else {
            return
        }
        makeFolders(Array(path[..<slash]))
        _ = path.withCString { mkdir($0, 0o700) }
    }

    private func write(_ bytes: [UInt8], to path: [UInt8]) -> Bool {
        let descriptor = path.withCString { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + done, $0.count - done) }
            guard count >= 0 || errno == EINTR else { return false }
            done += max(count, 0)
        }
        return true
    }
}
