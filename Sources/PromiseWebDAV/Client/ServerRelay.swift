package import PromiseProvider

/// Leads to a server that this program starts itself, at another address and with another password each time, and which
/// remembers what it saw of a storage that others change.
package protocol ServerRelay: Sendable {
    /// Where it is now. `paths`: places, as in URLs, that a request depends on: of them the server must know what is there now.
    func station(lookingAt paths: [String]) async throws(ProviderError) -> ServerStation
}

package struct ServerStation: Sendable, Hashable {
    /// `http://127.0.0.1:40123`.
    package var origin: String
    /// The value of the header.
    package var authorization: String

    package init(origin: String, authorization: String) {
        self.origin = origin
        self.authorization = authorization
    }
}
