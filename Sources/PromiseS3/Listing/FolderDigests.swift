/// What folders of a bucket held when they were listed last, one number each. A listing of everything in the bucket says in a
/// request for a thousand objects which folders hold something else now; to list each folder again is a request for each. Pure.
///
/// A digest is the sum of the rows' hashes, so rows may come in any order. That two different folders have one is less likely
/// than a broken disk.
package struct FolderDigests: Sendable {
    private var whole: [[UInt8]: Int] = [:]
    /// Of listings whose last page has not come.
    private var begun: [[UInt8]: Int] = [:]

    package init() {}

    /// A page of a folder's listing. Without `isCertain` it has told less than there is to know, and the folder counts as
    /// changed until it is listed again.
    package mutating func listed(_ folder: [UInt8], _ page: S3Listing, isFirst: Bool, isCertain: Bool) {
        var sum = isFirst ? 0 : begun[folder]
        if isCertain, let before = sum {
            sum = page.objects.reduce(before) { $0 &+ FolderDigests.hash($1) }
            sum = page.prefixes.reduce(sum!) { $0 &+ FolderDigests.hash($1) }
        } else {
            sum = nil
        }
        whole[folder] = page.next == nil ? sum : nil
        begun[folder] = page.next == nil ? nil : sum
    }

    /// It is to be listed again, whatever is in it.
    package mutating func forget(_ folder: [UInt8]) {
        whole[folder] = nil
        begun[folder] = nil
    }

    package func isChanged(_ folder: [UInt8], in look: BucketLook) -> Bool {
        guard let known = whole[folder] else { return true }
        return known != look.digests[folder, default: 0]
    }

    fileprivate static func hash(_ object: S3Listing.Object) -> Int {
        var hasher = Hasher()
        hasher.combine(object)
        return hasher.finalize()
    }

    fileprivate static func hash(_ prefix: [UInt8]) -> Int {
        var hasher = Hasher()
        hasher.combine(prefix)
        return hasher.finalize()
    }
}

/// What the folders of a bucket hold, from a listing of all its keys. Pure.
package struct BucketLook: Sendable {
    fileprivate var digests: [[UInt8]: Int] = [:]
    /// Keys of folders of which the folder above knows.
    private var seen: Set<[UInt8]> = []

    package init() {}

    package mutating func add(_ objects: [S3Listing.Object]) {
        for object in objects {
            // A marker, whose key ends with a slash, is an object of its own folder.
            let folder = KeyNames.folder(above: object.key[...])
            digests[folder, default: 0] &+= FolderDigests.hash(object)
            addFolder(folder)
        }
    }

    private mutating func addFolder(_ folder: [UInt8]) {
        var folder = folder
        while !folder.isEmpty, seen.insert(folder).inserted {
            let parent = KeyNames.folder(above: folder.dropLast())
            digests[parent, default: 0] &+= FolderDigests.hash(folder)
            folder = parent
        }
    }
}
