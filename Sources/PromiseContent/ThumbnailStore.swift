import Glibc
package import PromiseCore
import PromiseSystem

/// Pictures of documents, beside the content: `FOLDER/12ab.png` is of node 0x12ab, and its modification time is the one that
/// the document had: a document that has changed has no picture. Evicting content leaves it.
///
/// Pictures can be made again, so nothing here is synced. Thread-safe; replaced by renaming.
package struct ThumbnailStore: Sendable {
    package static let byteCountMax = 8 << 20

    private let folder: [UInt8]

    package init(folder: [UInt8]) { self.folder = folder }

    /// PNG; nil when there is none of the document as it is.
    package func picture(of node: NodeID, modifiedAt time: Timestamp) -> [UInt8]? {
        guard let status = try? FileStatus.of(path(node), label: "thumbnail.status"), status.modificationTime == time else {
            return nil
        }
        return readSmallFile(path(node), countMax: ThumbnailStore.byteCountMax)
    }

    package func has(_ node: NodeID, modifiedAt time: Timestamp) -> Bool {
        (try? FileStatus.of(path(node), label: "thumbnail.has"))?.modificationTime == time
    }

    /// Replaces the one there was.
    package func keep(_ picture: [UInt8], of node: NodeID, modifiedAt time: Timestamp) throws(Failure) {
        let draft = path(node) + Array(".new".utf8)
        do throws(SystemError) {
            try makeFolders(folder, label: "thumbnail.folder")
            let file = try Descriptor.open(
                draft, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "thumbnail.create")
            let outcome: Result<Void, SystemError> = picture.withUnsafeBytes { bytes in
                do throws(SystemError) {
                    return .success(try writeFully(file.number, bytes, at: 0, label: "thumbnail.write"))
                } catch {
                    return .failure(error)
                }
            }
            try outcome.get()
            try setTimes(file.number, access: time, modification: time, label: "thumbnail.time")
            try rename(draft, to: path(node), label: "thumbnail.rename")
        } catch {
            throw Failure(error)
        }
    }

    /// Removes the pictures of nodes that have gone. Returns how many.
    package func sweep(isThere: (NodeID) -> Bool) -> Int {
        guard let open = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "thumbnail.sweep.open"),
            let names = try? listFolder(open, label: "thumbnail.sweep.list")
        else { return 0 }
        var count = 0
        for (name, _) in names {
            let text = String(decoding: name, as: UTF8.self)
            if text.hasSuffix(".png"), let number = UInt64(text.dropLast(4), radix: 16), isThere(NodeID(number)) { continue }
            if (try? unlink(folder + [0x2F] + name, label: "thumbnail.sweep.remove")) != nil { count += 1 }
        }
        return count
    }

    private func path(_ node: NodeID) -> [UInt8] { folder + Array("/\(String(node.rawValue, radix: 16)).png".utf8) }
}
