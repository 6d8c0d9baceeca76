import PromiseCore
import PromiseIndex
import PromiseProvider

extension HydrationJob.Source {
    /// The item that a node's content comes from, its version and size. Of several names it is one that has the version that
    /// is being fetched, or else one that was sent the same edit: the name that had the version may have been removed here.
    /// A node whose last name stands for another content now, or is gone, is fetched from where it was before, for those who have
    /// it open: a provider may still have it.
    static func of(_ job: HydrationJob, in index: Index) throws(ProviderError) -> HydrationJob.Source {
        do throws(Failure) {
            let source: HydrationJob.Source? = try index.read { transaction throws(Failure) in
                let edits = try transaction.node(job.node)?.edits
                var other: HydrationJob.Source?
                for entry in try transaction.entries(of: job.node) {
                    guard let identifier = entry.identifier, let path = try transaction.remotePath(of: identifier)
                    else { continue }
                    let reference = ItemReference(identifier: identifier, path: path)
                    guard let synced = try transaction.synced(identifier) else {
                        other = other ?? HydrationJob.Source(reference: reference, version: job.version, size: nil)
                        continue
                    }
                    var found = HydrationJob.Source(reference: reference, version: job.version, size: synced.item.size)
                    if synced.item.version == job.version { return found }
                    if other == nil { other = found }
                    found.version = synced.item.version
                    if synced.edits == edits { other = found }
                }
                return other
            }
            guard let source = source ?? job.source else {
                throw Failure(.stale, "the provider does not have it any more")
            }
            return source
        } catch {
            throw ProviderError(error.code == .stale ? .notFound : .permanent, error.message)
        }
    }
}
