import CPromiseSystem
import Glibc

/// What a folder answered to a look that takes no longer than a moment.
package enum FolderLook: Sendable {
    /// It can be opened; its path without links.
    case found([UInt8])
    case failed(SystemError)
    /// Its file system hangs, as one on a network does.
    case silent
}

/// Opens a folder, with `flags` of open(2), in a process of its own: a call that hangs may keep the
/// process that makes it from ending, and so whoever waits for that. Blocks for a second at most.
package func lookAtFolder(_ path: [UInt8], flags: CInt) -> FolderLook {
    var resolved = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let length = resolved.withUnsafeMutableBytes { buffer in
        let text = buffer.bindMemory(to: CChar.self)
        return withCPath(path) { path in
            cps_look_at_folder(path, flags, 1000, text.baseAddress!, CUnsignedInt(text.count))
        }
    }
    if length >= 0 { return .found(Array(resolved[..<Int(length)])) }
    return errno == ETIMEDOUT ? .silent : .failed(SystemError(errno: errno, label: "folder.look"))
}
