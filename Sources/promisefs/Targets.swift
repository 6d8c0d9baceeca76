import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// `--json`, which every command takes.
struct OutputOptions: ParsableArguments {
    @Flag(name: .long, help: "Print JSON: one document, or one object a line where a command goes on.")
    var json = false
}

/// The threads for system calls that block: the concurrent pool must not wait.
enum Blocking {
    private static let pool = BlockingPool(name: "command", threads: 2)

    static func run<Value: Sendable, Problem: Error>(
        _ body: @escaping @Sendable () throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        try await pool.run(body)
    }
}

/// Finds what a command is about.
enum Targets {
    static func table() async throws(PromiseError) -> MountTable {
        try await Blocking.run { () throws(PromiseError) in try MountTable.current() }
    }

    /// Those that commands are about that look at all of them: this user's; of everybody as root, whose own come first.
    static func mounts() async throws(PromiseError) -> [MountEntry] {
        let (table, user) = (try await table(), geteuid())
        return table.promiseMounts(of: user) + (user == 0 ? table.promiseMounts.filter { $0.user != 0 } : [])
    }

    /// Those that commands change something of that are told of none: this user's.
    static func ownMounts() async throws(PromiseError) -> [MountEntry] {
        try await table().promiseMounts(of: geteuid())
    }

    /// Of a path on a mount; of a word that is none, the mount of the domain with that name.
    /// `namesDomain`: the operand is a domain, whose name goes before a file of that name.
    static func location(
        of path: PathArgument, namesDomain: Bool = false
    ) async throws(PromiseError) -> Location {
        try await Blocking.run { () throws(PromiseError) in
            let table = try MountTable.current()
            return try Targets.location(of: path.bytes, in: table, namesDomain: namesDomain)
        }
    }

    /// The same by a mount table. Blocking.
    static func location(
        of path: [UInt8], in table: MountTable, namesDomain: Bool
    ) throws(PromiseError) -> Location {
        do throws(PromiseError) {
            return try Location.of(path, in: table)
        } catch {
            // A domain's name is its user's; root may mean somebody else's.
            let mounts = table.promiseMounts.filter { $0.isCalled(path) }
            let user = geteuid()
            guard error.kind == .notPromiseFS else { throw error }
            guard let some = mounts.last else {
                throw UnmountedDomains.sentence(for: path) ?? error
            }
            // What is here is meant itself: the whole domain would be far more than was named.
            let isHere = (try? FileStatus.of(path, label: "targets.look")) != nil
            guard namesDomain || !isHere else { throw error }
            guard let mount = mounts.last(where: { $0.user == user }) ?? (user == 0 ? some : nil)
            else {
                let whose = "the domain '\(some.domain)' is mounted by \(some.userName), not by you"
                throw PromiseError(.notPromiseFS, whose, exitStatus: ExitStatus.notPromiseFS)
            }
            return try Location.of(mount.mountPoint, in: table)
        }
    }

    /// The one that is meant: of this name, or the only one that is mounted.
    static func mount(ofDomain domain: String?, saidBy option: String? = nil) async throws -> MountEntry {
        // No name has a slash: a path on the mount stands for it, as elsewhere the name stands for it.
        if let path = domain, path.contains("/") || path == "." || path == ".." {
            return try await location(of: PathArgument(bytes: RawArguments.bytes(of: path))).mount
        }
        let all = try await Targets.mounts().filter { domain == nil || $0.domain == domain }
        let own = all.filter { $0.user == geteuid() }
        let mounts = own.isEmpty ? all : own
        guard let mount = mounts.first else {
            let what = domain.map { "no domain '\($0)' is mounted" } ?? "no domain is mounted"
            throw CommandFailure(
                "\(what); try: promisefs mount --help", exitStatus: ExitStatus.notPromiseFS)
        }
        guard Set(mounts.map(\.domain)).count == 1 else {
            let names = mounts.map(\.domain).joined(separator: ", ")
            let how = option.map { " with \($0)" } ?? ""
            throw CommandFailure(
                "several domains are mounted: say which\(how) (\(names))",
                exitStatus: ExitStatus.usage)
        }
        return mount
    }

    /// Of a path on it; without one the only one of this user's.
    static func onlyMount(of path: PathArgument?) async throws -> MountEntry {
        if let path { return try await location(of: path, namesDomain: true).mount }
        let mounts = try await ownMounts()
        guard let mount = mounts.first else {
            throw CommandFailure(
                "no domain is mounted; try: promisefs mount --help", exitStatus: ExitStatus.notPromiseFS)
        }
        if mounts.count > 1 {
            throw CommandFailure(
                "\(mounts.count) domains are mounted; give a path on one of them", exitStatus: ExitStatus.usage)
        }
        return mount
    }

    typealias DomainLocations = (mount: MountEntry, locations: [Location])

    /// The paths by domain, in the order in which domains first appear; paths that are on none are
    /// noted as failures.
    static func byDomain(
        _ paths: [PathArgument], _ failures: inout FailureCollector
    ) async -> [DomainLocations] {
        var result: [DomainLocations] = []
        for path in paths {
            do throws(PromiseError) {
                add(try await location(of: path), to: &result)
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        return result
    }

    /// The same with the documents that links on a mount lead to, for what is about content, which
    /// a link has none of. `keepsOthers`: a link that leads to no item of a mount is meant itself.
    static func documentsByDomain(
        _ paths: [PathArgument], keepsOthers: Bool, _ failures: inout FailureCollector
    ) async -> [DomainLocations] {
        var result: [DomainLocations] = []
        for (mount, locations) in await byDomain(paths, &failures) {
            // Looking at the mount of a silent daemon would not end; the command hears of it.
            var isLookedAt = locations.contains { !$0.isMountPoint }
            if isLookedAt {
                let top = try? await PromiseClient(mount: mount).information(path: [])
                isLookedAt = top != nil
            }
            for location in locations {
                do throws(PromiseError) {
                    let isPlain = location.isMountPoint || !isLookedAt
                    let found = isPlain ? location : try await followed(location, keepsOthers)
                    add(found, to: &result)
                } catch {
                    failures.note(CommandFailure(error))
                }
            }
        }
        return result
    }

    private static func add(_ location: Location, to result: inout [DomainLocations]) {
        let index = result.firstIndex { $0.mount.isOfSameDomain(as: location.mount) }
        if let index {
            result[index].locations.append(location)
        } else {
            result.append((location.mount, [location]))
        }
    }

    private static func followed(
        _ location: Location, _ keepsOthers: Bool
    ) async throws(PromiseError) -> Location {
        try await Blocking.run { () throws(PromiseError) in
            let status = try? FileStatus.of(location.absolutePath, label: "targets.link")
            guard status?.kind == .link else { return location }
            let (table, target) = (try MountTable.current(), realPath(location.absolutePath))
            if let target, let found = Location.ofResolved(target, in: table) { return found }
            if keepsOthers { return location }
            let link = "'\(escapedForDisplay(location.absolutePath))' is a link that leads"
            guard let target else {
                throw PromiseError(.local, "\(link) nowhere", exitStatus: ExitStatus.failed)
            }
            throw PromiseError(
                .notPromiseFS, "\(link) out of the mount, to \(escapedForDisplay(target))",
                exitStatus: ExitStatus.notPromiseFS)
        }
    }
}

/// An item's path as people see it: below the mount point.
func shownPath(_ path: String, on mount: MountEntry) -> String {
    let folder = escapedForDisplay(mount.mountPoint)
    if path == "/" || path.isEmpty { return folder }
    // Of a bind mount, which has a part of the domain.
    let root = escapedForDisplay(mount.root)
    if root != "/" {
        if path == root { return folder }
        if path.hasPrefix(root + "/") { return folder + path.dropFirst(root.count) }
    }
    return (folder == "/" ? "" : folder) + path
}
