import Glibc
package import PromiseCore
import PromiseSystem

extension Index {
    /// Gives an index that nobody has open files of its own. A process that has been killed, but
    /// cannot end because a call of one of its threads hangs, keeps its locks on the old ones and
    /// may not have finished its last write. The copies are on the disk before they take their
    /// places; the old files are the same until then, so that it does not matter where this is cut
    /// off.
    package static func renew(path: [UInt8]) throws(Failure) {
        do throws(SystemError) {
            for suffix in ["-wal", "-redo-a", "-redo-b", ""] {
                try renewFile(path + Array(suffix.utf8))
            }
            // It says only where in the log what is; SQLite makes it anew.
            do throws(SystemError) {
                try unlink(path + Array("-shm".utf8), label: "index.renew.shared")
            } catch where error.errno == ENOENT {}
        } catch {
            throw Failure(error)
        }
    }

    private static func renewFile(_ path: [UInt8]) throws(SystemError) {
        let source: Descriptor
        do throws(SystemError) {
            source = try Descriptor.open(path, flags: O_RDONLY, label: "index.renew.open")
        } catch where error.errno == ENOENT {
            return
        }
        let new = path + Array("-new".utf8)
        let flags = O_RDWR | O_CREAT | O_TRUNC
        let target = try Descriptor.open(new, flags: flags, mode: 0o600, label: "index.renew.make")
        if !clone(source.number, to: target.number) {
            let size = try FileStatus.of(descriptor: source.number, label: "index.renew.size").size
            _ = try copyBytes(
                from: source.number, at: 0, to: target.number, at: 0, count: size,
                label: "index.renew.copy")
        }
        try PromiseSystem.synchronize(target.number, dataOnly: false, label: "index.renew.sync")
        try PromiseSystem.rename(new, to: path, label: "index.renew.take")
    }
}
