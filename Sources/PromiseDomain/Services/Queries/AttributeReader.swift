import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync

/// Looks up what is known of an item beyond its row.
struct AttributeReader: Sendable {
    let domainName: String
    let filesystem: FileSystem
    let engine: SyncEngine

    func attributes(
        of item: IndexedItem, _ needs: ItemAttributes.Needs, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemAttributes {
        var result = ItemAttributes(item: item, domainName: domainName)
        if needs.contains(.path) {
            result.path = try transaction.path(of: item.entry.parent).map { $0 + [item.entry.name] }
        }
        if needs.contains(.state) {
            let pending = try transaction.pending(.entry(item.entry.id))
            result.state = filesystem.state(of: item.node, item.entry, pending)
            result.isPending = pending != nil
            result.uploadProgress = engine.uploadProgress.of(item.node.id)
            result.error = pending?.error == nil ? nil : pending?.message
        }
        if needs.contains(.tags) {
            result.tags = try transaction.attribute(Array("user.xdg.tags".utf8), of: item.node.id)
        }
        if needs.contains(.progress), item.node.kind == .file, item.node.content != .whole {
            if let (present, size) = engine.hydrator.progress(of: item.node.id), size > 0 {
                result.progress = Double(present) / Double(size)
            }
            result.downloadingError = engine.hydrator.problem(of: item.node.id)?.message
        }
        return result
    }
}
