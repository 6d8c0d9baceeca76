package import AsyncHTTPClient
import Crypto
import Glibc
import NIOCore
import NIOSSL
import PromiseCore
package import PromiseProvider
import PromiseSystem

/// Which server over TLS is believed to be the one that was named.
package enum ServerTrust: Sendable, Hashable {
    /// One whose certificate an authority has signed that this machine trusts.
    case system
    /// One whose certificate an authority of this PEM file has signed, or that is itself in the file and signed by itself; under
    /// the name and at the time that it is for. The system's authorities do not count.
    case authorities(file: String)
    /// The one whose certificate has this SHA-256, whatever the name, the time and whoever has signed it.
    case fingerprint([UInt8])

    private static let mark = "sha256:"

    /// `sha256:` and 64 hexadecimal digits, with or without colons between them, or the path of a PEM file. Throws a sentence on
    /// what is neither.
    package init(parsing text: String) throws(ProviderError) {
        guard text.lowercased().hasPrefix(ServerTrust.mark) else {
            self = .authorities(file: text)
            _ = try roots()
            return
        }
        let digits = text.dropFirst(ServerTrust.mark.count).replacing(":", with: "")
        guard let digest = PercentEncoding.decoded(hexadecimal: digits), digest.count == SHA256.byteCount else {
            throw ProviderError(
                .permanent,
                "'\(text)' is no SHA-256 of a certificate: 'openssl x509 -noout -fingerprint -sha256 -in FILE' shows it")
        }
        self = .fingerprint(digest)
    }

    private func roots() throws(ProviderError) -> [NIOSSLCertificate]? {
        guard case .authorities(let file) = self else { return nil }
        guard let bytes = readSmallFile(Array(file.utf8), countMax: 4 << 20) else {
            throw ProviderError(.permanent, "the certificate file '\(file)' cannot be read")
        }
        guard let found = try? NIOSSLCertificate.fromPEMBytes(bytes), !found.isEmpty else {
            throw ProviderError(.permanent, "'\(file)' holds no certificate in PEM ('-----BEGIN CERTIFICATE-----')")
        }
        return found
    }

    /// For connections on which something is sent, each of which `examine` has to be asked about, too. Throws a sentence when the
    /// file has gone wrong meanwhile.
    package func apply(to configuration: inout HTTPClient.Configuration) throws(ProviderError) {
        switch self {
        case .system: break
        case .authorities:
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = try roots().map { .certificates($0) }
            configuration.tlsConfiguration = tls
        case .fingerprint: configuration.tlsConfiguration = ServerTrust.unverified
        }
    }

    /// A new connection, before anything is sent. The handshake has proved that the server has the certificate's key.
    func examine(_ channel: any Channel) -> EventLoopFuture<Void> {
        guard case .fingerprint(let expected) = self else { return channel.eventLoop.makeSucceededVoidFuture() }
        return channel.nioSSL_peerCertificate().flatMapThrowing { certificate in
            let found = try certificate.map { try ServerTrust.fingerprint(of: $0) }
            guard found == expected else { throw DistrustedServer(fingerprint: found, isPinned: true) }
        }
    }

    /// Of connections whose certificate is looked at otherwise.
    private static var unverified: TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        return tls
    }

    private static func fingerprint(of certificate: NIOSSLCertificate) throws -> [UInt8] {
        Array(SHA256.hash(data: try certificate.toDERBytes()))
    }

    /// For one connection on which nothing is sent: fails with a `DistrustedServer` that says what is wrong with a certificate
    /// that was refused. Libraries tell only that it was.
    static func examination(at time: Int) -> HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .seconds(10)
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.tlsConfiguration = unverified
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.nioSSL_peerCertificate().flatMapThrowing { certificate in
                var report = DistrustedServer()
                if let certificate {
                    report.fingerprint = try fingerprint(of: certificate)
                    if certificate.notValidAfter < time { report.ended = certificate.notValidAfter }
                    if certificate.notValidBefore > time { report.begins = certificate.notValidBefore }
                }
                throw report
            }
        }
        return configuration
    }

    /// Whether a connection failed as the certificate was not believed.
    static func isDistrust(_ error: any Error) -> Bool {
        if case .handshakeFailed(.sslError(let reasons))? = error as? NIOSSLError {
            return reasons.contains { $0.description.contains("CERTIFICATE_VERIFY_FAILED") }
        }
        return false
    }

    static func isOtherName(_ error: any Error) -> Bool { (error as? NIOSSLExtraError) == .failedToValidateHostname }
}

/// Why a server is not believed to be the one that was named.
struct DistrustedServer: Error {
    var fingerprint: [UInt8]?
    /// It is not the one certificate that was named.
    var isPinned = false
    /// Seconds since 1970: the certificate was valid until then, or will be from then on.
    var ended: Int?
    var begins: Int?

    func sentence(_ trust: ServerTrust) -> String {
        if let ended { return "its certificate ended on \(day(ended)): its owner must renew it" }
        if let begins { return "its certificate begins on \(day(begins)): is this machine's clock right?" }
        let shown = fingerprint.map { "sha256:" + hexadecimalText($0) } ?? "none"
        if isPinned { return "its certificate is \(shown), another than --certificate names" }
        let missing =
            if case .authorities(let file) = trust { "nobody in '\(file)' has" } else { "nobody that this machine trusts has" }
        return "\(missing) signed its certificate; name the authority's file or, once you know it for its own, "
            + "\(shown) with --certificate"
    }

    private func day(_ seconds: Int) -> String {
        var (seconds, parts) = (time_t(seconds), tm())
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
    }
}
