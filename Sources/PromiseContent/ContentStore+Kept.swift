import Glibc
package import PromiseCore
import PromiseSystem

// The folder `kept` beside the store: what may be the only copy of something, and what nothing touches any more.

extension ContentStore {
    /// Gives a content file that the index is about to forget a second name in `kept`, so that it outlives being forgotten,
    /// whatever fails in between. Returns the path once file and name are on the disk (fsync(2)); nil when there is no such
    /// file, or nothing in it. Keeping once more what is kept is done. Nobody may make a file of this node and generation
    /// again. Blocks.
    package func keep(_ node: NodeID, _ generation: Generation) throws(Failure) -> [UInt8]? {
        guard let status = try status(node, generation), status.size > 0 else { return nil }
        let source = path(node, generation)
        return try intoKept(node, generation) { target throws(SystemError) in
            do throws(SystemError) {
                try link(source, in: root.number, to: target, label: "content.keep.link")
            } catch {
                guard error.errno == EEXIST else { throw error }
                let other = try FileStatus.of(target, label: "content.keep.status")
                guard other.inode == status.inode, other.device == status.device else { throw error }
            }
        }
    }

    /// Keeps every content file of a node. Returns where, for people.
    package func keepAll(of node: NodeID) throws(Failure) -> [String] {
        var places: [String] = []
        for generation in try generations(of: node) {
            if let place = try keep(node, generation) { places.append(escapedForDisplay(place)) }
        }
        return places
    }

    /// Takes back `keep` of a file that the index names on.
    package func forgetKept(_ place: [UInt8]) throws(Failure) {
        do throws(SystemError) { try unlink(place, label: "content.keep.forget") } catch { throw Failure(error) }
    }

    /// Moves a content file that nothing names any more to the folder `kept`. Returns its path; nil when there is no such
    /// file, or nothing in it. On the disk when it returns. Blocks.
    package func putAside(_ node: NodeID, _ generation: Generation) throws(Failure) -> [UInt8]? {
        guard let status = try status(node, generation), status.size > 0 else { return nil }
        defer { noteRemoval(of: node) }
        let source = path(node, generation)
        return try intoKept(node, generation) { target throws(SystemError) in
            try rename(source, in: root.number, to: target, flags: .noReplace, label: "content.aside.rename")
        }
    }

    /// Calls `body` with a place in `kept`, and with the next one when it throws EEXIST.
    private func intoKept(
        _ node: NodeID, _ generation: Generation, _ body: ([UInt8]) throws(SystemError) -> Void
    ) throws(Failure) -> [UInt8] {
        let parent = folder.lastIndex(of: 0x2F).map { Array(folder[..<$0]) } ?? [0x2E]
        let kept = parent + Array("/kept".utf8)
        // Without the folder of the part.
        let plain = kept + [0x2F] + Array(path(node, generation).dropFirst(3))
        do throws(SystemError) {
            try makeFolders(kept, label: "content.kept.folder")
            let file = try Descriptor.open(path(node, generation), in: root.number, flags: O_RDONLY, label: "content.kept.open")
            try synchronize(file.number, dataOnly: false, label: "content.kept.file")
            var target = plain
            var number = 0
            while true {
                do throws(SystemError) {
                    try body(target)
                    break
                } catch {
                    guard error.errno == EEXIST else { throw error }
                    number += 1
                    target = plain + Array("-\(number)".utf8)
                }
            }
            // The name, and the folder that it may be the first in.
            let names = try Descriptor.open(kept, flags: O_RDONLY | O_DIRECTORY, label: "content.kept.openNames")
            try synchronize(names.number, dataOnly: false, label: "content.kept.names")
            let above = try Descriptor.open(parent, flags: O_RDONLY | O_DIRECTORY, label: "content.kept.openAbove")
            try synchronize(above.number, dataOnly: false, label: "content.kept.above")
            return target
        } catch {
            throw Failure(error)
        }
    }
}
