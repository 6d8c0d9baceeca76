import Glibc
package import PromiseCore
package import PromiseProvider
import PromiseSystem

// How places in the folder are named and reached. Every walk starts at the root and follows no link, so nothing outside the
// folder can be touched.

/// Names that belong to this provider and are no items.
enum ReservedName {
    /// In the root only: temporary files, pictures of items and the lock.
    static let folder = Array(".promisefs".utf8)
    static let uploads = Array("uploads".utf8)
    static let thumbnails = Array("thumbnails".utf8)
    static let lock = Array("lock".utf8)
    /// Temporary files beside their target, where `folder` is on another file system.
    static let uploadPrefix = Array(".promisefs-upload-".utf8)

    static func contains(_ name: [UInt8], inRoot: Bool) -> Bool {
        // Nearly every name ends the question at its first byte.
        guard name.first == UInt8(ascii: ".") else { return false }
        return (inRoot && name == folder) || name.starts(with: uploadPrefix)
    }
}

extension FolderProvider {
    /// The path in a name such as `folder:/srv/cloud`. Throws `.permanent` with a sentence on anything else.
    package static func parse(_ name: String) throws(ProviderError) -> [UInt8] {
        let prefix = "folder:"
        guard name.hasPrefix(prefix) else {
            throw ProviderError(.permanent, "'\(name)' is not a folder provider: write folder:/path")
        }
        var path = Array(name.utf8.dropFirst(prefix.utf8.count))
        guard !path.isEmpty else { throw ProviderError(.permanent, "'\(name)' names no folder: write folder:/path") }
        guard path.first == UInt8(ascii: "/") else {
            throw ProviderError(.permanent, "the path in '\(name)' is relative: write it from the root, as folder:/path")
        }
        guard !path.contains(0) else {
            throw ProviderError(.permanent, "the path in '\(name)' holds a zero byte: write folder:/path")
        }
        while path.count > 1, path.last == UInt8(ascii: "/") { path.removeLast() }
        return path
    }
}

/// A folder held open without access to its content (O_PATH), shared by what is located in it.
final class OpenFolder: Sendable {
    let descriptor: Descriptor

    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    var number: CInt { descriptor.number }

    /// One step down. ENOTDIR for a link, so a walk cannot leave the root.
    func open(_ name: [UInt8]) throws(SystemError) -> OpenFolder {
        OpenFolder(
            try Descriptor.open(
                name, in: number, flags: openPathOnly | O_NOFOLLOW | O_DIRECTORY, label: "folder.walk.open"))
    }

    /// The same folder with access to its content: for listing and fsync.
    func openForReading() throws(SystemError) -> Descriptor {
        try Descriptor.open([0x2E], in: number, flags: O_RDONLY | O_DIRECTORY, label: "folder.list.open")
    }
}

/// Where items were last seen, so that one that moved is found again. Only a hint: what is found is always compared. The
/// `generationCount` items seen last are known for certain, with the folders above them, and at most about twice as many.
package struct PlaceMap: Sendable {
    private struct Place {
        var parent: ItemIdentifier
        var name: FileName
    }

    package static let generationCount = 4_096
    private static let depthMax = 4096

    private var recent: [ItemIdentifier: Place] = [:]
    private var older: [ItemIdentifier: Place] = [:]
    /// The folder that the item learned last is in.
    private var lastParent: ItemIdentifier?

    package init() {}

    package mutating func learn(_ identifier: ItemIdentifier, parent: ItemIdentifier, name: FileName) {
        if recent.count >= PlaceMap.generationCount {
            swap(&older, &recent)
            recent.removeAll(keepingCapacity: true)
            lastParent = nil
        }
        recent[identifier] = Place(parent: parent, name: name)
        if parent == lastParent { return }
        lastParent = parent
        // The folders it is in are as good as seen.
        var folder = parent
        while let place = older.removeValue(forKey: folder) {
            if recent[folder] == nil { recent[folder] = place }
            folder = place.parent
        }
    }

    package mutating func forget(_ identifier: ItemIdentifier) {
        recent[identifier] = nil
        older[identifier] = nil
    }

    /// From the root; nil when a folder on the way is not known.
    package func path(of identifier: ItemIdentifier, root: ItemIdentifier) -> [FileName]? {
        var result: [FileName] = []
        var current = identifier
        while current != root {
            guard let place = recent[current] ?? older[current], result.count < PlaceMap.depthMax else { return nil }
            result.append(place.name)
            current = place.parent
        }
        return result.reversed()
    }
}
