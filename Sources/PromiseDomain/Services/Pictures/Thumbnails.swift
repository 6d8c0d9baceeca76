import Logging
import PromiseContent
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

/// Makes and keeps pictures of documents, one at a time, so that a folder of them leaves the
/// machine to others.
package final class Thumbnails: Sendable {
    /// Pixels a side of what is kept; smaller ones are made from it.
    static let sizeMax = 1024

    struct Unsent {
        var nodes: Set<NodeID> = []
        /// A task looks after them.
        var isSending = false
    }

    let store: ThumbnailStore
    let shelf: PictureShelf
    /// Pictures that the provider is to be told of.
    let unsent = Mutex(Unsent())
    let pool = BlockingPool(name: "thumbnails", threads: 1)
    let tree: DomainTree
    let logger: Logger
    private let content: ContentStore
    private let known = Mutex<Thumbnailers?>(nil)
    private let hasEnded = Atomic(false)

    init(
        _ tree: DomainTree, _ content: ContentStore, folder: [UInt8], pollInterval: Duration,
        _ logger: Logger
    ) {
        self.tree = tree
        self.content = content
        self.logger = logger
        store = ThumbnailStore(folder: folder)
        shelf = PictureShelf(tree.provider, pollInterval: pollInterval)
    }

    /// The mount has ended: what is left is for the next one.
    var isOver: Bool { hasEnded.load(ordering: .relaxed) }

    func end() { hasEnded.store(true, ordering: .relaxed) }

    /// The system's programs, looked for at the first need.
    var programs: Thumbnailers {
        known.withLock { known in
            if let known { return known }
            let found = Thumbnailers(logger)
            known = found
            return found
        }
    }

    /// A PNG of at most `size` pixels a side: what an application saved, what the system's programs
    /// make of content that is here, or what the provider offers. Never fetches content. Throws
    /// `.notFound` when there is none.
    package func picture(of id: NodeID, size: Int) async throws(Failure) -> [UInt8] {
        let (node, entry) = try document(id)
        // A power cut may have left half of one.
        var picture = store.picture(of: id, PictureKey(node)).flatMap { PictureFile($0) == nil ? nil : $0 }
        if picture == nil {
            picture = try await makeThumbnail(node, entry.name)
            let isOwn = picture != nil
            if picture == nil { picture = try await fetchThumbnail(node, entry) }
            if let picture { try keep(picture, node, isOwn: isOwn) }
        }
        guard let picture, let dimensions = PictureFile(picture) else {
            throw Failure(
                .notFound,
                "there is no picture of it: none was saved, its content is not here, and the provider "
                    + "has none"
            )
        }
        if dimensions.side <= size { return picture }
        return try await reduced(picture, to: size)
    }

    /// Keeps a picture of the document as it is now.
    package func save(_ picture: [UInt8], of id: NodeID) throws(Failure) {
        let (node, _) = try document(id)
        try keep(picture, node, isOwn: true)
    }

    package func has(_ id: NodeID) -> Bool {
        guard let (node, _) = try? document(id) else { return false }
        return store.has(id, PictureKey(node))
    }

    /// Pictures of what has gone.
    func sweep() {
        let index = tree.index
        _ = store.sweep { node in
            let row = try? index.read { transaction throws(Failure) in try transaction.node(node) }
            return row != nil
        }
    }

    // MARK: - Below

    /// With the modification time that programs see: the index hears of a close a moment after it.
    func document(_ id: NodeID) throws(Failure) -> (Node, Entry) {
        let found = try tree.index.read { transaction throws(Failure) in
            (try transaction.node(id), try transaction.entries(of: id).first)
        }
        guard var node = found.0, let entry = found.1 else {
            throw Failure(.stale, "the item is gone")
        }
        guard node.kind == .file else { throw Failure(.invalid, "only files have pictures") }
        node.modificationTime = try tree.filesystem.attributes(of: id, handle: nil).attributes
            .modificationTime
        return (node, entry)
    }

    /// `isOwn`: it does not come from the provider, which is told of it.
    private func keep(_ picture: [UInt8], _ node: Node, isOwn: Bool) throws(Failure) {
        guard let dimensions = PictureFile(picture) else {
            throw Failure(.invalid, "a thumbnail is a whole PNG")
        }
        guard dimensions.side <= Thumbnails.sizeMax, picture.count <= ThumbnailStore.byteCountMax
        else {
            throw Failure(
                .invalid, "a thumbnail has at most \(Thumbnails.sizeMax) pixels a side and 8 MiB")
        }
        let isUnsent = isOwn && !tree.isReadOnly
        try store.keep(picture, of: node.id, PictureKey(node), isUnsent: isUnsent)
        if isUnsent { send(of: node.id) }
    }

    private func makeThumbnail(_ node: Node, _ name: FileName) async throws(Failure) -> [UInt8]? {
        guard node.content == .whole, node.size <= Thumbnailers.sourceByteCountMax else {
            return nil
        }
        return try await pool.run { [self] () throws(Failure) in
            let programs = programs
            guard let type = programs.type(of: name), programs.canMake(from: type) else {
                return nil
            }
            let source = try content.open(node.id, node.generation, writable: false)
            return programs.picture(from: type, size: Thumbnails.sizeMax) {
                file throws(SystemError) in
                if clone(source.number, to: file) { return }
                _ = try copyBytes(
                    from: source.number, at: 0, to: file, at: 0, count: node.size,
                    label: "thumbnail.copy")
            }
        }
    }

    private func fetchThumbnail(_ node: Node, _ entry: Entry) async throws(Failure) -> [UInt8]? {
        guard tree.engine.connectionFailure == nil,
            let (reference, version) = try provided(node.id, entry)
        else { return nil }
        let found: (bytes: [UInt8], note: PictureShelf.Note?)?
        do throws(ProviderError) {
            found = try await withDeadline(tree.patience, "the provider did not answer") {
                [shelf] () throws(ProviderError) in try await shelf.picture(of: reference, version)
            }
        } catch {
            // A picture that does not come is no picture.
            return nil
        }
        guard let (picture, note) = found else { return nil }
        if let note { store.noteKept(note.text, of: node.id) }
        guard PictureFile(picture) == nil else { return picture }
        return await converted(picture, from: "image/jpeg", size: Thumbnails.sizeMax)
    }

    /// What to call a document at the provider; nil while the provider does not have it as it is
    /// here.
    func provided(_ id: NodeID, _ entry: Entry) throws(Failure) -> (ItemReference, ContentVersion)?
    {
        guard let identifier = entry.identifier else { return nil }
        return try tree.index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id), let version = node.version,
                let synced = try transaction.synced(identifier), synced.edits == node.edits,
                try transaction.pending(.entry(entry.id)) == nil,
                let reference = try tree.engine.reference(to: identifier, transaction)
            else { return nil }
            return (reference, version)
        }
    }

    private func reduced(_ picture: [UInt8], to size: Int) async throws(Failure) -> [UInt8] {
        guard let smaller = await converted(picture, from: "image/png", size: size) else {
            throw Failure(
                .notSupported,
                "no program here makes pictures smaller; install a thumbnailer for PNG")
        }
        return smaller
    }

    private func converted(_ picture: [UInt8], from type: String, size: Int) async -> [UInt8]? {
        await pool.run { [self] in
            programs.picture(from: type, size: size) { file throws(SystemError) in
                try writeFully(file, picture, at: 0, label: "thumbnail.picture")
            }
        }
    }
}

extension PictureKey {
    init(_ node: Node) {
        self.init(
            modificationTime: node.modificationTime, edits: node.edits, generation: node.generation,
            version: node.version)
    }
}
