import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

// The provider is told of pictures that were saved or made here, so that other machines have them
// without the content.

extension Thumbnails {
    /// Between two looks at what the provider does not have yet, as a document has to be uploaded
    /// first.
    private static let pauses: (shortest: Duration, longest: Duration) = (.seconds(1), .seconds(10))

    /// Goes on with what an earlier daemon left.
    func resumeSending(_ moves: MoveNotes) {
        for node in store.unsent() { send(of: node) }
        tidyPictures()
        moves.whenTold { [weak self] in self?.tidyPictures() }
    }

    private func tidyPictures() {
        Task { [weak self] in await self.map { PictureTidying(thumbnails: $0) }?.run() }
    }

    /// Soon, and as often as it takes; the first picture starts the task that ends with the last
    /// one.
    func send(of node: NodeID) {
        let isFirst = unsent.withLock { unsent in
            unsent.nodes.insert(node)
            defer { unsent.isSending = true }
            return !unsent.isSending
        }
        if isFirst { Task { [weak self] in await Thumbnails.sendAll(of: { [weak self] in self }) } }
    }

    /// The domain is held only while something is sent, so that it can end in between.
    private static func sendAll(of thumbnails: @escaping @Sendable () -> Thumbnails?) async {
        var pause = pauses.shortest
        while true {
            try? await Task.sleep(for: pause)
            guard let current = thumbnails(), !current.isOver else { return }
            let waiting = current.unsent.withLock { unsent in
                defer { unsent.nodes = [] }
                return unsent.nodes
            }
            var left: Set<NodeID> = []
            for node in waiting.sorted() {
                if await !current.isSettled(node) { left.insert(node) }
                if current.isOver { return }
            }
            let isEmpty = current.unsent.withLock { unsent in
                // Another picture of the same document may have come meanwhile.
                for node in waiting where !left.contains(node) && !unsent.nodes.contains(node) {
                    current.store.markSent(node)
                }
                unsent.nodes.formUnion(left)
                unsent.isSending = !unsent.nodes.isEmpty
                return unsent.nodes.isEmpty
            }
            if isEmpty { return await PictureTidying(thumbnails: current).run() }
            pause = left == waiting ? min(pause * 2, pauses.longest) : pauses.shortest
        }
    }

    /// Whether nothing is left to do about a picture: the provider has it, will never have it, or
    /// the document has changed.
    private func isSettled(_ id: NodeID) async -> Bool {
        guard tree.engine.connectionFailure == nil else { return false }
        do throws(Failure) {
            let (node, entry) = try document(id)
            let picture = await pool.run { [self] in
                store.picture(of: id, PictureKey(node))
            }
            guard let picture else { return true }
            guard let (reference, version) = try provided(id, entry) else {
                return entry.isExcluded
            }
            // It stays when the content is evicted, which has the version that the provider gave
            // it.
            try store.renew(picture, of: id, PictureKey(node))
            guard shelf.keepsPictures else { return true }
            return await isSent(picture, id, reference, version)
        } catch {
            return error.code == .stale || error.code == .invalid
        }
    }

    private func isSent(
        _ picture: [UInt8], _ node: NodeID, _ reference: ItemReference, _ version: ContentVersion
    ) async -> Bool {
        do throws(ProviderError) {
            let note = try await withDeadline(tree.patience, "the provider did not answer") {
                [shelf] () throws(ProviderError) in
                try await shelf.keep(picture, of: reference, version)
            }
            if let note { store.noteKept(note.text, of: node) }
            return true
        } catch {
            switch error.code {
            // A change on its way here makes the picture one of an old version, which is seen when
            // it has come.
            case .retry, .retryAfter, .offline, .authenticate, .cancelled, .conflict, .notFound:
                return false
            default: break
            }
            logger.info(
                "the provider does not take a picture", metadata: ["reason": "\(error.message)"])
            return true
        }
    }
}
