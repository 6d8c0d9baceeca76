package import PromiseCore

/// Links by which anybody reaches an item at the storage, without this program. Of a provider with the capability
/// `sharingLinks`.
package protocol SharingLinks: Sendable {
    /// `end`: when it stops to work, or a little sooner, where a storage counts in days; nil: as late as the storage lets it.
    /// Throws `.refused` with a sentence for what the storage cannot do, as a link to a folder, and for an end that has passed;
    /// `.notFound` for what is not there, where the storage keeps a list of its links.
    func make(to reference: ItemReference, kind: NodeKind, until end: Timestamp?) async throws(ProviderError) -> SharingLink

    /// Those that are to what is below the root of the mount, each once, 10,000 at most. Throws `.refused` where the storage
    /// keeps no list of them.
    func list() async throws(ProviderError) -> [SharingLink]

    /// Nobody reaches anything by it any more. Throws `.notFound` for what is none, `.refused` where a link lasts as long as it
    /// was made for.
    func revoke(_ identifier: String) async throws(ProviderError)
}

package struct SharingLink: Sendable, Hashable {
    /// For `revoke`; nil: it cannot be revoked.
    package var identifier: String?
    package var address: String
    /// From the root; nil: of what a listing does not say.
    package var path: [FileName]?
    package var end: Timestamp?

    package init(identifier: String? = nil, address: String, path: [FileName]?, end: Timestamp?) {
        (self.identifier, self.address, self.path, self.end) = (identifier, address, path, end)
    }
}
