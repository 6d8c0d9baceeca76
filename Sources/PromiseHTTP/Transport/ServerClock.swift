import AsyncHTTPClient
import NIOHTTP1
package import PromiseCore
import PromiseProvider

/// What time it is at a server, by the date of an answer, whatever that is (RFC 9110, section 6.6.1).
package enum ServerClock {
    /// Nil when it does not answer, or says no time. Asked without a login.
    package static func time(of url: String, trust: ServerTrust) async -> Timestamp? {
        do throws(ProviderError) {
            let transport = try HTTPTransport(server: url, trust: trust, connections: 1)
            let response = try await transport.send(
                .HEAD, url, [:], body: nil, timeout: .seconds(5), isRepeatable: true,
                takesLong: false)
            return response.headers.first(name: "Date").flatMap { HTTPDate.timestamp($0) }
        } catch {
            return nil
        }
    }
}
