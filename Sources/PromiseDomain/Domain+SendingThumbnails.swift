import Logging
import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

// The provider is told of pictures that were saved or made here, so that other machines have them without the content.

extension Domain {
    /// Between two looks at what the provider does not have yet, as a document has to be uploaded first.
    private static let thumbnailPauses: (shortest: Duration, longest: Duration) = (.seconds(1), .seconds(10))

    /// Goes on with what an earlier daemon left.
    func resumeSendingThumbnails() {
        for node in thumbnails.store.unsent() { sendThumbnail(of: node) }
        tidyPictures()
        services.moveNotes.whenTold { [weak self] in self?.tidyPictures() }
    }

    private func tidyPictures() {
        Task { [weak self] in await self.map { PictureTidying(domain: $0) }?.run() }
    }

    /// Soon, and as often as it takes; the first picture starts the task that ends with the last one.
    func sendThumbnail(of node: NodeID) {
        let isFirst = thumbnails.unsent.withLock { unsent in
            unsent.nodes.insert(node)
            defer { unsent.isSending = true }
            return !unsent.isSending
        }
        if isFirst { Task { [weak self] in await Domain.sendThumbnails(of: { [weak self] in self }) } }
    }

    /// The domain is held only while something is sent, so that it can end in between.
    private static func sendThumbnails(of domain: @escaping @Sendable () -> Domain?) async {
        var pause = thumbnailPauses.shortest
        while true {
            try? await Task.sleep(for: pause)
            guard let current = domain(), !current.isOver else { return }
            let waiting = current.thumbnails.unsent.withLock { unsent in
                defer { unsent.nodes = [] }
                return unsent.nodes
            }
            var left: Set<NodeID> = []
            for node in waiting.sorted() {
                if await !current.isThumbnailSettled(node) { left.insert(node) }
                if current.isOver { return }
            }
            let isEmpty = current.thumbnails.unsent.withLock { unsent in
                // Another picture of the same document may have come meanwhile.
                for node in waiting where !left.contains(node) && !unsent.nodes.contains(node) {
                    current.thumbnails.store.markSent(node)
                }
                unsent.nodes.formUnion(left)
                unsent.isSending = !unsent.nodes.isEmpty
                return unsent.nodes.isEmpty
            }
            if isEmpty { return await PictureTidying(domain: current).run() }
            pause = left == waiting ? min(pause * 2, thumbnailPauses.longest) : thumbnailPauses.shortest
        }
    }

    /// Whether nothing is left to do about a picture: the provider has it, will never have it, or the document has changed.
    private func isThumbnailSettled(_ id: NodeID) async -> Bool {
        guard engine.connectionFailure == nil else { return false }
        do throws(Failure) {
            let (node, entry) = try document(id)
            let picture = await thumbnails.pool.run { [thumbnails] in
                thumbnails.store.picture(of: id, PictureKey(node))
            }
            guard let picture else { return true }
            guard let (reference, version) = try provided(id, entry) else { return entry.isExcluded }
            // It stays when the content is evicted, which has the version that the provider gave it.
            try thumbnails.store.renew(picture, of: id, PictureKey(node))
            guard thumbnails.shelf.keepsPictures else { return true }
            return await isSent(picture, id, reference, version)
        } catch {
            return error.code == .stale || error.code == .invalid
        }
    }

    private func isSent(
        _ picture: [UInt8], _ node: NodeID, _ reference: ItemReference, _ version: ContentVersion
    ) async -> Bool {
        do throws(ProviderError) {
            let note = try await withDeadline(configuration.requestDeadline, "the provider did not answer") {
                [thumbnails] () throws(ProviderError) in try await thumbnails.shelf.keep(picture, of: reference, version)
            }
            if let note { thumbnails.store.noteKept(note.text, of: node) }
            return true
        } catch {
            switch error.code {
            // A change on its way here makes the picture one of an old version, which is seen when it has come.
            case .retry, .retryAfter, .offline, .authenticate, .cancelled, .conflict, .notFound: return false
            default: break
            }
            logger.info("the provider does not take a picture", metadata: ["reason": "\(error.message)"])
            return true
        }
    }
}
