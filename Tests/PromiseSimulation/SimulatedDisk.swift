import CSimulatedDisk
import Glibc
import PromiseCore
import PromiseSystem

/// What a machine's disk holds for certain: of each file what it was when it was last synced. A power cut leaves that,
/// and of what came later as much as chance says.
///
/// Names are as on ext4 and xfs: the sync of any file takes all names that were given before it to the disk. What of a
/// file's later bytes is left is a part of it from its beginning, or all, or nothing, and its time is the new or the old.
///
/// Unchecked, as only the simulation's thread touches it.
final class SimulatedDisk: @unchecked Sendable {
    /// An inode's number may be given to another file.
    private struct Identity: Hashable {
        var inode: UInt64
        var birth: Timestamp
    }

    fileprivate struct Saved {
        var bytes: [UInt8]
        /// So many more were never written: they read as zeros.
        var hole = 0
        var time: Timestamp
    }

    private struct Names {
        var folders: [[UInt8]] = []
        /// In the order of their paths, so that a seed does the same again.
        var files: [(path: [UInt8], identity: Identity)] = []
    }

    private let folder: [UInt8]
    private var synced: [Identity: Saved] = [:]
    private var syncedNames = Names()

    init(_ folder: [UInt8]) { self.folder = folder }

    // MARK: Looking at syncs

    // Unsafe, as a C function reads it; all of it happens on the simulation's thread, where syncs are observed.
    nonisolated(unsafe) private static var disks: [SimulatedDisk] = []

    /// What these machines sync is noted; nothing waits for the real disk.
    static func observe(_ disks: [SimulatedDisk]) {
        self.disks = disks
        csd_observe_syncs(disks.isEmpty ? nil : { descriptor in
            for disk in SimulatedDisk.disks { disk.noteSync(descriptor) }
        })
    }

    private func noteSync(_ descriptor: CInt) {
        guard let path = try? readLink(descriptorPath(descriptor), label: "simulation.disk.path"),
            path.starts(with: folder + [0x2F]) || path == folder
        else { return }
        noteNames()
        if let (identity, saved) = SimulatedDisk.look(descriptor) { synced[identity] = saved }
    }

    private func noteNames() {
        let before = Set(syncedNames.files.map(\.identity))
        syncedNames = namesNow()
        let now = Set(syncedNames.files.map(\.identity))
        for identity in before.subtracting(now) { synced[identity] = nil }
    }

    /// Nil for a folder.
    private static func look(_ descriptor: CInt) -> (Identity, Saved)? {
        guard let status = try? FileStatus.of(descriptor: descriptor, label: "simulation.disk.status"),
            status.kind == .file
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let count = bytes.withUnsafeMutableBytes { room in
            (try? readFully(descriptor, into: room, at: 0, label: "simulation.disk.read")) ?? 0
        }
        let identity = Identity(inode: status.inode, birth: status.birthTime)
        return (identity, Saved(bytes: Array(bytes[..<count]), time: status.modificationTime))
    }

    private static func look(at path: [UInt8]) -> (Identity, Saved)? {
        guard let file = try? Descriptor.open(path, flags: O_RDONLY | O_NOFOLLOW, label: "simulation.disk.open")
        else { return nil }
        return look(file.number)
    }

    private func namesNow() -> Names {
        var names = Names()
        var toList: [[UInt8]] = [[]]
        while let parent = toList.popLast() {
            let flags = O_RDONLY | O_DIRECTORY
            guard let descriptor = try? Descriptor.open(folder + parent, flags: flags, label: "simulation.disk.list"),
                let entries = try? listFolder(descriptor, label: "simulation.disk.list")
            else { continue }
            for entry in entries {
                let path = parent + [0x2F] + entry.name
                guard let status = try? FileStatus.of(folder + path, label: "simulation.disk.status") else { continue }
                if status.kind == .folder {
                    names.folders.append(path)
                    toList.append(path)
                } else {
                    names.files.append((path, Identity(inode: status.inode, birth: status.birthTime)))
                }
            }
        }
        names.folders.sort { $0.lexicographicallyPrecedes($1) }
        names.files.sort { $0.path.lexicographicallyPrecedes($1.path) }
        return names
    }

    // MARK: The power cut

    /// What the machine finds when it has power again.
    struct Image {
        fileprivate var folders: [[UInt8]] = []
        fileprivate var files: [(path: [UInt8], saved: Saved)] = []
    }

    func cutPower(_ simulation: Simulation) -> Image {
        let namesNow = namesNow()
        var now: [Identity: Saved] = [:]
        for (path, _) in namesNow.files {
            if let (identity, saved) = SimulatedDisk.look(at: folder + path) { now[identity] = saved }
        }
        let names = simulation.chance(50) ? syncedNames : namesNow
        let seed = UInt64(simulation.pick(1 << 32))
        var image = Image(folders: names.folders)
        for (path, identity) in names.files where !SimulatedDisk.isMemory(path) {
            // Each by its name, as how many there are may depend on how fast the machine is that simulates.
            var chance = SeededRandom(seed: path.reduce(seed) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 })
            image.files.append((path, SimulatedDisk.left(of: synced[identity], now[identity], &chance)))
        }
        return image
    }

    /// SQLite's index of its log is memory that has a name.
    private static func isMemory(_ path: [UInt8]) -> Bool { path.suffix(4).elementsEqual("-shm".utf8) }

    /// A block reaches the disk as a whole.
    private static func block(after count: Int) -> Int { (count + 4095) / 4096 * 4096 }

    /// A size that grew comes with the bytes and the time, as on ext4 with ordered data; one that was set before the
    /// bytes were written comes with holes.
    private static func left(of old: Saved?, _ new: Saved?, _ chance: inout SeededRandom) -> Saved {
        let old = old ?? Saved(bytes: [], time: new?.time ?? .zero)
        guard let new, new.bytes != old.bytes || new.time != old.time else { return old }
        func part(_ count: Int) -> Int { min(count, Int(chance.next() % UInt64(count / 16 + 1)) * 16) }
        let isTimeNew = chance.next() % 2 == 0
        switch chance.next() % 4 {
        case 0: return Saved(bytes: old.bytes, time: isTimeNew ? new.time : old.time)
        case 1: return new
        case 2 where new.bytes.count > block(after: old.bytes.count):
            let whole = block(after: old.bytes.count)
            return Saved(bytes: Array(new.bytes[..<whole]), hole: new.bytes.count - whole, time: new.time)
        default:
            let count = part(new.bytes.count)
            if new.bytes.count < old.bytes.count { return Saved(bytes: Array(new.bytes[..<count]), time: new.time) }
            let bytes = Array(new.bytes[..<count] + old.bytes.dropFirst(count))
            return Saved(bytes: bytes, time: bytes.count == new.bytes.count || isTimeNew ? new.time : old.time)
        }
    }

    /// Puts it in the place of what is there now; all of it is on the disk.
    func restore(_ image: Image) throws(SystemError) {
        let names = namesNow()
        for (path, _) in names.files { try unlink(folder + path, label: "simulation.disk.unlink") }
        for path in names.folders.reversed() {
            try unlink(folder + path, isFolder: true, label: "simulation.disk.unlink")
        }
        for path in image.folders { try makeFolder(folder + path, label: "simulation.disk.folder") }
        for (path, saved) in image.files {
            let file = try Descriptor.open(
                folder + path, flags: O_RDWR | O_CREAT | O_EXCL, label: "simulation.disk.create")
            try writeFully(file.number, saved.bytes, at: 0, label: "simulation.disk.write")
            if saved.hole > 0 {
                let size = UInt64(saved.bytes.count + saved.hole)
                try truncate(file.number, to: size, label: "simulation.disk.truncate")
            }
            try setTimes(file.number, access: nil, modification: saved.time, label: "simulation.disk.time")
        }
        takeAllForSynced()
    }

    /// What is there now is on the disk.
    func takeAllForSynced() {
        synced = [:]
        syncedNames = namesNow()
        for (path, _) in syncedNames.files {
            if let (identity, saved) = SimulatedDisk.look(at: folder + path) { synced[identity] = saved }
        }
    }
}
