import Glibc
import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire

/// Where domains of this user have their state folders: in the usual place by their names, and those that were given
/// one with `--state-dir` by links in `.elsewhere` beside them, `NAME@` and a number made of the folder's path.
///
/// Blocking.
enum StatePlaces {
    struct Place: Hashable, Sendable {
        var name: String
        var folder: [UInt8]
    }

    /// Dangling links may be of disks that are away. When there are more links than this, they go.
    private static let linkCountMax = 64

    private static func linkFolder() throws(CommandFailure) -> [UInt8] { try BaseFolders.state(domain: ".elsewhere") }

    // MARK: Looking

    /// Those that are there, by name.
    static func all() throws(CommandFailure) -> [Place] {
        let base = Array(try BaseFolders.state(domain: "").dropLast())
        let usual = domainNames(in: base).map { Place(name: $0, folder: base + Array("/\($0)".utf8)) }
        let elsewhere = links().filter { isThere($0.place.folder) && !usual.contains($0.place) }.map(\.place)
        return (usual + elsewhere).sorted {
            $0.name == $1.name ? $0.folder.lexicographicallyPrecedes($1.folder) : $0.name < $1.name
        }
    }

    static func places(of domain: String) throws(CommandFailure) -> [Place] { try all().filter { $0.name == domain } }

    private static func isThere(_ state: [UInt8]) -> Bool {
        (try? FileStatus.of(state + Array("/index.sqlite".utf8), label: "places.index")) != nil
    }

    private static func links() -> [(path: [UInt8], place: Place)] {
        guard let folder = try? linkFolder(),
            let descriptor = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "places.open"),
            let entries = try? listFolder(descriptor, label: "places.list")
        else { return [] }
        return entries.compactMap { entry in
            let path = folder + [0x2F] + entry.name
            guard let at = entry.name.lastIndex(of: 0x40),
                let name = String(validating: entry.name[..<at], as: UTF8.self), DomainName.isValid(name),
                let target = try? readLink(path, label: "places.read"), target.first == 0x2F
            else { return nil }
            return (path, Place(name: name, folder: target))
        }
    }

    // MARK: Noting

    /// A domain is mounted. Where no link can be made it is found by `--state-dir` alone, as before.
    static func note(_ place: Place) {
        guard (try? BaseFolders.state(domain: place.name)) != place.folder, let folder = try? linkFolder() else { return }
        let known = links()
        if known.contains(where: { $0.place == place }) { return }
        if known.count >= linkCountMax {
            for link in known where !isThere(link.place.folder) { _ = try? unlink(link.path, label: "places.prune") }
        }
        _ = try? makeFolders(folder, label: "places.folder")
        let link = folder + Array("/\(place.name)@\(number(of: place.folder))".utf8)
        _ = withCPath(place.folder) { target in withCPath(link) { symlink(target, $0) } }
    }

    static func forget(_ place: Place) {
        for link in links() where link.place == place { _ = try? unlink(link.path, label: "places.forget") }
        // While there are others it stays.
        if let folder = try? linkFolder() { _ = try? unlink(folder, isFolder: true, label: "places.rmdir") }
    }

    /// FNV-1a, which is the same in every process.
    private static func number(of path: [UInt8]) -> String {
        String(path.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }, radix: 16)
    }
}
