package import PromiseCore
package import PromiseProvider

/// What one page of a listing shows of a folder: files and folders, and keys that can be neither.
package struct S3Rows: Sendable {
    package struct Row: Sendable {
        package var name: FileName
        package var key: [UInt8]
        package var tag = ""
        package var size: UInt64 = 0
        package var lastModified: Timestamp?
    }

    package private(set) var files: [Row] = []
    package private(set) var folders: [Row] = []
    package private(set) var hidden: [[UInt8]] = []
    private var lastKey: [UInt8] = []

    /// `folder` is the key that the listing was asked for.
    package init(_ listing: S3Listing, in folder: [UInt8], _ names: KeyNames, isRoot: Bool) {
        var taken: Set<FileName> = []
        for prefix in listing.prefixes {
            lastKey = max(lastKey, prefix)
            guard let name = names.name(of: prefix, in: folder) else {
                hidden.append(prefix)
                continue
            }
            if isRoot && name == ReservedName.folder { continue }
            taken.insert(name)
            folders.append(Row(name: name, key: prefix))
        }
        // A folder's marker is empty; what somebody keeps under its key cannot be shown.
        hidden += listing.objects.filter { $0.key == folder && $0.size > 0 }.map(\.key)
        for object in listing.objects where object.key != folder {
            lastKey = max(lastKey, object.key)
            var name = object.key.last == KeyNames.slash ? nil : names.name(of: object.key, in: folder)
            // It would stand for another key.
            if let found = name, BesideName.plain(found) != nil { name = nil }
            // Of a file and a folder of one name the folder has it: there is more in it.
            if let found = name, taken.contains(found) { name = BesideName.name(of: found) }
            guard let name, !taken.contains(name) else {
                hidden.append(object.key)
                continue
            }
            if isRoot && name == ReservedName.folder { continue }
            files.append(
                Row(name: name, key: object.key, tag: object.tag, size: object.size, lastModified: object.lastModified))
        }
    }

    /// Of the files whose name may be a folder's on a later page, renames those for which it is.
    package mutating func renameFilesBesideFolders(
        _ isFolder: ([UInt8]) async throws(ProviderError) -> Bool
    ) async throws(ProviderError) {
        for file in files where lastKey.starts(with: file.key) {
            guard try await isFolder(file.key), let index = files.firstIndex(where: { $0.key == file.key }) else { continue }
            if let name = BesideName.name(of: file.name), !folders.contains(where: { $0.name == name }) {
                files[index].name = name
            } else {
                hidden.append(file.key)
                files.remove(at: index)
            }
        }
    }
}

private func max(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] { left.lexicographicallyPrecedes(right) ? right : left }
