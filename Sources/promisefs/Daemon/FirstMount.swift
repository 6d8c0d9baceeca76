import Glibc
import PromiseSystem

/// What the first mount of a domain makes before it is there, so that one that fails leaves nothing behind.
struct FirstMount: Sendable {
    private let stateFolder: [UInt8]

    /// Nil when the state folder is there already: then what is in it is not ours to remove. Before anything is made. Blocking.
    init?(_ plan: MountPlan) {
        guard (try? FileStatus.of(plan.stateFolder, label: "mount.first")) == nil else { return nil }
        stateFolder = plan.stateFolder
    }

    /// Takes away what was made, unless a daemon has it: of two mounts that were begun at once one is there now. Blocking.
    func undo() {
        let place = stateFolder + Array("/lock".utf8)
        let aside = stateFolder + Array(".failed".utf8)
        do throws(SystemError) {
            let lock = try Descriptor.open(place, flags: O_RDWR | O_CREAT, label: "mount.first.lock")
            // Held while it goes: a daemon that has opened it meanwhile is refused, and one that comes later finds no folder.
            guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else { return }
            try rename(stateFolder, to: aside, label: "mount.first.aside")
            FirstMount.remove(aside)
        } catch {
            // Without room for even a lock there is nothing in it but folders.
            FirstMount.removeFolder(stateFolder + Array("/log".utf8))
            FirstMount.removeFolder(stateFolder)
        }
    }

    private static func remove(_ folder: [UInt8]) {
        guard
            let descriptor = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "mount.first.open"),
            let entries = try? listFolder(descriptor, label: "mount.first.list")
        else { return }
        for entry in entries {
            let path = folder + [0x2F] + entry.name
            // A folder is no file to unlink(2), and the other way round.
            if (try? unlink(path, label: "mount.first.unlink")) == nil { remove(path) }
        }
        removeFolder(folder)
    }

    private static func removeFolder(_ path: [UInt8]) {
        _ = try? unlink(path, isFolder: true, label: "mount.first.folder")
    }
}
