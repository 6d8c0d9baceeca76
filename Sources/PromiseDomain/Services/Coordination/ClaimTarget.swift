import Glibc
import PromiseCoordination
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

/// What one path of a claim stands for: an item, or a place at which nothing is yet.
struct ClaimTarget {
    let intent: Intent
    /// Nil for the root, which has no name.
    let place: TreePlace?
    /// What is granted is the place, whatever becomes of what was there.
    let isAboutPlace: Bool
    /// The name that was asked for; nil: the root, or a name that nothing has. No other one will do.
    let name: AskedName?
    /// The others, by which it is in other folders, and who has a claim on one of these is in the way.
    let otherNames: [Intent]

    /// An item, by the name that is at a place; nil: the root. Throws `.stale` when it has gone.
    init(
        _ node: NodeID, at asked: TreePlace?, _ access: Access, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let entries = try transaction.entries(of: node)
        let entry = entries.first { asked == TreePlace($0.name, in: $0.parent) } ?? entries.first
        // Of the name that was asked for: the others are in other folders.
        let above = try entry.flatMap { entry throws(Failure) in
            try transaction.foldersAbove(entry)
        }
        guard let folders = node == .root ? [] : above else {
            throw Failure(.stale, "the item is gone")
        }
        name = entry.map { AskedName($0, isOnlyOne: entries.count == 1) }
        let others = entries.filter { $0.id != entry?.id }
        otherNames = try ClaimTarget.intents(others, access, transaction)
        place = entry.map { TreePlace($0.name, in: $0.parent) }
        intent = Intent(
            node: node, folders: folders, access: access, place: place.map { .vacancy($0.name, in: $0.parent) },
            stayingNames: Set(others.map(\.id)))
        isAboutPlace = false
    }

    /// Whatever has the name, or nothing. Throws `.stale` when the folder has gone, `.notFolder` when it is none.
    init(
        _ place: TreePlace, _ options: WritingOptions, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let above = try transaction.foldersAbove(place.parent), let folder = try transaction.node(place.parent) else {
            throw Failure(.stale, "the folder is gone")
        }
        guard folder.kind == .folder else { throw Failure(.notFolder, "what it is to be in is no folder") }
        let entry = try transaction.entry(in: place.parent, named: place.name)
        let vacancy = NodeID.vacancy(place.name, in: place.parent)
        let others = try entry.map { entry throws(Failure) in
            try transaction.entries(of: entry.node).filter { $0.id != entry.id }
        }
        self.place = place
        intent = Intent(
            node: entry?.node ?? vacancy, folders: [place.parent] + above, access: .write(options), place: vacancy,
            stayingNames: Set((others ?? []).map(\.id)))
        isAboutPlace = entry == nil || options.contains(.forReplacing)
        name = entry.map { AskedName($0, isOnlyOne: others?.isEmpty ?? true) }
        otherNames = try ClaimTarget.intents(others ?? [], .write(options), transaction)
    }

    /// What is done to a name, as removing it, is not done to the others; what is done to the content is.
    private static func intents(
        _ names: [Entry], _ access: Access, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Intent] {
        var access = access
        if case .write(let options) = access {
            access = .write(options.subtracting([.forDeleting, .forMoving, .forReplacing]))
        }
        var result: [Intent] = []
        for name in names {
            guard let folders = try transaction.foldersAbove(name) else { continue }
            result.append(Intent(node: name.node, folders: folders, access: access))
        }
        return result
    }
}

/// Finds what claims are about. Lists folders at the provider when they are not known yet.
struct ClaimFinder {
    let tree: DomainTree
    let mountPoint: [UInt8]
    /// Links out of the mount are not looked at.
    let isConfined: Bool

    /// Whoever is to write may name what is not there yet, in a folder that is.
    func target(of path: [FileName], _ access: Access) async throws(Failure) -> ClaimTarget {
        if case .write(let options) = access, let name = path.last {
            let folder = try await tree.node(at: Array(path.dropLast()))
            try await tree.list(folder)
            return try tree.index.read { transaction throws(Failure) in
                try ClaimTarget(TreePlace(name, in: folder), options, transaction)
            }
        }
        var path = path
        if case .read(let options) = access, options.contains(.resolvesSymbolicLink) { path = try await resolved(path) }
        guard let name = path.last else {
            return try tree.index.read { transaction throws(Failure) in
                try ClaimTarget(.root, at: nil, access, transaction)
            }
        }
        let folder = try await tree.node(at: Array(path.dropLast()))
        try await tree.list(folder)
        // One look at all: a save may give the name to another node at any moment.
        return try tree.index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: folder, named: name) else {
                throw Failure(.notFound, "there is no '\(name.display)' in the mount")
            }
            return try ClaimTarget(
                entry.node, at: TreePlace(name, in: folder), access, transaction)
        }
    }

    /// As realpath(3), of links in the middle, and of those that lead out of the mount and back into it.
    private func resolved(_ path: [FileName]) async throws(Failure) -> [FileName] {
        var way = LinkWay(path, mountPoint: mountPoint)
        while let look = try way.next() {
            let target: [UInt8]?
            switch look {
            case .inside(let place):
                let node = try await tree.node(at: place)
                let isLink = try tree.index.read { transaction throws(Failure) in try transaction.node(node)?.target != nil }
                target = isLink ? try tree.filesystem.linkTarget(of: node) : nil
            case .outside(let place):
                if isConfined { throw LinkWay.isOutside }
                target = try await linkOutside(place)
            }
            if let target { try way.follow(target) } else { way.enter() }
        }
        return way.done
    }

    /// What a link elsewhere on this machine says; nil for what is none. On a thread of its own: a disk may never answer.
    private func linkOutside(_ path: [UInt8]) async throws(Failure) -> [UInt8]? {
        let attempt = Attempt {
            await withCheckedContinuation { continuation in
                OwnedThread(name: "link") { continuation.resume(returning: ClaimFinder.readLink(path)) }.detach()
            }
        }
        guard let result = await attempt.outcome(within: ClaimFinder.patience) else {
            throw Failure(.timedOut, "a link leads to a disk that does not answer")
        }
        return try result.get()
    }

    private static let patience = Duration.seconds(5)

    private static func readLink(_ path: [UInt8]) -> Result<[UInt8]?, Failure> {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = withCPath(path) { path in readlink(path, &target, target.count) }
        if count >= 0 { return .success(Array(target[..<count])) }
        switch errno {
        case EINVAL: return .success(nil)
        case ENOENT: return .failure(Failure(.notFound, "the link leads nowhere"))
        default: return .failure(LinkWay.isOutside)
        }
    }
}
