import Glibc
import PromiseCore
import PromiseWire

/// Where the daemon of a mount was started with another runtime folder than this process has: the kernel lists what sockets
/// are bound to (`/proc/net/unix`), and the owner of the file says whose it is.
func boundSocket(of mount: MountEntry) -> String? {
    guard let table = readWholeFile("/proc/net/unix") else { return nil }
    let ending = Array("/promisefs/\(mount.domain).sock".utf8)
    for line in table.split(separator: 0x0A) where line.suffix(ending.count).elementsEqual(ending) {
        guard let start = line.firstIndex(of: 0x2F), let path = String(validating: line[start...], as: UTF8.self),
            // Root has domains of its own, of the same names.
            owner(ofSocket: path) == mount.user
        else { continue }
        return path
    }
    return nil
}

/// A socket that the mount's user or root made: a stranger may have put one below /tmp.
func isSocket(_ path: String, of user: UInt32) -> Bool {
    let owner = owner(ofSocket: path)
    return owner == user || owner == 0
}

/// Nil: there is no socket.
private func owner(ofSocket path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK ? status.st_uid : nil
}

func hasFolder(_ path: String) -> Bool {
    var status = stat()
    let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    return stat(folder, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
}
