import Glibc
import Logging
import PromiseCore
import PromiseSystem

/// Folders without write permission that are open for a moment (`WritableFolders`), as the state
/// folder knows them: a daemon that dies then leaves their modes to the next one.
///
/// Each is a symbolic link, `opened-folders/DEVICE-INODE-MODE-MODE`, with the modes before and
/// meanwhile, to the folder's path: made in one step, and on the disk no later than what is done
/// to the folder after it. One called `DEVICE-INODE-to` leads to where it is being moved. Blocking.
struct OpenedFolders: Sendable {
    /// How long a folder that is not found, as its disk is away, is looked for: a month.
    private static let lifetime = Duration.seconds(30 * 86_400)

    private let folder: [UInt8]?
    private let logger: Logger

    /// Without a state folder nothing is remembered.
    init(stateFolder: [UInt8]?, logger: Logger) {
        folder = stateFolder.map { $0 + Array("/opened-folders".utf8) }
        self.logger = logger
    }

    // MARK: Noting

    /// Before the mode is changed. `target`: the folder that it is being moved to. False when it
    /// cannot be noted; then it is not to be changed.
    func note(_ opened: CInt, _ status: FileStatus, mode: UInt32, movedTo target: CInt?) -> Bool {
        guard let folder else { return true }
        do throws(SystemError) {
            try makeFolders(folder, label: "folder.opened.folder")
            if let target { try link(name(status) + Array("-to".utf8), to: path(of: target)) }
            try link(OpenedFolders.name(status, mode), to: path(of: opened))
            return true
        } catch {
            forget(status, mode: mode)
            return false
        }
    }

    func forget(_ status: FileStatus, mode: UInt32) {
        guard let folder else { return }
        remove(OpenedFolders.name(status, mode), in: folder)
        remove(name(status) + Array("-to".utf8), in: folder)
    }

    private func link(_ name: [UInt8], to path: [UInt8]) throws(SystemError) {
        guard let folder else { return }
        remove(name, in: folder)
        try withCPath(path) { path throws(SystemError) in
            try withCPath(folder + [0x2F] + name) { name throws(SystemError) in
                _ = try call("folder.opened.note") { symlink(path, name) }
            }
        }
    }

    private func remove(_ name: [UInt8], in folder: [UInt8]) {
        try? unlink(folder + [0x2F] + name, label: "folder.opened.forget")
    }

    private func path(of descriptor: CInt) throws(SystemError) -> [UInt8] {
        try readLink(descriptorPath(descriptor), label: "folder.opened.path")
    }

    private func name(_ status: FileStatus) -> [UInt8] { Array("\(status.device)-\(status.inode)".utf8) }

    private static func name(_ status: FileStatus, _ mode: UInt32) -> [UInt8] {
        Array("\(status.device)-\(status.inode)-\(status.permissions)-\(mode)".utf8)
    }

    // MARK: Putting back

    /// What a daemon that died left open has the mode from before again, unless it got another one
    /// meanwhile.
    func putBack() {
        guard let folder else { return }
        for record in records(in: folder) {
            let target = try? readLink(
                folder + [0x2F] + record.base + Array("-to".utf8), label: "folder.opened.target")
            guard let found = find(record, movedTo: target) else {
                if record.isOld { forget(record, in: folder) }
                continue
            }
            guard close(found, record) else { continue }
            forget(record, in: folder)
        }
    }

    private struct Record {
        /// `DEVICE-INODE`: what names of records begin with.
        var base: [UInt8]
        var name: [UInt8]
        var inode: UInt64
        var before: UInt32
        var meanwhile: UInt32
        var path: [UInt8]
        var isOld: Bool

        func isMeant(_ status: FileStatus) -> Bool { status.kind == .folder && status.inode == inode }
    }

    private func records(in folder: [UInt8]) -> [Record] {
        guard
            let list = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "folder.opened.list"),
            let names = try? listFolder(list, label: "folder.opened.names").map(\.name)
        else { return [] }
        return names.compactMap { name in
            let words = String(decoding: name, as: UTF8.self).split(separator: "-").map(String.init)
            guard words.count == 4, let inode = UInt64(words[1]), let before = UInt32(words[2]),
                let meanwhile = UInt32(words[3]),
                let path = try? readLink(folder + [0x2F] + name, label: "folder.opened.read"),
                let own = try? FileStatus.of(folder + [0x2F] + name, label: "folder.opened.age")
            else { return nil }
            let age = SystemClock().now().nanoseconds(since: own.modificationTime)
            return Record(
                base: Array("\(words[0])-\(words[1])".utf8), name: name, inode: inode, before: before,
                meanwhile: meanwhile, path: path,
                isOld: .nanoseconds(age) > OpenedFolders.lifetime)
        }
    }

    /// Where it was, or, as it was being moved, where it was to go.
    private func find(_ record: Record, movedTo target: [UInt8]?) -> Descriptor? {
        if let found = open(record.path, record) { return found }
        guard let target,
            let list = try? Descriptor.open(
                target, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "folder.opened.look"),
            let names = try? listFolder(list, label: "folder.opened.among").map(\.name)
        else { return nil }
        for name in names {
            if let found = open(target + [0x2F] + name, record) { return found }
        }
        return nil
    }

    private func open(_ path: [UInt8], _ record: Record) -> Descriptor? {
        guard
            let found = try? Descriptor.open(
                path, flags: openPathOnly | O_NOFOLLOW | O_DIRECTORY, label: "folder.opened.open"),
            let status = try? FileStatus.of(descriptor: found.number, label: "folder.opened.status"),
            record.isMeant(status)
        else { return nil }
        return found
    }

    /// False when it is to be tried again at the next start.
    private func close(_ found: borrowing Descriptor, _ record: Record) -> Bool {
        guard
            let status = try? FileStatus.of(descriptor: found.number, label: "folder.opened.mode"),
            status.owner == geteuid(), status.permissions == record.meanwhile
        else { return true }
        let shown = escapedForDisplay(record.path)
        do throws(SystemError) {
            try withCPath(descriptorPath(found.number)) { path throws(SystemError) in
                _ = try call("folder.opened.back") { chmod(path, record.before) }
            }
            logger.notice("a folder that was left open for writing has its mode again", metadata: ["path": "\(shown)"])
            return true
        } catch {
            logger.warning(
                "a folder that was left open for writing cannot have its mode again",
                metadata: ["path": "\(shown)", "errno": "\(error.errno)"])
            return false
        }
    }

    private func forget(_ record: Record, in folder: [UInt8]) {
        remove(record.name, in: folder)
        remove(record.base + Array("-to".utf8), in: folder)
    }
}
