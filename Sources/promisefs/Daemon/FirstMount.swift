import Glibc
import PromiseDomain
import PromiseSystem

/// What the first mount of a domain makes before it is there, so that one that fails leaves nothing
/// behind.
struct FirstMount: Sendable {
    private let stateFolder: [UInt8]
    /// Somebody has made it for this, and it was empty.
    private let isGiven: Bool

    /// Nil when there is something in the state folder already: that is not ours to remove. Before
    /// anything is made. Blocking.
    init?(_ plan: MountPlan) {
        stateFolder = plan.stateFolder
        isGiven = (try? FileStatus.of(stateFolder, label: "mount.first")) != nil
        if isGiven, FirstMount.names(in: stateFolder)?.isEmpty != true { return nil }
    }

    private static func names(in folder: [UInt8]) -> [[UInt8]]? {
        let flags = O_RDONLY | O_DIRECTORY
        guard let opened = try? Descriptor.open(folder, flags: flags, label: "mount.first.open")
        else { return nil }
        return try? listFolder(opened, label: "mount.first.list").map(\.name)
    }

    /// Takes away what was made, unless a daemon has it: of two mounts that were begun at once one
    /// is there now. Blocking.
    func undo() {
        let place = stateFolder + Array("/lock".utf8)
        let aside = hiddenName(beside: stateFolder, "failed")
        do throws(SystemError) {
            let lock = try Descriptor.open(place, flags: O_RDWR | O_CREAT, label: "mount.first.lock")
            // Held while it goes: a daemon that has opened it meanwhile is refused, and one that
            // comes later finds no folder.
            guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else { return }
            if isGiven { return try empty() }
            // What is left of one that was killed while it did this.
            try removeTree(aside, label: "mount.first.rests")
            try rename(stateFolder, to: aside, label: "mount.first.aside")
            try removeTree(aside, label: "mount.first.remove")
        } catch {
            // Without room for even a lock there is nothing in it but folders.
            FirstMount.removeFolder(stateFolder + Array("/log".utf8))
            if !isGiven { FirstMount.removeFolder(stateFolder) }
        }
    }

    /// The lock is the last to go.
    private func empty() throws(SystemError) {
        let names = FirstMount.names(in: stateFolder) ?? []
        let lock = Array("lock".utf8)
        for name in names.filter({ $0 != lock && UnmountedDomain.isOwn($0) }) + [lock] {
            try removeTree(stateFolder + [0x2F] + name, label: "mount.first.entry")
        }
    }

    private static func removeFolder(_ path: [UInt8]) {
        _ = try? unlink(path, isFolder: true, label: "mount.first.folder")
    }
}
