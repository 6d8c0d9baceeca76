import PromiseCore
import PromiseProvider
import PromiseSystem

/// GET requests that are signed before: whoever has one may send it until it ends. The server knows
/// of none of them.
struct S3SharingLinks: SharingLinks {
    /// What servers let a signature last at most.
    private static let secondsMax = 7 * 86_400

    let bucket: S3Bucket

    func make(
        to reference: ItemReference, kind: NodeKind, until end: Timestamp?
    ) async throws(ProviderError) -> SharingLink {
        guard kind == .file else {
            throw ProviderError(.refused, "a bucket has links to files only, and this is a \(kind)")
        }
        let now = bucket.clock.now()
        var seconds = S3SharingLinks.secondsMax
        if let end {
            let left = end.nanoseconds(since: now) / 1_000_000_000
            guard left > 0 else { throw ProviderError(.refused, "that date has passed") }
            guard left <= Int64(seconds) else {
                throw ProviderError(
                    .refused,
                    "a link to an object of a bucket ends after seven days at most: "
                        + "say an earlier date"
                )
            }
            seconds = Int(left)
        }
        let address = try await bucket.client.link(
            to: bucket.names.key(reference.path), at: now, seconds: seconds)
        return SharingLink(
            address: address, path: reference.path,
            end: address.contains("?") ? now.advanced(by: .seconds(seconds)) : nil)
    }

    func list() async throws(ProviderError) -> [SharingLink] {
        throw ProviderError(
            .refused,
            "links to a bucket are signed here and kept nowhere, so there is no list of them")
    }

    func revoke(_ identifier: String) async throws(ProviderError) {
        throw ProviderError(
            .refused,
            "a link to an object of a bucket cannot be revoked: it ends when it was made to, "
                + "or with the access key, or with the object")
    }
}
