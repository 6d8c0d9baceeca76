import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// Where temporary files go.
enum TemporaryPlace {
    /// `.promisefs/uploads`: nobody sees them.
    case store
    /// Hidden beside their target, which is on another file system than the root.
    case beside
}

/// Names of temporary entries, which nobody else uses, and their removal.
final class TemporaryNames: Sendable {
    /// Makes them this provider's own.
    private let instance: String
    private let logger: Logger
    private let count = Atomic<UInt64>(0)

    init(instance: String, logger: Logger) {
        self.instance = instance
        self.logger = logger
    }

    func name(_ place: TemporaryPlace) -> [UInt8] {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        let text = Array("\(instance)-\(number)".utf8)
        return place == .store ? text : ReservedName.uploadPrefix + text
    }

    /// Removes a temporary entry; what cannot be removed now goes at a later start.
    func remove(_ name: [UInt8], in folder: OpenFolder) {
        do throws(SystemError) {
            try unlink(name, in: folder.number, label: "folder.upload.remove")
        } catch {
            if error.errno != ENOENT {
                logger.info(
                    "a temporary file was left behind", metadata: ["errno": "\(error.errno)"])
            }
        }
    }
}

extension OpenFolder {
    /// A folder in it; made, with its own permissions, where there is none.
    func openOrMake(_ name: [UInt8]) throws(SystemError) -> OpenFolder {
        do throws(SystemError) {
            return try open(name)
        } catch {
            guard error.errno == ENOENT else { throw error }
        }
        let permissions =
            try FileStatus.of(descriptor: number, label: "folder.store.status").permissions & 0o777
        do throws(SystemError) {
            try makeFolder(name, in: number, label: "folder.store.make")
        } catch {
            guard error.errno == EEXIST else { throw error }
            return try open(name)
        }
        // Whoever may change the root may upload; the process's mask would take that away. By what
        // was opened: the name may be another one's link by now, and would be followed.
        let made = try open(name)
        _ = try withCPath(descriptorPath(made.number)) { path throws(SystemError) in
            try call("folder.store.mode") { chmod(path, permissions) }
        }
        return made
    }
}

/// `.promisefs` in the root: what is kept there, and what waits there for its place.
struct HiddenFolder: Sendable {
    let root: FolderRoot
    var names: TemporaryNames { root.temporaries }

    /// The hidden folder for temporary files; made, with the root's permissions, when it is first
    /// needed.
    func openUploads() throws(ProviderError) -> OpenFolder { try openHidden(ReservedName.uploads) }

    /// A folder in `.promisefs`.
    func openHidden(_ name: [UInt8]) throws(ProviderError) -> OpenFolder {
        let top = try root.open()
        let shown = "\(root.displayPath)/.promisefs/\(escapedForDisplay(name))"
        return try mapped("'\(shown)' cannot be used: check its permissions") {
            () throws(SystemError) in
            let store = try top.openOrMake(ReservedName.folder)
            let folder = try store.openOrMake(name)
            root.noteStore()
            return folder
        }
    }

    /// A rename from the store reaches `folder` only on the same mount of the same file system. The
    /// kernel compares mounts before it looks for names (renameat2(2), EXDEV), so asking for a name
    /// that is not there tells.
    func temporaryPlace(for folder: OpenFolder, device: UInt64) throws(ProviderError)
        -> TemporaryPlace
    {
        let uploads = try openUploads()
        guard device == root.facts.device else { return .beside }
        let name = names.name(.store)
        do throws(SystemError) {
            try rename(
                name, in: uploads.number, to: name, in: folder.number, label: "folder.upload.probe")
        } catch {
            if error.errno == EXDEV { return .beside }
        }
        return .store
    }

    /// Removes what a crash left in the store a day ago or earlier.
    func removeOldUploads(_ top: OpenFolder) {
        do throws(SystemError) {
            let uploads = try top.open(ReservedName.folder).open(ReservedName.uploads)
            root.noteStore()
            try removeOld(in: uploads) { _ in true }
        } catch {
            if error.errno != ENOENT {
                root.logger.notice(
                    "old temporary files stay", metadata: ["errno": "\(error.errno)"])
            }
        }
    }

    /// Removes temporary files beside items that a crash left.
    func removeOldUploads(beside folder: OpenFolder) throws(SystemError) {
        try removeOld(in: folder) { $0.starts(with: ReservedName.uploadPrefix) }
    }

    private func removeOld(in folder: OpenFolder, where isOurs: ([UInt8]) -> Bool)
        throws(SystemError)
    {
        let limit = root.clock.now().advanced(by: .seconds(-86_400))
        for (name, _) in try listFolder(try folder.openForReading(), label: "folder.clean.list")
        where isOurs(name) {
            // The time of the last change of the inode: the modification time is the user's.
            guard
                let status = try? FileStatus.of(
                    name, in: folder.number, label: "folder.clean.status"),
                status.kind != .folder, status.changeTime < limit
            else { continue }
            names.remove(name, in: folder)
        }
    }
}
