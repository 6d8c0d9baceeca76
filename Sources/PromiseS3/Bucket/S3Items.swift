import Glibc
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// The names this provider keeps things under; they are no items.
enum ReservedName {
    /// In the root only.
    static let folder = FileName(trusted: Array(".promisefs".utf8))
    /// In every folder, where a server keeps no keys that end with a slash.
    static let keeper = FileName(trusted: Array(KeyNames.keeper.utf8))
}

/// Objects and folders of a bucket as items. An identifier is a place: it does not survive a move.
/// Asks nobody.
struct S3Items: Sendable {
    static let folderVersion = ContentVersion("folder")

    let location: S3Location
    let clock: any TimeSource

    func identifier(_ path: some Collection<FileName>) -> ItemIdentifier {
        if path.isEmpty {
            return ItemIdentifier("s3://\(location.bucket)/\(S3Location.encoded(location.prefix))")
        }
        let key = Array(path.map(\.bytes).joined(separator: [KeyNames.slash]))
        return ItemIdentifier("/" + S3Location.encoded(key))
    }

    func reference(_ path: [FileName]) -> ItemReference {
        ItemReference(identifier: identifier(path), path: path)
    }

    /// `parent`: as the caller calls the folder; nil: by its place. Without `details` the metadata
    /// is a guess, and so is a file's time that nobody tells: it is as old as we know it.
    func item(
        _ path: [FileName], kind: NodeKind, tag: String, size: UInt64, lastModified: Timestamp?,
        _ details: ObjectDetails?,
        parent: ItemIdentifier?
    ) -> Item {
        let target = kind == .folder ? nil : details?.target
        let kind: NodeKind = target == nil ? kind : .link
        let metadata = (details ?? ObjectDetails()).metadata(
            kind: kind, lastModified: lastModified ?? (kind == .folder ? .zero : clock.now()),
            owner: geteuid(), group: getegid())
        var item = Item(
            identifier: identifier(path),
            parent: path.isEmpty ? nil : parent ?? identifier(path.dropLast()),
            name: path.last ?? FileName(trusted: Array("root".utf8)), kind: kind,
            size: kind == .folder ? 0 : target.map { UInt64($0.count) } ?? size, metadata: metadata,
            version: kind == .folder ? S3Items.folderVersion : ContentVersion(tag), target: target)
        let hasNoTime = lastModified == nil && details?.modificationTime == nil
        item.isGuess = details == nil || kind != .folder && hasNoTime
        return item
    }

    func item(_ status: ObjectStatus, _ path: [FileName], parent: ItemIdentifier?) -> Item {
        item(
            path, kind: .file, tag: status.tag, size: status.size,
            lastModified: status.lastModified,
            status.details, parent: parent)
    }

    /// `details`: of its marker.
    func folder(_ path: [FileName], _ details: ObjectDetails, parent: ItemIdentifier?) -> Item {
        item(path, kind: .folder, tag: "", size: 0, lastModified: nil, details, parent: parent)
    }
}
