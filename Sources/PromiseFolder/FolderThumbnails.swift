import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Pictures of items, for whoever else mounts the folder: `.promisefs/thumbnails/HASH.png`, named
/// by the item's identifier, so that it follows the item. Its modification time is the one of the
/// content that it shows: a file that has changed has none. Blocking.
struct FolderThumbnails: Sendable {
    private static let byteCountMax: UInt64 = 8 << 20

    let locator: FolderLocator
    let hidden: HiddenFolder
    private var root: FolderRoot { locator.root }

    /// Nil when there is none of that version.
    func fetch(
        _ reference: ItemReference, version: ContentVersion
    ) throws(ProviderError) -> [UInt8]? {
        // Looking makes no hidden folder, which the user may not write to.
        guard let folder = try known() else { return nil }
        let located = try locator.locate(reference)
        guard located.entry.version == version else { return nil }
        let name = FolderThumbnails.name(of: located.entry.identifier)
        let what = "the picture of '\(display(located.path))' cannot be read"
        return try mapped(what) { () throws(SystemError) in
            try FolderThumbnails.picture(
                name, in: folder, of: located.entry.status.modificationTime)
        }
    }

    func save(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) throws(ProviderError) {
        let located = try locator.locate(reference)
        guard located.entry.version == version else { throw ProviderError.changed(located) }
        // What a killed daemon leaves there is removed with the uploads.
        let uploads = try hidden.openUploads()
        let folder = try hidden.openHidden(ReservedName.thumbnails)
        let (draft, time) = (hidden.names.name(.store), located.entry.status.modificationTime)
        do throws(SystemError) {
            try FolderThumbnails.write(picture, to: draft, in: uploads, modifiedAt: time)
            let name = FolderThumbnails.name(of: located.entry.identifier)
            try rename(
                draft, in: uploads.number, to: name, in: folder.number,
                label: "folder.thumbnail.rename")
        } catch {
            hidden.names.remove(draft, in: uploads)
            throw ProviderError(error, "the picture of '\(display(located.path))' cannot be kept")
        }
    }

    func remove(of identifier: ItemIdentifier) {
        guard let folder = try? known() else { return }
        // Nearly always there is none; one that stays is of no item, and costs a few kilobytes.
        try? unlink(
            FolderThumbnails.name(of: identifier), in: folder.number,
            label: "folder.thumbnail.remove")
    }

    /// Nil when nobody has kept a picture yet.
    private func known() throws(ProviderError) -> OpenFolder? {
        let top = try root.open()
        do throws(SystemError) {
            return try top.open(ReservedName.folder).open(ReservedName.thumbnails)
        } catch {
            if error.errno == ENOENT { return nil }
            throw ProviderError(
                error,
                "'\(root.displayPath)/.promisefs/thumbnails' cannot be used: check its permissions")
        }
    }

    private static func name(of identifier: ItemIdentifier) -> [UInt8] {
        var hash = FowlerNollVoHash()
        hash.add(identifier.rawValue.utf8)
        return Array("\(hash.text).png".utf8)
    }

    private static func picture(
        _ name: [UInt8], in folder: OpenFolder, of time: Timestamp
    ) throws(SystemError) -> [UInt8]? {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        // Nearly always there is none; one that cannot be opened is as good as none.
        guard
            let file = try? Descriptor.open(
                name, in: folder.number, flags: flags, label: "folder.thumbnail.open")
        else {
            return nil
        }
        let status = try FileStatus.of(descriptor: file.number, label: "folder.thumbnail.status")
        guard status.kind == .file, status.modificationTime == time, status.size <= byteCountMax
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let outcome: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                return .success(
                    try readFully(file.number, into: buffer, at: 0, label: "folder.thumbnail.read"))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get() == bytes.count ? bytes : nil
    }

    private static func write(
        _ picture: [UInt8], to name: [UInt8], in folder: OpenFolder, modifiedAt time: Timestamp
    ) throws(SystemError) {
        // As readable as the folder is: those who share it share the pictures.
        let file = try Descriptor.open(
            name, in: folder.number, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o644,
            label: "folder.thumbnail.make")
        try writeFully(file.number, picture, at: 0, label: "folder.thumbnail.write")
        try setTimes(file.number, access: time, modification: time, label: "folder.thumbnail.time")
    }
}
