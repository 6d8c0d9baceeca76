import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// A folder that is open: what is made in it is made there, whatever its names lead to by then.
/// Blocking.
final class OpenedFolder: Sendable {
    private let descriptor: SharedDescriptor
    /// When it was opened, for sentences.
    private let path: [UInt8]

    /// Of a mount: refuses what leads there by a link.
    init(_ place: MountPlace) throws(PromiseError) {
        descriptor = SharedDescriptor(try place.openFolder())
        path = place.absolutePath
    }

    /// One that no application reaches.
    init(_ path: [UInt8]) throws(PromiseError) {
        do throws(SystemError) {
            descriptor = SharedDescriptor(
                try Descriptor.open(
                    path, flags: openPathOnly | O_DIRECTORY, label: "picker.folder.open"))
        } catch {
            throw FileWork.failure("\(FileWork.shown(path)) cannot be opened", error.errno)
        }
        self.path = path
    }

    /// Nil where nothing is.
    func kind(_ name: [UInt8]) -> NodeKind? {
        try? FileStatus.of(name, in: descriptor.number, label: "picker.folder.kind").kind
    }

    func makeFolder(_ name: [UInt8]) throws(PromiseError) {
        do throws(SystemError) {
            try PromiseSystem.makeFolder(
                name, in: descriptor.number, mode: 0o777, label: "picker.folder.make")
        } catch {
            throw cannotBeMade(name, error)
        }
    }

    func create(_ name: [UInt8]) throws(PromiseError) {
        let file = try make(name, mode: 0o666, "\(shown(name)) cannot be made")
        guard fsync(file.number) == 0 else {
            throw FileWork.failure("\(shown(name)) cannot be written")
        }
    }

    /// Over nothing that is there. `folder`: where it goes, if not here.
    func rename(
        _ old: [UInt8], to name: [UInt8], in folder: OpenedFolder? = nil
    ) throws(PromiseError) {
        let folder = folder ?? self
        do throws(SystemError) {
            try PromiseSystem.rename(
                old, in: descriptor.number, to: name, in: folder.descriptor.number,
                flags: .noReplace, label: "picker.rename")
        } catch {
            throw folder.cannotBeMade(name, error)
        }
    }

    /// Under that name, or one with a number where it is taken; the name is given back.
    func nameFreely(_ hidden: [UInt8], _ name: [UInt8]) throws(PromiseError) -> [UInt8] {
        var number = 1
        while true {
            let free = number == 1 ? name : FileWork.numbered(name, number)
            do throws(SystemError) {
                try PromiseSystem.rename(
                    hidden, in: descriptor.number, to: free, in: descriptor.number,
                    flags: .noReplace, label: "picker.nameFreely")
                return free
            } catch {
                number += 1
                if error.errno == EEXIST, number <= 1_000 { continue }
                throw cannotBeMade(free, error)
            }
        }
    }

    func remove(_ name: [UInt8]) {
        try? PromiseSystem.unlink(name, in: descriptor.number, label: "picker.remove")
    }

    /// A copy under a hidden name, synced to disk; the name is given back.
    func copy(_ document: borrowing Descriptor, of source: [UInt8]) throws -> [UInt8] {
        var status = stat()
        guard fstat(document.number, &status) == 0 else {
            throw FileWork.failure("\(FileWork.shown(source)) cannot be read")
        }
        try FileWork.requireFile(status, source)
        let name = FileWork.hiddenName()
        let output = try make(
            name, mode: status.st_mode & 0o777 | 0o200,
            "nothing can be written in \(FileWork.shown(path))")
        do {
            try FileWork.transfer(document.number, output.number, source, path)
            // The date of a document is a part of it.
            var times = [status.st_atim, status.st_mtim]
            _ = futimens(output.number, &times)
            guard fsync(output.number) == 0 else {
                throw FileWork.failure("a copy in \(FileWork.shown(path)) cannot be written")
            }
        } catch {
            remove(name)
            throw error
        }
        return name
    }

    /// Names that were made are on the disk then.
    func sync() {
        guard
            let own = try? Descriptor.open(
                [0x2E], in: descriptor.number, flags: O_RDONLY | O_DIRECTORY,
                label: "picker.folder.sync")
        else { return }
        _ = fsync(own.number)
    }

    /// O_EXCL: no link is followed that has the name. `sentence`: what failed.
    private func make(
        _ name: [UInt8], mode: UInt32, _ sentence: String
    ) throws(PromiseError) -> Descriptor {
        do throws(SystemError) {
            return try Descriptor.open(
                name, in: descriptor.number, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode,
                label: "picker.file.make")
        } catch {
            throw FileWork.failure(sentence, error.errno)
        }
    }

    private func cannotBeMade(_ name: [UInt8], _ error: SystemError) -> PromiseError {
        FileWork.failure("\(shown(name)) cannot be made", error.errno)
    }

    private func shown(_ name: [UInt8]) -> String { FileWork.shown(path + [0x2F] + name) }
}
