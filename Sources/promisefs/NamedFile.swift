import Glibc
import PromiseCore
import PromiseSystem

/// What a person named for a command to write. A new file is put in the place of an old one: that must be the file that
/// links lead to, and never a device.
enum NamedFile {
    /// To be replaced as a whole, or made.
    case file([UInt8])
    /// A terminal, a pipe, a device: what is written goes there.
    case stream([UInt8])

    /// As path_resolution(7).
    private static let linksMax = 40

    init(_ path: [UInt8]) {
        var status = stat()
        if withCPath(path, { stat($0, &status) }) == 0, status.st_mode & S_IFMT != S_IFREG {
            self = .stream(path)
        } else {
            self = .file(NamedFile.end(of: path))
        }
    }

    /// Also of a link that leads nowhere: the file is made there.
    private static func end(of path: [UInt8]) -> [UInt8] {
        var path = path
        for _ in 0..<linksMax {
            guard let target = try? readLink(path, label: "named.link") else { break }
            let folder = path.lastIndex(of: UInt8(ascii: "/")).map { path[...$0] } ?? []
            path = target.first == UInt8(ascii: "/") ? target : folder + target
        }
        return path
    }
}
