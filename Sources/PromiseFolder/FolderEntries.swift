import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Looks at one entry of a folder: what it is (fstatat(2)), who it is, and where it leads
/// (readlinkat(2)).
struct FolderEntries: Sendable {
    let root: FolderRoot
    let names: FolderNames
    let writable: WritableFolders
    let marks = MarkMemory()
    private let leftOutNames = LeftOutNames()

    /// Looks at one entry; nil when there is none or it is nothing a provider holds (fifo, socket,
    /// device, unreadable link). `.` asks for the folder itself. `parent` is the folder as
    /// `FolderLocator.text(of:at:)` gives it, of which identifiers are made.
    func entry(_ name: [UInt8], in folder: CInt, parent: String, readsMarks: Bool)
        throws(SystemError) -> FolderEntry?
    {
        guard let shownName = names.shown(name) else { return nil }
        // Three calls on one name may see two files when it is replaced between them; then they
        // start again.
        for _ in 0..<16 {
            do throws(SystemError) {
                let status = try FileStatus.of(name, in: folder, label: "folder.entry.status")
                guard status.kind.isStorable else { return nil }
                let own = try root.ownIdentity(name, in: folder, status: status)
                var base = own
                if readsMarks, status.kind == .file,
                    let mark = try marks.read(name, in: folder, own)
                {
                    if let marked = IdentityMark.identifier(in: mark, own: own) {
                        base = marked
                    } else if try root.ownIdentity(name, in: folder, status: status) != own {
                        continue
                    }
                }
                let link = status.kind == .link ? try target(name, in: folder) : nil
                if status.kind == .link, link == nil { return nil }
                return described(
                    name, shownName, status, own: own, base: base, parent: parent, target: link)
            } catch {
                switch error.errno {
                case ENOENT: return nil
                // readlinkat on what is no link any more.
                case EINVAL: continue
                default: throw error
                }
            }
        }
        throw SystemError(errno: EAGAIN, label: "folder.entry.status")
    }

    /// What a mount has whose program has died or whose server is gone, or that is another user's
    /// alone, and a file that the disk cannot read.
    private static let troublesOfOne = [EACCES, EPERM, ENOTCONN, ESTALE, EIO, EHOSTDOWN]

    /// As `entry`, for whoever goes through a folder: what cannot be looked at hides nothing beside
    /// it, and is left out with one warning. `leftOut` is told why. Nobody takes it for removed:
    /// whoever asks for it is told the reason, under its old name too, as a search that finds
    /// nothing else throws it (`FolderSearch`). Throws where that is the folder's trouble: it
    /// would look empty.
    func listed(
        _ name: [UInt8], in folder: CInt, parent: String, readsMarks: Bool,
        leftOut: (SystemError) -> Void = { _ in }
    ) throws(SystemError) -> FolderEntry? {
        do throws(SystemError) {
            let found = try entry(name, in: folder, parent: parent, readsMarks: readsMarks)
            leftOutNames.forget(name, in: parent)
            return found
        } catch {
            guard FolderEntries.troublesOfOne.contains(error.errno) else { throw error }
            // Nothing in a folder can be looked at that may not be entered.
            _ = try FileStatus.of([0x2E], in: folder, label: "folder.entry.folder")
            if leftOutNames.isNews(error, of: name, in: parent) {
                root.logger.warning(
                    "what cannot be looked at is not listed",
                    metadata: ["name": "\(escapedForDisplay(name))", "reason": "\(error.reason)"])
            }
            leftOut(error)
            return nil
        }
    }

    /// What is known of an entry, put together. `parent` is "" where it is about to get another
    /// name.
    func described(
        _ name: [UInt8], _ shownName: FileName, _ status: FileStatus, own: String, base: String,
        parent: String = "",
        target: [UInt8]? = nil
    ) -> FolderEntry {
        let identity = FolderIdentity(
            own: own, base: base, hasSeveralNames: status.kind != .folder && status.links > 1,
            isLasting: !root.knowsByPlace)
        return FolderEntry(
            name: name, shownName: shownName, status: writable.asBefore(status), identity: identity,
            identifier: identity.identifier(parent: parent, name: shownName), target: target,
            hasOwnMode: root.kept.contains(.modes))
    }

    /// nil where the file system keeps it to itself, as sshfs does with targets that lead out of
    /// its mount.
    private func target(_ name: [UInt8], in folder: CInt) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            return names.shown(target: try readLink(name, in: folder, label: "folder.entry.link"))
        } catch {
            guard [EPERM, EACCES].contains(error.errno) else { throw error }
            root.logger.info(
                "where a link leads may not be read",
                metadata: ["name": "\(escapedForDisplay(name))"])
            return nil
        }
    }
}
