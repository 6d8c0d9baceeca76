import Glibc
package import PromiseCore
import PromiseSystem

extension ContentStore {
    /// The content file of one node becomes that of another one, too, whose number nobody has:
    /// nothing is copied. What was left under that name is rubbish of a crash.
    package func share(
        _ node: NodeID, _ generation: Generation, with other: NodeID, _ otherGeneration: Generation
    ) throws(Failure) {
        let target = folder + [0x2F] + path(other, otherGeneration)
        do throws(SystemError) {
            do throws(SystemError) {
                try link(
                    path(node, generation), in: root.number, to: target, label: "content.share")
            } catch  where error.errno == EEXIST {
                try unlink(target, label: "content.share.rubbish")
                try link(
                    path(node, generation), in: root.number, to: target,
                    label: "content.share.again")
            }
        } catch {
            throw Failure(error)
        }
    }

    /// Returns when the name that `share` made is on the disk: fsync(2) of the file and of its
    /// folder.
    package func settleShared(_ node: NodeID, _ generation: Generation) throws(Failure) {
        let file = try open(node, generation, writable: false)
        do throws(SystemError) {
            try synchronize(file.number, dataOnly: false, label: "content.share.sync")
            let folder = try Descriptor.open(
                Array(path(node, generation).prefix { $0 != 0x2F }), in: root.number,
                flags: O_RDONLY | O_DIRECTORY, label: "content.share.folder")
            try synchronize(folder.number, dataOnly: false, label: "content.share.settled")
        } catch {
            throw Failure(error)
        }
    }

    /// The disk that holds the store has room for few files more only. statvfs(3).
    package var isShortOfFiles: Bool {
        var status = statvfs()
        guard withCPath(folder, { path in statvfs(path, &status) }) == 0, status.f_files > 0 else {
            return false
        }
        return status.f_favail < status.f_files / 32 + 1024
    }
}
