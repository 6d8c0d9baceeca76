import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

/// What is not moved, as it is there already or would be moved into itself: by what paths lead to, as
/// links, bind mounts and relative paths give one place several texts. Blocks.
enum MoveCheck {
    /// Both paths lead to one item. Two hard links of a file are two items.
    static func isOne(_ source: [UInt8], _ status: FileStatus, _ target: [UInt8]) -> Bool {
        guard let other = try? FileStatus.of(target, label: "move.check"), isSame(status, other) else { return false }
        if status.kind == .folder || status.links <= 1 { return true }
        guard name(of: source) == name(of: target) else { return false }
        let folders = [source, target].map { try? FileStatus.of(FileMover.folder(of: $0) + here, label: "move.check") }
        guard let one = folders[0], let two = folders[1] else { return false }
        return isSame(one, two)
    }

    /// The target would be in the folder, however deep.
    static func isInside(_ target: [UInt8], _ folder: FileStatus) -> Bool {
        guard var path = try? resolveParent(of: FileMover.folder(of: target) + here) else { return false }
        while true {
            if let status = try? FileStatus.of(path, label: "move.check"), isSame(status, folder) { return true }
            if path.count <= 1 { return false }
            path = FileMover.folder(of: path)
        }
    }

    /// One item behind both paths. Also `adopt` asks, of the mount and of what it looks through.
    static func isSame(_ one: FileStatus, _ other: FileStatus) -> Bool {
        one.inode == other.inode && one.device == other.device
    }

    /// The one value of the attribute by which an item stays on its machine.
    static let mark = Array("true".utf8)

    /// Whether a folder is to stay on its machine. Elsewhere than on a mount another value may be
    /// there, and says nothing.
    static func isMarked(_ folder: borrowing Descriptor) throws(SystemError) -> Bool {
        let name: StaticString = "user.promisefs.excluded"
        return try attribute(name, of: [0x2E], in: folder.number, label: "move.mark") == mark
    }

    /// One folder is to stay on its machine, and the other one is not, though it could be.
    static func wouldMark(_ target: [UInt8], from source: [UInt8]) -> Bool {
        func isMarked(_ path: [UInt8]) throws(SystemError) -> Bool {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
            return try MoveCheck.isMarked(try Descriptor.open(path, flags: flags, label: "move.markOf"))
        }
        // Where no attributes are kept there are no marks.
        guard (try? isMarked(source)) == true, let isThere = try? isMarked(target) else { return false }
        return !isThere
    }

    private static let here = Array("/.".utf8)

    private static func name(of path: [UInt8]) -> [UInt8]? { path.split(separator: 0x2F).last.map { Array($0) } }
}

/// Two sides of a move that show one storage: the item would be found at its new place already, and
/// its removal at the old one would be its end.
struct MoveSides {
    private struct Side: Sendable {
        var path: [UInt8]
        var mount: MountEntry?
        /// As the daemon calls it; nil where it is no mount, or nobody says.
        var provider: String?
    }

    /// Throws where something of one storage would be moved to another way to it.
    static func check(_ sources: [[UInt8]], target: [UInt8], isFolder: Bool) async throws {
        let target = await side(of: isFolder ? target + Array("/.".utf8) : target)
        for source in sources {
            let side = await side(of: source)
            if let one = side.mount, let two = target.mount, one.isOfSameDomain(as: two) { continue }
            let shared = await Blocking.run { MoveSides.areOne(side, target) }
            guard shared, let domain = target.mount?.domain ?? side.mount?.domain else { continue }
            throw CommandFailure(
                "'\(escapedForDisplay(source))' and where it is to go are in one storage, which '\(domain)' shows: "
                    + "move it within one of them", exitStatus: ExitStatus.usage)
        }
    }

    /// What cannot be found is said where it is to be moved.
    private static func side(of path: [UInt8]) async -> Side {
        let found = await Blocking.run {
            let resolved = try? resolveParent(of: path)
            let table = try? MountTable.current()
            return (resolved, resolved.flatMap { resolved in table.flatMap { Location.ofResolved(resolved, in: $0) } })
        }
        let (resolved, location) = found
        guard let mount = location?.mount else { return Side(path: resolved ?? path) }
        // Who says nothing can be asked for nothing: the move fails where it begins.
        let provider = try? await PromiseClient(mount: mount).status().provider
        return Side(path: resolved ?? path, mount: mount, provider: provider)
    }

    private static func areOne(_ source: Side, _ target: Side) -> Bool {
        switch (source.provider, target.provider) {
        case (let one?, let two?): return isBelow(Array(one.utf8), Array(two.utf8)) || isBelow(Array(two.utf8), Array(one.utf8))
        case (let one?, nil): return folder(one).map { isBelow(target.path, $0) } ?? false
        case (nil, let two?):
            return folder(two).map { isBelow(source.path, $0) || isBelow($0, source.path) } ?? false
        case (nil, nil): return false
        }
    }

    private static func folder(_ provider: String) -> [UInt8]? {
        let scheme = "folder:"
        guard provider.hasPrefix(scheme) else { return nil }
        return try? resolveParent(of: Array(provider.utf8.dropFirst(scheme.utf8.count)) + Array("/.".utf8))
    }

    private static func isBelow(_ path: [UInt8], _ folder: [UInt8]) -> Bool {
        var folder = folder
        while folder.count > 1, folder.last == 0x2F { folder.removeLast() }
        return path == folder || path.starts(with: folder + [0x2F])
    }
}
