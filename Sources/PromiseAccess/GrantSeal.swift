import Crypto
import PromiseKeyValue

/// Authenticates what is stored of grants by the state folder's key: a row that was edited, made by
/// hand or copied from another domain gives no right.
package struct GrantSeal: Sendable {
    private let key: SymmetricKey

    /// Nil unless it is a key of the right size.
    package init?(key bytes: [UInt8]) {
        guard bytes.count == BookmarkSeal.keyByteCount else { return nil }
        // A key of its own: what seals bookmarks seals nothing else.
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("promisefs grants 1".utf8), using: SymmetricKey(data: bytes))
        key = SymmetricKey(data: Array(code))
    }

    /// Nil for a grant that is not stored.
    package func seal(_ grant: Grant) -> (record: [UInt8], seal: [UInt8])? {
        guard let record = grant.json?.encoded else { return nil }
        return (record, Array(HMAC<SHA256>.authenticationCode(for: record, using: key)))
    }

    /// Nil for what was not sealed by this key under this number.
    package func open(_ record: [UInt8], seal: [UInt8], as id: Int64) -> Grant? {
        guard HMAC<SHA256>.isValidAuthenticationCode(seal, authenticating: record, using: key),
            let grant = JSONReader.read(record).flatMap({ Grant($0) }), grant.id.rawValue == id
        else { return nil }
        return grant
    }
}
