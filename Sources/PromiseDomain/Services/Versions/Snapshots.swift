import Glibc
import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// A file of its own beside the store: a document's content, sharing its blocks where the disk can,
/// or a folder as one ZIP archive. Removed when it is no longer held.
package final class Snapshot: Sendable {
    /// Absolute. The name is the item's; of a folder with `.zip` after it.
    package let path: [UInt8]
    private let folder: [UInt8]
    private let pool: BlockingPool

    init(path: [UInt8], folder: [UInt8], pool: BlockingPool) {
        self.path = path
        self.folder = folder
        self.pool = pool
    }

    deinit {
        pool.submit { [path, folder] in
            try? unlink(path, label: "snapshot.remove")
            try? unlink(folder, isFolder: true, label: "snapshot.removeFolder")
        }
    }
}

/// What a claim to read `forUploading` is given: the item as it was at one moment, so that writers
/// need not wait for the upload.
package final class Snapshots: Sendable {
    private static let attempts = 5

    let pool = BlockingPool(name: "snapshots", threads: 4)
    private let folder: [UInt8]
    private let count = Atomic<UInt64>(0)
    private let items: Items
    private let content: ContentStore
    private var index: Index { items.tree.index }

    init(folder: [UInt8], _ items: Items, _ content: ContentStore) {
        self.folder = folder
        self.items = items
        self.content = content
    }

    /// Makes a snapshot, of content that is fetched first where it is not here. The caller has a
    /// claim to read, so only programs that know nothing of claims may write meanwhile; then it is
    /// made again. Throws `.busy` when they do not stop.
    package func make(of id: NodeID) async throws(Failure) -> Snapshot {
        let end = SnapshotEnd()
        for _ in 0..<Snapshots.attempts {
            // Each time: others may have added files meanwhile, or content may have left.
            let root = try await bringHere(id)
            let made = try await end.unlessCancelled { [self] () async throws(Failure) in
                try await pool.run { [self] () throws(Failure) in try attempt(root, end) }
            }
            if let made { return made }
        }
        throw Failure(.busy, "the item is being written without end; stop the program that does it")
    }

    private func bringHere(_ id: NodeID) async throws(Failure) -> Node {
        let fetched = try await items.fetch(id) { _ in }
        if let (_, failure) = fetched.failures.first { throw failure }
        let nodes = try await items.descendants(of: id, listing: true)
        guard let root = nodes.first, root.kind == .file || root.kind == .folder else {
            throw Failure(.invalid, "only files and folders are uploaded")
        }
        return root
    }

    /// Nil when something was written meanwhile.
    private func attempt(_ root: Node, _ end: SnapshotEnd) throws(Failure) -> Snapshot? {
        let name = try index.read { transaction throws(Failure) in
            try transaction.path(of: root.id)?.last
        }
        let suffix = root.kind == .folder ? Array(".zip".utf8) : []
        let snapshot = try place(named: (name?.bytes ?? Array("root".utf8)) + suffix)
        return try write(root.id, to: snapshot.path, end) ? snapshot : nil
    }

    /// Those of a daemon that died.
    func sweep() {
        for folder in entries(of: folder) {
            for file in entries(of: folder) { try? unlink(file, label: "snapshot.sweep") }
            try? unlink(folder, isFolder: true, label: "snapshot.sweepFolder")
        }
    }

    // MARK: - Below

    private func entries(of folder: [UInt8]) -> [[UInt8]] {
        guard
            let open = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY, label: "snapshot.list.open"),
            let names = try? listFolder(open, label: "snapshot.list.read")
        else { return [] }
        return names.map { folder + [0x2F] + $0.name }
    }

    func place(named name: [UInt8]) throws(Failure) -> Snapshot {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        let folder = folder + Array("/\(number)".utf8)
        do throws(SystemError) {
            try makeFolders(folder, label: "snapshot.folder")
        } catch {
            throw Failure(error)
        }
        // A name may have 255 bytes already.
        let fitting = name.count > 255 ? Array("folder.zip".utf8) : name
        return Snapshot(path: folder + [0x2F] + fitting, folder: folder, pool: pool)
    }

    /// False when something was written meanwhile.
    private func write(_ id: NodeID, to path: [UInt8], _ end: SnapshotEnd) throws(Failure) -> Bool {
        let file: Descriptor
        do throws(SystemError) {
            file = try Descriptor.open(
                path, flags: O_RDWR | O_CREAT | O_TRUNC, mode: 0o600, label: "snapshot.create")
        } catch {
            throw Failure(error)
        }
        guard let root = try index.read({ transaction throws(Failure) in try transaction.node(id) })
        else {
            throw Failure(.stale, "the item is gone")
        }
        if root.kind == .folder {
            return try FolderArchive(index, content) { end.isReached }.write(id, to: file.number)
        }
        guard let source = try source(of: root) else { return false }
        if clone(source.descriptor, to: file.number) { return isUnchanged(source) }
        let isWhole: Bool
        do throws(SystemError) {
            let copied = try copyKeepingHoles(
                from: source.descriptor, at: 0, to: file.number, at: 0, count: source.size,
                label: "snapshot.copy")
            isWhole = copied == source.size
            try truncate(file.number, to: copied, label: "snapshot.size")
        } catch {
            throw Failure(error)
        }
        return isWhole && isUnchanged(source)
    }

    /// Nil when the content is not here just now.
    private func source(of node: Node) throws(Failure) -> UploadSource? {
        guard node.content == .whole else { return nil }
        return try UploadSource(content, node: node.id, generation: node.generation)
    }

    private func isUnchanged(_ source: UploadSource) -> Bool { (try? source.validate()) != nil }
}

/// Whoever waits for a snapshot may go before it is made.
private final class SnapshotEnd: Sendable {
    private let bit = Atomic(false)

    var isReached: Bool { bit.load(ordering: .relaxed) }

    func unlessCancelled(
        _ body: @Sendable () async throws(Failure) -> Snapshot?
    ) async throws(Failure) -> Snapshot? {
        let outcome: Result<Snapshot?, Failure> = await withTaskCancellationHandler {
            do throws(Failure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            bit.store(true, ordering: .relaxed)
        }
        return try outcome.get()
    }
}
