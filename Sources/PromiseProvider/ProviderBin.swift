package import PromiseCore

/// What the storage itself keeps of what was removed from it, by whomever. Of a provider with the
/// capability `removedItems`.
package protocol ProviderBin: Sendable {
    /// The newest first, each once, the newest 10,000 at most; of what was below the root of the
    /// mount, as far as it is known where it was. Throws `.refused` where the storage does not show
    /// what it keeps.
    func list() async throws(ProviderError) -> [BinItem]

    /// Brings it back to where it was, with all that was in it, and replaces nothing. Throws
    /// `.notFound` when it is not kept any more, and `.conflict` with a sentence when its name is
    /// taken or its folder is gone: it is kept then as it was.
    func restore(_ item: BinItem) async throws(ProviderError)
}

package struct BinItem: Sendable, Hashable {
    /// The storage's own name of it: opaque.
    package var identifier: String
    /// Where it was, from the root; never the root itself.
    package var path: [FileName]
    package var kind: NodeKind
    package var size: UInt64
    /// Nil: the storage does not tell.
    package var modificationTime: Timestamp?
    package var removalTime: Timestamp

    package init(
        identifier: String, path: [FileName], kind: NodeKind, size: UInt64,
        modificationTime: Timestamp?, removalTime: Timestamp
    ) {
        (self.identifier, self.path, self.kind, self.size) = (identifier, path, kind, size)
        (self.modificationTime, self.removalTime) = (modificationTime, removalTime)
    }
}
