import Glibc

/// Removes what is at a path, with all that is in it; links go, and what they lead to stays. What is
/// not there is removed. Goes on after a failure, and throws the first. Blocking.
package func removeTree(_ path: [UInt8], label: StaticString) throws(SystemError) {
    var first: SystemError?
    do throws(SystemError) {
        // As a folder it is refused by unlink(2), with EISDIR on Linux.
        try unlink(path, label: label)
        return
    } catch {
        if error.errno == ENOENT { return }
        guard error.errno == EISDIR || error.errno == EPERM else { throw error }
    }
    let folder = try Descriptor.open(
        path, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: label)
    for entry in try listFolder(folder, label: label) {
        do throws(SystemError) {
            try removeTree(path + [0x2F] + entry.name, label: label)
        } catch {
            first = first ?? error
        }
    }
    if let first { throw first }
    do throws(SystemError) {
        try unlink(path, isFolder: true, label: label)
    } catch {
        if error.errno != ENOENT { throw error }
    }
}

/// A name beside a path that nobody sees in a listing, and that names no domain: for what is on its
/// way out.
package func hiddenName(beside path: [UInt8], _ ending: String) -> [UInt8] {
    let slash = path.lastIndex(of: 0x2F) ?? path.startIndex
    let ending = Array(".\(ending)".utf8)
    return path[...slash] + [0x2E] + path[(slash + 1)...].prefix(254 - ending.count) + ending
}
