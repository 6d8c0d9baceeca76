import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider

/// Brings the pictures at the provider up to what is here: those of documents that have gone go, and
/// those of documents that are elsewhere now are put there. Done at the mount, when documents were
/// moved, and after pictures were sent.
struct PictureTidying: Sendable {
    let thumbnails: Thumbnails

    private enum Place {
        case gone
        case here(PrivateName)
        /// The provider does not have it as it is here.
        case unknown
    }

    func run() async {
        if thumbnails.tree.isReadOnly { return }
        let (store, shelf) = (thumbnails.store, thumbnails.shelf)
        for (node, text) in store.kept().sorted(by: { $0.key < $1.key }) {
            guard !thumbnails.isOver, let note = PictureShelf.Note(text) else { continue }
            let isGone: Bool
            switch place(of: node) {
            case .unknown: continue
            case .here(let name):
                if name == note.name { continue }
                isGone = false
            case .gone: isGone = true
            }
            do throws(ProviderError) {
                try await withDeadline(thumbnails.tree.patience, "the provider did not answer") {
                    () throws(ProviderError) in try await shelf.remove(note)
                }
            } catch {
                // The next time.
                return
            }
            store.noteKept(nil, of: node)
            if isGone { continue }
            store.markUnsent(node)
            thumbnails.send(of: node)
        }
    }

    private func place(of node: NodeID) -> Place {
        do throws(Failure) {
            let isThere = try thumbnails.tree.index.read { transaction throws(Failure) in try transaction.node(node) != nil }
            guard isThere else { return .gone }
            let (_, entry) = try thumbnails.document(node)
            guard let (reference, _) = try thumbnails.provided(node, entry),
                let name = thumbnails.shelf.name(of: reference)
            else { return .unknown }
            return .here(name)
        } catch {
            return .unknown
        }
    }
}
