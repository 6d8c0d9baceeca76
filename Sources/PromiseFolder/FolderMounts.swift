import FoundationEssentials
import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// The file systems that are mounted inside the folder, and where one was.
///
/// One file system may be at two places (a bind mount), and two may have one identity (a cloned disk): then the files of
/// one have the names of the other's, and each place tells its own apart by a text. Where a file system was and is none now
/// there is the folder that it was mounted on: its items are not gone.
///
/// Thread-safe. What was mounted where is remembered in the state folder, as a disk may be taken out while nobody looks.
final class FolderMounts: Sendable {
    /// What was mounted at a place, as the folder that it shows.
    struct Place: Codable, Equatable, Sendable {
        var identity: String
        var permissions: UInt32
        var owner: UInt32
        var group: UInt32
        var modificationTime: Int64
    }

    private struct State {
        /// By the kernel's number of the mount.
        var texts: [UInt64: String] = [:]
        /// By the path from the root, escaped.
        var places: [String: Place]
    }

    private static let byteCountMax = 1 << 20
    /// Bytes of the root's path.
    private let root: [UInt8]
    private let file: [UInt8]?
    private let state: Mutex<State>
    private let isEmptyNow: Atomic<Bool>

    /// Without a state folder nothing is remembered. Blocking.
    init(root: [UInt8], stateFolder: [UInt8]?) {
        self.root = root
        file = stateFolder.map { $0 + Array("/folder-mounts.json".utf8) }
        let bytes = file.flatMap { readSmallFile($0, countMax: FolderMounts.byteCountMax) }
        let places = bytes.flatMap { try? JSONDecoder().decode([String: Place].self, from: Data($0)) } ?? [:]
        state = Mutex(State(places: places))
        isEmptyNow = Atomic(places.isEmpty)
    }

    // MARK: Telling places apart

    /// What files of a mount have behind their own names; nothing where these are theirs alone. `isRoots`: it is the file
    /// system of the root.
    func text(of mount: UInt64, isRoots: Bool) -> String {
        if let known = state.withLock({ $0.texts[mount] }) { return known }
        let places = state.withLock { $0.places }
        let text = FolderMounts.text(of: mount, isRoots: isRoots, below: root, known: places)
        state.withLock { $0.texts[mount] = text }
        return text
    }

    /// What is mounted inside now, a text each.
    var inside: Set<String> {
        Set(MountInfo.current().filter { $0.point.starts(with: root + [0x2F]) }.map { "\($0.number) \($0.point)" })
    }

    /// Something is mounted there, whether it answers or not: only the kernel's table is asked.
    static func isMounted(_ name: [UInt8], in folder: CInt) -> Bool {
        let link = Array("/proc/self/fd/\(folder)".utf8)
        guard let path = try? readLink(link, label: "folder.mounts.path") else { return false }
        let point = path == [0x2F] ? path + name : path + [0x2F] + name
        return MountInfo.current().contains { $0.point == point }
    }

    /// A file system has gone, and its numbers may be another's.
    func forgetNumbers() { state.withLock { $0.texts = [:] } }

    /// A place keeps the text that it had. Another one of the same identity has one of its own, also while the disk of the
    /// first is away: when that is back, one would have the names of the other's files.
    private static func text(
        of mount: UInt64, isRoots: Bool, below root: [UInt8], known: [String: Place]
    ) -> String {
        let inside = MountInfo.current().filter { $0.point.starts(with: root + [0x2F]) }
        guard let own = inside.last(where: { $0.number == mount }) else { return "" }
        var hash = FowlerNollVoHash()
        hash.add(own.point.dropFirst(root.count))
        if isRoots { return "~" + hash.text }
        let identity = identity(of: own)
        let path = own.point.dropFirst(root.count + 1).split(separator: 0x2F).map { FileName(trusted: Array($0)) }
        let places = known.filter { $0.value.disk == identity }
        if let before = places[key(path)] { return before.text }
        if places.values.contains(where: { $0.text.isEmpty }) { return "~" + hash.text }
        // The first one's are as they were when it was alone.
        let first = inside.filter { $0.number == mount || Self.identity(of: $0) == identity }
            .min { $0.point.lexicographicallyPrecedes($1.point) }
        return first?.number == mount ? "" : "~" + hash.text
    }

    /// A disk's own identity. What other machines have may hang when it is asked, and has its number.
    private static func identity(of mount: MountInfo) -> String {
        guard !mount.isShared,
            let place = try? Descriptor.open(mount.point, flags: openPathOnly | O_DIRECTORY, label: "folder.mounts.open"),
            let facts = try? FileSystemFacts.of(descriptor: place.number, label: "folder.mounts.facts"), facts.identity != 0
        else { return mount.device }
        return String(facts.identity, radix: 16)
    }

    // MARK: What was mounted where

    /// Nothing was ever seen mounted inside.
    var isEmpty: Bool { isEmptyNow.load(ordering: .relaxed) }

    func place(at path: [FileName]) -> Place? {
        if isEmpty { return nil }
        return state.withLock { $0.places[FolderMounts.key(path)] }
    }

    /// The uppermost place on a path, below which it leads.
    func places(above path: [FileName]) -> [[FileName]] {
        if isEmpty { return [] }
        return state.withLock { state in
            (1...max(path.count, 1)).map { Array(path.prefix($0)) }.filter { state.places[FolderMounts.key($0)] != nil }
        }
    }

    /// A file system is mounted there. Blocking, when that is news.
    func learn(_ path: [FileName], _ status: FileStatus, _ identity: String) {
        let place = Place(
            identity: identity, permissions: status.permissions, owner: status.owner, group: status.group,
            modificationTime: status.modificationTime.rawValue)
        change { $0[FolderMounts.key(path)] = place }
    }

    /// There is not even a folder any more.
    func forget(_ path: [FileName]) { change { $0[FolderMounts.key(path)] = nil } }

    private func change(_ body: (inout [String: Place]) -> Void) {
        let places: [String: Place]? = state.withLock { state in
            let before = state.places
            body(&state.places)
            return state.places == before ? nil : state.places
        }
        guard let places else { return }
        isEmptyNow.store(places.isEmpty, ordering: .relaxed)
        guard let file, let data = try? JSONEncoder().encode(places) else { return }
        _ = try? replaceSmallFile(file, with: Array(data))
    }

    private static func key(_ path: [FileName]) -> String { path.map(\.display).joined(separator: "/") }
}

/// A line of /proc/self/mountinfo (proc(5)).
private struct MountInfo {
    var number: UInt64
    /// `MAJOR:MINOR`.
    var device: String
    var point: [UInt8]
    var type: String

    /// What other machines have, and what programs serve.
    var isShared: Bool {
        ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs"].contains(type) || type.hasPrefix("fuse")
    }

    static func current() -> [MountInfo] {
        guard let bytes = readSmallFile(Array("/proc/self/mountinfo".utf8), countMax: 16 << 20) else { return [] }
        return bytes.split(separator: 0x0A).compactMap { MountInfo(line: $0) }
    }

    private init?(line: ArraySlice<UInt8>) {
        let words = line.split(separator: 0x20)
        guard words.count > 6, let number = UInt64(String(decoding: words[0], as: UTF8.self)),
            let dash = words[6...].firstIndex(where: { $0.elementsEqual([UInt8(ascii: "-")]) }), dash + 1 < words.endIndex
        else { return nil }
        self.number = number
        device = String(decoding: words[2], as: UTF8.self)
        point = MountInfo.unescaped(words[4])
        type = String(decoding: words[dash + 1], as: UTF8.self)
    }

    /// `\040` is a space.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3).map { $0 &- 0x30 }
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ $0 < 8 }) {
                result.append(digits[0] << 6 | digits[1] << 3 | digits[2])
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

extension FolderMounts.Place {
    /// The identity of its disk, in hexadecimal, and what tells the place from others of the same: as `identity` ends.
    fileprivate var disk: Substring { identity.prefix { $0 != "~" }.drop { $0 != "@" }.dropFirst() }
    fileprivate var text: String { String(identity.drop { $0 != "~" }) }
}
